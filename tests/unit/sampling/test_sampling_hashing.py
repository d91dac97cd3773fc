"""The published test vectors, and that the numbers are uniform and independent."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from itertools import pairwise

import pytest

from collector.sampling.hashing import Uniform

VECTORS = (
    ("groundwatch", "rate", "0" * 32, "0x1.f04642aab5280p-8"),
    ("groundwatch", "shed", "0" * 32, "0x1.54d4bca1709f8p-4"),
    ("groundwatch", "rate", "orders/3/1729", "0x1.ece49f9195604p-3"),
    ("another", "rate", "0" * 32, "0x1.509c8a7c6d207p-1"),
    ("groundwatch", "rate", "질문-7", "0x1.681200f7b94c0p-7"),
    ("groundwatch", "rate", "", "0x1.e77af2501dc20p-4"),
)


@pytest.mark.parametrize(("seed", "purpose", "interaction_id", "expected"), VECTORS)
def test_published_vectors(seed: str, purpose: str, interaction_id: str, expected: str) -> None:
    assert Uniform(seed, purpose)(interaction_id) == float.fromhex(expected)


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_equal_in_another_process(hash_seed: str) -> None:
    code = (
        "from collector.sampling.hashing import Uniform\n"
        "print(Uniform('groundwatch', 'rate')('orders/3/1729').hex())"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert said.stdout.strip() == "0x1.ece49f9195604p-3"


def correlation(xs: list[float], ys: list[float]) -> float:
    n = len(xs)
    mx, my = sum(xs) / n, sum(ys) / n
    cov = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
    return cov / (sum((x - mx) ** 2 for x in xs) * sum((y - my) ** 2 for y in ys)) ** 0.5


def test_uniform_and_independent() -> None:
    n = 20_000
    ids = [f"interaction {number}" for number in range(n)]
    rate, shed, other = Uniform("a", "rate"), Uniform("a", "shed"), Uniform("b", "rate")
    xs = [rate(each) for each in ids]
    counts = [0] * 20
    for x in xs:
        assert 0 <= x < 1
        counts[int(x * 20)] += 1
    chi_square = sum((count - n / 20) ** 2 / (n / 20) for count in counts)
    assert chi_square < 43.8  # 19 degrees of freedom, p = 0.001
    for ys in ([shed(each) for each in ids], [other(each) for each in ids]):
        assert abs(correlation(xs, ys)) < 4 / n**0.5
    assert abs(correlation(xs[:-1], [y for _, y in pairwise(xs)])) < 4 / n**0.5


def test_independent_of_the_bits_of_trace_ids() -> None:
    """A population that an upstream sampler chose by either end of the trace id is sampled like any other."""
    rng = random.Random(1)
    ids = [rng.randbytes(16).hex() for _ in range(40_000)]
    uniform = Uniform("a", "rate")
    low = [each for each in ids if int(each[-14:], 16) < (1 << 56) // 10]
    high = [each for each in ids if int(each[-14:], 16) >= (1 << 56) * 9 // 10]
    for kept_upstream in (low, high):
        share = sum(uniform(each) < 0.2 for each in kept_upstream) / len(kept_upstream)
        assert abs(share - 0.2) < 4 * (0.16 / len(kept_upstream)) ** 0.5


def test_seed_and_purpose_do_not_run_into_each_other() -> None:
    assert Uniform("ab", "c")("x") != Uniform("a", "bc")("x")


def test_any_text_is_an_id() -> None:
    assert 0 <= Uniform("", "")("\ud800 half a pair") < 1
