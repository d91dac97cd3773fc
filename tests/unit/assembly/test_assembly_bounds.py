"""Caps, eviction, refusal, and what open traces really weigh."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable

import pytest
from pydantic import ValidationError

from collector.assembly.options import Options
from collector.records.batch import Batch, Group
from collector.records.trace import Release
from tests.unit.assembly.assembly_builders import CONTENT_HINT, HINT, Bench, log, span, spans, trace_id

MIB = 1024 * 1024


def test_spans_over_the_byte_cap_are_cut_and_make_the_trace_incomplete() -> None:
    bench = Bench(max_trace_bytes=50_000)
    bench.offer(*(span(1, number, hint=HINT, text="x" * 10_000) for number in range(1, 9)))
    bench.offer_logs(log(1, "y" * 10_000))
    bench.pass_time(31)
    (trace,) = bench.released
    assert len(trace.spans) == 8
    assert sum(not item.cut for item in trace.spans) == 4
    assert (trace.dropped_spans, bench.trimmed(), trace.complete) == (5, 5, False)
    assert (bench.outcome("held"), trace.logs) == (8, ())


def test_spans_over_the_number_cap_are_thrown_away() -> None:
    bench = Bench(max_trace_spans=10)
    bench.offer(*(span(1, number) for number in range(1, 8)))
    bench.offer(*(span(1, number, hint=HINT) for number in range(8, 13)), *(span(1, n) for n in range(13, 16)))
    bench.pass_time(10)
    (trace,) = bench.released
    assert (len(trace.spans), trace.dropped_spans, trace.complete) == (10, 5, False)


def big(trace: int, number: int, *, hint: str = HINT) -> bytes:
    return span(trace, number, hint=hint, text="x" * 100_000)


def test_eviction_takes_traces_without_a_hint_and_then_the_oldest() -> None:
    bench = Bench(max_bytes=2 * MIB, max_trace_bytes=MIB, memory_factor=1, evict_after_seconds=0)
    bench.offer(big(1, 1))
    bench.pass_time(1)
    bench.offer(big(2, 1))
    for number in range(60):  # a long trace without a hint, and a short one
        bench.offer(span(50, number + 1))
    bench.offer(span(51, 1))
    name = 10
    while len(bench.released) < 2:
        bench.pass_time(0.1)
        bench.offer(big(name, 1))
        name += 1
        assert bench.assembler.open_traces == name - 10 + 4 - bench.released_for(Release.EVICTED_MEMORY)
    assert [trace.trace_id for trace in bench.released] == [trace_id(1).hex(), trace_id(2).hex()]
    assert bench.released_for(Release.EVICTED_MEMORY) == 4
    assert not any(trace.complete for trace in bench.released)


def test_an_oversize_trace_is_evicted_first() -> None:
    bench = Bench(max_bytes=2 * MIB, max_trace_bytes=500_000, memory_factor=1, evict_after_seconds=0)
    bench.offer(big(1, 1))
    bench.offer(*(big(2, number) for number in range(1, 8)))
    name = 10
    while not bench.released:
        bench.offer(big(name, 1))
        name += 1
    assert [(t.trace_id, t.reason) for t in bench.released] == [(trace_id(2).hex(), Release.EVICTED_OVERSIZE)]


def test_young_traces_are_protected_and_requests_refused_instead() -> None:
    bench = Bench(max_bytes=MIB, max_trace_bytes=500_000, memory_factor=1)
    name, refusal = 1, None
    while refusal is None:
        refusal = bench.assembler.offer(spans([big(name, 1)]))
        name += 1
    assert refusal.reason == "memory_full"
    assert 1 <= refusal.retry_after_seconds <= 30
    assert bench.released == []
    bench.clock.advance(refusal.retry_after_seconds + 1)
    bench.assembler.tick()
    assert bench.assembler.offer(spans([big(name, 1)])) is None


def test_a_flood_without_hints_evicts_its_own_kind() -> None:
    bench = Bench(max_bytes=2 * MIB, max_trace_bytes=MIB, memory_factor=1)
    bench.offer(span(1, 1, hint=HINT))
    for first in range(1000, 30_000, 500):
        bench.offer(*(span(first + number, 1) for number in range(500)))
        assert bench.assembler.held_bytes <= 2 * MIB
    assert bench.released_for(Release.EVICTED_MEMORY) > 10_000
    bench.pass_time(10)
    assert [trace.complete for trace in bench.released] == [True]


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValidationError, match="max_trace_bytes"):
        Options(max_bytes=MIB, max_trace_bytes=2 * MIB)
    with pytest.raises(ValidationError, match="deadline_seconds"):
        Options(deadline_seconds=5)


def _web(rng: random.Random, request: int) -> list[bytes]:
    return [
        span(rng.getrandbits(120), rng.getrandbits(60) + 1, rng.getrandbits(60) + 1, text="p" * 400)
        if request % 3 == 0
        else span(1_000_000 + request * 64 + number // 7, rng.getrandbits(60) + 1, 5, text="p" * 400)
        for number in range(448)
    ]


def _rag(rng: random.Random, request: int) -> list[bytes]:
    return [
        span(
            request * 100 + number // 7,
            rng.getrandbits(60) + 1,
            rng.getrandbits(60) + 1,
            hint=HINT if number % 3 else "",
            text="p" * rng.choice((200, 1000, 5000)),
        )
        for number in range(140)
    ]


def _sessions(rng: random.Random, request: int) -> list[bytes]:
    """Ordinary traces, a third of whose spans tell a session."""
    return [
        span(
            request * 100 + number // 7,
            rng.getrandbits(60) + 1,
            5,
            hint=CONTENT_HINT if number % 3 == 0 else "",
            text="p" * 400,
        )
        for number in range(448)
    ]


@pytest.mark.parametrize("traffic", [_web, _sessions, _rag])
def test_what_is_counted_is_what_it_weighs(traffic: Callable[[random.Random, int], list[bytes]]) -> None:
    """The cost model against the allocator, within 20 %; and the aim of 1.5 times the wire bytes."""
    bench = Bench(memory_factor=1)
    rng = random.Random(3)
    bench.take(spans(traffic(rng, 10_000)))  # so that what is made once is not counted
    held = bench.assembler.held_bytes
    batches: list[Batch] = [spans(traffic(rng, request)) for request in range(12)]
    wire = sum(len(item) for batch in batches for group in batch.groups for item in group.items)
    copies = []
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for batch in batches:
        batch.groups = [  # as a receiver makes them: objects of their own
            Group.with_ids_inside(group.resource, group.scope, [bytes(bytearray(each)) for each in group.items])
            for group in batch.groups
        ]
        bench.assembler.offer(batch)
        batch.groups.clear()
        copies.append(batch)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    counted = bench.assembler.held_bytes - held
    assert counted == pytest.approx(grown, rel=0.2)
    assert grown < 1.5 * wire
