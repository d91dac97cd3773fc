"""Synthetic traffic sent through the real estimates: settle, sums, formulas. For tests and the benchmark.

Scores are three quarters exactly 1, the rest Beta(2, 1.85): mean 0.880, sd 0.225, as judged faithfulness often looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collector.estimates.estimates import Estimates
from collector.estimates.measures import Measure
from collector.estimates.options import ClusterOptions, Options
from collector.estimates.window import Estimate, Window
from collector.pipeline.clock import ManualClock
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.records.settled import Settled
from collector.stats.groups import group_interval
from collector.stats.interval import logit_interval, wald_interval
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason, Outcome, Result, Score
from scorers.scorer import Kind, Tier

Floats = NDArray[np.float64]
Random = np.random.Generator
JUDGED = Measure("faithfulness", Kind.JUDGED, None, "j")
LOCAL = Measure("faithfulness", Kind.LOCAL, Tier.FAST, "f")
PERFECT = 0.75
MEAN = PERFECT + (1 - PERFECT) * 2.0 / 3.85


def scores(rng: Random, size: int) -> Floats:
    """Independent scores."""
    return np.where(rng.random(size) < PERFECT, 1.0, rng.beta(2.0, 1.85, size))


def screened(rng: Random, y: Floats, noise: float = 0.12) -> Floats:
    """Local scores that tell something about the judged ones."""
    return np.asarray(np.clip(0.15 + 0.6 * y + rng.normal(0, noise, len(y)), 0, 1))


@dataclass
class Traffic:
    """One window of a process: what came in, what upstream left of it, and the probability with which we judge."""

    y: Floats
    p: Floats
    u: Floats
    f: Floats | None = None
    session: NDArray[np.int64] | None = None
    question: NDArray[np.int64] | None = None
    not_applicable: NDArray[np.bool_] | None = None
    failed: NDArray[np.bool_] | None = None


Scheme = Callable[[Random, Floats, Floats], tuple[Floats, Floats]]
"""(random, y, f) to (p, u): our inclusion probability and upstream's adjusted count."""


def uniform(rng: Random, y: Floats, f: Floats) -> tuple[Floats, Floats]:
    return np.full(len(y), 0.2), np.ones(len(y))


def stratified(rng: Random, y: Floats, f: Floats) -> tuple[Floats, Floats]:
    """Two segments unlike in quality, one judged five times as often."""
    bad = rng.random(len(y)) < np.where(y < 1, 0.6, 0.2)
    return np.where(bad, 0.5, 0.1), np.ones(len(y))


def by_score(rng: Random, y: Floats, f: Floats) -> tuple[Floats, Floats]:
    """Low and uncertain local scores are judged more often."""
    return np.select([f < 0.5, f < 0.7], [1.0, 0.4], 0.1), np.ones(len(y))


def shed(rng: Random, y: Floats, f: Floats) -> tuple[Floats, Floats]:
    """The budget halves the rate for the second half, and quality falls with load: y is sorted by then."""
    late = np.arange(len(y)) >= len(y) // 2
    return np.where(late, 0.15, 0.3), np.ones(len(y))


def upstream(rng: Random, y: Floats, f: Floats) -> tuple[Floats, Floats]:
    """Errors and slow traces are kept, the rest one in four."""
    return np.full(len(y), 0.4), np.where(rng.random(len(y)) < np.where(y < 0.6, 0.7, 0.2), 1.0, 4.0)


def mix(rng: Random, y: Floats, f: Floats) -> tuple[Floats, Floats]:
    """Upstream sampling, score-dependent probabilities and shedding together."""
    _, u = upstream(rng, y, f)
    late = np.arange(len(y)) >= len(y) // 2
    return np.select([f < 0.5], [0.8], 0.3) * np.where(late, 0.5, 1.0), np.where(u > 1, 2.0, 1.0)


SCHEMES: dict[str, Scheme] = {
    "uniform": uniform,
    "stratified": stratified,
    "score-dependent": by_score,
    "budget-shed": shed,
    "upstream": upstream,
    "mix": mix,
}


def independent(rng: Random, size: int, scheme: Scheme, *, local: bool = True) -> Traffic:
    """Unrelated interactions, sampled by a scheme. Without `local` the local scores are left out of the estimates."""
    y = scores(rng, size)
    f = screened(rng, y)
    p, u = scheme(rng, y, f)
    return Traffic(y, p, u, f if local else None)


def clustered(
    rng: Random, clusters: int, *, by: str, mean_size: float = 6.0, share: float = 0.9, local: bool = True
) -> Traffic:
    """Sessions (or bursts of one question) of geometric size, whose interactions mostly share one score."""
    sizes = rng.geometric(1 / mean_size, clusters)
    of = np.repeat(np.arange(clusters), sizes)
    common = scores(rng, clusters)[of]
    y = np.where(rng.random(len(of)) < share, common, scores(rng, len(of)))
    order = rng.permutation(len(of))
    keys = of[order]
    f = screened(rng, y[order]) if local else None
    made = Traffic(y[order], np.full(len(of), 0.5), np.ones(len(of)), f)
    if by == "session":
        made.session = keys
    else:
        made.question = keys
    return made


def make(telemetry: Telemetry | None = None, *, max_clusters: int = 10_000) -> Estimates:
    return Estimates(
        Options(clusters=ClusterOptions(max_judged=max_clusters, max_local=max_clusters)),
        declared=[JUDGED, LOCAL],
        segment_names=[],
        clock=ManualClock(),
        telemetry=telemetry or Telemetry(),
    )


def settlements(rng: Random, traffic: Traffic) -> Iterator[Settled]:
    """What our own sampling makes of the traffic that upstream let through; only the judged where f is not known."""
    size = len(traffic.y)
    arrives = rng.random(size) < 1 / traffic.u
    kept = rng.random(size) < traffic.p
    for i in np.flatnonzero(arrives if traffic.f is not None else arrives & kept):
        name = str(i)
        interaction = Interaction(
            name, question=f"question {traffic.question[i]}" if traffic.question is not None else None
        )
        found = Found(interaction, session=f"s{traffic.session[i]}" if traffic.session is not None else None)
        local: tuple[Result, ...] = ()
        if traffic.f is not None:
            local = (
                Result(name, LOCAL.metric, LOCAL.kind, Score(float(traffic.f[i])), "1", "f", tier=LOCAL.tier),
            )
        fate = Fate.QUEUED if kept[i] else Fate.SAMPLED_OUT
        judged: tuple[Result, ...] = ()
        if kept[i]:
            outcome: Outcome = Score(float(traffic.y[i]))
            if traffic.not_applicable is not None and traffic.not_applicable[i]:
                outcome = NotApplicable(NotApplicableReason.NO_CLAIMS)
            elif traffic.failed is not None and traffic.failed[i]:
                outcome = Failed(FailedReason.BAD_REPLY)
            judged = (Result(name, JUDGED.metric, JUDGED.kind, outcome, "1", "j"),)
        yield Settled(found, Decision(fate, float(traffic.p[i]), "any", float(traffic.u[i])), local, judged)


def sums(estimates: Estimates) -> dict[str, list[float]]:
    """Every family's samples by its name, as a scrape gives them."""
    return {family.spec.name: [value for _, value in family.samples] for family in estimates.families()}


@dataclass
class Seen:
    """Over many runs: how often each interval held the truth, and how far its point was from it."""

    truth: float
    inside: dict[str, list[bool]] = field(default_factory=dict)
    points: dict[str, list[float]] = field(default_factory=dict)
    widths: dict[str, list[float]] = field(default_factory=dict)
    n_eff: list[float] = field(default_factory=list)
    gain: list[float] = field(default_factory=list)
    ratio: list[float] = field(default_factory=list)

    def add(self, name: str, point: float, lower: float, upper: float) -> None:
        self.inside.setdefault(name, []).append(lower <= self.truth <= upper)
        self.points.setdefault(name, []).append(point)
        self.widths.setdefault(name, []).append(upper - lower)

    def coverage(self, name: str) -> float:
        return float(np.mean(self.inside[name]))

    def bias(self, name: str) -> float:
        """Mean error in standard errors of a single run."""
        points = np.array(self.points[name])
        return float((points.mean() - self.truth) / points.std())

    def width(self, name: str) -> float:
        return float(np.mean(self.widths[name]))


def simulate(make_traffic: Callable[[Random], Traffic], *, runs: int, seed: int, truth: float = MEAN) -> Seen:
    """Many windows; beside ours (`shown`, `cluster`, `groups`, `control`) the item interval, Wald's, and the plain
    mean of what was judged with its standard error (`naive`). Runs below an effective n of 20 draw no interval."""
    rng = np.random.default_rng(seed)
    telemetry = Telemetry()
    seen = Seen(truth)
    for _ in range(runs):
        estimates = make(telemetry)
        y: list[float] = []
        for settled in settlements(rng, make_traffic(rng)):
            estimates.settle(settled)
            y += [r.outcome.value for r in settled.judged if isinstance(r.outcome, Score)]
        shown = estimates.estimate(JUDGED, Window.HOUR)
        if shown.lower is None or shown.upper is None or shown.mean is None:
            continue
        seen.n_eff.append(shown.n_eff)
        seen.gain.append(shown.gain or 1.0)
        seen.ratio.append(shown.cluster_ratio or np.nan)
        seen.add("shown", shown.mean, shown.lower, shown.upper)
        _compare(seen, estimates, shown, np.array(y))
    return seen


def _compare(seen: Seen, estimates: Estimates, shown: Estimate, y: Floats) -> None:
    scraped = sums(estimates)
    five = [scraped[spec.name][0] for spec in metrics.JUDGED_SUMS]
    clusters = tuple(scraped[spec.name][0] for spec in metrics.JUDGED_CLUSTERS)
    cluster = logit_interval(*five, clusters=(clusters[0], clusters[1], clusters[2]))
    groups = group_interval(five[1], *(scraped[spec.name] for spec in metrics.JUDGED_GROUPS))
    for name, interval in (
        ("cluster", cluster),
        ("item", logit_interval(*five)),
        ("wald", wald_interval(*five)),
        ("groups", groups),
    ):
        seen.add(name, float(interval.mean), float(interval.lower), float(interval.upper))
    if shown.controlled and shown.mean is not None and shown.lower is not None and shown.upper is not None:
        seen.add("control", shown.mean, shown.lower, shown.upper)
    half = 1.96 * y.std(ddof=1) / len(y) ** 0.5
    seen.add("naive", float(y.mean()), float(y.mean() - half), float(y.mean() + half))
