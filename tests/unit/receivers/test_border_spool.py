"""A border with a spool: what it writes of a request, and when it says that the request is safe."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp.decode import Decoder
from collector.otlp.encode import items
from collector.otlp.model import Encoding
from collector.otlp.request import Interner, decode_request
from collector.pipeline.options import MIB, SpoolOptions
from collector.pipeline.receipt import Receipt
from collector.pipeline.spool import Body, Spool
from collector.receivers.border import Accepted, Border
from collector.receivers.status import Reason, Refused
from collector.records.batch import Signal
from tests.support import recordings
from tests.support.stores import Disk, Watched
from tests.support.traces import body, rag_trace, span
from tests.unit.assembly.assembly_builders import Bench


class World:
    """A border over a real assembler and a real spool."""

    def __init__(self, directory: Path) -> None:
        self.disk = Disk()
        self.bench = Bench()
        self._path = directory / "spool.sqlite"
        self.spool = self._spool()
        self.spool.open()
        self.border = Border(
            transport="grpc",
            intake=self.bench.assembler,
            telemetry=self.bench.telemetry,
            max_item_bytes=100_000,
            intern=Interner(),
            spool=self.spool,
        )

    def _spool(self) -> Spool:
        return Spool(
            self._path, SpoolOptions(max_bytes=MIB), full_sync=False, watcher=Watched(), reached=self.disk
        )

    async def send(self, request: bytes, encoding: Encoding = Encoding.PROTO) -> Accepted | Refused:
        return await self.border.receive(request, Signal.TRACES, encoding)

    async def written(self) -> list[Body]:
        """What the next process would read."""
        await self.spool.close()
        later = self._spool()
        later.open()
        found: list[Body] = []

        async def offer(one: Body, _receipt: Receipt) -> None:
            found.append(one)

        await later.restore(offer)
        await later.close()
        return found

    def refused(self, reason: str) -> float:
        value = self.bench.telemetry.registry.get_sample_value(
            "groundwatch_receiver_refused_requests_total", {"transport": "grpc", "reason": reason}
        )
        return value or 0.0

    def requests(self, outcome: str) -> float:
        value = self.bench.telemetry.registry.get_sample_value(
            "groundwatch_receiver_requests_total", {"transport": "grpc", "signal": "traces", "outcome": outcome}
        )
        return value or 0.0


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    yield world
    await world.spool.close()


def plain(trace_id: bytes, dice: random.Random, parent: bytes = b"") -> Span:
    return span(
        trace_id, dice.randbytes(8), parent, "SELECT", {"db.system.name": "sqlite", "db.query.text": "x" * 300}
    )


async def test_only_what_carries_a_hint_is_written_with_its_resource(world: World) -> None:
    dice = random.Random(1)
    wanted = rag_trace(dice)
    child = plain(wanted[0].trace_id, dice, wanted[-1].span_id)
    others = [plain(dice.randbytes(16), dice) for _ in range(20)]
    assert await world.send(body([*others, child, *wanted])) == Accepted()
    ((signal, encoding, request),) = await world.written()
    batch = decode_request(request, Signal(signal), Encoding(encoding))
    decoded = [Decoder().span(item) for item in items(batch)]
    assert {one.span_id for one in decoded} == {one.span_id.hex() for one in (child, *wanted)}
    assert {one.resource.service_name for one in decoded} == {"rides"}
    (cut,) = [one for one in decoded if one.span_id == child.span_id.hex()]
    assert (cut.attributes, cut.parent_span_id) == ({}, wanted[-1].span_id.hex())
    assert all(one.scope.name and one.attributes for one in decoded if one is not cut)


@pytest.mark.parametrize("encoding", Encoding)
async def test_a_request_that_is_wanted_whole_is_written_as_it_came(world: World, encoding: Encoding) -> None:
    request = body(rag_trace(random.Random(1)))
    if encoding is Encoding.JSON:
        request = recordings.as_json(request, "traces")
    assert await world.send(request, encoding) == Accepted()
    assert await world.written() == [("traces", encoding, request)]


async def test_a_request_without_a_hint_costs_no_commit(world: World) -> None:
    dice = random.Random(1)
    assert await world.send(body([plain(dice.randbytes(16), dice)])) == Accepted()
    assert world.disk.reached == []
    assert await world.written() == []


async def test_what_can_not_be_written_is_refused_and_its_repeat_is_safe_when_it_is_accepted(world: World) -> None:
    request = body(rag_trace(random.Random(1)))
    world.disk.full = True
    refused = await world.send(request)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.row.retryable) == (Reason.SPOOL_FAILING, True)
    assert await world.send(request) == refused  # at the door, now that it is known
    assert (world.refused("spool_failing"), world.requests("refused"), world.requests("accepted")) == (2, 2, 0)
    world.disk.full = False
    async with asyncio.timeout(10):
        while isinstance(await world.send(request), Refused):
            await asyncio.sleep(0.05)
    assert world.requests("accepted") == 1
    assert await world.written() == [("traces", "proto", request)]


async def test_a_repeat_waits_for_what_it_repeats(world: World) -> None:
    request = body(rag_trace(random.Random(1)))
    world.disk.full = True
    first, second = await asyncio.gather(world.send(request), world.send(request))
    assert isinstance(first, Refused)
    assert isinstance(second, Refused)


async def test_a_full_spool_refuses_with_a_hint(world: World) -> None:
    big = rag_trace(random.Random(1), response="x" * 90_000)
    while not isinstance(answer := await world.send(body(big)), Refused):
        big = rag_trace(random.Random(world.spool.bytes), response="x" * 90_000)
    assert (answer.reason, answer.row.retryable) == (Reason.SPOOL_FULL, True)
    assert answer.retry_after_seconds > 0
    assert MIB <= world.spool.bytes < 2 * MIB


async def test_a_request_that_is_refused_leaves_nothing(world: World) -> None:
    assert isinstance(await world.send(b"\xff\xff"), Refused)
    world.bench.assembler.begin_drain()
    assert isinstance(await world.send(body(rag_trace(random.Random(1)))), Refused)
    world.border.close(1, Reason.STARTING)
    refused = await world.send(body(rag_trace(random.Random(1))))
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.STARTING
    assert world.spool.requests == 0
