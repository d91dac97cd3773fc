"""Whatever the order, the split into requests and the repeats, the released traces are the same."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.records.trace import Release
from tests.unit.assembly.assembly_builders import CONTENT_HINT, HINT, LOG_HINT, Bench, log, span

Item = tuple[str, bytes]
Outcome = dict[str, tuple[frozenset[bytes], frozenset[bytes], bool, str]]


@st.composite
def traffic(draw: st.DrawFn) -> list[Item]:
    """Spans and log records of a few traces, ids shared between the traces."""
    items: list[Item] = []
    for trace in range(1, draw(st.integers(1, 4)) + 1):
        size = draw(st.integers(1, 12))
        root = draw(st.booleans())
        for number in range(1, size + 1):
            parent = 0 if number == 1 and root else draw(st.integers(1, 14))
            hint = draw(st.sampled_from(("", "", HINT, LOG_HINT, CONTENT_HINT)))
            flags = draw(st.sampled_from((0, 0, 0x100, 0x300)))
            name = draw(st.sampled_from(("work", "a name that is longer than fits into the window " * 3)))
            items.append(("span", span(trace, number, parent, hint=hint, flags=flags, name=name)))
        items += [("log", log(trace, f"record {number}")) for number in range(draw(st.integers(0, 2)))]
    return items


def run(items: Sequence[Item], sizes: Sequence[int], pauses: Sequence[float]) -> tuple[Outcome, Bench]:
    bench = Bench()
    at = step = 0
    while at < len(items):
        part = items[at : at + sizes[step % len(sizes)]]
        bench.offer(*(data for kind, data in part if kind == "span"))
        bench.offer_logs(*(data for kind, data in part if kind == "log"))
        bench.pass_time(pauses[step % len(pauses)])
        at += len(part)
        step += 1
    while bench.assembler.open_traces:
        bench.pass_time(5)
    outcome: Outcome = {
        trace.trace_id: (
            frozenset(item.data for item in trace.spans),
            frozenset(item.data for item in trace.logs),
            trace.complete,
            trace.reason,
        )
        for trace in bench.released
    }
    assert len(outcome) == len(bench.released)
    return outcome, bench


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_order_split_and_duplication_gives_the_same_traces(data: st.DataObject) -> None:
    items = data.draw(traffic())
    whole, first = run(items, [len(items)], [0])
    shuffled = data.draw(st.permutations(items))
    repeats = data.draw(st.lists(st.sampled_from(shuffled), max_size=10))
    mixed = list(shuffled)
    for repeat in repeats:
        mixed.insert(data.draw(st.integers(0, len(mixed))), repeat)
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    # No pause is as long as a quiet period, and all of them together are shorter than the shortest.
    pauses = [
        pause * 9 / (len(mixed) * 2) for pause in data.draw(st.lists(st.floats(0, 2), min_size=1, max_size=3))
    ]
    pieces, second = run(mixed, sizes, pauses)
    assert pieces == whole
    spans = sum(kind == "span" for kind, _ in items)
    assert first.outcome("held") == second.outcome("held") == spans
    assert second.outcome("duplicate") == sum(kind == "span" for kind, _ in repeats)
    assert first.released_for(Release.NO_HINT) == second.released_for(Release.NO_HINT)
    assert second.outcome("late") == 0


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_conservation_holds_at_every_instant(data: st.DataObject) -> None:
    """`Bench` checks the laws after every step; here time passes at will, and a drain ends it."""
    items = data.draw(traffic())
    bench = Bench(
        max_trace_spans=data.draw(st.integers(1, 20)),
        max_trace_bytes=data.draw(st.sampled_from((3_000, 1_000_000))),
        tombstones=data.draw(st.sampled_from((4, 1000))),
        deadline_seconds=data.draw(st.sampled_from((12, 600))),
    )
    for _ in range(data.draw(st.integers(1, 12))):
        part = data.draw(st.lists(st.sampled_from(items), max_size=8))
        bench.offer(*(data for kind, data in part if kind == "span"))
        bench.offer_logs(*(data for kind, data in part if kind == "log"))
        bench.pass_time(data.draw(st.sampled_from((0, 1, 6, 11, 31))))
    bench.assembler.drain()
    bench.check()
    assert bench.assembler.open_traces == 0
    assert bench.assembler.held_bytes == 0
