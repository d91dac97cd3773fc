"""Fitting and judging small logistic models: pure numpy, deterministic.

Formulas: AUROC by ranks (Mann and Whitney 1947; Hanley and McNeil 1982 for its standard error), expected
calibration error over ten equal bins (Naeini et al. 2015), accelerated projected gradient (Beck and Teboulle
2009).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scorers.local.table import Model

Floats = npt.NDArray[np.float64]
FOLDS = 5


def ranks(values: Floats) -> Floats:
    """Ranks from 1, ties sharing their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    found: Floats = (ends - (counts - 1) / 2)[inverse]
    return found


def auroc(labels: Floats, scores: Floats) -> float:
    """Area under ROC of `scores` for labels above 0.5 against the rest; NaN with one class only."""
    good = labels > 0.5
    n1, n0 = int(good.sum()), int((~good).sum())
    if not n1 or not n0:
        return math.nan
    return float((ranks(scores)[good].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def auroc_interval(labels: Floats, scores: Floats) -> tuple[float, float]:
    """95 % interval of AUROC by Hanley and McNeil's standard error."""
    area = auroc(labels, scores)
    good = labels > 0.5
    n1, n0 = int(good.sum()), int((~good).sum())
    if not n1 or not n0:
        return math.nan, math.nan
    q1, q2 = area / (2 - area), 2 * area * area / (1 + area)
    spread = (area * (1 - area) + (n1 - 1) * (q1 - area * area) + (n0 - 1) * (q2 - area * area)) / (n1 * n0)
    half = 1.96 * math.sqrt(max(0.0, spread))
    return max(0.0, area - half), min(1.0, area + half)


def balanced_accuracy(labels: Floats, scores: Floats, threshold: float = 0.5) -> float:
    """Mean of sensitivity and specificity at `threshold`; NaN with one class only."""
    good, said = labels > 0.5, scores >= threshold
    if good.all() or not good.any():
        return math.nan
    return float((said[good].mean() + (~said[~good]).mean()) / 2)


def spearman(one: Floats, other: Floats) -> float:
    """Rank correlation; NaN where one side is constant."""
    a, b = ranks(one), ranks(other)
    if a.std() == 0 or b.std() == 0:
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def calibration_error(labels: Floats, scores: Floats, bins: int = 10) -> float:
    """Mean distance between the score and the share of good rows, over equal bins weighted by their rows."""
    place = np.minimum((scores * bins).astype(int), bins - 1)
    total = 0.0
    for number in range(bins):
        inside = place == number
        if inside.any():
            total += inside.sum() * abs(scores[inside].mean() - labels[inside].mean())
    return float(total / len(scores))


def fold_of(group: str) -> int:
    """The fold of a source document, the same on every machine."""
    return zlib.crc32(group.encode("utf-8", "surrogatepass")) % FOLDS


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows for fitting: features, labels in [0, 1], weights, and each row's fold."""

    features: Floats
    labels: Floats
    weights: Floats
    folds: npt.NDArray[np.int64]

    def where(self, chosen: npt.NDArray[np.bool_]) -> Rows:
        return Rows(self.features[chosen], self.labels[chosen], self.weights[chosen], self.folds[chosen])


def joined(parts: Sequence[Rows]) -> Rows:
    """Several sets as one."""
    return Rows(
        np.vstack([part.features for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate([part.folds for part in parts]),
    )


def fit(
    rows: Rows,
    names: Sequence[str],
    *,
    unsigned: frozenset[str] = frozenset(),
    ridge: float = 3.0,
    steps: int = 6000,
) -> Model:
    """Weighted logistic regression with coefficients of at least 0, except `unsigned` ones.

    `ridge` is the L2 penalty on standardised coefficients, in rows. Coefficients are given in the features' own
    units, rounded to 4 digits, so that a table can be read and compared.
    """
    middle = rows.features.mean(axis=0)
    spread = rows.features.std(axis=0)
    constant = spread < 1e-9
    spread[constant] = 1.0
    scaled = (rows.features - middle) / spread
    scaled[:, constant] = 0.0
    design = np.hstack([scaled, np.ones((len(scaled), 1))])
    weights = rows.weights / rows.weights.sum()
    penalty = np.full(design.shape[1], ridge / len(scaled))
    penalty[-1] = 0.0
    low = np.array([-np.inf if name in unsigned else 0.0 for name in names] + [-np.inf])
    step = 1.0 / (np.linalg.norm(design * np.sqrt(weights)[:, None], 2) ** 2 / 4 + penalty.max())
    at = ahead = np.zeros(design.shape[1])
    pace = 1.0
    for _ in range(steps):
        said = 1.0 / (1.0 + np.exp(-np.clip(design @ ahead, -500, 500)))
        slope = design.T @ ((said - rows.labels) * weights) + penalty * ahead
        new = np.maximum(ahead - step * slope, low)
        faster = (1 + math.sqrt(1 + 4 * pace * pace)) / 2
        ahead = new + (pace - 1) / faster * (new - at)
        moved = float(np.abs(new - at).max())
        at, pace = new, faster
        if moved < 1e-9:
            break
    coefficients = at[:-1] / spread
    coefficients[constant] = 0.0
    intercept = at[-1] - float(coefficients @ middle)
    return Model(tuple(names), tuple(round(float(value), 4) for value in coefficients), round(float(intercept), 4))


def predict(model: Model, features: Floats) -> Floats:
    """Probabilities for many rows."""
    return np.array([model.probability([float(value) for value in row]) for row in features])
