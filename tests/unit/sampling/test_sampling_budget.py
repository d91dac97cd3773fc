"""The budget lowers the probability from earlier minutes, the floor first, and never to 0."""

from __future__ import annotations

import pytest

from collector.records.decision import Fate
from collector.sampling.budget import Cut
from collector.sampling.options import Options
from collector.telemetry import metrics
from tests.unit.sampling.sampling_builders import Bench, found


def run_day(
    bench: Bench, per_minute: int, *, minutes: int, calls_each: int = 4, usd_each: float = 0.0
) -> list[float]:
    """Traffic, judged at once; the probability of each minute."""
    probabilities = []
    number = 0
    for _ in range(minutes):
        for _ in range(per_minute):
            decision = bench.sampler.decide(found(f"{id(bench)}-{number}"))
            number += 1
            if decision.fate is Fate.QUEUED:
                bench.books.interactions += 1
                bench.books.calls += calls_each
                bench.books.cost_usd += usd_each
        probabilities.append(decision.probability)
        bench.clock.advance(60)
    return probabilities


def test_a_cut_takes_from_what_is_above_the_floor_first() -> None:
    assert Cut().of(0.5, floor=0.1, lowest=0.001) == 0.5
    assert Cut(0.25).of(0.5, floor=0.1, lowest=0.001) == pytest.approx(0.2)
    assert Cut(0.0).of(0.5, floor=0.1, lowest=0.001) == pytest.approx(0.1)
    assert Cut(0.0, 0.5).of(0.5, floor=0.1, lowest=0.001) == pytest.approx(0.05)
    assert Cut(0.0, 0.0).of(0.5, floor=0.1, lowest=0.001) == 0.001
    assert Cut(0.0, 0.0).of(0.0005, floor=0.1, lowest=0.001) == 0.0005


@pytest.mark.parametrize(("calls", "usd"), [(1_440, None), (None, 1.44)])
def test_a_day_stays_within_its_budget_and_uses_it(calls: int | None, usd: float | None) -> None:
    """20 interactions a minute at a rate of 0.5 would cost 57,600 calls, or 57.60 dollars at 0.004 an interaction."""
    bench = Bench(rate=0.5, floor=0.001, budget={"calls_per_day": calls, "usd_per_day": usd})
    probabilities = run_day(bench, 20, minutes=1440, usd_each=0.004)
    used = bench.books.calls / calls if calls is not None else bench.books.cost_usd / (usd or 1)
    assert 0.85 <= used <= 1.1
    assert probabilities[0] == 0.5  # the first minute is not cut
    assert min(probabilities) >= 0.0001


def test_a_budget_that_is_large_enough_changes_nothing() -> None:
    bench = Bench(rate=0.5, budget={"calls_per_day": 1_000_000, "usd_per_day": None})
    assert set(run_day(bench, 20, minutes=30)) == {0.5}
    assert bench.value(metrics.SAMPLING_BUDGET_FACTOR.name) == 1


def test_the_floor_is_served_first() -> None:
    """The budget is enough for the floor, and for nothing else."""
    bench = Bench(rate=0.5, floor=0.05, budget={"calls_per_day": 1_440 * 4, "usd_per_day": None})
    probabilities = run_day(bench, 20, minutes=200)
    assert min(probabilities[50:]) >= 0.02
    mean = sum(probabilities[50:]) / 150
    assert mean == pytest.approx(0.05, rel=0.25)


def test_no_budget_left_is_the_lowest_probability_and_not_0() -> None:
    bench = Bench(rate=0.5, budget={"calls_per_day": 0})
    probabilities = run_day(bench, 20, minutes=3)
    assert probabilities[1:] == [0.0001, 0.0001]


def test_what_waits_for_the_judge_counts_as_spent() -> None:
    bench = Bench(rate=1, floor=0.001, budget={"calls_per_day": 400, "usd_per_day": None})
    for number in range(100):  # the judge has done nothing yet
        bench.sampler.decide(found(number))
    bench.clock.advance(60)
    assert bench.sampler.decide(found("next")).probability == 0.0001


def test_midnight_gives_a_new_budget() -> None:
    bench = Bench(rate=0.5, budget={"calls_per_day": 100, "usd_per_day": None})
    bench.books.calls, bench.books.interactions = 100, 25
    run_day(bench, 2, minutes=2)
    assert bench.sampler.decide(found("late")).probability == 0.0001
    bench.clock.advance(86_400)
    bench.books.day += 1
    bench.books.calls = bench.books.interactions = 0
    assert bench.sampler.decide(found("new day")).probability == 0.5


def test_a_replica_takes_its_share() -> None:
    whole = Bench(rate=0.5, floor=0.001, budget={"calls_per_day": 1_440, "usd_per_day": None})
    half = Bench(rate=0.5, floor=0.001, budget={"calls_per_day": 1_440, "usd_per_day": None, "share": 0.5})
    run_day(whole, 20, minutes=400)
    run_day(half, 20, minutes=400)
    assert half.books.calls == pytest.approx(whole.books.calls / 2, rel=0.3)


def test_rates_can_be_changed_while_running() -> None:
    bench = Bench(rate=0.5)

    assert bench.sampler.decide(found(1)).probability == 0.5

    bench.sampler.reconfigure(Options(rate=0.1))
    assert bench.sampler.decide(found(2)).probability == 0.1
    assert bench.sampler.segment_names == ("service",)


def test_without_a_judge_nothing_is_queued() -> None:
    bench = Bench(rate=1, judge=False)
    decision = bench.sampler.decide(found(1))
    assert (decision.fate, decision.policy) == (Fate.SAMPLED_OUT, "no_judge")


def test_shedding_lowers_the_probability_of_the_survivors() -> None:
    bench = Bench(rate=1)
    bench.keep = 0.25
    decisions = [bench.sampler.decide(found(number)) for number in range(400)]
    assert {decision.fate for decision in decisions} == {Fate.SHED, Fate.QUEUED}
    assert {decision.probability for decision in decisions} == {0.25}
    assert {decision.policy for decision in decisions if decision.fate is Fate.SHED} == {"shed"}
