"""Figures with intervals for what scores against what is held to be true: a judge on labelled rows. Pure.

Rows of one group (a source document) hang together, so whole groups are drawn again in the bootstrap (Efron and
Tibshirani 1993; Field and Welsh 2007 for clusters). A bootstrap of few or faultless rows is too narrow (all right
gives the interval 1 to 1), so each end is the wider one of the bootstrap's and of an interval that holds there:
Jeffreys' for shares and tables (Brown, Cai and DasGupta 2001), Newcombe's fifth for AUROC (2006, Statistics in
Medicine 25, 559). Weighted rows count there as their effective number (Kish 1965). All intervals are of 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scorers.local.fitting import Floats, spearman

_DRAWS = 1000
_SEED = 7
_Z = 1.959964
_MOST_GROUPS = 2_000
"""Random groups of groups vary as the groups do (Mahalanobis 1946), and bound memory and time."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its 95 % interval; an end is None where the rows are too few to know it."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Judged:
    """Rows that people labelled and the judge scored: `good` by people, `score` by the judge, `group` their source.

    `weight`, above 0, is how many rows of the whole each stands for; None where each is itself alone.
    """

    good: Floats
    score: Floats
    group: Sequence[str]
    weight: Floats | None = None

    def said(self, threshold: float) -> Floats:
        """1 where the judge says good."""
        return (self.score >= threshold).astype(float)


def agreement(rows: Judged, threshold: float) -> tuple[Figure, Figure, Figure] | None:
    """Balanced accuracy, AUROC and Cohen's kappa (1960); None with rows of one class only.

    `good` above 0.5 is the one class, a score of `threshold` and above says so.
    """
    good, said = rows.good > 0.5, rows.said(threshold) > 0.5
    weight = np.ones(len(good)) if rows.weight is None else rows.weight
    if not len(good) or good.all() or not good.any():
        return None
    cells = (2 * good + said).astype(
        int
    )  # 0: bad, said bad; 1: bad, said good; 2: good, said bad; 3: good, said good
    table = np.bincount(cells, weights=weight, minlength=4).astype(float)
    _, level = np.unique(rows.score, return_inverse=True)
    drawn = _Draws(rows.group)
    tables = drawn.tables(cells, 4, weight)
    areas = drawn.each(lambda drawn_weight: (_weighted_auroc(good, level, drawn_weight * weight),))[:, 0]
    effective = table * _kish(weight) / weight.sum()
    supposed = np.random.default_rng(_SEED).dirichlet(effective + 0.5, size=4 * _DRAWS)
    area = _weighted_auroc(good, level, weight)
    values = (float(_balanced(table)), area, float(_kappa(table)))
    booted = (_balanced(tables), areas, _kappa(tables))
    ends = (
        _ends(_balanced(supposed)),
        _newcombe(area, _kish(weight[good]), _kish(weight[~good])),
        _ends(_kappa(supposed)),
    )
    first, second, third = (
        _wider(value, _ends(booted[place]), end)
        for place, (value, end) in enumerate(zip(values, ends, strict=True))
    )
    return first, second, third


def rank_correlation(rows: Judged) -> Figure | None:
    """Spearman's, for labels between 0 and 1; None where one side is constant or rows are fewer than 4."""
    value = spearman(rows.good, rows.score) if len(rows.good) >= 4 else math.nan
    if math.isnan(value):
        return None
    index = np.arange(len(rows.good))

    def drawn(weight: Floats) -> tuple[float]:
        again = np.repeat(index, weight.astype(int))
        return (spearman(rows.good[again], rows.score[again]),)

    half = _Z * math.sqrt((1 + value * value / 2) / (len(rows.good) - 3))  # Bonett and Wright 2000
    at = math.atanh(max(-0.999999, min(0.999999, value)))
    return _wider(value, _ends(_Draws(rows.group).each(drawn)[:, 0]), (math.tanh(at - half), math.tanh(at + half)))


def difference(good: Floats, first: Floats, second: Floats, group: Sequence[str]) -> Figure | None:
    """Balanced accuracy of `second` less that of `first` on the same rows, 1 being good. None with one class."""
    if not len(good) or (good > 0.5).all() or not (good > 0.5).any():
        return None
    right = [(said > 0.5) == (good > 0.5) for said in (first, second)]
    cells = (4 * (good > 0.5) + 2 * right[0] + right[1]).astype(int)

    def gain(tables: Floats) -> Floats:
        bad, good = tables[..., :4], tables[..., 4:]
        with np.errstate(invalid="ignore", divide="ignore"):
            parts = [(half[..., 1] - half[..., 2]) / half.sum(axis=-1) for half in (bad, good)]
        found: Floats = (parts[0] + parts[1]) / 2
        return found

    table = np.bincount(cells, minlength=8).astype(float)
    supposed = np.random.default_rng(_SEED).dirichlet(table + 0.25, size=4 * _DRAWS)
    return _wider(float(gain(table)), _ends(gain(_Draws(group).tables(cells, 8))), _ends(gain(supposed)))


def mean(values: Sequence[float], group: Sequence[str]) -> Figure | None:
    """The mean of a cost or a count; the bootstrap's interval alone, so None ends under two groups."""
    if not values:
        return None
    data = np.array(values)
    booted = _Draws(group).each(lambda weight: (float(np.average(data, weights=weight)),))
    low, high = _ends(booted[:, 0]) if len(set(group)) > 1 else (None, None)
    return Figure(float(data.mean()), low, high)


def quantile(values: Sequence[float], q: float) -> Figure | None:
    """A quantile with the interval that order statistics give, whatever the distribution (Conover 1999)."""
    if not values:
        return None
    data, n = np.sort(np.array(values)), len(values)
    steps = np.arange(n + 1)
    logs = np.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in steps])
    below = np.cumsum(np.exp(logs + steps * math.log(q) + (n - steps) * math.log1p(-q)))
    lower = int(np.searchsorted(below, 0.025))  # the largest r with P(at most r - 1 lie below) under 2.5 %
    upper = int(np.searchsorted(below, 0.975)) + 1
    return Figure(
        float(np.quantile(data, q)),
        float(data[lower - 1]) if lower >= 1 else None,
        float(data[upper - 1]) if upper <= n else None,
    )


def noise(repeats: Sequence[Sequence[float]], group: Sequence[str]) -> tuple[Figure, Figure] | None:
    """Standard deviation of one row's score over repeats, and the share of rows whose score changed at all.

    s_e^2 = the variance within rows, pooled; for pairs it is mean (y1 - y2)^2 / 2. None without a repeated row.
    """
    kept = [(np.array(one), name) for one, name in zip(repeats, group, strict=True) if len(one) > 1]
    if not kept:
        return None
    squares = np.array([float(((one - one.mean()) ** 2).sum()) for one, _ in kept])
    freedom = np.array([len(one) - 1.0 for one, _ in kept])
    changed = np.array([float(one.max() > one.min()) for one, _ in kept])
    names = [name for _, name in kept]

    def drawn(weight: Floats) -> tuple[float, float]:
        return math.sqrt(float(weight @ squares) / float(weight @ freedom)), float(
            np.average(changed, weights=weight)
        )

    booted = _Draws(names).each(drawn)
    low, high = _ends(booted[:, 0])
    random = np.random.default_rng(_SEED).beta(
        changed.sum() + 0.5, len(kept) - changed.sum() + 0.5, size=4 * _DRAWS
    )
    share = _wider(float(changed.mean()), _ends(booted[:, 1]), _ends(random))
    # None changed: what is known is how few can, not how far one would; the upper end is then open.
    return Figure(drawn(np.ones(len(kept)))[0], low, high if changed.any() else None), share


class _Draws:
    """Whole groups, drawn again with replacement; more than `_MOST_GROUPS` are first thrown together at random."""

    def __init__(self, group: Sequence[str]) -> None:
        names, self._code = np.unique(np.array(group, dtype=object).astype(str), return_inverse=True)
        random = np.random.default_rng(_SEED)
        groups = min(len(names), _MOST_GROUPS)
        if groups < len(names):
            self._code = (random.permutation(len(names)) % groups)[self._code]
        self._drawn = random.multinomial(groups, np.full(groups, 1 / groups), size=_DRAWS)

    def tables(self, cells: npt.NDArray[np.int_], size: int, weight: Floats | None = None) -> Floats:
        """How many rows (or how much weight) each cell has, a table a draw."""
        counts = np.zeros((self._drawn.shape[1], size))
        np.add.at(counts, (self._code, cells), 1.0 if weight is None else weight)
        return self._drawn.astype(float) @ counts

    def each(self, figure: Callable[[Floats], tuple[float, ...]]) -> Floats:
        """`figure` of the rows' weights, a line a draw."""
        return np.array([figure(one[self._code].astype(float)) for one in self._drawn])


def _ends(draws: Floats) -> tuple[float | None, float | None]:
    kept = draws[~np.isnan(draws)]
    if not len(kept):
        return None, None
    low, high = np.quantile(kept, (0.025, 0.975))
    return float(low), float(high)


def _wider(
    value: float, one: tuple[float | None, float | None], other: tuple[float | None, float | None]
) -> Figure:
    lows = [end for end in (one[0], other[0]) if end is not None]
    highs = [end for end in (one[1], other[1]) if end is not None]
    return Figure(value, min([*lows, value]), max([*highs, value]))


def _balanced(tables: Floats) -> Floats:
    """Of tables along the last axis; NaN where a class is empty."""
    with np.errstate(invalid="ignore", divide="ignore"):
        bad = tables[..., 0] / (tables[..., 0] + tables[..., 1])
        good = tables[..., 3] / (tables[..., 2] + tables[..., 3])
    found: Floats = (bad + good) / 2
    return found


def _kappa(tables: Floats) -> Floats:
    """Of tables along the last axis; NaN where chance alone agrees."""
    one, two, three, four = (tables[..., place] for place in range(4))
    total = one + two + three + four
    chance = ((one + two) * (one + three) + (three + four) * (two + four)) / total**2
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = ((one + four) / total - chance) / (1 - chance)
    return found


def _weighted_auroc(good: npt.NDArray[np.bool_], level: npt.NDArray[np.int_], weight: Floats) -> float:
    places = level.astype(int)
    above = np.bincount(places, weights=weight * good, minlength=int(places.max()) + 1)
    below = np.bincount(places, weights=weight * ~good, minlength=int(places.max()) + 1)
    pairs = above.sum() * below.sum()
    return float((above * (np.cumsum(below) - below / 2)).sum() / pairs) if pairs else math.nan


def _kish(weight: Floats) -> float:
    """How many equal rows tell as much."""
    return float(weight.sum() ** 2 / (weight**2).sum())


def _newcombe(area: float, n1: float, n0: float) -> tuple[float, float]:
    """The values of AUROC from which the found one is 1.96 standard errors away, by Hanley and McNeil's variance
    with both class sizes in it taken as their mean."""
    size = (n1 + n0) / 2 - 1

    def away(value: float) -> float:
        inside = 1 + size * ((1 - value) / (2 - value) + value / (1 + value))
        return (area - value) ** 2 - _Z**2 * value * (1 - value) * inside / (n1 * n0)

    def solve(outer: float) -> float:
        inner = area
        for _ in range(60):
            middle = (inner + outer) / 2
            inner, outer = (middle, outer) if away(middle) < 0 else (inner, middle)
        return (inner + outer) / 2

    return (0.0 if area <= 0 else solve(0.0)), (1.0 if area >= 1 else solve(1.0))
