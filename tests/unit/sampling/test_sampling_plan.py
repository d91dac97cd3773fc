"""The plan's figures against the real sampler, budget and estimates' formulas; and what can not be planned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from collector.records.decision import Fate
from collector.records.found import Found, Mark
from collector.sampling.options import BudgetOptions, Options
from collector.sampling.plan import Plan, PlanError, Price, Scores, Traffic, allowed_per_day, plan
from collector.stats.interval import logit_interval
from tests.unit.sampling.sampling_builders import Bench, found, screened

TENANTS = {"name": "tenant", "attribute": "app.tenant", "values": ["gold", "free"]}
BY_SCORE: dict[str, object] = {
    "type": "scores",
    "steps": [{"below": 0.5, "probability": 0.5}, {"below": 0.7, "probability": 0.2}],
    "otherwise": 0.05,
}
STRATA: dict[str, object] = {"type": "stratified", "segment": "tenant", "values": {"gold": {"per_hour": 30}}}
ERRORS: dict[str, object] = {"type": "marks", "marks": {"truncated": 0.3}}
NO_BUDGET = {"calls_per_day": None, "usd_per_day": None}
PARTS = {"tenant": {"gold": 1.0, "free": 9.0}}


def planned(
    *configured: dict[str, object], per_hour: float = 600, budget: dict[str, object] | None = None, **rest: object
) -> Plan:
    options = Options.model_validate(
        {"policies": configured, "segments": [TENANTS], "budget": budget or NO_BUDGET, **rest}
    )
    return plan(options, Traffic(per_hour, PARTS, {Mark.TRUNCATED: 0.1}), Scores(), Price(4, 0.002))


@dataclass
class Day:
    """What the real sampler did with a day of the assumed traffic."""

    judged: int
    gold: int
    usd: float
    n_eff: float
    half_width: float


def a_day(
    *configured: dict[str, object], per_hour: int, budget: dict[str, object] | None = None, seed: int = 7
) -> Day:
    """A day of traffic through Sampler and Budget, minute by minute, judged at once with four calls and 0.2 cents."""
    rng = np.random.default_rng(seed)
    bench = Bench(configured=configured, segments=[TENANTS], budget=budget or NO_BUDGET)
    size = per_hour * 24
    y, local = Scores().draw(rng, size)
    golden, cut = rng.random(size) < 0.1, rng.random(size) < 0.1
    weights, scores = [], []
    gold = 0
    for i in range(size):
        decision = bench.sampler.decide(
            _found(i, golden=bool(golden[i]), cut=bool(cut[i])), [screened(float(local[i]))]
        )
        if decision.fate is Fate.QUEUED:
            weights.append(decision.weight)
            scores.append(float(y[i]))
            gold += bool(golden[i])
            bench.books.interactions += 1
            bench.books.calls += 4
            bench.books.cost_usd += 0.002
        bench.clock.advance(3_600 / per_hour)
    w, v = np.array(weights), np.array(scores)
    shown = logit_interval(w.sum(), (w**2).sum(), (w * v).sum(), (w**2 * v).sum(), (w**2 * v**2).sum())
    return Day(len(w), gold, bench.books.cost_usd, float(shown.n_eff), float(shown.upper - shown.lower) / 2)


def _found(number: int, *, golden: bool, cut: bool) -> Found:
    return found(
        number,
        attributes={"app.tenant": "gold" if golden else "free"},
        marks=frozenset({Mark.TRUNCATED}) if cut else frozenset(),
    )


@pytest.mark.parametrize(
    ("configured", "budget"),
    [
        ((BY_SCORE,), None),
        ((BY_SCORE, STRATA, ERRORS), None),
        ((BY_SCORE, STRATA, ERRORS), {"calls_per_day": 6_000, "usd_per_day": None}),
        (({"type": "rate", "rate": 0.5},), {"calls_per_day": None, "usd_per_day": 2.0}),
    ],
)
def test_a_day_of_the_real_sampler_is_as_planned(
    configured: tuple[dict[str, object], ...], budget: dict[str, object] | None
) -> None:
    made = planned(*configured, budget=budget)
    day = a_day(*configured, per_hour=600, budget=budget)
    expected = made.configured.windows["1d"]
    assert expected.half_width is not None
    assert day.judged == pytest.approx(expected.judged, rel=0.12)
    assert day.usd == pytest.approx(made.configured.usd_per_day, rel=0.12)
    assert day.n_eff == pytest.approx(expected.n_eff, rel=0.15)
    assert day.half_width == pytest.approx(expected.half_width, rel=0.15)
    gold = next(part for part in made.parts if part.value == "gold")
    assert day.gold == pytest.approx(gold.scheme.judged_per_hour * 24, rel=0.2)


def test_a_uniform_rate_is_planned_exactly() -> None:
    made = planned({"type": "rate", "rate": 0.1})
    for scheme in (made.configured, made.uniform):
        assert scheme.judged_per_hour == pytest.approx(60)
        assert scheme.calls_per_day == pytest.approx(60 * 24 * 4)
        assert scheme.usd_per_day == pytest.approx(60 * 24 * 0.002)
        assert scheme.n_eff_per_judged == pytest.approx(1)
        assert scheme.variance == pytest.approx(1)
        assert scheme.windows["7d"].n_eff == pytest.approx(60 * 168)
    assert made.configured.windows["5m"].half_width is None  # five judged
    assert made.configured.windows["30m"].half_width is not None
    assert (made.allowed_per_day, made.cut.factor, made.over_budget) == (None, 1, False)


def test_the_interval_is_as_wide_as_theory_says_for_many() -> None:
    """1.96 standard errors of a mean of scores with sd 0.23, where n is large."""
    made = planned({"type": "rate", "rate": 1.0}, per_hour=1_000)
    assert made.configured.windows["7d"].half_width == pytest.approx(1.96 * 0.23 / 168_000**0.5, rel=0.03)


@pytest.mark.parametrize("otherwise", [0.1, 0.2])
def test_probabilities_by_score_cost_effective_n_and_little_variance(otherwise: float) -> None:
    steps = [{"below": 0.5, "probability": 1.0}, {"below": 0.7, "probability": 0.4}]
    made = planned({"type": "scores", "steps": steps, "otherwise": otherwise})
    assert made.configured.n_eff_per_judged < 0.75
    assert 0.7 < made.configured.variance < 1.3
    assert made.uniform.judged_per_hour == pytest.approx(made.configured.judged_per_hour)
    assert made.configured.windows["1d"].n_eff == pytest.approx(
        made.configured.windows["1d"].judged * made.configured.n_eff_per_judged
    )


def test_parts_add_up() -> None:
    made = planned(STRATA, {"type": "rate", "rate": 0.02})
    assert {(part.segment, part.value) for part in made.parts} == {("tenant", "gold"), ("tenant", "free")}
    assert sum(part.per_hour for part in made.parts) == pytest.approx(600)
    total = sum(part.scheme.judged_per_hour for part in made.parts)
    assert total == pytest.approx(made.configured.judged_per_hour)


def test_what_lowest_keeps_above_the_budget_is_told() -> None:
    made = planned({"type": "rate", "rate": 0.5}, budget={"calls_per_day": 40, "usd_per_day": None}, lowest=0.01)
    assert made.over_budget
    assert made.allowed_per_day == 10
    assert made.configured.judged_per_hour == pytest.approx(6)
    within = planned({"type": "rate", "rate": 0.5}, budget={"calls_per_day": 40, "usd_per_day": None}, lowest=1e-6)
    assert not within.over_budget
    assert within.configured.judged_per_hour == pytest.approx(10 / 24)
    assert within.cut.factor == 0
    assert within.cut.kept_floor == pytest.approx(10 / 24 / 6)


def test_what_a_budget_pays_for() -> None:
    both = BudgetOptions(calls_per_day=1_000, usd_per_day=1.0, share=0.5)
    assert allowed_per_day(both, Price(4)) == 125
    assert allowed_per_day(both, Price(4, 0.01)) == 50
    assert allowed_per_day(both, Price(4, 0.0)) == 125
    assert allowed_per_day(BudgetOptions(calls_per_day=None), Price(4)) is None


def test_a_plan_is_the_same_each_time() -> None:
    assert planned(BY_SCORE, STRATA) == planned(BY_SCORE, STRATA)


@pytest.mark.parametrize("per_hour", [7, 90_000])
def test_targets_are_planned_for_little_and_for_much_traffic(per_hour: float) -> None:
    made = planned(STRATA, per_hour=per_hour, floor=0.0001)
    gold = next(part for part in made.parts if part.value == "gold")
    assert gold.scheme.judged_per_hour == pytest.approx(min(30, per_hour / 10), rel=0.15)


@pytest.mark.parametrize(
    ("mean", "sd"), [(0.88, 0.23), (0.88, 0.15), (0.88, 0.32), (0.5, 0.3), (0.98, 0.1), (0.3, 0.25)]
)
def test_assumed_scores_have_the_mean_and_spread_asked_for(mean: float, sd: float) -> None:
    y, local = Scores(mean, sd, 0.5).draw(np.random.default_rng(1), 100_000)
    assert float(y.mean()) == pytest.approx(mean, abs=0.005)
    assert float(y.std()) == pytest.approx(sd, rel=0.02)
    assert y.min() >= 0 and y.max() <= 1 and local.min() >= 0 and local.max() <= 1
    assert 0.3 < float(np.corrcoef(y, local)[0, 1]) < 0.7


def test_the_default_scores_are_three_quarters_perfect() -> None:
    y, _ = Scores().draw(np.random.default_rng(1), 100_000)
    assert float((y == 1).mean()) == pytest.approx(0.73, abs=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scores(mean=1.0), "mean score 1 must lie between 0 and 1"),
        (lambda: Scores(sd=0.4), "standard deviation between 0.148 and 0.325 here, not 0.4"),
        (lambda: Scores(sd=0.1), "not 0.1"),
        (lambda: Scores(sd=float("nan")), "not nan"),
        (lambda: Scores(correlation=0), "correlation 0 must be above 0"),
        (lambda: Traffic(0), "traffic of 0 an hour"),
        (lambda: Traffic(float("nan")), "traffic of nan"),
        (lambda: Traffic(1e9), "at most 2,000,000"),
        (lambda: Traffic(1, {"a": {"x": 0.0}}), "parts of 'a'"),
        (lambda: Traffic(1, {"a": {"x": -1.0, "y": 3.0}}), "parts of 'a'"),
        (lambda: Traffic(1, {}, {Mark.STREAMING: 1.5}), "share of streaming is 1.5"),
    ],
)
def test_what_can_not_be_is_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(PlanError, match=message):
        make()
