"""Whether scores of the same answers moved between two runs by more than noise. Pure.

Sources: Student's t for whole degrees of freedom in closed form (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4), the
sign-flipping test of Fisher (1935, "The Design of Experiments", section 21), Holm's procedure (1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from collector.stats.interval import Z95, Floats, t_quantile

FLIPS = 5_000
"""Random flips where all of them are too many."""
_AT_A_TIME = 500
_EXACT_BITS = 12
_SEED = 11


@dataclass(frozen=True, slots=True)
class Noise:
    """How far apart one judge's scores of one answer are: `squares` within answers over `freedom` degrees."""

    squares: float = 0.0
    freedom: int = 0

    @property
    def sd(self) -> float | None:
        """s_e; None where no answer was scored twice."""
        return math.sqrt(self.squares / self.freedom) if self.freedom else None


def noise_of(repeats: Sequence[Sequence[float]]) -> Noise:
    """Pooled over answers scored more than once; for pairs s_e^2 = mean (y1 - y2)^2 / 2."""
    kept = [np.array(one, float) for one in repeats if len(one) > 1]
    return Noise(float(sum(((one - one.mean()) ** 2).sum() for one in kept)), sum(len(one) - 1 for one in kept))


@dataclass(frozen=True, slots=True)
class Moved:
    """The mean difference (after less before) over `n` answers with its 95 % interval, and the probability `p` of one
    as large if nothing but noise moved. `by` is how that is known: noise (from repeats), signs (no repeats: each
    difference is as likely up as down), exact (these scores have no noise). `case_limit` is the difference of a single
    answer from which it is beyond noise, all answers taken together; None where that is not known."""

    n: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    p: float
    by: str
    noise_sd: float | None
    case_limit: float | None


def moved(
    before: Sequence[Sequence[float]],
    after: Sequence[Sequence[float]],
    *,
    noisy: bool = True,
    alpha: float = 0.05,
    z: float = Z95,
) -> Moved:
    """Compare two runs of the same answers, each answer with its scores of one or more tries. Needs an answer.

    With repeats the standard error of the mean difference is that of noise alone,
    s_e sqrt(sum(1/r_before + 1/r_after)) / n, which is sqrt(2 s_e^2/n) for single tries. To s_e one pair is added
    that is as far apart as the answer that moved most: a judge that errs rarely and by much may not have done so
    among the repeats.
    """
    was = np.array([np.mean(one) for one in before])
    now = np.array([np.mean(one) for one in after])
    apart = now - was
    n, difference = len(apart), float(apart.mean())
    noise = noise_of([*before, *after])
    furthest = float(np.abs(apart).max())
    means = float(was.mean()), float(now.mean())
    if not noisy:
        p = 0.0 if furthest else 1.0
        return Moved(n, *means, difference, difference, difference, p, "exact", 0.0, 0.0)
    if not noise.freedom:
        spread = float(apart.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
        half = float(t_quantile(n - 1, z)) * spread if n > 1 else math.inf
        low, high = max(-1.0, difference - half), min(1.0, difference + half)
        return Moved(n, *means, difference, low, high, signs(apart), "signs", None, None)
    share = np.array([1 / len(one) + 1 / len(other) for one, other in zip(before, after, strict=True)])
    variance = (noise.squares + furthest**2 / 2) / (noise.freedom + 1)
    spread = math.sqrt(variance * float(share.sum())) / n
    half = float(t_quantile(noise.freedom, z)) * spread
    one_of_all = float(t_quantile(noise.freedom, _normal_quantile(alpha / n)))
    return Moved(
        n,
        *means,
        difference,
        max(-1.0, difference - half),
        min(1.0, difference + half),
        t_tail(difference / spread, noise.freedom) if spread else 1.0,
        "noise",
        noise.sd,
        one_of_all * math.sqrt(variance * float(share.max())),
    )


def signs(apart: Floats) -> float:
    """Two-sided p of the mean when each difference is as likely up as down: exact for few, else by random flips."""
    kept = apart[apart != 0]
    n = len(kept)
    if not n:
        return 1.0
    if n <= _EXACT_BITS:
        flips = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        sums = np.abs(flips @ kept)
        return float((sums >= abs(kept.sum()) - 1e-12).mean())
    dice = np.random.default_rng(_SEED)
    beyond = 0
    for _ in range(FLIPS // _AT_A_TIME):
        drawn = dice.integers(0, 2, size=(_AT_A_TIME, n), dtype=np.int8) * 2.0 - 1.0
        beyond += int((np.abs(drawn @ kept) >= abs(kept.sum()) - 1e-12).sum())
    return (beyond + 1) / (FLIPS + 1)


def t_tail(t: float, freedom: int) -> float:
    """P(|T| >= |t|) for Student's t with a whole number of degrees of freedom, from 1."""
    angle = math.atan2(abs(t), math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    term = total = 1.0 if freedom % 2 == 0 else cosine
    for step in range(2 if freedom % 2 == 0 else 3, freedom, 2):
        term *= cosine**2 * (step - 1) / step
        total += term
    half = 0.0 if freedom == 1 else sine * total
    inside = half if freedom % 2 == 0 else 2 / math.pi * (angle + half)
    return min(1.0, max(0.0, 1 - inside))


def _normal_quantile(two_sided: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(1 - two_sided / 2)


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted probabilities, in the order given: those under alpha are the ones that may be told, with a probability
    of at most alpha that any is told falsely."""
    order = sorted(range(len(p)), key=lambda place: p[place])
    raised = [min(1.0, (len(p) - rank) * p[place]) for rank, place in enumerate(order)]
    for rank, (one, other) in enumerate(pairwise(list(raised)), start=1):
        raised[rank] = max(raised[rank - 1], one, other)
    found = [0.0] * len(p)
    for rank, place in enumerate(order):
        found[place] = raised[rank]
    return found
