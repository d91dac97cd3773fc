"""Each policy's probabilities, what is refused in its options, and how policies take the place of the rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from pydantic import ValidationError

from collector.pipeline.clock import ManualClock
from collector.records.decision import Fate
from collector.records.found import Found, Mark
from collector.sampling.options import Options
from collector.sampling.policies import make
from collector.sampling.policy import Policy
from collector.sampling.segments import Segments
from collector.telemetry import metrics
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason, Result
from scorers.scorer import Kind, Tier
from tests.unit.sampling.sampling_builders import Bench, found, screened

TENANTS = {"name": "tenant", "attribute": "app.tenant", "values": ["gold", "free"]}


def policy(clock: ManualClock | None = None, **options: object) -> Policy:
    """One configured policy, beside the segment `tenant`."""
    made = Options.model_validate({"policies": [options], "segments": [TENANTS]})
    return make(made, segments=Segments(made.segments).of, clock=clock or ManualClock())[0]


def refusal(**options: object) -> str:
    with pytest.raises(ValidationError) as caught:
        Options.model_validate({"segments": [TENANTS], **options})
    return str(caught.value)


def tenant(value: str, number: int = 1) -> Found:
    return found(number, attributes={"app.tenant": value})


# --- rules ------------------------------------------------------------------------------------------------
RULES = [
    {"match": {"attribute": "http.route", "glob": "/admin/*"}, "probability": 0},
    {
        "match": [{"attribute": "release", "equals": "canary"}, {"attribute": "http.route"}],
        "segments": {"tenant": ["gold", "unset"]},
        "probability": 1,
    },
    {"segments": {"tenant": "free"}, "probability": 0.02},
]


@pytest.mark.parametrize(
    ("attributes", "resource", "probability"),
    [
        ({"http.route": "/admin/users", "release": "canary", "app.tenant": "gold"}, {}, 0),
        ({"http.route": "/ask", "app.tenant": "gold"}, {"release": "canary"}, 1),
        ({"http.route": "/ask"}, {"release": "canary"}, 1),
        ({"http.route": "/ask", "app.tenant": "someone"}, {"release": "canary"}, 0.3),
        ({"app.tenant": "gold"}, {"release": "canary"}, 0.3),
        ({"http.route": "/ask", "app.tenant": "free"}, {"release": "canary"}, 0.02),
        ({}, {}, 0.3),
    ],
)
def test_the_first_rule_whose_conditions_all_hold_decides(
    attributes: dict[str, object], resource: dict[str, object], probability: float
) -> None:
    rules = policy(type="rules", rules=RULES, otherwise=0.3)
    assert rules.probability(found(attributes=attributes, resource=resource), ()) == probability


def test_a_rule_may_look_at_lists_and_only_at_segments_that_are_there() -> None:
    rules = policy(type="rules", rules=[{"match": {"attribute": "tags", "equals": "vip"}, "probability": 0.5}])
    assert rules.probability(found(attributes={"tags": ["a", "vip"]}), ()) == 0.5
    assert rules.probability(found(attributes={"tags": ["a", "b"]}), ()) == 0
    assert "a rule needs match or segments" in refusal(policies=[{"type": "rules", "rules": [{"probability": 1}]}])
    unknown = [{"type": "rules", "rules": [{"segments": {"team": "a"}, "probability": 1}]}]
    assert "names the segment 'team', and segments has only tenant" in refusal(policies=unknown)
    never = [{"type": "rules", "rules": [{"segments": {"tenant": "silver"}, "probability": 1}]}]
    assert "'silver' is never a value of the segment 'tenant'" in refusal(policies=never)


def test_values_that_a_segment_only_matches_may_be_named() -> None:
    options = Options.model_validate(
        {"policies": [{"type": "rules", "rules": [{"segments": {"service": "shop"}, "probability": 0.5}]}]}
    )
    rules = make(options, segments=Segments(options.segments).of, clock=ManualClock())[0]
    assert [rules.probability(found(service=name), ()) for name in ("shop", "other-shop")] == [0.5, 0]


# --- scores -----------------------------------------------------------------------------------------------
STEPS = [{"below": 0.5, "probability": 1.0}, {"below": 0.7, "probability": 0.4}]


@pytest.mark.parametrize(
    ("results", "probability"),
    [
        ([screened(0.0)], 1.0),
        ([screened(0.499)], 1.0),
        ([screened(0.5)], 0.4),
        ([screened(0.7)], 0.1),
        ([screened(1.0)], 0.1),
        ([screened(0.1, metric="groundedness"), screened(0.9)], 0.1),
        ([screened(0.1, tier=Tier.FULL), screened(0.9)], 0.1),
        ([screened(0.1, kind=Kind.JUDGED, tier=None), screened(0.9)], 0.1),
        ([screened(NotApplicable(NotApplicableReason.NO_CLAIMS))], 0.2),
        ([screened(Failed(FailedReason.INCOMPLETE))], 0.2),
        ([], 0.2),
    ],
)
def test_the_step_of_the_fast_local_score_decides(results: Sequence[Result], probability: float) -> None:
    scores = policy(type="scores", metric="faithfulness", steps=STEPS, otherwise=0.1, unscored=0.2)
    assert scores.probability(found(), results) == probability


def test_without_a_score_it_is_as_otherwise_where_nothing_else_is_said() -> None:
    assert policy(type="scores", steps=STEPS, otherwise=0.1).probability(found(), ()) == 0.1


@pytest.mark.parametrize("ratio", [10.01, 50, 1000])
@pytest.mark.parametrize("place", ["otherwise", "unscored", "step"])
def test_probabilities_further_apart_than_ten_are_refused_with_the_reason(ratio: float, place: str) -> None:
    options = {"type": "scores", "steps": STEPS, "otherwise": 0.2}
    if place == "step":
        options["steps"] = [*STEPS, {"below": 0.9, "probability": 1 / ratio}]
    else:
        options[place] = 1 / ratio
    message = refusal(policies=[options])
    assert f"{1 / ratio:g} are {ratio:.3g} times apart, at most 10 are allowed" in message
    assert "1 / 0.4 / 0.1 by score 1.08, 1 / 0.4 / 0.02 by score 3.3" in message
    assert f"raise {1 / ratio:g} to 0.1" in message


def test_exactly_ten_times_apart_is_allowed() -> None:
    for high in (1.0, 0.7, 0.3):
        policy(type="scores", steps=[{"below": 0.5, "probability": high}], otherwise=high / 10)


def test_other_bad_scores_options_are_refused() -> None:
    zero = {"type": "scores", "steps": STEPS, "otherwise": 0}
    assert "greater than 0" in refusal(policies=[zero])
    falling = {"type": "scores", "steps": STEPS[::-1], "otherwise": 0.2}
    assert "steps need rising bounds, these are 0.7, 0.5" in refusal(policies=[falling])
    unknown = {"type": "scores", "metric": "sparkle", "steps": STEPS, "otherwise": 0.2}
    assert "no local scorer of the fast tier gives 'sparkle'; there are: faithfulness" in refusal(
        policies=[unknown]
    )


# --- marks ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("marks", "error", "probability"),
    [
        (frozenset(), None, 0.0),
        (frozenset(), "rate limited", 0.3),
        (frozenset({Mark.APPLICATION_ERROR}), None, 0.3),
        (frozenset({Mark.TRUNCATED}), None, 0.1),
        (frozenset({Mark.TRUNCATED, Mark.STREAMING}), None, 0.5),
        (frozenset({Mark.TRUNCATED}), "rate limited", 0.3),
        (frozenset({Mark.SCRUBBED}), None, 0.0),
    ],
)
def test_the_highest_mark_decides(marks: frozenset[Mark], error: str | None, probability: float) -> None:
    made = policy(type="marks", errors=0.3, marks={"truncated": 0.1, "streaming": 0.5})
    assert made.probability(found(marks=marks, error=error), ()) == probability


def test_marks_that_are_filtered_out_and_unknown_ones_are_refused() -> None:
    assert "not_rag are filtered out" in refusal(policies=[{"type": "marks", "marks": {"not_rag": 1}}])
    assert "Input should be 'hidden'" in refusal(policies=[{"type": "marks", "marks": {"sparkling": 1}}])


# --- strata -----------------------------------------------------------------------------------------------
def test_strata_have_their_rates() -> None:
    made = policy(
        type="stratified", segment="tenant", values={"gold": 0.5, "unset": {"rate": 0.1}}, otherwise=0.02
    )
    assert [made.probability(one, ()) for one in (tenant("gold"), tenant("free"), tenant("x"), found())] == [
        0.5,
        0.02,
        0.02,
        0.1,
    ]
    bare = policy(type="stratified", segment="tenant", values={"gold": 0.5})
    assert bare.probability(tenant("free"), ()) == 0


def minutes(
    made: Policy, clock: ManualClock, by_minute: Sequence[Mapping[str, int]]
) -> list[dict[str, set[float]]]:
    """The rates of each value in each minute, from the given numbers of interactions."""
    rates = []
    for counts in by_minute:
        rates.append(
            {value: {made.probability(tenant(value), ()) for _ in range(n)} for value, n in counts.items()}
        )
        clock.advance(60)
    return rates


def test_a_number_an_hour_becomes_a_rate_from_the_minutes_before() -> None:
    clock = ManualClock(start_unix_nano=90 * 10**9)  # in the middle of a minute
    made = policy(
        clock, type="stratified", segment="tenant", values={"gold": {"per_hour": 60}}, otherwise={"per_hour": 6}
    )
    seen = minutes(made, clock, [{"gold": 5}, {"gold": 10, "free": 60}, {"gold": 100, "free": 60}, {"gold": 3}])
    # The first minute was seen in part, the second is the first whole one.
    assert seen[0] == {"gold": {0.05}}
    assert seen[1] == {"gold": {0.05}, "free": {0.05}}
    # 10 a minute came, and 1 a minute is wanted; 60 a minute, and 0.1 wanted.
    assert seen[2] == {"gold": {0.1}, "free": {6 / 3600}}
    # The last minute alone held more than 50: it tells the traffic.
    assert seen[3] == {"gold": {0.01}}


def test_few_interactions_are_counted_over_an_hour_and_never_above_one() -> None:
    clock = ManualClock(start_unix_nano=0)
    made = policy(clock, type="stratified", segment="tenant", values={"gold": {"per_hour": 6}}, first_rate=0.2)
    clock.advance(60)
    rates = [
        one["gold"] for one in minutes(made, clock, [{"gold": int(minute % 5 == 0)} for minute in range(240)])
    ]
    some = [next(iter(rate)) for rate in rates if rate]
    assert some[0] == 0.2
    assert some[-1] == pytest.approx(0.5)  # 12 an hour
    rare = policy(clock, type="stratified", segment="tenant", values={"gold": {"per_hour": 600}})
    clock.advance(60)
    assert minutes(rare, clock, [{"gold": 2}, {"gold": 2}])[1] == {"gold": {1.0}}
    clock.advance(3 * 3_600)  # an hour of silence: less than one an hour
    assert minutes(rare, clock, [{"gold": 900}, {"gold": 900}]) == [{"gold": {1.0}}, {"gold": {10 / 900}}]


def test_targets_are_met_over_a_day_of_changing_traffic() -> None:
    bench = Bench(
        configured=[{"type": "stratified", "segment": "tenant", "values": {"gold": {"per_hour": 40}}}],
        floor=0.0001,
        segments=[TENANTS],
        budget={"calls_per_day": None, "usd_per_day": None},
    )
    judged, estimate, number = 0, 0.0, 0
    for minute in range(1_440):
        for _ in range(2 + (minute // 60) % 12):  # twice a day from 2 to 13 a minute
            number += 1
            decision = bench.sampler.decide(tenant("gold", number))
            if decision.fate is Fate.QUEUED:
                judged += 1
                estimate += decision.weight
        bench.clock.advance(60)
    assert judged == pytest.approx(24 * 40, rel=0.1)
    assert estimate == pytest.approx(number, rel=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"segment": "team", "otherwise": 0.5}, "names the segment 'team'"),
        ({"segment": "tenant", "values": {"silver": 0.5}}, "'silver' is never a value"),
        ({"segment": "tenant"}, "nothing would be judged"),
        ({"segment": "tenant", "values": {"gold": {"rate": 0.5, "per_hour": 6}}}, "either rate or per_hour"),
        ({"segment": "tenant", "values": {"gold": {}}}, "either rate or per_hour"),
        ({"segment": "tenant", "values": {"gold": 1.5}}, "less than or equal to 1"),
    ],
)
def test_bad_strata_are_refused(options: dict[str, object], message: str) -> None:
    assert message in refusal(policies=[{"type": "stratified", **options}])


# --- together ---------------------------------------------------------------------------------------------
def test_policies_take_the_place_of_the_rate() -> None:
    bench = Bench(rate=0.05, floor=0.01)
    assert bench.sampler.decide(found(1)).probability == 0.05
    bench.sampler.reconfigure(Options.model_validate({"policies": [{"type": "marks", "errors": 0.5}]}))
    assert bench.sampler.decide(found(2)).probability == 0.01
    decision = bench.sampler.decide(found(3, error="timeout"))
    assert (decision.probability, decision.policy) == (0.5, "marks")


def test_a_reload_keeps_what_is_known_of_the_traffic() -> None:
    strata: dict[str, object] = {"type": "stratified", "segment": "tenant", "values": {"gold": {"per_hour": 60}}}
    bench = Bench(configured=[strata], segments=[TENANTS])
    for number in range(3):
        bench.clock.advance(60)
        for item in range(100):
            bench.sampler.decide(tenant("gold", 100 * number + item))
    assert bench.sampler.decide(tenant("gold")).probability == 0.01
    budget = {"calls_per_day": None, "usd_per_day": None}
    same = {"policies": [strata], "segments": [TENANTS], "budget": budget, "floor": 0.01}
    bench.sampler.reconfigure(Options.model_validate(same))
    assert bench.sampler.decide(tenant("gold")).probability == 0.01
    bench.sampler.reconfigure(Options.model_validate({**same, "floor": 0.001}))
    assert bench.sampler.decide(tenant("gold")).probability == 0.05


def test_the_gauge_shows_the_mean_probability() -> None:
    bench = Bench(configured=[{"type": "marks", "errors": 0.5}], budget={"calls_per_day": None})
    for number in range(2_000):
        bench.sampler.decide(found(number, error="timeout" if number % 2 else None))
    assert bench.value(metrics.SAMPLING_RATE.name) == pytest.approx(0.255, abs=0.01)


@pytest.mark.parametrize("name", ["floor", "budget", "shed", "no_judge", "", "Rate", "a b", "x" * 41])
def test_names_that_mean_something_else_are_refused(name: str) -> None:
    assert f"a policy can not be called {name!r}" in refusal(
        policies=[{"type": "rate", "rate": 0.1, "name": name}]
    )


def test_two_of_a_kind_need_names_and_a_rate_beside_policies_is_refused() -> None:
    rate = {"type": "rate", "rate": 0.1}
    assert "policies need different names (add `name:`), these are rate, rate" in refusal(policies=[rate, rate])
    assert "rate (0.3) says nothing beside policies" in refusal(rate=0.3, policies=[rate])
    assert "does not match any of the expected tags" in refusal(policies=[{"type": "reservoir"}])
