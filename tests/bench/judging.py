"""Judged scoring over HTTP: interactions a second and CPU beside a bare aiohttp loop that makes the same calls.

    python -m tests.bench.judging [--quick]

A stub judge runs in a process of its own and answers from memory after 0 or 200 ms. The ceiling sends the very
bytes that our client sends, in the same shape (calls of a round at once, rounds one after the other), and reads
nothing of the replies. Both run in this process, in this run; compare ratios, not absolutes.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import aiohttp

from scorers import catalog
from scorers.interaction import Interaction, Passage
from scorers.judge.options import JudgeOptions
from scorers.judge.service import Judge
from scorers.judge.tokens import estimate_tokens
from scorers.testing import Received, ScriptedJudge, plain_answer, plain_vector

FOUR = ("faithfulness", "response_relevancy", "context_relevance", "groundedness")
_PARAGRAPH = (
    "Employees on business trips may claim meals, hotels and local transport within the limits of the policy. "
)
INTERACTION = Interaction(
    "bench",
    "What is the hotel limit for a business trip to Munich, and is breakfast included?",
    tuple(Passage(f"{_PARAGRAPH * 9}Fact {number} of the policy.") for number in range(1, 6)),
    "The hotel limit in Munich is 150 euros. Breakfast is not included. Fact 1 of the policy. Fact 4 of the policy.",
)
_SECRET = b"bench"


class _Stub(asyncio.Protocol):
    """Answers pipelined HTTP/1.1 posts from a table, as bare as can be."""

    table: dict[bytes, bytes] = {}  # noqa: RUF012  # one table for all connections of the stub's process
    delay = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._buffer[:end].lower()
            start = head.find(b"content-length:") + 15
            stop = head.find(b"\r", start)
            length = int(head[start : stop if stop > 0 else end])
            if len(self._buffer) < end + 4 + length:
                return
            body = self._buffer[end + 4 : end + 4 + length]
            self._buffer = self._buffer[end + 4 + length :]
            self._answer(b"/embeddings" in head[:200], body)

    def _answer(self, embeddings: bool, body: bytes) -> None:
        key = hashlib.blake2b(body, digest_size=8).digest()
        if key not in self.table:
            self.table[key] = _reply(embeddings, body)
        if self.delay:
            asyncio.get_running_loop().call_later(self.delay, self._send, self.table[key])
        else:
            self._send(self.table[key])

    def _send(self, reply: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(reply)  # type: ignore[attr-defined]  # a stream transport


def _reply(embeddings: bool, body: bytes) -> bytes:
    request = json.loads(body)
    if embeddings:
        vectors = [{"index": i, "embedding": plain_vector(text)} for i, text in enumerate(request["input"])]
        reply = {"data": vectors, "usage": {"prompt_tokens": 40}}
    else:
        content = plain_answer(Received("/v1/chat/completions", {}, request))
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        reply = {"choices": [choice], "usage": {"prompt_tokens": 1000, "completion_tokens": 100}}
    raw = json.dumps(reply).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(raw) + raw


async def _serve(delay: float) -> None:
    _Stub.delay = delay
    server = await asyncio.get_running_loop().create_server(_Stub, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@dataclass(frozen=True, slots=True)
class Rate:
    per_second: float
    cpu_ms: float


async def _rate(one: Callable[[], Awaitable[object]], *, at_once: int, seconds: float) -> Rate:
    """Run `one` over and over, `at_once` at a time; the first of each lane warms up."""
    done = 0
    started = stop = cpu = 0.0

    async def lane() -> None:
        nonlocal done
        while time.perf_counter() < stop:
            await one()
            done += 1

    await asyncio.gather(*(one() for _ in range(at_once)))
    started, cpu = time.perf_counter(), time.process_time()
    stop = started + seconds
    await asyncio.gather(*(lane() for _ in range(at_once)))
    elapsed = time.perf_counter() - started
    return Rate(done / elapsed, 1000 * (time.process_time() - cpu) / max(1, done))


async def _recorded(plan: str) -> list[list[tuple[str, bytes]]]:
    """The rounds of calls that one interaction makes, as (path, body)."""
    async with ScriptedJudge() as server, _judge(server.base_url, plan, 64) as judge:
        await judge.score(INTERACTION)
        calls = [
            (r.path.removeprefix("/v1"), json.dumps(r.body, ensure_ascii=False, separators=(",", ":")).encode())
            for r in server.received
        ]
    late = [call for call in calls if call[0] == "/embeddings" or b'"verdicts":{"type"' in call[1]]
    return [[call for call in calls if call not in late], late]


def _judge(base_url: str, plan: str, at_once: int) -> Judge:
    options = JudgeOptions.model_validate(
        {
            "base_url": base_url,
            "model": "stub",
            "embeddings": {"model": "stub"},
            "plan": plan,
            "cache_entries": 0,
            "budget": {"day": {}},
            "start_concurrency": 2048,
            "max_concurrency": 2048,
        }
    )
    return Judge(options, catalog.judged(FOUR), secret=_SECRET)


async def _compare(port: int, plan: str, *, at_once: int, seconds: float) -> tuple[Rate, Rate]:
    base_url = f"http://127.0.0.1:{port}/v1"
    rounds = await _recorded(plan)
    headers = {"Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def post(path: str, body: bytes) -> None:
            async with session.post(base_url + path, data=body, headers=headers) as response:
                await response.read()

        async def bare() -> None:
            for calls in rounds:
                await asyncio.gather(*(post(path, body) for path, body in calls))

        ceiling = await _rate(bare, at_once=at_once, seconds=seconds)
    async with _judge(base_url, plan, at_once) as judge:
        ours = await _rate(lambda: judge.score(INTERACTION), at_once=at_once, seconds=seconds)
    return ours, ceiling


async def _tokens() -> None:
    print(f"{'plan':10}{'chat calls':>12}{'prompt tokens':>15}")
    for plan in ("standard", "fused"):
        async with ScriptedJudge() as server, _judge(server.base_url, plan, 64) as judge:
            await judge.score(INTERACTION)
            tokens = sum(estimate_tokens(call.prompt) for call in server.chats)
            print(f"{plan:10}{len(server.chats):>12}{tokens:>15}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two concurrencies, a third of a second each")
    parser.add_argument("--serve", type=float, default=None, help="be the stub, with this delay in seconds")
    chosen = parser.parse_args(argv)
    if chosen.serve is not None:
        asyncio.run(_serve(chosen.serve))
        return 0
    asyncio.run(_tokens())
    concurrencies = (1, 32) if chosen.quick else (1, 8, 32, 128, 512)
    seconds = 0.3 if chosen.quick else 3.0
    print(f"\n{'plan':10}{'judge':>8}{'in flight':>11}{'ours/s':>10}{'ceiling/s':>11}", end="")
    print(f"{'share':>8}{'cpu ms':>9}{'bare ms':>9}")
    for delay in (0.0, 0.2):
        command = [sys.executable, "-m", "tests.bench.judging", "--serve", str(delay)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as stub:
            assert stub.stdout is not None
            port = int(stub.stdout.readline())
            try:
                for plan in ("standard", "fused"):
                    for at_once in concurrencies:
                        ours, bare = asyncio.run(_compare(port, plan, at_once=at_once, seconds=seconds))
                        share = ours.per_second / bare.per_second
                        row = f"{plan:10}{delay * 1000:>6.0f}ms{at_once:>11}{ours.per_second:>10.1f}"
                        print(
                            f"{row}{bare.per_second:>11.1f}{share:>8.2f}{ours.cpu_ms:>9.2f}{bare.cpu_ms:>9.2f}",
                            flush=True,
                        )
            finally:
                stub.terminate()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
