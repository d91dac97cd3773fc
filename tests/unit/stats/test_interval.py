"""The interval does what it says: seeded simulations on the real code path, and edges by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from collector.stats.interval import (
    Floats,
    coverage,
    logit_interval,
    missing_bounds,
    n_eff,
    t_quantile,
    wald_interval,
)

RUNS = 3_000
TRUTH = 0.75 + 0.25 * 2.0 / 3.85
"""Mean of the simulated scores: three quarters are 1, the rest Beta(2, 1.85)."""
Design = Callable[[np.random.Generator, Floats], Floats]
"""Inclusion probabilities of a population of scores."""


def scores(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Like the answers of a healthy service: mean 0.88, most of them perfect."""
    bad = rng.random(shape) < 0.25
    return np.where(bad, rng.beta(2.0, 1.85, shape), 1.0)


def uniform(_: np.random.Generator, y: Floats) -> Floats:
    return np.full(y.shape, 0.1)


def stratified(rng: np.random.Generator, y: Floats) -> Floats:
    return rng.choice([0.05, 0.1, 0.4], size=y.shape, p=[0.5, 0.4, 0.1])


def score_dependent(_: np.random.Generator, y: Floats) -> Floats:
    return np.where(y < 0.5, 0.5, np.where(y < 0.9, 0.2, 0.1))


def sums(rng: np.random.Generator, design: Design, population: int) -> tuple[Floats, ...]:
    y = scores(rng, (RUNS, population))
    p = design(rng, y)
    w = np.where(rng.random(y.shape) < p, 1 / p, 0.0)
    return tuple(np.sum(x, axis=1) for x in (w, w**2, w * y, w**2 * y, w**2 * y**2))


@pytest.mark.parametrize("population", [300, 1_000])
@pytest.mark.parametrize("design", [uniform, stratified, score_dependent])
def test_covers_the_truth_from_n_eff_20(design: Design, population: int) -> None:
    rng = np.random.default_rng(20_240_901)
    five = sums(rng, design, population)
    enough = n_eff(five[0], five[1]) >= 20
    assert np.mean(enough) > 0.3, "the simulation must reach n_eff 20 often enough to say something"
    interval = logit_interval(*(x[enough] for x in five))
    covered = np.mean((interval.lower <= TRUTH) & (interval.upper >= TRUTH))
    assert 0.93 <= covered <= 0.98


def test_wald_covers_less_on_scores_near_one() -> None:
    rng = np.random.default_rng(7)
    y = np.where(rng.random((RUNS, 30)) < 0.03, 0.5, 1.0)
    ones = np.ones_like(y)
    five = [np.sum(x, axis=1) for x in (ones, ones, y, y, y**2)]
    truth = 1 - 0.03 * 0.5
    covered = {}
    for name, interval in (("logit", logit_interval(*five)), ("wald", wald_interval(*five))):
        covered[name] = np.mean((interval.lower <= truth) & (truth <= interval.upper))
    assert covered["wald"] < 0.7
    assert covered["logit"] >= 0.93


def test_bias_is_below_a_tenth_of_the_standard_error() -> None:
    rng = np.random.default_rng(11)
    means = logit_interval(*sums(rng, stratified, 1_500)).mean
    assert abs(np.mean(means) - TRUTH) < 0.1 * np.std(means)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_is_not_degenerate_when_all_scores_are_equal(value: float) -> None:
    n = 30.0
    interval = logit_interval(n, n, n * value, n * value, n * value)
    assert float(interval.mean) == value
    assert 0 < float(interval.lower) < float(interval.upper) < 1


def test_follows_the_published_formula() -> None:
    """The same numbers by the formula written out step by step, as the recording rules write it."""
    w = np.array([10.0, 10.0, 2.5, 40.0])
    y = np.array([1.0, 0.4, 0.9, 1.0])
    s = [float(np.sum(x)) for x in (w, w**2, w * y, w**2 * y, w**2 * y**2)]
    wb, n = s[1] / s[0], s[0] ** 2 / s[1]
    total = s[0] + wb
    m = (s[2] + wb / 2) / total
    a = max(s[4] - 2 * m * s[3] + m * m * s[1], 0) + wb * wb / 2 * (m * m + (1 - m) ** 2)
    h = (1.96 + 2.372 / n + 2.823 / n**2) * math.sqrt(a * (n + 1) / n) / total / (m * (1 - m))
    centre = math.log(m / (1 - m))
    interval = logit_interval(*s)
    assert float(interval.n_eff) == pytest.approx(n)
    assert float(interval.lower) == pytest.approx(1 / (1 + math.exp(-(centre - h))), abs=1e-4)
    assert float(interval.upper) == pytest.approx(1 / (1 + math.exp(-(centre + h))), abs=1e-4)


def test_scaling_all_weights_changes_nothing() -> None:
    five = np.array([100.0, 1_500.0, 90.0, 1_350.0, 1_300.0])
    scaled = five * np.array([7, 49, 7, 49, 49])
    assert np.allclose(logit_interval(*five).lower, logit_interval(*scaled).lower)


def test_nothing_scored_is_not_a_number() -> None:
    interval = logit_interval(0.0, 0.0, 0.0, 0.0, 0.0)
    assert np.isnan([interval.mean, interval.lower, interval.upper]).all()
    assert float(interval.n_eff) == 0


def test_t_quantile_is_close_to_tables() -> None:
    assert float(t_quantile(20)) == pytest.approx(2.086, abs=2e-3)
    assert float(t_quantile(100)) == pytest.approx(1.984, abs=1e-3)


def test_coverage_and_bounds() -> None:
    """30 % failures among bad and 2 % among good answers: the mean alone misleads, the bounds hold the truth."""
    scored, failed, wy = 0.75 * 98 + 0.25 * 70, 0.75 * 2 + 0.25 * 30, 0.75 * 98 * 1.0 + 0.25 * 70 * 0.5
    truth = 0.75 + 0.25 * 0.5
    low, high = missing_bounds(scored, failed, wy)
    assert wy / scored > truth
    assert float(low) < truth < float(high)
    assert float(coverage(scored, failed)) == pytest.approx(0.91)
    assert np.isnan(coverage(0, 0))
