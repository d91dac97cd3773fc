"""The judge client against a real HTTP server that fails in every way that is known of judges."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from scorers import catalog
from scorers.judge.client import Runtime
from scorers.judge.marker import HEADER, HEADER_VALUE, MARKER
from scorers.judge.observer import BreakerChange, BreakerState, CallOutcome, CallRecord, SilentObserver
from scorers.judge.options import JudgeOptions
from scorers.judge.service import Judge
from scorers.judge.wire import Rung
from scorers.outcome import Failed, FailedReason, Result, Score
from scorers.testing import Fault, ScriptedJudge, interaction

PRICES = {"m": {"input_usd_per_million": 1.0, "output_usd_per_million": 10.0}}


@dataclass
class Watching(SilentObserver):
    """Keeps what it is told."""

    calls: list[CallRecord] = field(default_factory=list)
    states: list[tuple[BreakerState, str]] = field(default_factory=list)
    changes: list[BreakerChange] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)
    reasked: int = 0
    hits: list[bool] = field(default_factory=list)
    blown: bool = False
    budgets: dict[str, bool] = field(default_factory=dict)

    def call(self, record: CallRecord) -> None:
        self.calls.append(record)

    def breaker(self, change: BreakerChange) -> None:
        self.states.append((change.state, change.cause))
        self.changes.append(change)

    def concurrency_limit(self, endpoint: str, limit: int) -> None:
        self.limits.append(limit)

    def reask(self, missing: int) -> None:
        self.reasked += missing

    def cache(self, *, hit: bool) -> None:
        self.hits.append(hit)

    def budget(self, *, period: str, spent_share: float, blown: bool) -> None:
        self.blown = self.blown or blown
        self.budgets[period] = blown


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@dataclass
class Bench:
    server: ScriptedJudge
    judge: Judge
    watching: Watching
    time: Time

    async def faithfulness(self, **kwargs: str) -> Result:
        return (await self.judge.score(interaction(**kwargs)))[0]


@asynccontextmanager
async def bench(
    server: ScriptedJudge, scorers: tuple[str, ...] = ("faithfulness",), **options: object
) -> AsyncIterator[Bench]:
    watching, time = Watching(), Time()
    runtime = Runtime(watching, time.monotonic, lambda: time.now, time.sleep, random.Random(1))
    given: dict[str, object] = {"base_url": "", "model": "m", "prices": PRICES, **options}
    async with server:
        given["base_url"] = given["base_url"] or server.base_url
        judge = Judge(JudgeOptions.model_validate(given), catalog.judged(scorers), runtime=runtime, secret=b"s")
        async with judge:
            yield Bench(server, judge, watching, time)


def failed(result: Result) -> FailedReason:
    assert isinstance(result.outcome, Failed), result
    return result.outcome.reason


def scored(result: Result) -> float:
    assert isinstance(result.outcome, Score), result
    return result.outcome.value


async def test_every_call_is_marked_as_an_evaluation() -> None:
    async with bench(ScriptedJudge(), headers={"X-Team": "rag", HEADER: "0"}) as b:
        assert scored(await b.faithfulness()) == 1.0
        for received in b.server.received:
            assert received.headers[HEADER] == HEADER_VALUE
            assert received.headers["x-team"] == "rag"
            assert received.prompt.startswith(MARKER)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
async def test_what_may_pass_is_tried_again(status: int) -> None:
    async with bench(ScriptedJudge(faults=[Fault(status)])) as b:
        assert scored(await b.faithfulness()) == 1.0
        assert len(b.server.received) == 3
        assert b.watching.calls[0].outcome is CallOutcome.OVERLOADED


@pytest.mark.parametrize(
    ("fault", "reason", "cause"),
    [
        (Fault(401), FailedReason.JUDGE_AUTH, "auth"),
        (Fault(403), FailedReason.JUDGE_AUTH, "auth"),
        (Fault(402), FailedReason.JUDGE_QUOTA, "quota"),
        (Fault(429, body='{"error": {"code": "insufficient_quota"}}'), FailedReason.JUDGE_QUOTA, "quota"),
        (Fault(404), FailedReason.JUDGE_MODEL_UNKNOWN, "model_unknown"),
        (
            Fault(400, body='{"error": {"code": "model_not_found"}}'),
            FailedReason.JUDGE_MODEL_UNKNOWN,
            "model_unknown",
        ),
    ],
)
async def test_what_can_not_pass_opens_the_breaker_with_its_cause(
    fault: Fault, reason: FailedReason, cause: str
) -> None:
    async with bench(ScriptedJudge(faults=[fault]), breaker_pause_seconds=5) as b:
        assert failed(await b.faithfulness()) is reason
        assert len(b.server.received) == 1
        assert not b.judge.available()
        assert b.judge.down_because() == cause
        assert failed(await b.faithfulness()) is reason
        assert len(b.server.received) == 1, "an open breaker calls nobody"
        b.time.now += 5
        assert b.judge.available()
        assert scored(await b.faithfulness()) == 1.0
        assert [state for state, _ in b.watching.states] == [
            BreakerState.OPEN,
            BreakerState.HALF_OPEN,
            BreakerState.CLOSED,
        ]


async def test_a_failed_probe_doubles_the_pause() -> None:
    async with bench(ScriptedJudge(faults=[Fault(401), Fault(401)]), breaker_pause_seconds=5) as b:
        await b.faithfulness()
        b.time.now += 5
        await b.faithfulness()
        assert len(b.server.received) == 2
        b.time.now += 9
        assert not b.judge.available()
        b.time.now += 1
        assert scored(await b.faithfulness()) == 1.0


async def test_overload_in_a_row_opens_the_breaker() -> None:
    async with bench(ScriptedJudge(faults=[Fault(503)] * 100), breaker_failures=3) as b:
        assert failed(await b.faithfulness()) is FailedReason.JUDGE_OVERLOADED
        assert len(b.server.received) == 3
        assert b.judge.down_because() == "overloaded"


async def test_retry_after_is_kept_by_every_call() -> None:
    async with bench(ScriptedJudge(faults=[Fault(429, headers={"Retry-After": "7"})])) as b:
        assert scored(await b.faithfulness()) == 1.0
        assert 7 <= b.time.slept[0] <= 7.5


async def test_a_retry_after_beyond_the_deadline_fails_now() -> None:
    async with bench(ScriptedJudge(faults=[Fault(429, headers={"retry-after-ms": "900000"})])) as b:
        assert failed(await b.faithfulness()) is FailedReason.JUDGE_OVERLOADED
        assert failed(await b.faithfulness()) is FailedReason.JUDGE_OVERLOADED
        assert b.time.slept == []
        assert len(b.server.received) == 1


async def test_backoff_is_jittered_and_bounded() -> None:
    async with bench(ScriptedJudge(faults=[Fault(500)] * 4), backoff_seconds=1, max_backoff_seconds=3) as b:
        assert scored(await b.faithfulness()) == 1.0
        assert len(b.time.slept) == 4
        assert all(slept <= ceiling for slept, ceiling in zip(b.time.slept, (1, 2, 3, 3), strict=True))
        assert len(set(b.time.slept)) == 4


async def test_a_disconnect_after_the_request_is_retried_once_and_counted_as_billed() -> None:
    async with bench(ScriptedJudge(faults=[Fault(disconnect=True)])) as b:
        assert scored(await b.faithfulness()) == 1.0
        first = b.watching.calls[0]
        assert first.outcome is CallOutcome.DISCONNECTED
        assert first.input_tokens > 0
        assert first.estimated
    async with bench(ScriptedJudge(faults=[Fault(disconnect=True)] * 9)) as b:
        assert failed(await b.faithfulness()) is FailedReason.JUDGE_UNREACHABLE
        assert len(b.server.received) == 2


async def test_a_connection_that_is_closed_before_the_request_was_read_is_tried_once_more() -> None:
    met: list[asyncio.StreamWriter] = []

    def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append(writer)
        writer.transport.abort()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with bench(ScriptedJudge(), base_url=url) as b:
            assert failed(await b.faithfulness()) is FailedReason.JUDGE_UNREACHABLE
            assert len(met) == 2
            assert {record.outcome for record in b.watching.calls} == {CallOutcome.DISCONNECTED}


async def test_nobody_listening_is_unreachable_and_not_billed() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        async with bench(ScriptedJudge(), base_url=url, max_attempts=3) as b:
            assert failed(await b.faithfulness()) is FailedReason.JUDGE_UNREACHABLE
            assert [record.outcome for record in b.watching.calls] == [CallOutcome.UNREACHABLE] * 3
            assert all(not record.input_tokens for record in b.watching.calls)


@pytest.mark.parametrize("fault", [Fault(delay_seconds=5), Fault(slow_body_seconds=5)])
async def test_slow_headers_and_slow_bodies_end_at_the_hard_limit(fault: Fault) -> None:
    async with bench(ScriptedJudge(faults=[fault]), call_timeout_seconds=0.2) as b:
        assert scored(await b.faithfulness()) == 1.0
        assert b.watching.calls[0].outcome is CallOutcome.TIMEOUT
        assert b.judge.chat.concurrency.in_flight == 0


async def test_the_deadline_of_the_interaction_holds() -> None:
    server = ScriptedJudge(delay_seconds=5)
    async with server:
        options = JudgeOptions(base_url=server.base_url, model="m")
        async with Judge(options, catalog.judged(["faithfulness"])) as judge:
            async with asyncio.timeout(3):
                (result,) = await judge.score(interaction(), 0.2)
    assert failed(result) is FailedReason.DEADLINE


async def test_a_deadline_that_has_passed_is_one() -> None:
    async with bench(ScriptedJudge()) as b:
        (result,) = await b.judge.score(interaction(), 0.0)
        assert failed(result) is FailedReason.DEADLINE
        assert not b.watching.calls


async def test_a_key_command_that_hangs_does_not_outlast_the_deadline() -> None:
    async with bench(ScriptedJudge(), api_key={"command": ["sleep", "20"]}) as b:
        async with asyncio.timeout(5):
            waited = await asyncio.gather(*(b.judge.score(interaction(id=str(n)), 0.2) for n in range(4)))
    assert [failed(result) for (result,) in waited] == [FailedReason.DEADLINE] * 4


async def test_an_error_of_our_own_leaves_the_breakers_probe_to_the_next_call() -> None:
    class Once(httpx.AsyncBaseTransport):
        def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
            self.inner = inner
            self.broken = False

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if self.broken:
                self.broken = False
                raise RuntimeError("a bug")
            return await self.inner.handle_async_request(request)

    async with bench(ScriptedJudge(faults=[Fault(status=402)])) as b:
        chat = b.judge.chat
        once = Once(chat._http)
        chat._http = once
        assert failed(await b.faithfulness()) is FailedReason.JUDGE_QUOTA
        b.time.now += 60
        once.broken = True
        assert failed(await b.faithfulness()) is FailedReason.SCORER_ERROR
        assert scored(await b.faithfulness()) == 1.0


@pytest.mark.parametrize(
    "fault",
    [
        Fault(cut_body=True),
        Fault(raw=b"<html>sign in</html>", content_type="text/html"),
        Fault(raw=b'{"choices": []}'),
        Fault(raw=b'{"error": {"message": "internal"}}'),
        Fault(raw=b"\xff\xfe"),
        Fault(raw=b""),
        Fault(raw=b"[" * 100_000),
    ],
)
async def test_a_body_that_is_no_completion_is_tried_once_more(fault: Fault) -> None:
    async with bench(ScriptedJudge(faults=[fault])) as b:
        assert scored(await b.faithfulness()) == 1.0
    async with bench(ScriptedJudge(faults=[fault] * 9)) as b:
        assert failed(await b.faithfulness()) in (FailedReason.BAD_REPLY, FailedReason.JUDGE_UNREACHABLE)
        assert len(b.server.received) == 2


async def test_a_reply_without_end_is_no_reply() -> None:
    async with bench(ScriptedJudge(faults=[Fault(raw=b" " * (9 << 20))] * 2)) as b:
        result = await b.faithfulness()
        assert failed(result) is FailedReason.BAD_REPLY
        assert isinstance(result.outcome, Failed) and "over 8 MiB" in result.outcome.detail


async def test_a_wrong_content_type_and_an_unasked_stream_are_read() -> None:
    faults = [Fault(content_type="text/plain"), Fault(stream=True, content_type="text/event-stream")]
    async with bench(ScriptedJudge(faults=faults)) as b:
        assert scored(await b.faithfulness()) == 1.0
        assert len(b.server.received) == 2
        assert b.watching.calls[1].estimated, "a stream without usage is counted by us"


async def test_a_content_filter_is_a_refusal_of_this_interaction_only() -> None:
    body = '{"error": {"code": "content_filter"}}'
    async with bench(ScriptedJudge(faults=[Fault(400, body=body)])) as b:
        assert failed(await b.faithfulness()) is FailedReason.JUDGE_REFUSED
        assert b.judge.available()
        assert scored(await b.faithfulness()) == 1.0


@pytest.mark.parametrize(
    ("accepted", "rung", "wasted"),
    [
        (("json_schema",), Rung.JSON_SCHEMA, 0),
        (("json_object",), Rung.OBJECT_WITH_SCHEMA, 1),
        (("text",), Rung.TEXT, 3),
    ],
)
async def test_the_ladder_goes_down_and_is_remembered(accepted: tuple[str, ...], rung: Rung, wasted: int) -> None:
    async with bench(ScriptedJudge(rungs=accepted)) as b:
        assert scored(await b.faithfulness()) == 1.0
        assert b.judge.chat.dialect.rung is rung
        assert len(b.server.received) == 2 + wasted
        await b.faithfulness(response="Pets are welcome.")
        assert len(b.server.received) == 4 + wasted


async def test_a_400_that_no_rung_mends_is_a_refusal_and_changes_nothing() -> None:
    async with bench(ScriptedJudge(faults=[Fault(400)] * 4)) as b:
        assert failed(await b.faithfulness()) is FailedReason.JUDGE_REFUSED
        assert b.judge.chat.dialect.rung is Rung.JSON_SCHEMA


async def test_named_parameters_are_mended() -> None:
    complaints = [
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        "Unsupported value: 'temperature' does not support 0.0",
        "Unknown parameter: 'seed'.",
    ]
    async with bench(ScriptedJudge(faults=[Fault(400, body=text) for text in complaints])) as b:
        assert scored(await b.faithfulness()) == 1.0
        last = b.server.received[-1].body
        assert "max_completion_tokens" in last
        assert not {"max_tokens", "temperature", "seed"} & set(last)
        assert b.judge.chat.dialect.rung is Rung.JSON_SCHEMA


async def test_costs_and_tokens_are_added_up_over_failed_tries_too() -> None:
    async with bench(ScriptedJudge(faults=[Fault(raw=b"<html>")])) as b:
        result = await b.faithfulness()
        assert result.usage is not None
        assert result.usage.calls == 3
        assert result.usage.input_tokens == sum(record.input_tokens for record in b.watching.calls)
        assert result.usage.cost_usd == pytest.approx(sum(record.cost_usd or 0 for record in b.watching.calls))
        assert result.usage.estimated


async def test_what_a_call_cost_that_never_came_to_an_answer_is_on_the_bill() -> None:
    async with bench(ScriptedJudge(faults=[Fault(raw=b"<html>")] * 2)) as b:
        result = await b.faithfulness()
        assert failed(result) is FailedReason.BAD_REPLY
        assert result.usage is not None
        assert result.usage.calls == len(b.watching.calls) == 2
        assert result.usage.input_tokens == sum(record.input_tokens for record in b.watching.calls) > 0
        assert result.usage.cost_usd == pytest.approx(sum(record.cost_usd or 0 for record in b.watching.calls))


async def test_an_unknown_price_is_no_cost_and_never_zero() -> None:
    async with bench(ScriptedJudge(), prices={}) as b:
        result = await b.faithfulness()
        assert result.usage is not None
        assert result.usage.cost_usd is None
        assert result.usage.input_tokens > 0


async def test_missing_usage_is_estimated_and_flagged() -> None:
    async with bench(ScriptedJudge(faults=[Fault(usage=False)])) as b:
        result = await b.faithfulness()
        assert result.usage is not None
        assert result.usage.estimated
        assert [record.estimated for record in b.watching.calls] == [True, False]


@pytest.mark.parametrize("limit", [{"calls": 2}, {"tokens": 300}, {"usd": 0.0004}])
@pytest.mark.parametrize("period", ["hour", "day"])
async def test_the_fuse_blows_and_mends_with_the_next_period(period: str, limit: dict[str, float]) -> None:
    async with bench(ScriptedJudge(), budget={"day": {}, period: limit}, cache_entries=0) as b:
        await b.faithfulness()
        assert failed(await b.faithfulness()) is FailedReason.BUDGET
        assert b.watching.blown
        before = len(b.server.received)
        b.time.now += 86400
        await b.faithfulness()
        assert len(b.server.received) > before


async def test_a_budget_of_nothing_is_told_as_spent() -> None:
    async with bench(ScriptedJudge(), budget={"day": {"calls": 0}}) as b:
        assert failed(await b.faithfulness()) is FailedReason.BUDGET
        assert b.watching.blown
        assert not b.watching.calls


async def test_a_budget_is_whole_again_when_its_period_is_over_though_nobody_calls() -> None:
    async with bench(ScriptedJudge(), budget={"hour": {"calls": 1}}) as b:
        await b.faithfulness()
        assert b.watching.budgets["hour"]
        b.time.now += 3600
        b.judge.budget.tell()
        assert not b.watching.budgets["hour"]


async def test_a_rejected_key_is_read_again_once(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("old\n")
    async with bench(ScriptedJudge(keys=["old"]), api_key={"file": str(key)}) as b:
        assert scored(await b.faithfulness()) == 1.0
        b.server.keys = {"new"}
        key.write_text("new\n")
        assert scored(await b.faithfulness(response="The hotel limit is 120 euros.")) >= 0.0
        b.server.keys = {"newer"}
        assert failed(await b.faithfulness(response="Pets.")) is FailedReason.JUDGE_AUTH


async def test_a_key_comes_from_a_command_and_never_shows(tmp_path: Path) -> None:
    script = tmp_path / "token"
    script.write_text("#!/bin/sh\necho s3cret\n")
    script.chmod(0o700)
    async with bench(ScriptedJudge(keys=["other"]), api_key={"command": [str(script)]}) as b:
        result = await b.faithfulness()
        assert failed(result) is FailedReason.JUDGE_AUTH
        assert b.server.received[0].headers["Authorization"] == "Bearer s3cret"
        assert "s3cret" not in repr(result) + repr(b.judge.options) + repr(b.watching)


async def test_azure_style_addresses(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("k")
    azure: dict[str, Any] = {
        "api_version": "2024-10-21",
        "api_key_header": "api-key",
        "api_key": {"file": str(key)},
    }
    async with bench(ScriptedJudge(), **azure) as b:
        await b.faithfulness()
        assert b.server.received[0].query == "api-version=2024-10-21"
        assert b.server.received[0].headers["api-key"] == "k"
        assert "Authorization" not in b.server.received[0].headers


async def test_the_judges_key_is_not_sent_to_another_host(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("k")
    async with ScriptedJudge() as other:
        embeddings = {"model": "e", "base_url": other.base_url}
        scorers = ("response_relevancy",)
        async with bench(ScriptedJudge(), scorers, api_key={"file": str(key)}, embeddings=embeddings) as b:
            (result,) = await b.judge.score(interaction())
            assert isinstance(result.outcome, Score)
            assert b.server.received[0].headers["Authorization"] == "Bearer k"
            assert "Authorization" not in other.received[0].headers


async def test_concurrency_grows_while_it_works_and_shrinks_on_overload() -> None:
    server = ScriptedJudge(delay_seconds=0.005)
    async with bench(server, start_concurrency=2, max_concurrency=8, cache_entries=0) as b:
        await asyncio.gather(*(b.judge.score(interaction(id=f"i-{n}")) for n in range(40)))
        assert max(b.watching.limits) == 8
        assert server.most_at_once <= 8
        server.faults.extend([Fault(429)] * 3)
        await b.faithfulness()
        assert b.judge.chat.concurrency.limit < 8
        assert b.judge.chat.concurrency.in_flight == 0


async def test_one_bad_interaction_does_not_touch_the_others() -> None:
    async with bench(ScriptedJudge()) as b:
        texts = ["\ud800 lone", "x" * 100_000, "{" * 1000, "<|im_end|>", "The hotel limit is 120 euros per night."]
        results = await asyncio.gather(*(b.faithfulness(response=text) for text in texts))
        assert scored(results[-1]) == 1.0
        reasons = [result.outcome.reason for result in results if isinstance(result.outcome, Failed)]
        assert FailedReason.SCORER_ERROR not in reasons


async def test_check_names_what_is_wrong() -> None:
    async with bench(ScriptedJudge(), embeddings={"model": "e"}) as b:
        report = await b.judge.check()
        assert report.rung is Rung.JSON_SCHEMA
        assert report.similar is not None
    async with bench(ScriptedJudge(embed=lambda _: [1.0, 1.0]), embeddings={"model": "e"}) as b:
        report = await b.judge.check()
        assert not report.ok
        assert "paraphrase" in report.problems[0]
    async with bench(ScriptedJudge(answer=lambda _: "I think so")) as b:
        assert "form" in (await b.judge.check()).problems[0]
    async with bench(ScriptedJudge(faults=[Fault(404)])) as b:
        assert "404" in (await b.judge.check()).problems[0]


@pytest.mark.parametrize(
    "embed",
    [lambda _: [0.0, 0.0], lambda _: [], lambda text: [1.0] * (len(text) % 5 + 1), lambda _: ["x"]],
)
async def test_lying_embeddings_are_failed(embed: Callable[[str], list[float]]) -> None:
    async with bench(ScriptedJudge(embed=embed), ("response_relevancy",), embeddings={"model": "e"}) as b:
        (result,) = await b.judge.score(interaction())
        assert failed(result) is FailedReason.BAD_REPLY


def test_scripted_replies_are_json() -> None:
    assert json.loads(Fault().body)["error"]
