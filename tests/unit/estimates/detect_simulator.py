"""Judged traffic sent through the real change detection: settle, clusters, baselines, bets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collector.estimates.detect import Detection
from collector.estimates.measures import Measure
from collector.estimates.options import ClusterOptions, DetectionOptions
from collector.pipeline.clock import ManualClock
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.records.settled import Settled
from collector.telemetry.events import Event, Events
from collector.telemetry.instruments import Telemetry
from collector.telemetry.spec import MetricSpec
from scorers.interaction import Interaction
from scorers.outcome import Outcome, Result, Score
from scorers.scorer import Kind, Tier
from tests.unit.estimates.estimates_simulator import Floats, Random, scores

FAITH = Measure("faithfulness", Kind.JUDGED)
REFUSES = Measure("noncommittal", Kind.JUDGED)
LOCAL = Measure("faithfulness", Kind.LOCAL, Tier.FAST)
READY = 100.5 / 86_400
"""`level_days` that `warm_up` just passes: its last interaction is the first bet, so M is 1."""
EVERY = (FAITH, REFUSES, LOCAL)


class Told(Events):
    """Remembers every event beside telling it; the log leaves out what comes too often."""

    def __init__(self, telemetry: Telemetry, clock: ManualClock) -> None:
        logger = logging.Logger("detection")
        logger.addHandler(logging.NullHandler())
        super().__init__(telemetry, clock, logger)
        self.all: list[Event] = []

    def tell(self, event: Event, error: BaseException | None = None) -> None:
        self.all.append(event)
        super().tell(event, error)


@dataclass
class World:
    """Change detection with all that it needs. `options` are those of detection; a world may go on from the `kept` rows
    of another, `at` seconds after its start."""

    options: dict[str, object] = field(default_factory=dict)
    segments: tuple[str, ...] = ("service",)
    measures: Sequence[Measure] = EVERY
    by: tuple[str, ...] = ("session", "question")
    kept: dict[str, bytes] = field(default_factory=dict)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.clock = ManualClock()
        self.clock.advance(self.at)
        self.telemetry = Telemetry()
        self.events = Told(self.telemetry, self.clock)
        self.detection = Detection(
            DetectionOptions.model_validate(self.options),
            measures=self.measures,
            lower={"noncommittal"},
            segment_names=self.segments,
            clusters=ClusterOptions.model_validate({"by": self.by}),
            seed="seed",
            clock=self.clock,
            telemetry=self.telemetry,
            events=self.events,
        )
        if self.kept:
            self.detection.restore(self.kept)
        self.number = 0

    def settle(
        self,
        *judged: tuple[str, Outcome | float],
        p: float = 1.0,
        least: float | None = None,
        u: float = 1.0,
        highest_u: float = 1.0,
        local: float | None = None,
        screening: float = 1.0,
        session: str | None = None,
        question: str | None = None,
        service: str = "other",
        fate: Fate = Fate.QUEUED,
        fingerprint: str = "j1",
        attempt: int = 0,
    ) -> None:
        self.number += 1
        name = str(self.number)
        results = tuple(
            Result(
                name,
                metric,
                Kind.JUDGED,
                Score(outcome) if isinstance(outcome, float) else outcome,
                "1",
                fingerprint,
                attempt=attempt,
            )
            for metric, outcome in judged
        )
        screened: tuple[Result, ...] = ()
        if local is not None:
            screened = (Result(name, LOCAL.metric, LOCAL.kind, Score(local), "1", "f", tier=LOCAL.tier),)
        found = Found(Interaction(name, question=question), session=session)
        decision = Decision(fate, p, "rate", u, False, p if least is None else least, highest_u)
        self.detection.settle(
            Settled(found, decision, screened, results, (("service", service),), screening_probability=screening)
        )

    def feed(self, values: Iterable[float], *, every: float, metric: str = "faithfulness", **more: object) -> None:
        """Unrelated interactions, `every` seconds each."""
        for value in values:
            self.clock.advance(every)
            self.settle((metric, float(value)), **more)  # type: ignore[arg-type]  # handed through

    def values(self, spec: MetricSpec) -> dict[tuple[str, ...], float]:
        for family in self.detection.families():
            if family.spec is spec:
                return dict(family.samples)
        return {}

    def told(self, event: str) -> list[dict[str, object]]:
        return [dict(one.fields) for one in self.events.all if one.name == event]

    def of(self, name: str):  # type: ignore[no-untyped-def]  # what `watched` gives
        (one,) = [one for one in self.detection.watched() if one.series == name]
        return one


def given(mean: float, threshold: float, **more: object) -> dict[str, object]:
    """Options with one given level of faithfulness in total, one interaction a cluster, and this threshold."""
    return {
        "metrics": ["faithfulness"],
        "by_segment": False,
        "levels": [{"metric": "faithfulness", "mean": mean}],
        "judged_per_month": threshold,
        "level_days": READY,
        **more,
    }


def warm_up(world: World, mean: float = 0.9) -> None:
    """What a given level needs before it is watched: time, and weights."""
    world.feed([mean] * 101, every=1.0)


@dataclass
class Stream:
    """Judged answers in the order in which they come. `p` are probabilities, all at least `least`; `session` says what
    belongs together."""

    y: Floats
    p: Floats | None = None
    least: float = 1.0
    session: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.y)


def independent(rng: Random, size: int, drop: float = 0.0) -> Stream:
    """Unrelated answers, all judged."""
    return Stream(lowered(rng, size, drop))


def by_score(rng: Random, size: int, drop: float = 0.0) -> Stream:
    """What looks bad is judged more often: good answers are the heavy ones. Size is of judged ones."""
    y = lowered(rng, 8 * size, drop)
    p = np.where(y < 0.5, 1.0, np.where(y < 1, 0.4, 0.1))
    judged = rng.random(len(y)) < p
    return Stream(y[judged][:size], p[judged][:size], 0.1)


def sessions(rng: Random, size: int, *, mean_size: float = 6.0, share: float = 0.9) -> Stream:
    """Sessions of geometric size, whose answers mostly share one score; many run at a time."""
    return _grouped(rng, size, lambda common: rng.geometric(1 / mean_size, len(common)), share)


def asked_again(rng: Random, size: int) -> Stream:
    """What got a bad answer is asked again: the worse it was the more often."""
    return _grouped(rng, size, lambda common: rng.geometric(1 / (1 + 8 * (1 - common))), 1.0)


def _grouped(rng: Random, size: int, sizes: Callable[[Floats], NDArray[np.int64]], share: float) -> Stream:
    common = scores(rng, size)
    of = np.repeat(np.arange(size), sizes(common))[:size]
    y = np.where(rng.random(size) < share, common[of], scores(rng, size))
    # A session's answers come among those of a few others.
    order = np.argsort(np.arange(size) + rng.uniform(0, 20, size), kind="stable")
    return Stream(y[order], session=of[order])


def alarms(worlds: Sequence[World], stream: Stream, *, every: float, first: bool = False) -> list[int]:
    """After how many judged answers there were alarms; each is acknowledged, so M is 0 again. With several worlds they
    are replicas that share the stream by chance (by session), and their evidence is summed as Prometheus does.
    `first` stops at the first alarm."""
    found: list[int] = []
    series = "faithfulness"
    last = [0] * len(worlds)
    evidence = [0.0] * len(worlds)
    threshold = sum(watch.threshold or 0.0 for one in worlds for watch in one.detection.watched()[:1])
    for number in range(len(stream)):
        session = None if stream.session is None else str(stream.session[number])
        belongs = number if stream.session is None else int(stream.session[number])
        here = (belongs * 2_654_435_761 >> 9) % len(worlds)
        world = worlds[here]
        for one in worlds:
            one.clock.advance(every)
        p = 1.0 if stream.p is None else float(stream.p[number])
        world.settle((series, float(stream.y[number])), p=p, least=stream.least, session=session)
        if len(worlds) == 1:
            if len(world.events.all) == last[0]:
                continue
            alarm = world.events.all[-1].name == "quality_drifted"
            last[0] = len(world.events.all)
        else:
            shown = world.detection.watched()[0]
            evidence[here] = (shown.evidence or 0.0) * (1 + (shown.threshold or 0.0)) - 1
            alarm = sum(evidence) >= threshold
        if alarm:
            found.append(number + 1)
            if first:
                return found
            for place, one in enumerate(worlds):
                one.detection.acknowledge(series)
                last[place] = len(one.events.all)
                evidence[place] = 0.0
    return found


def ready(
    mean: float,
    threshold: float,
    *,
    weight: float = 1.0,
    least: float = 1.0,
    by: tuple[str, ...] = ("session", "question"),
) -> World:
    """A world that watches faithfulness at this level and threshold from now on, having seen this mean weight."""
    world = World(given(mean, threshold), by=by)
    world.feed([mean] * 101, every=1.0, p=1 / weight, least=least)
    world.detection.reset("faithfulness")
    return world


def lowered(rng: Random, size: int, drop: float) -> Floats:
    """Scores whose mean is `drop` lower: a share of them is 0 instead of 1."""
    made = scores(rng, size)
    lost = rng.random(size) < drop / 0.75
    return np.where(lost & (made == 1), 0.0, made)
