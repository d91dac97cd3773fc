"""Windows as differences of sums: against all additions kept one by one."""

from __future__ import annotations

import numpy as np
import pytest

from collector.estimates.tally import Tally, Window


@pytest.mark.parametrize("seed", range(6))
def test_growth_is_what_was_added_in_the_windows_buckets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tally = Tally(3)
    added: list[tuple[float, np.ndarray]] = []
    now = float(rng.uniform(0, 1_000))
    for _ in range(400):
        now += float(rng.exponential(rng.choice([5.0, 60.0, 2_000.0])))
        amounts = rng.random(3)
        tally.touch(now)
        for place, amount in enumerate(amounts):
            tally.values[place] += float(amount)
        added.append((now, amounts))
        later = now + float(rng.exponential(300.0))
        for window in Window:
            seconds, width = window.value
            first = (int(later // width) - seconds // width) * width
            expected = sum((amounts for at, amounts in added if at >= first), start=np.zeros(3))
            assert tally.growth(later, window) == pytest.approx(expected)


def test_places_that_came_later_count_from_their_birth() -> None:
    tally = Tally(1)
    tally.touch(0)
    tally.values[0] += 1
    first = tally.extend(2)
    tally.values[first] += 5
    assert list(tally.growth(30, Window.HOUR)) == [1, 5, 0]
    tally.touch(3_700)
    tally.values[first] += 1
    assert list(tally.growth(3_700, Window.HOUR)) == [0, 1, 0]


def test_a_busy_tally_keeps_a_bounded_past_and_a_quiet_one_none() -> None:
    tally = Tally(10)
    assert tally.states == 0
    for second in range(0, 4 * 86_400, 20):
        tally.touch(second)
    assert tally.states == 61 + 97
