"""Stated probabilities are true, under every combination of what moves them; and the laws that hold always."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.records.decision import Decision, Fate
from collector.records.found import Found, Mark
from collector.sampling.policy import Policies, Policy
from collector.sampling.rate import Rate
from scorers.outcome import Result
from tests.unit.sampling.sampling_builders import Bench, found

N = 6_000


class ByNumber:
    """A policy whose probability differs from one interaction to the next."""

    def __init__(self, name: str, probabilities: Sequence[float]) -> None:
        self.name = name
        self._probabilities = probabilities

    def probability(self, found: Found, results: Sequence[Result]) -> float:
        return self._probabilities[int(found.interaction.id.rpartition("-")[2]) % len(self._probabilities)]


def check(decisions: list[Decision]) -> None:
    """Horvitz-Thompson: the inverse probabilities of the kept ones estimate the number of all, within 4.5 standard
    errors; and the number kept is what the probabilities say."""
    kept = [decision for decision in decisions if decision.fate is Fate.QUEUED]
    estimate = sum(1 / decision.probability for decision in kept)
    variance = sum((1 - decision.probability) / decision.probability for decision in decisions)
    assert abs(estimate - len(decisions)) <= 4.5 * variance**0.5 + 1e-6
    expected = sum(decision.probability for decision in decisions)
    spread = sum(decision.probability * (1 - decision.probability) for decision in decisions)
    assert abs(len(kept) - expected) <= 4.5 * spread**0.5 + 1e-6


@pytest.mark.parametrize("rate", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("floor", [0.01, 0.1])
@pytest.mark.parametrize("keep", [1.0, 0.4])
@pytest.mark.parametrize("calls", [None, 1_000])
def test_inclusion_frequency(rate: float, floor: float, keep: float, calls: int | None) -> None:
    bench = Bench(rate=rate, floor=floor, budget={"calls_per_day": calls, "usd_per_day": None})
    bench.keep = keep
    decisions = []
    for number in range(N):
        decisions.append(bench.sampler.decide(found(number)))
        if number % 1_000 == 999:
            bench.clock.advance(60)
    check(decisions)
    if calls is None:
        assert {decision.probability for decision in decisions} == {rate * keep}
    else:
        assert len({decision.probability for decision in decisions}) > 1


@pytest.mark.parametrize("keep", [1.0, 0.5])
def test_policies_together(keep: float) -> None:
    policies: list[Policy] = [
        ByNumber("by score", [0.0, 0.5, 0.05]),
        ByNumber("by tenant", [0.001, 0.2]),
        Rate(0.004),
    ]
    bench = Bench(policies=policies, floor=0.05, budget={"calls_per_day": None, "usd_per_day": None})
    bench.keep = keep
    by_probability: dict[float, list[Decision]] = {}
    for number in range(6 * 3_000):
        decision = bench.sampler.decide(found(number))
        by_probability.setdefault(round(decision.probability, 12), []).append(decision)
    assert min(by_probability) == pytest.approx(0.05 * keep)
    union = 1 - (1 - 0.5) * (1 - 0.2) * (1 - 0.004)
    assert max(by_probability) == pytest.approx(union * keep)
    for decisions in by_probability.values():
        check(decisions)
    names = {d.policy for ds in by_probability.values() for d in ds if d.fate is Fate.QUEUED}
    assert names == {"by score", "by tenant", "rate", "floor"}


@pytest.mark.parametrize("first_bits", ["low", "high"])
def test_with_an_upstream_sampler_that_keeps_one_end_of_the_trace_ids(first_bits: str) -> None:
    """u / p is an unbiased weight: upstream lets a tenth through by trace id, we judge a fifth of that."""
    rng = random.Random(2)
    bench = Bench(
        rate=0.2, upstream={"default": "tracestate"}, budget={"calls_per_day": None, "usd_per_day": None}
    )
    threshold = (1 << 56) * 9 // 10
    sent, estimate, kept = 60_000, 0.0, 0
    for number in range(sent):
        randomness = rng.getrandbits(56)
        trace_id = f"{rng.getrandbits(72):018x}{randomness:014x}"
        if first_bits == "low":
            randomness = (1 << 56) - 1 - randomness
        if randomness < threshold:
            continue
        state = f"ot=th:{threshold:014x};rv:{randomness:014x}"
        decision = bench.sampler.decide(found(number, state=state, trace_id=trace_id))
        assert decision.upstream_weight == pytest.approx(10)
        if decision.fate is Fate.QUEUED:
            estimate += decision.weight
            kept += 1
    # Each of `sent` is counted with weight 50 at probability 0.02.
    assert abs(estimate - sent) < 4.5 * (sent * 0.02 * 0.98) ** 0.5 * 50
    assert kept > 900


def test_thresholds_nest() -> None:
    """What a low rate keeps, a higher one keeps too; so rates can change without changing the population."""
    kept: list[set[int]] = []
    for rate in (0.02, 0.1, 0.5):
        sampler = Bench(rate=rate, budget={"calls_per_day": None, "usd_per_day": None}).sampler
        kept.append({n for n in range(3_000) if sampler.decide(found(n)).fate is Fate.QUEUED})
    assert kept[0] < kept[1] < kept[2]


def test_replicas_with_one_seed_agree() -> None:
    one, two = Bench(rate=0.3), Bench(rate=0.3)
    decisions = [one.sampler.decide(found(number)) for number in range(500)]
    other = {number: two.sampler.decide(found(number)) for number in reversed(range(500))}
    assert decisions == [other[number] for number in range(500)]


def test_policy_names_must_differ() -> None:
    with pytest.raises(ValueError, match="names"):
        Policies([Rate(0.1), Rate(0.2)], floor=0.01, seed="")
    with pytest.raises(ValueError, match="names"):
        Policies([ByNumber("floor", [0.1])], floor=0.01, seed="")


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_conservation_and_bounds_hold_always(data: st.DataObject) -> None:
    rate = data.draw(st.floats(0.0001, 1))
    floor = data.draw(st.floats(0.0001, 1))
    bench = Bench(
        rate=rate,
        floor=floor,
        judge=data.draw(st.booleans()),
        upstream={"default": data.draw(st.sampled_from(("none", "tracestate", "unknown")))},
        budget={
            "calls_per_day": data.draw(st.sampled_from((None, 0, 1, 1000))),
            "usd_per_day": data.draw(st.sampled_from((None, 0.0, 0.5))),
        },
    )
    lowest = min(0.0001, rate)
    for number in range(data.draw(st.integers(1, 40))):
        bench.keep = data.draw(st.sampled_from((1.0, 0.5, 0.0, -1.0, 2.0)))
        bench.clock.advance(data.draw(st.sampled_from((0.0, 61.0, 4_000.0, 90_000.0))))
        bench.books.calls += data.draw(st.integers(0, 50))
        bench.books.cost_usd += data.draw(st.sampled_from((0.0, 0.01)))
        bench.books.interactions += data.draw(st.integers(0, 3))
        marks = data.draw(st.sampled_from((frozenset(), frozenset((Mark.NOT_RAG,)))))
        state = data.draw(st.sampled_from(("", "ot=th:8", "ot=th:ffffffffffffff;rv:ffffffffffffff")))
        decision = bench.sampler.decide(found(number, marks=marks, state=state))
        assert 0.001 * lowest <= decision.probability <= 1
        assert 1 <= decision.upstream_weight <= 1000
        assert sum(bench.fates().values()) == number + 1
