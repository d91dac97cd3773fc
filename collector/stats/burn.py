"""How many judged answers a burn-rate alert needs.

An alert at burn rate x fires when the bad share of a window is above r = x (1 - SLO). With n answers and the error
budget spent exactly at its rate, that happens by chance with the binomial probability P(X > r n), X ~ B(n, 1 - SLO).
"""

from __future__ import annotations

import math
from functools import lru_cache

_MOST = 20_000


class BurnRateImpossible(ValueError):
    """The burn rate can not be watched; the text says why and what to do instead."""


def tail(n: int, p: float, above: float) -> float:
    """P(X > above) for X ~ B(n, p), 0 < p < 1."""
    first = math.floor(above + 1e-9) + 1
    if first > n:
        return 0.0
    log = (
        math.lgamma(n + 1)
        - math.lgamma(first + 1)
        - math.lgamma(n - first + 1)
        + first * math.log(p)
        + (n - first) * math.log1p(-p)
    )
    term = total = math.exp(log)
    odds = p / (1 - p)
    for k in range(first, n):
        term *= (n - k) / (k + 1) * odds
        total += term
        if term < total * 1e-17:
            break
    return total


@lru_cache(maxsize=256)
def minimum_n(slo: float, burn: float, false_alarm: float = 1e-3) -> int:
    """Least effective n of an alert's short window, from which on it fires falsely in at most a share `false_alarm`
    of windows, whatever the n. Double it where weights are heavy (upstream sampling).

    `slo` is the share wanted good, in (0, 1); `burn` > 1 the multiple of the budget's rate. Raises
    BurnRateImpossible when the threshold is not below 1, or more than 20,000 answers would be needed.
    """
    budget = 1 - slo
    r = burn * budget
    if not 0 < slo < 1 or burn <= 1:
        raise BurnRateImpossible(f"slo {slo} must be in (0, 1), burn rate {burn} above 1")
    if r >= 1 - 1e-12:
        raise BurnRateImpossible(
            f"at {burn}x an objective of {slo} allows a bad share of {r:.2f}: it would never fire; "
            "leave out this burn rate"
        )
    # The tail falls in a saw-tooth: within a tooth (floor(r n) the same) it grows with n, so the worst of a tooth
    # is its last n. The answer is one past the last tooth that is too high.
    last_bad = 0
    k = 0
    quiet = 0
    while True:
        end = math.ceil((k + 1) / r - 1e-9) - 1
        if end > _MOST:
            raise BurnRateImpossible(
                f"{burn}x of an objective of {slo} needs more than {_MOST} answers a window; leave slow changes to "
                "the drift detector"
            )
        if end >= 1 and tail(end, budget, k) > false_alarm:
            start = max(math.ceil(k / r - 1e-9), 1)
            last_bad = max(n for n in range(start, end + 1) if n == end or tail(n, budget, k) > false_alarm)
            quiet = 0
        else:
            quiet += 1
            if quiet > 50:
                return last_bad + 1
        k += 1
