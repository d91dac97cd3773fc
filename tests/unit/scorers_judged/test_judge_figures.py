"""Figures of a judge on labelled rows: by hand on small tables, and intervals that hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from scorers.judge.figures import Judged, agreement, difference, mean, noise, quantile, rank_correlation


def rows(table: tuple[int, int, int, int], group: list[str] | None = None) -> Judged:
    """Rows from counts: bad said bad, bad said good, good said bad, good said good."""
    good = np.repeat([0.0, 0.0, 1.0, 1.0], table)
    score = np.repeat([0.0, 1.0, 0.0, 1.0], table)
    return Judged(good, score, group or [str(number) for number in range(len(good))])


def test_agreement_of_a_table_by_hand() -> None:
    found = agreement(rows((18, 2, 6, 14)), 0.5)
    assert found is not None
    balanced, area, kappa = found
    assert balanced.value == pytest.approx((0.9 + 0.7) / 2)
    assert area.value == pytest.approx(0.8)  # of a score with two values AUROC is balanced accuracy
    assert kappa.value == pytest.approx((0.8 - 0.5) / 0.5)
    for figure in found:
        assert figure.low is not None and figure.high is not None
        assert figure.low < figure.value < figure.high


def test_all_right_does_not_mean_that_all_is_known() -> None:
    found = agreement(rows((10, 0, 0, 10)), 0.5)
    assert found is not None
    for figure in found:
        assert figure.value == figure.high == 1
        assert figure.low is not None and 0.5 < figure.low < 0.95


def test_rows_of_one_source_count_as_one() -> None:
    alone = agreement(rows((30, 10, 10, 30)), 0.5)
    together = agreement(rows((30, 10, 10, 30), [str(number // 10) for number in range(80)]), 0.5)
    assert alone is not None and together is not None
    widths = [figure.high - figure.low for figure in (alone[0], together[0]) if figure.high and figure.low]
    assert widths[1] > 1.5 * widths[0]


def test_one_class_has_no_agreement() -> None:
    assert agreement(rows((5, 5, 0, 0)), 0.5) is None
    assert agreement(rows((0, 0, 0, 0)), 0.5) is None
    assert difference(np.ones(3), np.ones(3), np.ones(3), ["a", "b", "c"]) is None


@pytest.mark.parametrize("size", [10, 40])
def test_intervals_cover_what_was_planted(size: int) -> None:
    """Sensitivity 0.9 and specificity 0.7: balanced accuracy and AUROC 0.8, kappa 0.6."""
    random = np.random.default_rng(size)
    covered = np.zeros(3)
    for _ in range(40):
        hits, passes = random.binomial(size, 0.9), random.binomial(size, 0.7)
        found = agreement(rows((passes, size - passes, size - hits, hits)), 0.5)
        assert found is not None
        for place, (figure, truth) in enumerate(zip(found, (0.8, 0.8, 0.6), strict=True)):
            assert figure.low is not None and figure.high is not None
            covered[place] += figure.low <= truth <= figure.high
    assert (covered >= 35).all(), covered  # at 95 % coverage 34 or fewer of 40 happen once in 70 times


def test_a_difference_of_two_plans_is_paired() -> None:
    good = np.array([1.0] * 10 + [0.0] * 10)
    first = np.array([1.0] * 8 + [0.0] * 2 + [0.0] * 10)  # balanced accuracy 0.9
    second = np.array([1.0] * 6 + [0.0] * 4 + [0.0] * 10)  # 0.8, wrong on the same rows and two more
    found = difference(good, first, second, [str(n) for n in range(20)])
    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(-0.1)
    assert -0.35 < found.low < -0.1 < found.high < 0.1


def test_noise_of_pairs_is_half_the_mean_square_of_their_difference() -> None:
    repeats = [[1.0, 0.5], [0.5, 0.5], [0.0, 0.0], [1.0, 1.0]]
    found = noise(repeats, list("abcd"))
    assert found is not None
    assert found[0].value == pytest.approx(np.sqrt((0.25 / 4) / 2))
    assert found[1].value == pytest.approx(0.25)
    steady = noise([[1.0, 1.0]] * 20, [str(n) for n in range(20)])
    assert steady is not None
    assert (steady[0].value, steady[0].high) == (0.0, None)
    assert steady[1].high is not None and 0.05 < steady[1].high < 0.2
    assert noise([[1.0], [0.5]], ["a", "b"]) is None


def test_noise_of_more_repeats_finds_the_planted_spread() -> None:
    random = np.random.default_rng(1)
    repeats = [list(one) for one in random.normal(0.5, 0.1, size=(200, 3))]
    found = noise(repeats, [str(n) for n in range(200)])
    assert found is not None and found[0].low is not None and found[0].high is not None
    assert found[0].low < 0.1 < found[0].high and found[0].high - found[0].low < 0.03


def test_ends_that_few_rows_do_not_know_are_open() -> None:
    figure = quantile(list(range(1, 21)), 0.95)
    assert figure is not None
    assert figure.high is None and figure.low is not None
    middle = quantile(list(range(1, 101)), 0.5)
    assert middle is not None
    assert (middle.low, middle.high) == (40, 61)  # the table for n = 100
    assert quantile([], 0.5) is None and mean([], []) is None
    assert mean([1.0, 3.0], ["a", "a"]).low is None  # type: ignore[union-attr]  # two values are there


def test_graded_labels_are_compared_by_rank() -> None:
    grades = np.linspace(0, 1, 12)
    found = rank_correlation(Judged(grades, grades**2, [str(n) for n in range(12)]))
    assert found is not None and found.value == pytest.approx(1.0)
    assert rank_correlation(Judged(grades, np.ones(12), ["a"] * 12)) is None
