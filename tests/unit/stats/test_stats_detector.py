"""The detector's arithmetic, against the plain recursion in exact fractions where that can be done."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from collector.stats.detector import LADDER, Detector, ladder, log_add


def plain(m: Fraction, bets: list[Fraction], clusters: list[tuple[Fraction, int]]) -> Fraction:
    """M after clusters (mean score, items) of weight 1."""
    capital = [Fraction(0)] * len(bets)
    for y, items in clusters:
        capital = [c * (1 + bet * (m - y)) + items for c, bet in zip(capital, bets, strict=True)]
    return sum(capital, Fraction(0)) / len(bets)


def test_it_is_the_recursion_of_the_docstring() -> None:
    m = Fraction(3, 4)
    bets = [min(Fraction(1, 2**j) * 4, Fraction(10, 11) * 4) for j in range(1, LADDER + 1)]
    clusters = [(Fraction(1), 1), (Fraction(0), 1), (Fraction(1, 2), 3), (Fraction(1), 7), (Fraction(1, 4), 2)]
    detector = Detector(0.75, 1.0)
    assert detector.log1p == 0
    for y, items in clusters:
        detector.bet(float(m - y), items, 1.0)
    assert math.expm1(detector.log1p) == pytest.approx(float(plain(m, bets, clusters)), rel=1e-12)


def test_numbers_stay_right_where_m_itself_would_overflow() -> None:
    detector = Detector(0.9, 1.0)
    for _ in range(5_000):
        detector.bet(0.9, 1, 1.0)
    assert 1_000 < detector.log1p < math.inf
    # The largest bet leads: (1 + 5 * 0.9)^5000 and the geometric series below it, a fifth of it in the mixture.
    assert detector.log1p == pytest.approx(5_000 * math.log(5.5) + math.log(1 / 4.5) - math.log(5), abs=1e-6)
    for _ in range(5_000):
        detector.bet(-0.1, 1, 1.0)
    assert math.isfinite(detector.log1p)
    detector.restart()
    assert detector.log1p == 0
    assert detector.logs == (-math.inf,) * LADDER


def test_bets_stay_below_what_the_highest_possible_weight_allows() -> None:
    detector = Detector(0.8, 1.0)
    detector.bet(0.0, 1, 100.0)
    detector.bet(-100 * 0.2, 1, 100.0)  # the heaviest item with the best score takes 1/1.1 of the capital, not all
    assert math.expm1(detector.log1p) == pytest.approx(1 - 1 / 1.1 + 1)
    with pytest.raises(ValueError, match=r"can not have x = -21"):
        detector.bet(-21.0, 1, 100.0)
    with pytest.raises(ValueError, match="0 items"):
        detector.bet(0.1, 0, 1.0)
    with pytest.raises(ValueError, match="x = nan"):
        detector.bet(math.nan, 1, 1.0)


def test_items_are_added_after_the_factor() -> None:
    detector = Detector(0.5, 1.0)
    detector.bet(0.5, 10, 1.0)
    assert math.expm1(detector.log1p) == pytest.approx(10)


@pytest.mark.parametrize(("m", "weight"), [(0.0, 1.0), (1.0, 1.0), (0.5, 0.0), (0.5, math.inf), (math.nan, 1.0)])
def test_a_level_or_a_weight_that_can_not_be_is_refused(m: float, weight: float) -> None:
    with pytest.raises(ValueError, match="must lie between"):
        ladder(m, weight)


def test_a_state_that_is_none_is_refused_and_a_good_one_goes_on() -> None:
    first = Detector(0.8, 2.0)
    first.bet(0.4, 3, 10.0)
    again = Detector(0.8, 2.0, first.logs)
    assert again.log1p == first.log1p
    for bad in ([0.0], [math.nan] * LADDER, [math.inf] * LADDER):
        with pytest.raises(ValueError, match="5 logarithms"):
            Detector(0.8, 2.0, bad)


def test_the_threshold_is_reached_at_m_equal_a() -> None:
    detector = Detector(0.5, 1.0)
    detector.bet(0.0, 100, 1.0)
    assert detector.reached(99.999)
    assert not detector.reached(100.001)


def test_log_add() -> None:
    assert log_add(-math.inf, 2.0) == 2.0
    assert log_add(math.log(3), math.log(4)) == pytest.approx(math.log(7))
    assert log_add(5_000.0, 0.0) == 5_000.0


def test_at_the_boundary_m_minus_the_items_has_mean_zero() -> None:
    """The supermartingale itself: over many short runs the mean of M is the number of items, with heavy weights of good
    answers too (score-dependent probabilities)."""
    rng = np.random.default_rng(5)
    ends = []
    for _ in range(4_000):
        detector = Detector(0.75, 1.0)
        for _ in range(12):
            y = float(rng.random() < 0.75)
            p = 0.25 if y else 0.8
            if rng.random() < p:
                detector.bet((0.75 - y) / p, 1, 4.0)
            else:
                detector.bet(0.0, 1, 4.0)
        ends.append(math.expm1(detector.log1p))
    error = float(np.std(ends)) / math.sqrt(len(ends))
    assert abs(float(np.mean(ends)) - 12) < 4 * error
