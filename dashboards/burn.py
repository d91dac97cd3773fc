"""Which burn-rate alerts can work: how many answers a window needs, and which windows give them.

A page at burn rate b fires when the share of bad answers is over r = b (1 - SLO) in a long and a short window (Site
Reliability Workbook, chapter 5). With r >= 1 it can never fire; with few answers in the short window it fires by
chance; `collector.stats.burn` says how many it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from collector.stats.burn import BurnRateImpossible, minimum_n
from dashboards.options import DAY, HOUR, Objective

SHORT_WINDOWS = (HOUR // 2, HOUR, 2 * HOUR, 6 * HOUR, DAY)
"""In seconds. Nothing shorter: at 100 answers an hour five minutes hold eight."""
LEAST_N = 5


@dataclass(frozen=True, slots=True)
class Burn:
    """A burn rate, with the window in seconds over which it eats the given share of a 30-day error budget."""

    rate: float
    long: int
    severity: str
    budget_share: str


BURNS = (
    Burn(14.4, HOUR, "critical", "2 %"),
    Burn(6, 6 * HOUR, "critical", "5 %"),
    Burn(3, DAY, "warning", "10 %"),
)
"""1x and 1.5x would need hundreds to thousands of answers in the short window."""


@dataclass(frozen=True, slots=True)
class Page:
    """An alert that can work: `short` in seconds, and the effective number of answers it needs."""

    burn: Burn
    short: int
    needed: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """A burn rate for which no alert is made, and why."""

    burn: Burn
    reason: str


@lru_cache(maxsize=64)
def needed_bad(rate: float, false_alarm: float) -> float:
    """The expected number of bad answers (effective n x error budget) from which on a page at `rate` is safe for
    every target: the limit of `minimum_n` for small budgets, where the Poisson tail bounds the binomial one
    (Anderson and Samuels 1967)."""
    steps = 1_000
    found = _from_there_on(
        lambda n: _poisson_tail(n / steps, _over(rate, n / steps)), false_alarm, steps * 40, stride=10
    )
    return math.ceil(found / steps * 100) / 100


def plan(objective: Objective, *, false_alarm: float) -> list[Page | Refusal]:
    """For each burn rate the shortest short window that holds enough answers, or why there is none."""
    return [_plan(objective, burn, false_alarm) for burn in BURNS]


def _plan(objective: Objective, burn: Burn, false_alarm: float) -> Page | Refusal:
    try:
        needed = max(LEAST_N, minimum_n(objective.target, burn.rate, false_alarm))
    except BurnRateImpossible as error:
        return Refusal(burn, str(error))
    for short in SHORT_WINDOWS:
        if objective.judged_per_hour * short / HOUR >= needed and 2 * short <= burn.long:
            return Page(burn, short, needed)
    return Refusal(
        burn,
        f"its short window needs {needed} answers; {objective.judged_per_hour:g} an hour take "
        f"{needed / objective.judged_per_hour:.1f} h, over half of the long window of {burn.long / HOUR:g} h",
    )


def _over(limit: float, n: float) -> int:
    """The least count whose share of n is over the limit."""
    return math.floor(limit * n + 1e-9) + 1


def _from_there_on(tail: Callable[[int], float], false_alarm: float, highest: int, *, stride: int = 1) -> int:
    """One more than the largest n up to `highest` whose tail is over the false alarm allowed."""
    for n in range(highest, LEAST_N - 1, -stride):
        if tail(n) > false_alarm:
            return n + stride
    return LEAST_N


def _poisson_tail(mean: float, least: int) -> float:
    """P(X >= least) for X Poisson(mean)."""
    return _sum(i * math.log(mean) - mean - math.lgamma(i + 1) for i in range(least, least + 400))


def _sum(logs: Iterable[float]) -> float:
    """Sum of falling terms given by their logarithms; ends where they no longer matter."""
    total = 0.0
    for log in logs:
        term = math.exp(log) if log > -700 else 0.0
        total += term
        if term < total * 1e-12 or term == 0.0:
            break
    return total
