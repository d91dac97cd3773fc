"""A change detector with a bounded rate of false alarms, for scores of which high is good.

An e-detector of Shiryaev-Roberts type, made of bets (Shin, Ramdas and Rinaldo 2023, "E-detectors: a nonparametric
framework for sequential change detection"; the bets are those of Waudby-Smith and Ramdas 2023, "Estimating means of
bounded random variables by betting"). It watches the claim

    at every step, given the past, the weighted mean of scores is at least m

and needs no distribution of the scores, only that weights have an enforced upper bound.

    x = mean over a cluster's scored items of w (m - y)
    M_j <- M_j (1 + lambda_j x) + n            n items in the cluster, M_j = 0 at the start
    M   =  mean of M_1 .. M_5                  alarm when M >= A

While the claim holds, E(x | past) <= 0, so M - (items so far) is a supermartingale, and by optional stopping the
expected number of items until the alarm is at least A. The same holds for the sum of M over replicas and the items of
all of them. n is added *after* the factor: added before it, clusters in which bad answers are asked again would bring
more alarms than one in A.

The claim is about the mean of cluster means: a question that is asked forty times in a row counts once, and so does a
session.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

LADDER = 5
"""Bets of one detector. The largest reacts to large falls in few items, the smallest to small ones."""
_MARGIN = 1.1
"""How far a bet stays from losing everything at once."""
POWER_LIMIT = 50.0
"""Highest possible weight over the mean weight from which on a detector is slow: the bound on bets takes them all."""


def ladder(m: float, mean_weight: float) -> tuple[float, ...]:
    """The wished bets: lambda_j = 2^-j / (mean_weight (1 - m)), j = 1..5, with mean_weight = W2/W of the baseline.

    `m` in (0, 1), `mean_weight` over 0.
    """
    if not 0 < m < 1 or not 0 < mean_weight < math.inf:
        raise ValueError(f"m ({m}) must lie between 0 and 1, and the mean weight ({mean_weight}) over 0")
    return tuple(2.0**-j / (mean_weight * (1 - m)) for j in range(1, LADDER + 1))


class Detector:
    """The state of one detector: five logarithms. ln M never overflows, however large M is.

    `m` is the level that the mean should not be below, in (0, 1); `mean_weight` is W2/W of the baseline, frozen.
    """

    __slots__ = ("_bets", "_logs", "m", "mean_weight")

    def __init__(self, m: float, mean_weight: float, logs: Sequence[float] | None = None) -> None:
        self._bets = ladder(m, mean_weight)
        self.m = m
        self.mean_weight = mean_weight
        self._logs = [-math.inf] * LADDER
        if logs is not None:
            if len(logs) != LADDER or any(math.isnan(log) or log == math.inf for log in logs):
                raise ValueError(f"a detector has {LADDER} logarithms below infinity, not {list(logs)}")
            self._logs = list(logs)

    @property
    def logs(self) -> tuple[float, ...]:
        """ln M_j; minus infinity where M_j is 0."""
        return tuple(self._logs)

    def bet(self, x: float, items: int, highest_weight: float) -> None:
        """Place the bet of one cluster that has closed.

        `x` is the mean of w (m - y) over its `items` scored items, `highest_weight` the highest weight that *any* item
        could have had at that time: never the highest that was seen, and not a bound that depends on the item. Raises
        ValueError when `x` is lower than such weights allow.
        """
        floor = -highest_weight * (1 - self.m)
        if items < 1 or not floor * (1 + 1e-9) <= x < math.inf:
            raise ValueError(f"{items} items can not have x = {x} with weights of at most {highest_weight}")
        most = -1 / (_MARGIN * floor)
        log_items = math.log(items)
        for j, wished in enumerate(self._bets):
            self._logs[j] = log_add(self._logs[j] + math.log1p(min(wished, most) * x), log_items)

    def restart(self) -> None:
        """M = 0, the same m."""
        self._logs = [-math.inf] * LADDER

    @property
    def log1p(self) -> float:
        """ln(1 + M)."""
        highest = max(self._logs)
        if highest == -math.inf:
            return 0.0
        mixed = highest + math.log(sum(math.exp(log - highest) for log in self._logs) / LADDER)
        return log_add(0.0, mixed)

    def reached(self, threshold: float) -> bool:
        """Whether M >= `threshold`, which is A."""
        return self.log1p >= math.log1p(threshold)


def log_add(a: float, b: float) -> float:
    """ln(e^a + e^b); at most one of them may be minus infinity."""
    high, low = (a, b) if a >= b else (b, a)
    return high + math.log1p(math.exp(low - high))
