"""The variance of a total over any number of replicas, from sixteen random groups of clusters.

Each cluster belongs to one group, by hash, whatever replica scores it; the groups' sums add up, and their spread
holds whatever the clusters have in common (Mahalanobis 1946; Wolter 2007, "Introduction to Variance Estimation",
chapter 2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from collector.stats.interval import Interval, log_odds_bounds, n_eff, shrink

T15 = 2.131449545559323
"""Two-sided 95 % quantile of Student's t at 15 degrees of freedom."""


def group_interval(w2: ArrayLike, w_by_group: ArrayLike, wy_by_group: ArrayLike, *, t: float = T15) -> Interval:
    """The interval of a mean from W_g and WY_g (last axis: the groups) and the item sum W2.

        m = WY/W     variance = G/(G-1) sum_g (WY_g - m W_g)^2 / W^2

    on the log-odds scale about m' = (WY + wb/2)/(W + wb), wb = W2/W, with the pseudo-answer's own variance added,
    so that it is never degenerate. `n_eff` is that of the items.
    """
    w2, w_g, wy_g = (np.asarray(x, float) for x in (w2, w_by_group, wy_by_group))
    groups = w_g.shape[-1]
    w, wy = w_g.sum(axis=-1), wy_g.sum(axis=-1)
    some = (w > 0) & (w2 > 0)
    safe = np.where(some, w, 1.0)
    m = wy / safe
    between = groups / (groups - 1) * ((wy_g - m[..., None] * w_g) ** 2).sum(axis=-1)
    zero = np.zeros_like(w)
    # With all spread put to 0, what `shrink` gives is the pseudo-answer's own part of the variance.
    own = shrink(w, w2, wy, zero, zero, clusters=(np.where(some, 1e-300, 0.0), zero, zero))
    total = safe + np.where(some, w2 / safe, 1.0)
    lower, upper = log_odds_bounds(own.mean, t * np.sqrt(between / total**2 + own.variance))
    return Interval(
        mean=np.where(some, m, np.nan),
        lower=np.where(some, lower, np.nan),
        upper=np.where(some, upper, np.nan),
        n_eff=n_eff(w, w2),
    )
