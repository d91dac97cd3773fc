"""Judged traffic sent through the real change detection: settle, clusters, baselines, bets."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from collector.estimates.detect import Detection
from collector.estimates.measures import Measure
from collector.estimates.options import ClusterOptions, DetectionOptions
from collector.pipeline.clock import ManualClock
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.records.settled import Settled
from collector.telemetry.events import Events
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


class Lines(logging.Handler):
    """Keeps what was logged: (event, fields)."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, object]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append((record.__dict__["event"], record.__dict__["fields"]))


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
        self.lines = Lines()
        self.logger = logging.Logger("detection")
        self.logger.addHandler(self.lines)
        self.detection = Detection(
            DetectionOptions.model_validate(self.options),
            measures=self.measures,
            lower={"noncommittal"},
            segment_names=self.segments,
            clusters=ClusterOptions.model_validate({"by": self.by}),
            seed="seed",
            clock=self.clock,
            telemetry=self.telemetry,
            events=Events(self.telemetry, self.clock, self.logger),
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
        return [fields for name, fields in self.lines.seen if name == event]

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


def lowered(rng: Random, size: int, drop: float) -> Floats:
    """Scores whose mean is `drop` lower: a share of them is 0 instead of 1."""
    made = scores(rng, size)
    lost = rng.random(size) < drop / 0.75
    return np.where(lost & (made == 1), 0.0, made)
