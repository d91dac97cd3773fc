"""Which burn-rate alerts are made, and how many answers they need, against published figures and by brute force."""

from __future__ import annotations

import math

import pytest

from dashboards.burn import BURNS, Page, Refusal, minimum_n, needed_bad, plan
from dashboards.options import Objective

DESIGN = {
    # (target, burn rate): effective n for a false alarm of 1e-3, 1e-5, 1e-6 a window, as simulated for the design
    (0.99, 14.4): (21, 35, 42),
    (0.99, 6): (84, 150, 184),
    (0.99, 3): (334, 667, 834),
    (0.95, 14.4): (5, 6, 7),
    (0.95, 6): (14, 27, 34),
    (0.95, 3): (67, 134, 160),
    (0.90, 6): (7, 12, 15),
    (0.90, 3): (34, 60, 74),
    (0.80, 3): (14, 24, 29),
}


@pytest.mark.parametrize(("target", "rate"), DESIGN)
def test_the_numbers_needed_are_those_of_the_design_or_a_little_stricter(target: float, rate: float) -> None:
    for false_alarm, known in zip((1e-3, 1e-5, 1e-6), DESIGN[target, rate], strict=True):
        assert known <= minimum_n(target, rate, false_alarm) <= 1.1 * known


@pytest.mark.parametrize(("target", "rate", "false_alarm"), [(0.95, 6, 1e-3), (0.9, 3, 1e-5)])
def test_from_the_number_on_no_window_is_worse(target: float, rate: float, false_alarm: float) -> None:
    needed = minimum_n(target, rate, false_alarm)

    def tail(n: int) -> float:
        bad = 1 - target
        least = math.floor(rate * bad * n + 1e-9) + 1
        return math.fsum(math.comb(n, i) * bad**i * target ** (n - i) for i in range(least, n + 1))

    assert tail(needed - 1) > false_alarm
    assert max(tail(n) for n in range(needed, 3 * needed)) <= false_alarm


@pytest.mark.parametrize("burn", BURNS)
def test_the_rule_for_any_target_asks_for_no_less_than_the_exact_number(burn) -> None:  # type: ignore[no-untyped-def]  # parametrised
    for target in (0.9, 0.95, 0.99, 0.995):
        if burn.rate * (1 - target) < 1:
            assert needed_bad(burn.rate, 1e-5) / (1 - target) >= 0.99 * minimum_n(target, burn.rate, 1e-5)


def test_a_burn_rate_over_all_answers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1.44, not in"):
        minimum_n(0.9, 14.4, 1e-5)
    refused, *others = plan(Objective(target=0.9), false_alarm=1e-5)
    assert isinstance(refused, Refusal)
    assert "1.44, which none can reach" in refused.reason
    assert all(isinstance(page, Page) for page in others)


def test_windows_follow_the_rate_of_judging() -> None:
    def shorts(rate: float) -> list[int | None]:
        pages = plan(Objective(target=0.95, judged_per_hour=rate), false_alarm=1e-5)
        return [page.short if isinstance(page, Page) else None for page in pages]

    assert shorts(10_000) == [1800, 1800, 1800]
    assert shorts(100) == [1800, 1800, 7200]
    assert shorts(20) == [1800, 7200, None]
    assert shorts(1) == [None, None, None]


def test_what_is_refused_says_how_long_it_would_take() -> None:
    *_, refused = plan(Objective(target=0.99, judged_per_hour=100), false_alarm=1e-5)
    assert isinstance(refused, Refusal)
    assert refused.reason == (
        "its short window needs 700 answers; 100 an hour take 7.0 h, over half of the long window of 24 h"
    )


@pytest.mark.parametrize(("changed", "message"), [({"target": 1.0}, "target 1.0"), ({"judged_per_hour": 0}, "over 0")])
def test_an_objective_that_makes_no_sense_is_refused(changed: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Objective(**changed)  # type: ignore[arg-type]  # the keys are names of fields of that type
