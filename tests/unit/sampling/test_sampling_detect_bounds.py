"""What a decision says of all others of its moment: the detector's bets rest on it."""

from __future__ import annotations

import random

import pytest

from collector.records.decision import Decision, Fate
from collector.sampling.options import UpstreamOptions
from collector.sampling.upstream import highest
from scorers.outcome import Result, Score
from scorers.scorer import Kind, Tier
from tests.unit.sampling.sampling_builders import Bench, found

SCORES = {
    "type": "scores",
    "steps": [{"below": 0.5, "probability": 0.8}, {"below": 0.7, "probability": 0.4}],
    "otherwise": 0.1,
}
RULES = {
    "type": "rules",
    "rules": [{"segments": {"service": "a"}, "probability": 0.6}],
    "otherwise": 0.2,
}
STRATA = {
    "type": "stratified",
    "segment": "service",
    "values": {"a": {"per_hour": 100}},
    "otherwise": {"rate": 0.3},
}


def decisions(bench: Bench, minutes: int) -> list[Decision]:
    """Traffic with scores, a budget that bites, and a queue that fills."""
    rng = random.Random(4)
    made = []
    for number in range(minutes * 20):
        score = Result(str(number), "faithfulness", Kind.LOCAL, Score(rng.random()), "1", "f", tier=Tier.FAST)
        bench.keep = rng.choice([1.0, 1.0, 0.5, 0.02])
        decision = bench.sampler.decide(found(str(number), service=rng.choice("abc")), [score])
        made.append(decision)
        if decision.fate is Fate.QUEUED:
            bench.books.interactions += 1
            bench.books.calls += 4
        if number % 20 == 19:
            bench.clock.advance(60)
    return made


@pytest.mark.parametrize(
    ("policies", "floor", "least"),
    [
        ([], 0.01, 0.05),
        ([SCORES], 0.01, 0.1),
        ([RULES], 0.01, 0.2),
        ([SCORES, RULES], 0.01, 1 - 0.9 * 0.8),
        ([STRATA], 0.02, 0.02),
        ([SCORES], 0.3, 0.3),
    ],
)
@pytest.mark.parametrize("calls", [None, 4_000])
def test_no_interaction_has_a_lower_probability_than_its_decision_says_any_could_have(
    policies: list[dict[str, object]], floor: float, least: float, calls: int | None
) -> None:
    bench = Bench(configured=policies, floor=floor, budget={"calls_per_day": calls, "usd_per_day": None})
    made = decisions(bench, 60)
    assert all(one.probability >= one.least_probability * (1 - 1e-12) > 0 for one in made)
    unlowered = [one for one in made if one.least_probability == pytest.approx(least)]
    assert unlowered, "without budget and pressure it is what the configuration allows"
    assert min(one.least_probability for one in made) < least / 10, "a full queue lowers it too"
    assert {one.highest_upstream_weight for one in made} == {1.0}


@pytest.mark.parametrize(
    ("upstream", "expected"),
    [
        ({}, 1.0),
        ({"default": "unknown"}, 1.0),
        ({"default": {"ratio": 0.5}, "services": {"a": {"ratio": 0.1}}}, 10.0),
        ({"services": {"a": {"ratio": 0.001}}, "max_adjusted_count": 200}, 200.0),
        ({"services": {"a": "tracestate"}, "max_adjusted_count": 50}, 50.0),
    ],
)
def test_the_highest_upstream_weight_is_what_the_configuration_lets_through(
    upstream: dict[str, object], expected: float
) -> None:
    assert highest(UpstreamOptions.model_validate(upstream)) == expected
