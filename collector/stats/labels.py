"""The mean that people would have given, from the judge's scores of many answers and people's labels of a few.

The same sums as in `collector.stats.control`, once more: the judge's score y takes the place of the local score f,
the label h that of the judged score, the judged answer's weight w that of u, and w/pi that of w, pi being the
probability with which a judged answer was put before a person. So it holds for any judge, however wrong: a judge that
errs alike everywhere is corrected, one that says nothing leaves the labels' own mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from collector.stats.control import ControlSums, controlled_interval
from collector.stats.interval import Z95, ClusterSums, Floats

MIN_LABELS = 50
"""Labels from which the interval covers what it says (tests/unit/stats, tests/bench/agreement_simulation.py); below it
covers less, by much where the judge's errors are rare and large."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """`mean` in people's terms with its 95 % interval; `judged_mean` is the judge's own of the same traffic, and
    `shift` by how much it is off (judge less people). `n_eff` is the effective number of labels, `gain` how many times
    more labels the labels alone would take. `usable` is true from `MIN_LABELS` labels on. NaN without a label."""

    mean: Floats
    lower: Floats
    upper: Floats
    judged_mean: Floats
    shift: Floats
    n_eff: Floats
    gain: Floats
    usable: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def label_sums(
    w: ArrayLike, y: ArrayLike, pi: ArrayLike, h: ArrayLike, *, not_applicable: ArrayLike = False
) -> ControlSums:
    """The sixteen sums of judged and scored answers, along the last axis; they add up over parts and replicas.

    `w` is the answer's weight among all (over 0), `y` the judge's score, `pi` in (0, 1] the probability with which it
    was drawn for labelling, known before anybody looked, and `h` the label in [0, 1], NaN where there is none: it
    was not drawn, or the person skipped it. Only answers labelled in the order drawn count; what people picked
    themselves has no probability and is passed with h = NaN. `not_applicable` marks those of which a person said that
    the metric is not defined there. Raises ValueError for a weight or a probability out of range.

    For the share of good answers pass y >= t and h >= t as 0 and 1.
    """
    w, y, pi, h = np.broadcast_arrays(*(np.asarray(x, float) for x in (w, y, pi, h)))
    outside = np.broadcast_to(np.asarray(not_applicable, bool), w.shape)
    if not (np.isfinite(w) & (w > 0)).all():
        raise ValueError("a weight is not a finite number over 0; leave such answers out")
    if not ((pi > 0) & (pi <= 1)).all():
        raise ValueError(
            "a probability of being labelled is not in (0, 1]; leave out answers that can not be drawn"
        )
    scored = ~np.isnan(h) & ~outside
    answered = scored | outside
    whole = w / pi
    v = whole - w
    label = np.where(scored, h, 0.0)
    q = np.where(answered, v, w)
    ws = np.where(scored, whole, 0.0)
    wh, wv = ws * label, ws * v
    wj = np.where(answered, whole, 0.0)

    def total(x: Floats) -> Floats:
        return np.asarray(x.sum(axis=-1))

    return ControlSums(
        w=total(ws),
        w2=total(ws * ws),
        wy=total(wh),
        w2y=total(ws * wh),
        w2y2=total(wh * wh),
        u=total(w),
        uf=total(w * y),
        j=total(wj),
        jf=total(wj * y),
        wv=total(wv),
        wvf=total(wv * y),
        wvy=total(wv * label),
        wvyf=total(wv * label * y),
        q=total(q * q),
        qf=total(q * q * y),
        qff=total(q * q * y * y),
    )


def labelled_interval(
    sums: ControlSums, *, labels: ArrayLike, clusters: ClusterSums | None = None, z: float = Z95
) -> Labelled:
    """The mean of all judged traffic as people would score it (prediction-powered inference; Angelopoulos et al.
    2023), with the formula and the interval of `controlled_interval`. `labels` is how many labels are in the sums;
    `clusters` are the labels' C2, CY, CYY with weights w/pi where sessions have several."""
    found = controlled_interval(sums, clusters=clusters, z=z, few=True)
    u, uf = np.asarray(sums.u, float), np.asarray(sums.uf, float)
    judged = np.asarray(np.where(u > 0, uf / np.where(u > 0, u, 1.0), np.nan))
    return Labelled(
        mean=found.mean,
        lower=found.lower,
        upper=found.upper,
        judged_mean=judged,
        shift=np.asarray(judged - found.mean),
        n_eff=found.n_eff,
        gain=found.gain,
        usable=(np.asarray(labels) >= MIN_LABELS) & ~np.isnan(found.mean),
    )
