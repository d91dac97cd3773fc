"""What the log says when the judge is lost and found again: the client, and a real HTTP server that fails."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from collector.judging.ledger import Ledger
from collector.judging.observer import JudgeTelemetry
from collector.pipeline.clock import ManualClock
from collector.telemetry.events import Events, JsonFormatter
from collector.telemetry.instruments import Telemetry
from scorers import catalog
from scorers.interaction import Interaction, Passage
from scorers.judge.client import Runtime
from scorers.judge.options import JudgeOptions
from scorers.judge.service import Judge
from scorers.testing import Fault, ScriptedJudge

SECRET, TEXT = "sk-log-secret", "The hotel limit in Munich is 150 euros."
ASKED = Interaction("1", "What is the limit in Munich?", (Passage(TEXT),), TEXT)
PAUSE = 10.0


@dataclass
class Watched:
    """A judge, its server, and the lines that were written since the last look."""

    judge: Judge
    server: ScriptedJudge
    clock: ManualClock
    stream: io.StringIO = field(default_factory=io.StringIO)

    def lines(self) -> list[dict[str, object]]:
        told = self.stream.getvalue()
        assert SECRET not in told
        assert "Munich" not in told
        assert "scripted fault" not in told, "nothing of what the endpoint said"
        self.stream.seek(0)
        self.stream.truncate()
        return [json.loads(line) | {"time": ""} for line in told.splitlines()]


@asynccontextmanager
async def watched(
    server: ScriptedJudge, scorers: tuple[str, ...] = ("faithfulness",), **options: object
) -> AsyncIterator[Watched]:
    clock, telemetry, stream = ManualClock(), Telemetry(), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.Logger("test.judge", logging.INFO)
    logger.addHandler(handler)
    names = ["judge", "judge_embeddings"]
    observer = JudgeTelemetry(telemetry, Ledger(clock), names, Events(telemetry, clock, logger))

    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    runtime = Runtime(observer, monotonic=clock.monotonic, sleep=sleep)
    async with server:
        given: dict[str, object] = {
            "base_url": f"{server.base_url}/",
            "model": "m",
            "api_key": {"env": "KEY"},
            "breaker_failures": 3,
            "breaker_pause_seconds": PAUSE,
            "backoff_seconds": 0.01,
            **options,
        }
        chosen = JudgeOptions.model_validate(given)
        async with Judge(chosen, catalog.judged(scorers), environ={"KEY": SECRET}, runtime=runtime) as judge:
            yield Watched(judge, server, clock, stream)


def host_of(server: ScriptedJudge) -> str:
    return server.base_url.removeprefix("http://").partition("/")[0]


async def test_a_judge_that_is_lost_and_found_again_is_three_kinds_of_lines() -> None:
    async with watched(ScriptedJudge(faults=[Fault(503)] * 4)) as b:
        await b.judge.score(ASKED)
        host = host_of(b.server)
        (down,) = b.lines()
        meanwhile = down.pop("meanwhile")
        assert isinstance(meanwhile, str)
        assert "local scoring goes on" in meanwhile
        assert down == {
            "time": "",
            "level": "warning",
            "event": "judge_down",
            "message": "the judge's endpoint takes no calls and is left alone for a while",
            "endpoint": "judge",
            "host": host,
            "cause": "overloaded",
            "failures_in_a_row": 3,
            "tries_again_in_seconds": PAUSE,
        }

        await b.judge.score(ASKED)
        assert b.lines() == [], "calls that the breaker holds back say nothing"

        b.clock.advance(PAUSE)
        await b.judge.score(ASKED)  # the probe meets the fourth fault
        (still,) = b.lines()
        assert (still["event"], still["cause"], still["failures_in_a_row"]) == (
            "judge_still_down",
            "overloaded",
            4,
        )
        assert still["tries_again_in_seconds"] == 2 * PAUSE
        assert still["down_seconds"] == PAUSE

        b.clock.advance(2 * PAUSE)
        await b.judge.score(ASKED)
        assert b.lines() == [
            {
                "time": "",
                "level": "info",
                "event": "judge_back",
                "message": "the judge's endpoint answers again",
                "endpoint": "judge",
                "host": host,
                "down_seconds": 3 * PAUSE,
            }
        ]


async def test_what_waiting_does_not_cure_is_an_error_at_once() -> None:
    async with watched(ScriptedJudge(keys=["another"])) as b:
        await b.judge.score(ASKED)
        (down,) = b.lines()
        assert (down["event"], down["level"], down["cause"]) == ("judge_down", "error", "auth")
        assert down["failures_in_a_row"] == 1


async def test_a_judge_that_nobody_reaches_is_said_to_be_unreachable() -> None:
    gone = ScriptedJudge()
    async with gone:
        url = gone.base_url
    async with watched(ScriptedJudge(), base_url=url) as b:
        await b.judge.score(ASKED)
        (down,) = b.lines()
        assert (down["event"], down["cause"], down["host"]) == ("judge_down", "unreachable", host_of(gone))


async def test_an_endpoint_beside_the_judge_holds_up_only_what_needs_it() -> None:
    gone = ScriptedJudge()
    async with gone:
        url = gone.base_url
    async with watched(ScriptedJudge(), ("response_relevancy",), embeddings={"model": "e", "base_url": url}) as b:
        await b.judge.score(ASKED)
        (down,) = b.lines()
        assert (down["endpoint"], down["cause"]) == ("judge_embeddings", "unreachable")
        assert down["meanwhile"] == "what needs this endpoint fails; all else is judged"
