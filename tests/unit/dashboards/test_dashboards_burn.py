"""Which burn-rate alerts are made, over which windows, and what their rule asks for."""

from __future__ import annotations

import pytest

from collector.stats.burn import minimum_n
from dashboards.burn import BURNS, Burn, Page, Refusal, needed_bad, plan
from dashboards.options import Objective


@pytest.mark.parametrize("burn", BURNS)
def test_the_rule_for_any_target_asks_for_no_less_than_the_exact_number(burn: Burn) -> None:
    for target in (0.9, 0.95, 0.99, 0.995):
        if burn.rate * (1 - target) < 1:
            assert needed_bad(burn.rate, 1e-5) / (1 - target) >= 0.99 * minimum_n(target, burn.rate, 1e-5)


def test_a_burn_rate_over_all_answers_is_refused() -> None:
    refused, *others = plan(Objective(target=0.9), false_alarm=1e-5)
    assert isinstance(refused, Refusal)
    assert "a bad share of 1.44" in refused.reason
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


@pytest.mark.parametrize(
    ("changed", "message"), [({"target": 1.0}, "target 1.0"), ({"judged_per_hour": 0}, "over 0")]
)
def test_an_objective_that_makes_no_sense_is_refused(changed: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Objective(**changed)  # type: ignore[arg-type]  # the keys are names of fields of that type
