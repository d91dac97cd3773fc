"""What is exported adds up: over replicas, over segments, and in any order."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.estimates.estimates import Estimates
from collector.estimates.measures import Measure
from collector.estimates.options import Objective, Options
from collector.estimates.window import Window
from collector.pipeline.clock import ManualClock
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.records.settled import Settled
from collector.telemetry.instruments import Telemetry
from collector.telemetry.spec import Type
from scorers.interaction import Interaction
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason, Outcome, Result, Score
from scorers.scorer import Kind, Tier

JUDGED = Measure("faithfulness", Kind.JUDGED, None, "j")
LOCAL = Measure("faithfulness", Kind.LOCAL, Tier.FAST, "f")
OBJECTIVE = Objective(name="good", metric="faithfulness", threshold=0.8, target=0.9)

outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.floats(0, 1).map(Score),
    st.sampled_from(NotApplicableReason).map(NotApplicable),
    st.sampled_from(FailedReason).map(Failed),
)


@st.composite
def settled(draw: st.DrawFn) -> Settled:
    fate = draw(st.sampled_from([Fate.QUEUED, Fate.SAMPLED_OUT, Fate.SHED]))
    local = Result("i", LOCAL.metric, LOCAL.kind, draw(outcomes), "1", "f", tier=LOCAL.tier)
    judged = Result("i", JUDGED.metric, JUDGED.kind, draw(outcomes), "1", "j")
    session = draw(st.sampled_from([None, "s1", "s2", "s3"]))
    question = draw(st.sampled_from([None, "what?", "why?"]))
    contexts = draw(st.sampled_from([None, ()]))
    return Settled(
        found=Found(
            Interaction("i", question=question, contexts=contexts),
            service=draw(st.sampled_from(["a", "b"])),
            service_version=draw(st.sampled_from([None, "1", "2"])),
            session=session,
        ),
        decision=Decision(fate, draw(st.floats(0.001, 1)), "rate", draw(st.floats(1, 1_000))),
        local=(local,),
        judged=(judged,) if fate is Fate.QUEUED else (),
        segments=(("service", draw(st.sampled_from(["a", "b", "c\n", ""]))),),
        screening_probability=draw(st.floats(0.05, 1)),
    )


def estimates() -> Estimates:
    return Estimates(
        Options(objectives=(OBJECTIVE,)),
        declared=[JUDGED, LOCAL],
        segment_names=["service"],
        clock=ManualClock(),
        telemetry=Telemetry(),
    )


def totals(*replicas: Estimates) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every sample of a counter by family and labels, added up over replicas."""
    sums: dict[tuple[str, tuple[str, ...]], float] = defaultdict(float)
    for replica in replicas:
        for family in replica.families():
            if family.spec.type is not Type.COUNTER:
                continue
            for labels, value in family.samples:
                sums[family.spec.name, labels] += value
    return {key: value for key, value in sums.items() if value}


@settings(max_examples=60, deadline=None)
@given(st.lists(settled(), max_size=30))
def test_two_replicas_equal_one_in_any_order(items: list[Settled]) -> None:
    one, first, second = estimates(), estimates(), estimates()
    for item in items:
        one.settle(item)
    for item in reversed(items):
        # A cluster stays on one replica, as it does with a topic keyed by session.
        key = item.found.session or item.found.interaction.question
        (first if key in {None, "s1", "what?"} else second).settle(item)
    assert totals(first, second) == pytest.approx(totals(one), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(settled(), max_size=30))
def test_what_needs_no_clusters_adds_up_wherever_an_interaction_goes(items: list[Settled]) -> None:
    one, first, second = estimates(), estimates(), estimates()
    for item in items:
        one.settle(item)
    for place, item in enumerate(reversed(items)):
        (first if place % 2 else second).settle(item)
    whole, halves = totals(one), totals(first, second)
    for key, value in whole.items():
        if "_cluster_" in key[0]:
            assert halves.get(key, 0) <= value * (1 + 1e-9)
        else:
            assert halves[key] == pytest.approx(value, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(settled(), max_size=30))
def test_counters_only_grow_and_are_as_many_as_said(items: list[Settled]) -> None:
    one = estimates()
    before = totals(one)
    for item in items:
        one.settle(item)
        after = totals(one)
        assert all(after[key] >= value for key, value in before.items())
        before = after
    assert one.series == sum(len(family.samples) for family in one.families())


@settings(max_examples=60, deadline=None)
@given(st.lists(settled(), max_size=30))
def test_estimates_stay_in_bounds_and_match_their_counts(items: list[Settled]) -> None:
    one = estimates()
    for item in items:
        one.settle(item)
    for measure in (JUDGED, LOCAL):
        estimate = one.estimate(measure, Window.HOUR)
        results = [r for item in items for r in (*item.local, *item.judged) if r.kind is measure.kind]
        assert estimate.scored + estimate.not_applicable + estimate.failed == len(results)
        if estimate.mean is not None:
            assert -1e-9 <= estimate.mean <= 1 + 1e-9
            assert 1 - 1e-9 <= estimate.n_eff <= estimate.scored + 1e-6
        if estimate.lower is not None and estimate.upper is not None:
            assert 0 <= estimate.lower <= estimate.upper <= 1
        if estimate.coverage is not None and estimate.if_failed_0 is not None and estimate.if_failed_1 is not None:
            assert 0 <= estimate.coverage <= 1
            assert estimate.if_failed_0 <= estimate.if_failed_1 + 1e-9
