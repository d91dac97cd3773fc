"""Spans that are of use only in a trace that is wanted: kept while it may come to be, and never the reason for it."""

from __future__ import annotations

import pytest

from collector.records.trace import Release, ReleasedTrace
from tests.unit.assembly.assembly_builders import CONTENT_HINT, HINT, Bench, log, span


def whole(trace: ReleasedTrace) -> set[bytes]:
    return {item.data for item in trace.spans if not item.cut}


SESSION = span(1, 2, 1, hint=CONTENT_HINT)
WANTED = span(1, 3, 1, hint=HINT)
ROOT = span(1, 1)


def test_a_trace_of_nothing_else_is_dropped() -> None:
    bench = Bench()
    bench.offer(ROOT, SESSION)
    assert bench.assembler.waiting_traces == 0
    bench.pass_time(40)
    assert bench.released == []
    assert bench.released_for(Release.NO_HINT) == 1
    assert bench.assembler.held_bytes == 0


@pytest.mark.parametrize(
    "requests",
    [
        [(SESSION,), (WANTED, ROOT)],
        [(WANTED,), (ROOT, SESSION)],
        [(ROOT, WANTED, SESSION)],
        [(SESSION, ROOT), (WANTED,)],
        [(SESSION,), (ROOT,), (WANTED,)],
    ],
)
def test_in_a_wanted_trace_it_is_kept_in_whatever_order_it_came(requests: list[tuple[bytes, ...]]) -> None:
    bench = Bench()
    for items in requests:
        bench.offer(*items)
        bench.pass_time(1)
    bench.pass_time(40)
    (trace,) = bench.released
    assert whole(trace) == {SESSION, WANTED}
    assert len(trace.spans) == 3 and trace.complete
    assert bench.assembler.held_bytes == 0


def test_a_repeat_that_alone_tells_something_is_kept() -> None:
    """Libraries that export a span at its start and at its end; the second copy is alone in its request."""
    bench = Bench()
    bench.offer(ROOT, span(1, 2, 1))
    bench.offer(SESSION)
    bench.offer(WANTED)
    assert bench.outcome("duplicate") == 1
    bench.pass_time(40)
    assert whole(bench.released[0]) == {SESSION, WANTED}
    assert len(bench.released[0].spans) == 3


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_fuller_of_two_copies_is_kept_and_makes_the_trace_wanted(order: tuple[int, int]) -> None:
    copies = (SESSION, span(1, 2, 1, hint=HINT, text="the end of it " * 20))
    bench = Bench()
    for index in order:
        bench.offer(copies[index])
    bench.offer(ROOT)
    bench.pass_time(40)
    assert whole(bench.released[0]) == {copies[1]}


def test_a_trace_in_many_requests_keeps_them_too() -> None:
    bench = Bench()
    sessions = [span(1, number, 1, hint=CONTENT_HINT) for number in range(2, 30)]
    for item in sessions:
        bench.offer(item)
    assert bench.assembler.waiting_traces == 0
    bench.offer(WANTED.replace(b"\x12\x08" + bytes(7) + b"\x03", b"\x12\x08" + bytes(7) + b"\x7f"))
    bench.pass_time(40)
    assert whole(bench.released[0]) >= set(sessions)


def test_what_is_taken_out_is_counted_out() -> None:
    """The bytes of kept spans go with their trace; those of the traces beside it stay."""
    bench = Bench(memory_factor=1)
    bench.offer(*(span(trace, 2, 1, hint=CONTENT_HINT, text="x" * 5_000) for trace in range(1, 5)))
    before = bench.assembler.held_bytes
    assert before > 20_000
    bench.offer(span(1, 3, 1, hint=HINT))
    assert bench.assembler.held_bytes == pytest.approx(before, abs=3_000)
    bench.assembler.drain()
    assert bench.assembler.held_bytes == 0


def test_log_records_of_no_use_by_themselves_are_not_kept() -> None:
    bench = Bench()
    bench.offer(ROOT, WANTED)
    bench.offer_logs(log(1, "something else", key=CONTENT_HINT), log(1, "content"))
    bench.pass_time(60)
    assert len(bench.released[0].logs) == 1
