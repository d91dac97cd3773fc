"""Two runs of the same answers: what is noise, and what moved."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collector.stats.moved import Noise, holm, moved, noise_of, signs, t_tail


@pytest.mark.parametrize(
    ("t", "freedom", "p"),
    # quantiles of Student's t that every table has
    [(12.706, 1, 0.05), (4.303, 2, 0.05), (2.5706, 5, 0.05), (2.228, 10, 0.05), (2.845, 20, 0.01), (0.0, 7, 1.0)],
)
def test_students_tail(t: float, freedom: int, p: float) -> None:
    assert t_tail(t, freedom) == pytest.approx(p, abs=2e-5)
    assert t_tail(-t, freedom) == t_tail(t, freedom)


def test_noise_from_pairs_is_half_the_mean_square_of_their_distance() -> None:
    noise = noise_of([[0.5, 0.7], [1.0, 1.0], [0.2]])
    assert noise.freedom == 2
    assert noise.sd == pytest.approx(math.sqrt((0.2**2 / 2) / 2))
    assert noise_of([[0.5], []]) == Noise(0.0, 0)
    assert noise_of([[0.5]]).sd is None


def test_holms_procedure_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9]) == [0.9]
    assert holm([]) == []


def test_signs_are_counted_exactly_and_by_flips_alike() -> None:
    assert signs(np.array([0.1] * 5)) == 2 / 32
    assert signs(np.array([0.5, 0.0, 0.0])) == 1.0
    assert signs(np.zeros(3)) == 1.0
    apart = np.random.default_rng(2).normal(0.1, 0.2, 12)
    exact = signs(apart)
    assert signs(np.append(apart, 1e-9)) == pytest.approx(exact, abs=0.015)


def test_a_score_without_noise_moved_or_did_not() -> None:
    assert moved([[0.5], [0.7]], [[0.5], [0.7]], noisy=False).p == 1
    found = moved([[0.5], [0.7]], [[0.5], [0.9]], noisy=False)
    assert (found.p, found.by) == (0, "exact")
    assert found.difference == pytest.approx(0.1)


def test_without_repeats_signs_decide_and_one_answer_says_nothing() -> None:
    found = moved([[0.9]] * 8, [[0.5]] * 8)
    assert (found.by, found.noise_sd) == ("signs", None)
    assert found.p == 2 / 256
    one = moved([[0.9]], [[0.1]])
    assert (one.p, one.low, one.high) == (1, -1, 1)


def test_the_standard_error_is_that_of_the_page() -> None:
    """sqrt(2 s_e^2/n) for single tries, with one pair more, as far apart as the furthest answer."""
    dice = np.random.default_rng(4)
    before = [[0.5, 0.5 + x] for x in dice.normal(0, 0.1, 400)]
    after = [[0.6] for _ in before]
    found = moved(before, after)
    squares = sum((b - a) ** 2 / 2 for a, b in before)
    furthest = max(abs(0.6 - (a + b) / 2) for a, b in before)
    variance = (squares + furthest**2 / 2) / 401
    half = (found.high - found.low) / 2
    assert half == pytest.approx(1.966 * math.sqrt(1.5 * variance / 400), rel=1e-3)
    assert found.p < 1e-6


def judge(dice: np.random.Generator, truth: np.ndarray, tries: int, *, flips: float) -> list[list[float]]:
    """A judge whose noise is small mostly, and now and then the other way round."""
    y = np.clip(truth[:, None] + dice.normal(0, 0.03, (len(truth), tries)), 0, 1)
    y = np.where(dice.random(y.shape) < flips, 1 - y, y)
    return [list(map(float, row)) for row in y]


@pytest.mark.parametrize("flips", [0.0, 0.02, 0.1])
@pytest.mark.parametrize(("cases", "tries"), [(10, 2), (40, 2), (40, 1)])
def test_an_unchanged_judge_seldom_moves(flips: float, cases: int, tries: int) -> None:
    dice = np.random.default_rng(8)
    false, runs = 0, 600 if tries > 1 else 200
    for _ in range(runs):
        truth = np.where(dice.random(cases) < 0.7, 1.0, dice.random(cases))
        was, now = judge(dice, truth, 1, flips=flips), judge(dice, truth, tries, flips=flips)
        false += moved(was, now).p < 0.05
    assert false / runs <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)


def test_a_judge_that_got_stricter_is_found() -> None:
    dice = np.random.default_rng(9)
    found = alone = 0
    for _ in range(200):
        truth = np.where(dice.random(20) < 0.7, 1.0, dice.random(20))
        was, now = judge(dice, truth, 1, flips=0.02), judge(dice, truth - 0.15, 2, flips=0.02)
        result = moved(was, now)
        found += result.p < 0.05
        still = judge(dice, truth, 2, flips=0.0)
        still[3] = [1 - truth[3]] * 2
        limit = moved(judge(dice, truth, 1, flips=0.0), still).case_limit
        assert limit is not None
        alone += abs(1 - 2 * truth[3]) > limit
    assert found > 150
    assert alone > 120, "one answer that turned around stands out"
