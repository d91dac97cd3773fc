"""The detector's logarithms are the plain recursion, and its state goes on from its row, whatever comes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.stats.detector import Detector, ladder

unit = st.floats(0, 1)
clusters = st.lists(st.tuples(unit, st.floats(0, 1), st.integers(1, 50)), max_size=60)


@given(st.floats(0.01, 0.99), st.floats(0.1, 50), st.floats(1, 100), clusters)
def test_it_is_the_plain_recursion(
    m: float, mean_weight: float, heavier: float, found: list[tuple[float, float, int]]
) -> None:
    most = mean_weight * heavier
    detector = Detector(m, mean_weight)
    plain = [0.0] * len(ladder(m, mean_weight))
    for y, share, items in found:
        x = most * share * (m - y)
        detector.bet(x, items, most)
        for j, wished in enumerate(ladder(m, mean_weight)):
            factor = 1 + min(wished, 1 / (1.1 * most * (1 - m))) * x
            assert factor > 0
            plain[j] = plain[j] * factor + items
    expected = sum(plain) / len(plain)
    if math.isfinite(expected):
        assert detector.log1p == pytest.approx(math.log1p(expected), rel=1e-9, abs=1e-9)
    assert math.isfinite(detector.log1p)
    assert detector.log1p >= math.log1p(found[-1][2] if found else 0) - 1e-9
    assert Detector(m, mean_weight, detector.logs).log1p == detector.log1p
