"""Control variate, random groups, burn rates, cluster variance: against direct computation and published tables."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collector.stats.burn import BurnRateImpossible, minimum_n, tail
from collector.stats.control import ControlSums, controlled_interval
from collector.stats.groups import group_interval
from collector.stats.interval import cluster_ratio, logit_interval

RNG = np.random.default_rng(3)
Y = np.where(RNG.random(400) < 0.75, 1.0, RNG.beta(2, 1.85, 400))
F = np.clip(0.15 + 0.6 * Y + RNG.normal(0, 0.1, 400), 0, 1)
P = 0.4
KEPT = RNG.random(400) < P


def five(w: np.ndarray, y: np.ndarray) -> tuple[float, float, float, float, float]:
    wy = w * y
    return float(w.sum()), float((w * w).sum()), float(wy.sum()), float((w * wy).sum()), float((wy * wy).sum())


def control_sums() -> ControlSums:
    u = np.ones(400)
    w, y, f = np.full(KEPT.sum(), 1 / P), Y[KEPT], F[KEPT]
    v = w - 1
    q = np.where(KEPT, 1 / P - 1, u)
    return ControlSums(
        *five(w, y),
        *(u.sum(), F.sum(), w.sum(), (w * f).sum()),
        *((w * v).sum(), (w * v * f).sum(), (w * v * y).sum(), (w * v * y * f).sum()),
        *((q * q).sum(), (q * q * F).sum(), (q * q * F * F).sum()),
    )


def test_control_equals_the_regression_it_stands_for() -> None:
    """With one p the corrected mean is m - k (mean f of the judged - mean f of all), k from q-weighted products."""
    got = controlled_interval(control_sums())
    y, f = Y[KEPT], F[KEPT]
    m, mf, v, w = y.mean(), F.mean(), 1 / P - 1, 1 / P
    b = (w * v * (y - m) * (f - mf)).sum()
    q = np.where(KEPT, v, 1.0)
    c = (q**2 * (F - mf) ** 2).sum()
    k = b / c * 400 / (w * KEPT.sum())
    a = (w**2 * (y - m) ** 2).sum()
    assert float(got.mean) == pytest.approx(m - k * (f.mean() - mf))
    assert float(got.gain) == pytest.approx(1 / (1 - b**2 / (a * c)))
    assert float(got.lower) < float(got.mean) < float(got.upper)
    assert bool(got.usable)
    plain = logit_interval(*five(np.full(KEPT.sum(), w), y))
    assert got.upper - got.lower < plain.upper - plain.lower


def test_control_without_spread_is_the_judged_number() -> None:
    sums = control_sums()
    flat = ControlSums(
        sums.w, sums.w2, sums.wy, sums.w2y, sums.w2y2, sums.u, np.asarray(sums.u) * 0.5, sums.j,
        np.asarray(sums.j) * 0.5, sums.wv, np.asarray(sums.wv) * 0.5, sums.wvy, np.asarray(sums.wvy) * 0.5, sums.q,
        np.asarray(sums.q) * 0.5, np.asarray(sums.q) * 0.25,
    )  # fmt: skip
    got = controlled_interval(flat)
    assert float(got.mean) == pytest.approx(float(np.asarray(sums.wy) / np.asarray(sums.w)))
    assert float(got.gain) == 1
    assert not got.usable
    nothing = controlled_interval(ControlSums(*[0.0] * 16))
    assert math.isnan(float(nothing.mean))
    assert not nothing.usable


def test_clusters_leave_what_the_control_takes_off_as_it_is() -> None:
    """Variance by clusters less A R2, not times 1 - R2: the correction is about our own sampling alone."""
    sums = control_sums()
    alone = controlled_interval(sums)
    r2 = 1 - 1 / float(alone.gain)
    thrice = (3 * np.asarray(sums.w2), 3 * np.asarray(sums.w2y), 3 * np.asarray(sums.w2y2))
    told = controlled_interval(sums, clusters=thrice)
    assert float(told.gain) == pytest.approx(1 / (1 - r2 / 3))
    assert float(told.mean) == float(alone.mean)
    assert float(told.n_eff) == pytest.approx(float(alone.n_eff) / 3)
    assert float(told.upper - told.lower) > float(alone.upper - alone.lower)
    fewer = (0.5 * np.asarray(sums.w2), 0.5 * np.asarray(sums.w2y), 0.5 * np.asarray(sums.w2y2))
    assert float(controlled_interval(sums, clusters=fewer).gain) == pytest.approx(float(alone.gain))


def test_clusters_of_one_are_items_and_twins_halve_n() -> None:
    w, y = np.full(50, 2.0), Y[:50]
    items = five(w, y)
    same = logit_interval(*items, clusters=(items[1], items[3], items[4]))
    assert same == logit_interval(*items)
    twins = five(np.repeat(w, 2), np.repeat(y, 2))
    pairs = five(2 * w, y)  # each pair is one of twice the weight
    told = logit_interval(*twins, clusters=(pairs[1], pairs[3], pairs[4]))
    assert float(told.n_eff) == pytest.approx(50)
    assert float(cluster_ratio(*twins, clusters=(pairs[1], pairs[3], pairs[4]))) == pytest.approx(2)
    alone = logit_interval(*items)
    assert float(told.upper - told.lower) == pytest.approx(float(alone.upper - alone.lower), rel=0.1), (
        "but for the pseudo-answer"
    )
    ones = five(np.ones(5), np.ones(5))
    assert math.isnan(float(cluster_ratio(*ones, clusters=(ones[1], ones[3], ones[4]))))


def test_group_interval_is_near_that_of_items_and_never_degenerate() -> None:
    groups = np.arange(400) % 16
    w_g = np.bincount(groups, minlength=16).astype(float)
    wy_g = np.bincount(groups, weights=Y, minlength=16)
    got = group_interval(400.0, w_g, wy_g)
    items = logit_interval(*five(np.ones(400), Y))
    assert float(got.mean) == pytest.approx(Y.mean())
    assert float(got.upper - got.lower) == pytest.approx(float(items.upper - items.lower), rel=0.5)
    perfect = group_interval(400.0, w_g, w_g)
    assert 0.9 < float(perfect.lower) < float(perfect.upper) < 1
    both = group_interval(np.array([400.0, 0.0]), np.stack([w_g, 0 * w_g]), np.stack([wy_g, 0 * w_g]))
    assert float(both.mean[0]) == pytest.approx(Y.mean())
    assert np.isnan(both.lower[1])
    assert both.n_eff[1] == 0


def direct_tail(n: int, p: float, above: float) -> float:
    return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1) if k > above + 1e-9)


@pytest.mark.parametrize(
    ("n", "p", "above"), [(20, 0.05, 2.0), (7, 0.5, 0), (100, 0.01, 14.4), (5, 0.2, 5), (30, 0.1, 3.5)]
)
def test_tail_is_the_binomial_sum(n: int, p: float, above: float) -> None:
    assert tail(n, p, above) == pytest.approx(direct_tail(n, p, above), rel=1e-9)


@pytest.mark.parametrize(
    ("slo", "burn", "expected"),
    [
        (0.99, 14.4, (21, 35, 42)),
        (0.99, 6, (84, 150, None)),
        (0.95, 6, (14, 27, 34)),
        (0.95, 3, (67, 134, 160)),
        (0.90, 6, (7, 12, 15)),
        (0.90, 3, (34, 60, 74)),
        (0.80, 3, (14, 24, 29)),
        (0.80, 1.5, (174, 327, 404)),
    ],
)
def test_minimum_n_is_that_of_the_design(slo: float, burn: float, expected: tuple[int | None, ...]) -> None:
    for wanted, level in zip(expected, (1e-3, 1e-5, 1e-6), strict=True):
        assert wanted is None or minimum_n(slo, burn, level) == wanted


@pytest.mark.parametrize(("slo", "burn"), [(0.99, 14.4), (0.99, 3), (0.95, 14.4), (0.9, 3), (0.8, 1.5)])
def test_from_the_minimum_on_every_n_keeps_the_promise(slo: float, burn: float) -> None:
    least = minimum_n(slo, burn, 1e-3)
    r = burn * (1 - slo)
    assert all(tail(n, 1 - slo, r * n) <= 1e-3 for n in range(least, least + 400))
    assert tail(least - 1, 1 - slo, r * (least - 1)) > 1e-3


@pytest.mark.parametrize(
    ("slo", "burn", "why"), [(0.8, 6, "never fire"), (0.95, 1.0, "above 1"), (0.999, 1.01, "drift")]
)
def test_burn_rates_that_can_not_work_are_refused(slo: float, burn: float, why: str) -> None:
    with pytest.raises(BurnRateImpossible, match=why):
        minimum_n(slo, burn)
