"""Every delivery is settled exactly once, whatever becomes of what was in it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.assembly.options import Options as AssemblyOptions
from collector.judging.options import Options as JudgingOptions
from collector.pipeline.receipt import Receipt
from collector.records.batch import Signal
from collector.sampling.options import Options as SamplingOptions
from collector.screening.options import Options as ScreeningOptions
from scorers.judge.marker import MARKER
from tests.support.line import Handle, Line, handler
from tests.support.traces import FACT, body, rag_trace, span

MOODS = ("well", "well", "hangs", "raises", "down")


@cache
def handle() -> Handle:
    """One for all examples: it loads the scorers."""
    return handler()


class Deliveries:
    """Gives deliveries their receipts and counts how often each was settled."""

    def __init__(self) -> None:
        self.times: list[int] = []

    def receipt(self) -> Receipt:
        number = len(self.times)
        self.times.append(0)

        def settled() -> None:
            self.times[number] += 1

        return Receipt(settled)


def spans_of(dice: random.Random, kind: str) -> list[Span]:
    trace_id, root = dice.randbytes(16), dice.randbytes(8)
    plain = [span(trace_id, root, b"", "GET /", {"http.route": "/"})]
    if kind == "plain":
        return plain
    if kind == "own":
        return rag_trace(dice, question=f"{MARKER}\nJudge this.", contexts=None, response="{}")
    if kind == "nothing":  # a hint, and no interaction
        return [*plain, span(trace_id, dice.randbytes(8), root, "tool", {"openinference.span.kind": "TOOL"})]
    contexts = None if kind == "chat" else [FACT]
    spans = rag_trace(dice, contexts=contexts, trace_id=trace_id, response=dice.choice([FACT, "999 euros."]))
    return [*spans, span(trace_id, dice.randbytes(8), spans[-1].span_id, "SELECT", {"db.system.name": "sqlite"})]


async def all_settled(draw: Callable[[st.SearchStrategy[int]], int], seed: int) -> None:
    dice = random.Random(seed)
    line = Line(
        handle(),
        worker_fails=lambda trace: int(trace[:2], 16) < 30,
        mood=lambda interaction: MOODS[sum(interaction.encode()) % len(MOODS)],
        assembly=AssemblyOptions(
            max_trace_spans=draw(st.sampled_from((2, 20_000))),
            max_trace_bytes=draw(st.sampled_from((4_000, 1_000_000))),
            max_bytes=draw(st.sampled_from((1_048_576, 50_000_000))),
            evict_after_seconds=0,
            dedup_window_seconds=draw(st.sampled_from((5, 86_400))),
        ),
        screening=ScreeningOptions(queue_traces=draw(st.sampled_from((1, 4, 2_000)))),
        sampling=SamplingOptions(rate=draw(st.sampled_from((0.1, 1.0)))),
        judging=JudgingOptions(
            queue_jobs=draw(st.sampled_from((1, 5_000))),
            concurrency=draw(st.sampled_from((1, 16))),
            max_age_seconds=200,
        ),
    )
    await line.screening.start()
    deliveries = Deliveries()
    kinds = ("rag", "rag", "rag", "chat", "plain", "nothing", "own")
    items = [one for _ in range(draw(st.integers(1, 12))) for one in spans_of(dice, dice.choice(kinds))]
    items += dice.choices(items, k=draw(st.integers(0, 8)))  # doubled, or late
    items += [span(bytes(16), dice.randbytes(8), b"", "no trace id", {})] * draw(st.integers(0, 1))
    dice.shuffle(items)
    while items:
        size = draw(st.integers(1, 9))
        here, items = items[:size], items[size:]
        line.take(body(here, environment=dice.choice(("production", "test"))), deliveries.receipt())
        if dice.random() < 0.2:
            line.take(b"\xff\xff", deliveries.receipt(), dice.choice(tuple(Signal)))
        await line.pass_time(draw(st.sampled_from((0.0, 0.0, 1.0, 40.0))))
    for _ in range(20):
        await line.pass_time(40)
    await line.screening.stop(0)
    assert line.assembler.open_traces == line.screening.waiting == line.judging.waiting == 0
    assert deliveries.times == [1] * len(deliveries.times)
    await line.judging.drain(0)


@settings(max_examples=30, deadline=None)
@given(st.data(), st.integers(0, 2**32))
def test_each_delivery_is_settled_once(data: st.DataObject, seed: int) -> None:
    asyncio.run(all_settled(data.draw, seed))


async def none_lost(draw: Callable[[st.SearchStrategy[int]], int], seed: int) -> None:
    dice = random.Random(seed)
    line = Line(
        handle(),
        mood=lambda interaction: ("well", "hangs")[sum(interaction.encode()) % 2],
        sampling=SamplingOptions(rate=1.0),
        judging=JudgingOptions(concurrency=2),
    )
    await line.screening.start()
    deliveries = Deliveries()
    of_trace: dict[str, set[int]] = {}
    traces_in: list[set[str]] = []
    items = [one for _ in range(8) for one in spans_of(dice, "rag")]
    dice.shuffle(items)
    while items:
        size = draw(st.integers(1, 9))
        here, items = items[:size], items[size:]
        traces_in.append({one.trace_id.hex() for one in here})
        for one in here:
            if one.name != "SELECT":
                of_trace.setdefault(one.trace_id.hex(), set()).add(len(deliveries.times))
        line.take(body(here), deliveries.receipt())
        await line.pass_time(draw(st.sampled_from((0.0, 0.1, 0.2))))
    await line.pass_time(draw(st.sampled_from((0.0, 5.0, 11.0))))
    line.assembler.begin_drain()
    line.assembler.drain()
    await line.screening.stop(0)
    await line.judging.drain(0)
    assert set(deliveries.times) <= {0, 1}
    ended = {one.found.trace_ids[0] for one in line.settled}
    for trace, numbers in of_trace.items():
        if trace not in ended:
            assert [number for number in numbers if deliveries.times[number]] == []
    # The others have ended of themselves, and are not given again.
    for traces, times in zip(traces_in, deliveries.times, strict=True):
        if traces <= ended:
            assert times == 1


@settings(max_examples=20, deadline=None)
@given(st.data(), st.integers(0, 2**32))
def test_what_has_not_ended_at_shutdown_stays_open_with_its_source(data: st.DataObject, seed: int) -> None:
    asyncio.run(none_lost(data.draw, seed))
