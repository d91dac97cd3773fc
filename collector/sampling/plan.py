"""What the configured sampling makes of a given traffic: how many judged, at what cost, how sure the means will be.

Assumed interactions are sent through the real policies on a clock of their own; the budget's cut is the one that
`Budget` settles on under constant traffic. From the probabilities p and scores y follow, for a window of N
interactions, the expected sums W = N, W2 = N E[1/p], WY = N E[y], W2Y = N E[y/p], W2Y2 = N E[y^2/p], so the
effective n = W^2/W2 and the interval that would be shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collector.pipeline.clock import ManualClock
from collector.records.found import Found, Mark
from collector.sampling.budget import Cut
from collector.sampling.options import BudgetOptions, Options
from collector.sampling.policies import floor_of, make
from collector.sampling.policy import Policies
from collector.sampling.scores import ScoresOptions
from collector.sampling.segments import Segments
from collector.sampling.stratified import StratifiedOptions
from collector.stats.interval import logit_interval, n_eff
from scorers.interaction import Interaction
from scorers.outcome import Result, Score
from scorers.scorer import Kind, Tier

Floats = NDArray[np.float64]

WINDOWS: Mapping[str, float] = {"5m": 1 / 12, "30m": 0.5, "1h": 1.0, "6h": 6.0, "1d": 24.0, "7d": 168.0}
"""Windows of the estimates, in hours."""
DRAW_N = 20.0
"""Effective n from which an interval is drawn."""
MAX_TRAFFIC_PER_HOUR = 2_000_000.0
_SAMPLE = 20_000
_WARM_UP_MINUTES = 3
# Beta(a, b) with a + b = 3.85 for the scores below 1, the spread of Beta(2, 1.85).
_BETA_TOTAL = 3.85


class PlanError(ValueError):
    """The assumptions can not be planned with; the text says which value, and what to give."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Assumed scores: a share exactly 1, the others by a beta distribution, with this mean and standard deviation
    (0.88 and 0.23: three quarters exactly 1). The local score is linear in the judged one plus normal noise, clipped
    to [0, 1], and correlates with it by about `correlation` before it is clipped."""

    mean: float = 0.88
    sd: float = 0.23
    correlation: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.mean < 1:
            raise PlanError(f"mean score {self.mean:g} must lie between 0 and 1, like 0.88")
        if not 0 < self.correlation <= 1:
            raise PlanError(f"correlation {self.correlation:g} must be above 0 and at most 1, like 0.5")
        lowest, highest = self._sd_of(self.mean), self._sd_of(0.0)
        if not lowest <= self.sd < highest:
            raise PlanError(
                f"scores with mean {self.mean:g} have a standard deviation between {lowest:.3f} and {highest:.3f} "
                f"here, not {self.sd:g}"
            )

    def _sd_of(self, beta_mean: float) -> float:
        """The standard deviation where the scores below 1 have this mean: E[(1-y)^2] is
        (1-mean) ((1-r) + r/(a+b+1)) with r that mean."""
        bad = 1 - self.mean
        second = bad * ((1 - beta_mean) + beta_mean / (_BETA_TOTAL + 1))
        return float(max(second - bad**2, 0.0) ** 0.5)

    def draw(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        """Judged and local scores of `size` independent interactions."""
        bad = 1 - self.mean
        r = (1 - (self.sd**2 + bad**2) / bad) / (1 - 1 / (_BETA_TOTAL + 1))
        below = rng.beta(_BETA_TOTAL * r, _BETA_TOTAL * (1 - r), size)
        y = np.where(rng.random(size) < bad / (1 - r), below, 1.0)
        slope = 0.6
        noise = slope * self.sd * (1 / self.correlation**2 - 1) ** 0.5
        local = np.clip(0.15 + slope * y + noise * rng.standard_normal(size), 0.0, 1.0)
        return y, local


@dataclass(frozen=True, slots=True)
class Traffic:
    """Assumed traffic. `parts` holds, by the name of a segment (or of an attribute that rules look at), the parts of
    the traffic that bear each value; `marks` the share of interactions with each mark. All are independent."""

    per_hour: float
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    marks: Mapping[Mark, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.per_hour <= MAX_TRAFFIC_PER_HOUR:
            raise PlanError(
                f"traffic of {self.per_hour:g} an hour must be above 0 and at most {MAX_TRAFFIC_PER_HOUR:,.0f}: give "
                "that of one process"
            )
        for name, values in self.parts.items():
            if not all(0 <= part < float("inf") for part in values.values()) or sum(values.values()) <= 0:
                raise PlanError(f"the parts of {name!r} must be numbers from 0 on, and not all 0: {dict(values)}")
        for mark, share in self.marks.items():
            if not 0 <= share <= 1:
                raise PlanError(f"the share of {mark.value} is {share:g}, and must lie in [0, 1]")


@dataclass(frozen=True, slots=True)
class Price:
    """What one judged interaction takes: judge calls, and US dollars (None = not known)."""

    calls: float
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What a window will show; the interval is None below an effective n of 20."""

    judged: float
    n_eff: float
    half_width: float | None


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way of sampling. `n_eff_per_judged` is Kish's, E[p]^-1 E[1/p]^-1, at most 1; `variance` the variance of the
    mean at the same number judged, relative to a uniform rate (below 1 is better)."""

    judged_per_hour: float
    calls_per_day: float
    usd_per_day: float | None
    n_eff_per_judged: float
    variance: float
    windows: Mapping[str, Expected]

    @property
    def n_eff_per_hour(self) -> float:
        return self.windows["1h"].n_eff


@dataclass(frozen=True, slots=True)
class Part:
    """One value of a segment."""

    segment: str
    value: str
    per_hour: float
    scheme: Scheme


@dataclass(frozen=True, slots=True)
class Plan:
    """The configured policies beside a uniform rate that judges as many. `wanted_per_hour` is what the policies would
    judge without a budget, `allowed_per_day` what the budget pays for (None = no limit), `over_budget` whether
    more is judged than that, because no probability falls below `lowest`."""

    wanted_per_hour: float
    allowed_per_day: float | None
    cut: Cut
    over_budget: bool
    configured: Scheme
    uniform: Scheme
    parts: Sequence[Part]


def plan(options: Options, traffic: Traffic, scores: Scores, price: Price, *, seed: int = 1) -> Plan:
    """Plan one process's sampling. Raises PlanError where traffic or scores can not be."""
    y, wanted, labels = _simulate(options, traffic, scores, np.random.default_rng(seed))
    floor = floor_of(options)
    allowed = allowed_per_day(options.budget, price)
    total = float(wanted.mean()) * traffic.per_hour
    cut = Cut()
    if allowed is not None:
        cut = Cut.to(allowed / 24, seen=traffic.per_hour, wanted=total, floor=floor)
    p = np.array([cut.of(one, floor=floor, lowest=options.lowest) for one in wanted])
    configured = _scheme(p, y, traffic.per_hour, price)
    parts = []
    for at, segment in enumerate(options.segments):
        of = np.array([label[at][1] for label in labels])
        values, counts = np.unique(of, return_counts=True)
        if len(values) > 1:
            for value, count in zip(values, counts, strict=True):
                rate = traffic.per_hour * int(count) / len(of)
                chosen = of == value
                parts.append(Part(segment.name, str(value), rate, _scheme(p[chosen], y[chosen], rate, price)))
    return Plan(
        wanted_per_hour=total,
        allowed_per_day=allowed,
        cut=cut,
        over_budget=allowed is not None and configured.judged_per_hour * 24 > allowed * 1.001,
        configured=configured,
        uniform=_scheme(np.full(len(p), p.mean()), y, traffic.per_hour, price),
        parts=parts,
    )


def allowed_per_day(budget: BudgetOptions, price: Price) -> float | None:
    """Interactions that the day's budget pays for; None where nothing limits them."""
    limits = []
    if budget.calls_per_day is not None and price.calls > 0:
        limits.append(budget.calls_per_day / price.calls)
    if budget.usd_per_day is not None and price.usd:
        limits.append(budget.usd_per_day / price.usd)
    return min(limits) * budget.share if limits else None


def _simulate(
    options: Options, traffic: Traffic, scores: Scores, rng: np.random.Generator
) -> tuple[Floats, Floats, list[tuple[tuple[str, str], ...]]]:
    """Scores, the policies' probabilities and segment values of assumed interactions, after a warm-up in which the
    policies learn the traffic."""
    learns = any(isinstance(one, StratifiedOptions) for one in options.policies)
    size = _SAMPLE + (max(int(traffic.per_hour / 60 * _WARM_UP_MINUTES), _SAMPLE // 10) if learns else 0)
    y, local = scores.draw(rng, size)
    gaps = rng.exponential(3600 / traffic.per_hour, size)
    chosen = {
        name: rng.choice(np.array(list(values)), size, p=_shares(values)) for name, values in traffic.parts.items()
    }
    marked = {mark: rng.random(size) < share for mark, share in traffic.marks.items()}
    attributes = {segment.name: segment.attribute for segment in options.segments}
    # The local score stands for whichever metric a policy looks at.
    metrics = sorted({one.metric for one in options.policies if isinstance(one, ScoresOptions)})
    clock = ManualClock()
    segments = Segments(options.segments)
    policies = Policies(make(options, segments=segments.of, clock=clock), floor=floor_of(options), seed="plan")
    probabilities = np.empty(size)
    labels = []
    for i in range(size):
        clock.advance(float(gaps[i]))
        name = str(i)
        bearing = {attributes.get(key, key): str(values[i]) for key, values in chosen.items()}
        found = Found(
            Interaction(name),
            service=bearing.pop("service", "application"),
            attributes=bearing,
            marks=frozenset(mark for mark, has in marked.items() if has[i]),
        )
        results = [
            Result(name, metric, Kind.LOCAL, Score(float(local[i])), "", "", tier=Tier.FAST) for metric in metrics
        ]
        probabilities[i] = policies.decide(found, results).probability
        labels.append(segments.of(found))
    since = size - _SAMPLE
    return y[since:], probabilities[since:], labels[since:]


def _shares(values: Mapping[str, float]) -> Floats:
    parts = np.array(list(values.values()), float)
    return np.asarray(parts / parts.sum())


def _scheme(p: Floats, y: Floats, per_hour: float, price: Price) -> Scheme:
    rate = float(p.mean())
    inverse = 1 / p
    m = float(y.mean())
    variance = float(((y - m) ** 2).mean())
    heavy = float(((y - m) ** 2 * inverse).mean()) * rate
    return Scheme(
        judged_per_hour=per_hour * rate,
        calls_per_day=24 * per_hour * rate * price.calls,
        usd_per_day=None if price.usd is None else 24 * per_hour * rate * price.usd,
        n_eff_per_judged=1 / (rate * float(inverse.mean())),
        variance=heavy / variance if variance > 0 else 1.0,
        windows={name: _window(per_hour * hours, rate, inverse, y) for name, hours in WINDOWS.items()},
    )


def _window(size: float, rate: float, inverse: Floats, y: Floats) -> Expected:
    w2 = size * float(inverse.mean())
    n = float(n_eff(size, w2))
    half: float | None = None
    if n >= DRAW_N:
        shown = logit_interval(
            size,
            w2,
            size * float(y.mean()),
            size * float((y * inverse).mean()),
            size * float((y**2 * inverse).mean()),
        )
        half = float(shown.upper - shown.lower) / 2
    return Expected(size * rate, n, half)
