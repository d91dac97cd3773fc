"""Judged means made sharper with a local score of every interaction (control variate).

Prediction-powered inference (Angelopoulos et al. 2023; with a fitted coefficient, 2024) in the form for a judged
part that lies *inside* the screened whole: the formula for two separate samples covers only 87 to 90 % here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from collector.stats.interval import Z95, ClusterSums, Floats, log_odds_bounds, n_eff, shrink, t_quantile

MIN_N_EFF = 100.0
"""Effective n from which the controlled interval covers what it says."""
MIN_GAIN = 1.1
"""Below it the controlled mean is not worth a second number."""


@dataclass(frozen=True, slots=True)
class ControlSums:
    """The sixteen sums (y judged score, f local score, u weight before our sampling, w after, v = w - u >= 0).

    over scored: w, w2, wy, w2y, w2y2, and wv = sum w v, wvf, wvy, wvyf. Over all settled: u, uf, and q = sum q^2,
    qf = sum q^2 f, qff, with q = v where answered, else u. Over answered (scored or not applicable): j = sum w, jf.
    """

    w: ArrayLike
    w2: ArrayLike
    wy: ArrayLike
    w2y: ArrayLike
    w2y2: ArrayLike
    u: ArrayLike
    uf: ArrayLike
    j: ArrayLike
    jf: ArrayLike
    wv: ArrayLike
    wvf: ArrayLike
    wvy: ArrayLike
    wvyf: ArrayLike
    q: ArrayLike
    qf: ArrayLike
    qff: ArrayLike


@dataclass(frozen=True, slots=True)
class Controlled:
    """`gain` is how many times more judged answers the judged-only mean would need for the same variance, 1 where f
    tells nothing; `usable` is true from `MIN_N_EFF` and `MIN_GAIN` on. Elsewhere use the judged-only interval.
    All NaN where nothing was scored."""

    mean: Floats
    lower: Floats
    upper: Floats
    n_eff: Floats
    gain: Floats
    usable: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def controlled_interval(
    sums: ControlSums, *, clusters: ClusterSums | None = None, z: float = Z95, few: bool = False
) -> Controlled:
    """The mean of y corrected by what f says about who was judged.

        m = WY/W   mf = UF/U   D = JF/J - mf   A = W2Y2 - 2m W2Y + m^2 W2
        B = WVYF - m WVF - mf WVY + m mf WV    C = QFF - 2 mf QF + mf^2 Q
        k = max(B,0)/C * U/W     mean = m - k D     R2 = max(B,0)^2/(A C)     gain = 1/(1-R2)

    and the log-odds interval of `logit_interval` with m' - k D (clamped to [0.001, 0.999]) in the place of m' and
    A' (1-R2) n/(n-2) in that of A' (n+1)/n.

    With `clusters`, A' and n are those of the clusters, and R2 becomes R2 A/A_c (at most R2), A_c being the clusters'
    A: D is an error of our own sampling alone, which takes each interaction by itself, so what the correction takes
    off the variance, A R2, is the same whatever the interactions have in common.

    `few` is for some dozens of scored ones, among which an error of f that is rare and large may not have shown: the
    pseudo-answer's part of A' then stays whole, as if f told nothing of it.
    """
    w, w2, wy, w2y, w2y2 = (np.asarray(x, float) for x in (sums.w, sums.w2, sums.wy, sums.w2y, sums.w2y2))
    shrunk = shrink(w, w2, wy, w2y, w2y2, clusters=clusters)
    u, j = np.asarray(sums.u, float), np.asarray(sums.j, float)
    some = shrunk.some & (u > 0) & (j > 0)
    safe_w, safe_u, safe_j = (np.where(some, x, 1.0) for x in (w, u, j))
    m, mf = wy / safe_w, np.asarray(sums.uf, float) / safe_u
    apart = np.asarray(sums.jf, float) / safe_j - mf
    a = np.maximum(w2y2 - 2 * m * w2y + m**2 * w2, 0.0)
    wv, wvf, wvy, wvyf = (np.asarray(x, float) for x in (sums.wv, sums.wvf, sums.wvy, sums.wvyf))
    b = np.maximum(wvyf - m * wvf - mf * wvy + m * mf * wv, 0.0)
    q, qf, qff = (np.asarray(x, float) for x in (sums.q, sums.qf, sums.qff))
    c = np.maximum(qff - 2 * mf * qf + mf**2 * q, 0.0)
    told = some & (a > 1e-12 * w2) & (c > 1e-12 * q)
    k = np.where(told, b / np.where(told, c, 1.0) * safe_u / safe_w, 0.0)
    r2 = np.clip(np.where(told, b**2 / np.where(told, a * c, 1.0), 0.0), 0.0, 0.99)
    if clusters is not None:
        c2, cy, cyy = (np.asarray(x, float) for x in clusters)
        together = np.maximum(cyy - 2 * m * cy + m**2 * c2, 0.0)
        r2 *= np.where(together > a, a / np.where(together > a, together, 1.0), 1.0)
    n = shrunk.n
    left = shrunk.variance * (1 - r2)
    if few:
        wb = w2 / safe_w
        left += r2 * wb**2 / 2 * (shrunk.mean**2 + (1 - shrunk.mean) ** 2) / (safe_w + wb) ** 2
    spread = np.sqrt(left * n / np.maximum(n - 2, 1.0))
    centre = np.clip(shrunk.mean - k * apart, 0.001, 0.999)
    lower, upper = log_odds_bounds(centre, t_quantile(n, z) * spread)
    gain = 1 / (1 - r2)
    effective = np.where(some, n_eff(w, clusters[0] if clusters is not None else w2), 0.0)
    return Controlled(
        mean=np.where(some, np.clip(m - k * apart, 0.0, 1.0), np.nan),
        lower=np.where(some, lower, np.nan),
        upper=np.where(some, upper, np.nan),
        n_eff=effective,
        gain=np.where(some, gain, np.nan),
        usable=some & (effective >= MIN_N_EFF) & (gain >= MIN_GAIN),
    )
