"""The judging stage: a result for every metric of every interaction, whatever the judge does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from collector.judging.ledger import Ledger
from collector.judging.options import Options
from collector.judging.stage import Judging
from collector.pipeline.clock import ManualClock
from collector.records.decision import Decision, Fate
from collector.records.found import Found, Mark
from collector.records.settled import Screened, Settled
from collector.telemetry import metrics
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction, Passage, Turn
from scorers.judge.marker import MARKER
from scorers.judge.service import JudgedMetric
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason, Outcome, Result, Score, Usage
from scorers.scorer import Kind

NAMES = ("faithfulness", "groundedness")
Script = Callable[[Interaction, float], Awaitable[list[Result]]]
Told = Callable[[Interaction, Sequence[Result]], None]


def results(interaction: Interaction, *outcomes: Outcome) -> list[Result]:
    return [
        Result(interaction.id, name, Kind.JUDGED, outcome, "1", "print")
        for name, outcome in zip(NAMES, outcomes, strict=False)
    ]


class Judge:
    """A judge that does what it is told, one interaction at a time."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or self.well
        self.up = True
        self.places = 1_000
        self.asked: list[str] = []
        self.gate = asyncio.Event()

    @property
    def metrics(self) -> tuple[JudgedMetric, ...]:
        return tuple(JudgedMetric(name, "1", "print") for name in NAMES)

    def available(self) -> bool:
        return self.up

    def capacity(self) -> int:
        return self.places

    async def score(self, interaction: Interaction, deadline_seconds: float) -> list[Result]:
        self.asked.append(interaction.id)
        return await self.script(interaction, deadline_seconds)

    async def well(self, interaction: Interaction, deadline_seconds: float) -> list[Result]:
        return results(interaction, Score(1.0), Score(0.5))

    async def hangs(self, interaction: Interaction, deadline_seconds: float) -> list[Result]:
        await self.gate.wait()
        return results(interaction, Score(1.0), Score(0.5))

    async def ignores_its_cancellation(self, interaction: Interaction, deadline_seconds: float) -> list[Result]:
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            await self.gate.wait()
        return results(interaction, Score(1.0), Score(0.5))

    async def is_down(self, interaction: Interaction, deadline_seconds: float) -> list[Result]:
        down = Failed(FailedReason.JUDGE_UNREACHABLE)
        return results(interaction, down, down)


class World:
    def __init__(
        self,
        judge: Judge | None = None,
        *,
        beside: Sequence[str] = (),
        judged: Told | None = None,
        **options: float,
    ) -> None:
        self.judge = judge or Judge()
        self.clock = ManualClock()
        self.telemetry = Telemetry()
        self.ledger = Ledger(self.clock)
        self.ended: list[Settled] = []
        self.stage = Judging(
            Options.model_validate(options),
            self.judge,
            clock=self.clock,
            telemetry=self.telemetry,
            events=Events(self.telemetry, self.clock, logging.getLogger("test.judging")),
            ledger=self.ledger,
            downstream=self,
            beside=beside,
            judged=judged,
        )

    def settled(self, settled: Settled) -> None:
        self.ended.append(settled)

    def offer(self, name: str = "i", **parts: object) -> None:
        interaction = Interaction(name, question=str(parts.pop("question", "q")), response="r")
        found = Found(interaction, **parts)  # type: ignore[arg-type]  # whatever field the test names
        self.stage.offer(Screened(found, ()), Decision(Fate.QUEUED, 0.5, "rate"), (("service", "shop"),))

    async def settle_down(self) -> None:
        """Let every task run until nothing moves."""
        for _ in range(20):
            await asyncio.sleep(0)

    def outcomes(self) -> list[Outcome]:
        return [result.outcome for settled in self.ended for result in settled.judged]

    def sample(self, name: str, **labels: str) -> float:
        return float(self.telemetry.registry.get_sample_value(name, labels) or 0)

    def check_conservation(self) -> None:
        """queued = scored + not_applicable + failed + waiting, per metric."""
        for name in NAMES:
            ended = sum(
                sample.value
                for family in self.telemetry.registry.collect()
                for sample in family.samples
                if sample.name == metrics.JUDGING_RESULTS.name and sample.labels["metric"] == name
            )
            waiting = self.sample(metrics.JUDGING_WAITING.name, metric=name)
            assert waiting == self.stage.waiting
            assert self.sample(metrics.JUDGING_QUEUED.name, metric=name) == ended + waiting


async def test_a_judged_interaction_is_settled_with_its_results() -> None:
    world = World()
    world.offer()
    world.check_conservation()
    await world.settle_down()
    assert world.outcomes() == [Score(1.0), Score(0.5)]
    assert world.ended[0].segments == (("service", "shop"),)
    assert world.ended[0].decision.probability == 0.5
    assert world.ledger.spent().interactions == 1
    world.check_conservation()


async def test_what_is_not_queued_is_settled_at_once() -> None:
    world = World()
    screened = Screened(Found(Interaction("i")), (), probability=0.25)
    world.stage.offer(screened, Decision(Fate.SAMPLED_OUT, 0.05, "rate"), ())
    assert [(s.judged, s.screening_probability) for s in world.ended] == [((), 0.25)]
    assert world.judge.asked == []


async def test_no_more_than_the_slots_run() -> None:
    judge = Judge()
    judge.script = judge.hangs
    world = World(judge, concurrency=3)
    for n in range(10):
        world.offer(str(n))
    await world.settle_down()
    assert judge.asked == ["0", "1", "2"]
    assert world.stage.waiting == 10
    world.check_conservation()
    judge.gate.set()
    await world.settle_down()
    assert len(world.ended) == 10
    world.check_conservation()


async def test_no_more_run_than_keep_the_judge_busy() -> None:
    judge = Judge()
    judge.script = judge.hangs
    judge.places = 0
    world = World(judge, concurrency=16)
    for number in range(5):
        world.offer(f"i{number}")
    for places, asked in ((0, 0), (2, 2), (1_000, 5)):
        judge.places = places
        world.stage.tick()
        await world.settle_down()
        assert len(judge.asked) == asked
    world.check_conservation()


async def test_the_deadline_ends_a_job_and_gives_the_slot_back() -> None:
    judge = Judge()
    judge.script = judge.hangs
    world = World(judge, concurrency=1, deadline_seconds=120)
    world.offer("a")
    world.offer("b")
    await world.settle_down()
    world.clock.advance(121)
    world.stage.tick()
    await world.settle_down()
    assert world.outcomes() == [Failed(FailedReason.DEADLINE)] * 2
    assert judge.asked == ["a", "b"]
    world.check_conservation()
    judge.gate.set()
    await world.settle_down()


async def test_a_call_that_ignores_its_cancellation_is_abandoned_and_bounded() -> None:
    judge = Judge()
    judge.script = judge.ignores_its_cancellation
    world = World(judge, concurrency=2, deadline_seconds=120, cancel_grace_seconds=10)
    for name in "abc":
        world.offer(name)
    await world.settle_down()
    world.clock.advance(121)
    world.stage.tick()
    await world.settle_down()
    assert world.ended == []
    world.clock.advance(10)
    world.stage.tick()
    assert sorted(s.found.interaction.id for s in world.ended) == ["a", "b"]
    assert set(world.outcomes()) == {Failed(FailedReason.DEADLINE)}
    assert world.stage.stuck
    assert world.sample(metrics.JUDGING_ABANDONED.name) == 2
    await world.settle_down()
    assert judge.asked == ["a", "b"], "the slots stay taken, so tasks can not pile up"
    judge.gate.set()
    await world.settle_down()
    assert not world.stage.stuck
    assert sorted(s.found.interaction.id for s in world.ended) == ["a", "b", "c"], (
        "late results are not settled twice"
    )
    world.check_conservation()


async def test_an_error_of_a_scorer_costs_one_interaction() -> None:
    async def breaks(interaction: Interaction, deadline_seconds: float) -> list[Result]:
        raise ValueError("text of the trace")

    world = World(Judge(breaks))
    world.offer()
    await world.settle_down()
    assert world.outcomes() == [Failed(FailedReason.SCORER_ERROR, "ValueError")] * 2
    world.judge.script = world.judge.well
    world.offer()
    await world.settle_down()
    assert world.outcomes()[2:] == [Score(1.0), Score(0.5)]


async def test_every_metric_has_exactly_one_result() -> None:
    async def forgets(interaction: Interaction, deadline_seconds: float) -> list[Result]:
        return results(interaction, Score(1.0)) * 2

    world = World(Judge(forgets))
    world.offer()
    await world.settle_down()
    assert world.outcomes() == [Score(1.0), Failed(FailedReason.SCORER_ERROR, "no result")]
    world.check_conservation()


async def test_jobs_wait_while_the_breaker_is_open_and_expire() -> None:
    world = World(max_age_seconds=900)
    world.judge.up = False
    world.offer("old")
    world.clock.advance(500)
    world.offer("young")
    world.clock.advance(401)
    world.stage.tick()
    await world.settle_down()
    assert world.outcomes() == [Failed(FailedReason.EXPIRED)] * 2
    assert world.sample(metrics.JUDGING_OLDEST_JOB.name) == 401
    world.judge.up = True
    world.stage.tick()
    await world.settle_down()
    assert world.judge.asked == ["young"]
    world.check_conservation()


async def test_a_judge_that_is_down_costs_time_not_results() -> None:
    judge = Judge()
    judge.script = judge.is_down
    world = World(judge, retry_seconds=30)
    world.offer()
    await world.settle_down()
    assert world.ended == []
    world.check_conservation()
    world.stage.tick()
    await world.settle_down()
    assert len(judge.asked) == 1, "not before the pause is over"
    judge.script = judge.well
    world.clock.advance(31)
    world.stage.tick()
    await world.settle_down()
    assert world.outcomes() == [Score(1.0), Score(0.5)]
    assert world.sample(metrics.JUDGING_RETRIED.name) == 1
    world.check_conservation()


async def test_what_an_earlier_try_scored_stands_when_the_job_expires() -> None:
    async def breaks_down(interaction: Interaction, deadline_seconds: float) -> list[Result]:
        world.judge.up = False
        return results(interaction, Score(1.0), Failed(FailedReason.JUDGE_UNREACHABLE))

    world = World(Judge(breaks_down), max_age_seconds=900)
    world.offer()
    await world.settle_down()
    assert world.ended == []
    world.clock.advance(901)
    world.stage.tick()
    assert world.outcomes() == [Score(1.0), Failed(FailedReason.EXPIRED)]
    world.check_conservation()


async def test_a_failure_of_one_metric_alone_is_tried_once_more_and_then_final() -> None:
    async def half(interaction: Interaction, deadline_seconds: float) -> list[Result]:
        scored, failed = results(interaction, Score(1.0), Failed(FailedReason.JUDGE_OVERLOADED))
        paid = Usage(calls=0 if world.judge.asked[:-1] else 1)  # the second time it is in the cache
        return [replace(scored, usage=paid), failed]

    world = World(Judge(half))
    world.offer()
    await world.settle_down()
    assert world.ended == []
    world.clock.advance(31)
    world.stage.tick()
    await world.settle_down()
    assert world.outcomes() == [Score(1.0), Failed(FailedReason.JUDGE_OVERLOADED)]
    world.check_conservation()


async def test_what_fails_beside_the_probe_of_a_judge_that_comes_back_is_tried_again() -> None:
    tries: list[list[Outcome]] = [
        [Failed(FailedReason.JUDGE_AUTH), Failed(FailedReason.JUDGE_AUTH)],
        [Score(1.0), Failed(FailedReason.JUDGE_AUTH)],
        [Score(1.0), Score(0.5)],
    ]

    async def coming_back(interaction: Interaction, deadline_seconds: float) -> list[Result]:
        return [replace(one, usage=Usage(calls=1)) for one in results(interaction, *tries.pop(0))]

    world = World(Judge(coming_back))
    world.offer()
    for _ in range(3):
        await world.settle_down()
        world.clock.advance(31)
        world.stage.tick()
    assert world.outcomes() == [Score(1.0), Score(0.5)]
    world.check_conservation()


async def test_a_score_by_rule_does_not_say_that_the_judge_works() -> None:
    async def away(interaction: Interaction, deadline_seconds: float) -> list[Result]:
        return results(interaction, Score(1.0), Failed(FailedReason.JUDGE_UNREACHABLE))

    world = World(Judge(away))
    world.offer()
    await world.settle_down()
    assert world.ended == []  # it waits, as all do while the judge is away
    world.judge.script = world.judge.well
    world.clock.advance(31)
    world.stage.tick()
    await world.settle_down()
    assert world.outcomes() == [Score(1.0), Score(0.5)]


@pytest.mark.parametrize("limit", [{"queue_jobs": 3}, {"queue_bytes": 3 * 4_500}])
async def test_a_full_queue_is_a_failure_with_its_reason(limit: dict[str, float]) -> None:
    world = World(**limit)
    world.judge.up = False
    for n in range(5):
        world.offer(str(n))
    assert [s.found.interaction.id for s in world.ended] == ["3", "4"]
    assert set(world.outcomes()) == {Failed(FailedReason.QUEUE_FULL)}
    world.check_conservation()


async def test_pressure_falls_before_the_queue_is_full_and_is_never_0() -> None:
    world = World(queue_jobs=100, shed_from=0.5, min_keep_probability=0.05)
    world.judge.up = False
    seen = [world.stage.pressure()]
    for n in range(100):
        world.offer(str(n))
        seen.append(world.stage.pressure())
    assert seen[50] == 1.0
    assert seen[75] == pytest.approx(0.5)
    assert seen[100] == 0.05
    assert seen == sorted(seen, reverse=True)


async def test_pressure_rises_with_age_when_the_judge_is_down() -> None:
    world = World(max_age_seconds=900, shed_from=0.5)
    world.judge.up = False
    world.offer()
    world.clock.advance(675)
    world.stage.tick()
    assert world.stage.pressure() == pytest.approx(0.5)
    assert world.sample(metrics.JUDGING_KEEP_PROBABILITY.name) == pytest.approx(0.5)


OWN: list[dict[str, object]] = [
    {"marks": frozenset({Mark.OWN_EVALUATION})},
    {"question": f"  {MARKER}\nIs the claim supported?"},
    {"attributes": {"http.request.header.x-groundwatch-evaluation": ["1"]}},
    {"resource": {"X-Groundwatch-Evaluation": "1"}},
]


@pytest.mark.parametrize("parts", OWN)
async def test_own_evaluations_are_never_judged(parts: dict[str, object]) -> None:
    world = World()
    world.offer(**parts)
    await world.settle_down()
    assert world.judge.asked == []
    assert world.outcomes() == [NotApplicable(NotApplicableReason.OWN_EVALUATION)] * 2
    world.check_conservation()


async def test_an_own_evaluation_in_the_history_is_seen() -> None:
    world = World()
    interaction = Interaction("i", question="q", history=(Turn("system", MARKER + "\nrules"),))
    world.stage.offer(Screened(Found(interaction), ()), Decision(Fate.QUEUED, 1.0, "rate"), ())
    await world.settle_down()
    assert world.judge.asked == []


async def test_large_texts_count_as_bytes() -> None:
    world = World(queue_bytes=1_000_000)
    world.judge.up = False
    interaction = Interaction("i", contexts=(Passage("x" * 2_000_000),))
    world.stage.offer(Screened(Found(interaction), ()), Decision(Fate.QUEUED, 1.0, "rate"), ())
    assert set(world.outcomes()) == {Failed(FailedReason.QUEUE_FULL)}


async def test_drain_judges_what_it_can_and_fails_the_rest() -> None:
    judge = Judge()
    world = World(judge, concurrency=2)
    judge.script = judge.hangs
    for n in range(4):
        world.offer(str(n))
    running = asyncio.create_task(world.stage.run())
    await world.settle_down()
    await world.stage.drain(0.01)
    assert set(world.outcomes()) == {Failed(FailedReason.SHUTDOWN)}
    assert len(world.ended) == 4
    world.offer("late")
    assert world.outcomes()[-1] == Failed(FailedReason.SHUTDOWN)
    await asyncio.wait_for(running, 5)
    world.check_conservation()


async def test_drain_waits_for_the_queue_within_its_deadline() -> None:
    world = World(concurrency=1)
    for n in range(5):
        world.offer(str(n))
    await world.stage.drain(5)
    assert world.outcomes().count(Score(1.0)) == 5
    await world.stage.drain(5)
    world.check_conservation()


async def test_a_drain_that_is_cancelled_still_settles_everything() -> None:
    judge = Judge()
    judge.script = judge.hangs
    world = World(judge, concurrency=2)
    for n in range(4):
        world.offer(str(n))
    await world.settle_down()
    draining = asyncio.create_task(world.stage.drain(60))
    await world.settle_down()
    draining.cancel()
    await asyncio.wait({draining})
    assert len(world.ended) == 4
    await world.settle_down()
    world.check_conservation()


async def test_drain_does_not_wait_for_what_hangs_for_good() -> None:
    judge = Judge()
    judge.script = judge.ignores_its_cancellation
    world = World(judge)
    world.offer()
    await world.settle_down()
    drained = asyncio.create_task(world.stage.drain(0))
    await asyncio.wait_for(drained, 5)
    assert world.outcomes() == [Failed(FailedReason.SHUTDOWN)] * 2
    judge.gate.set()
    await world.settle_down()
    assert len(world.ended) == 1
    world.check_conservation()


async def test_what_fails_beside_the_judge_is_no_reason_to_wait_for_it() -> None:
    judge = Judge()

    async def shadow_is_down(interaction: Interaction, deadline_seconds: float) -> list[Result]:
        return results(interaction, Score(1.0), Failed(FailedReason.JUDGE_UNREACHABLE))

    judge.script = shadow_is_down
    told: list[tuple[str, int]] = []
    world = World(
        judge, beside=["groundedness"], judged=lambda interaction, found: told.append((interaction.id, len(found)))
    )
    world.offer()
    await world.settle_down()
    assert world.outcomes() == [Score(1.0), Failed(FailedReason.JUDGE_UNREACHABLE)]
    assert told == [("i", 2)]
    world.check_conservation()
