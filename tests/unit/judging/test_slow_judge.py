"""A judge that is slower than the traffic: jobs wait in the queue, and not for each other's calls."""

from __future__ import annotations

import asyncio
import logging

from collector.judging.ledger import Ledger
from collector.judging.options import Options
from collector.judging.stage import Judging
from collector.pipeline.clock import SystemClock
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.records.settled import Screened, Settled
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from scorers.catalog import judged
from scorers.interaction import Interaction, Passage
from scorers.judge.options import JudgeOptions
from scorers.judge.service import Judge
from scorers.outcome import Score
from scorers.testing import ScriptedJudge

DEADLINE = 3.0
ANSWERS = 18
CALL = 0.1
"""Seconds. The calls for one interaction take a tenth of the deadline, those for all of them more than all of it."""


class Ended:
    def __init__(self) -> None:
        self.settlements: list[Settled] = []

    def settled(self, settled: Settled) -> None:
        self.settlements.append(settled)


async def test_answers_that_wait_for_a_slow_judge_are_not_failed_by_their_deadline() -> None:
    clock, telemetry, ended = SystemClock(), Telemetry(), Ended()
    async with ScriptedJudge(delay_seconds=CALL) as server:
        options = JudgeOptions(
            base_url=server.base_url, model="m", start_concurrency=1, max_concurrency=1, cache_entries=0
        )
        async with Judge(options, judged(["faithfulness", "groundedness", "context_relevance"])) as judge:
            stage = Judging(
                Options(concurrency=16, deadline_seconds=DEADLINE),
                judge,
                clock=clock,
                telemetry=telemetry,
                events=Events(telemetry, clock, logging.getLogger("test.judging")),
                ledger=Ledger(clock),
                downstream=ended,
            )
            running = asyncio.create_task(stage.run())
            for number in range(ANSWERS):
                interaction = Interaction(
                    f"i{number}", f"What is {number}?", (Passage(f"A {number}."),), f"It is {number}."
                )
                stage.offer(Screened(Found(interaction), ()), Decision(Fate.QUEUED, 1.0, "rate"), ())
            await stage.drain(60)
            running.cancel()
            calls = len(server.chats)
    assert calls * CALL > DEADLINE, "there is more to do than fits into one deadline"
    outcomes = [result.outcome for settled in ended.settlements for result in settled.judged]
    assert len(ended.settlements) == ANSWERS
    assert [outcome for outcome in outcomes if not isinstance(outcome, Score)] == []
