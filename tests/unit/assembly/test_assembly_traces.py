"""When a trace is opened, closed and handed on (architecture.md, rule 3)."""

from __future__ import annotations

import pytest

from collector.assembly.assembler import Assembler
from collector.assembly.options import Options
from collector.otlp import decode
from collector.pipeline.clock import ManualClock
from collector.records.batch import Batch, Signal
from collector.records.hints import Hints
from collector.records.trace import Release, ReleasedTrace
from collector.telemetry.instruments import Telemetry
from tests.unit.assembly.assembly_builders import (
    HINT,
    LOG_HINT,
    RESOURCE,
    Bench,
    log,
    span,
    span_id,
    spans,
    trace_id,
)

REMOTE, LOCAL = 0x300, 0x100


def ids(trace: ReleasedTrace) -> set[str]:
    return {decode.span(item).span_id for item in trace.spans}


def test_a_trace_is_released_after_root_and_quiet() -> None:
    bench = Bench()
    bench.offer(span(1, 2, 1), span(1, 3, 1, hint=HINT))
    bench.pass_time(9)
    bench.offer(span(1, 1))
    bench.pass_time(9.9)
    assert bench.released == []
    bench.pass_time(0.1)
    (trace,) = bench.released
    assert (trace.reason, trace.has_root, trace.complete) == (Release.QUIET, True, True)
    assert trace.trace_id == trace_id(1).hex()
    assert len(trace.spans) == 3
    assert trace.opened_unix_nano == 1_700_000_000_000_000_000


def test_spans_without_a_hint_are_cut_and_keep_their_place_in_the_trace() -> None:
    bench = Bench()
    bench.offer(span(1, 2, 1, flags=LOCAL, name="n" * 60), span(1, 3, 2, hint=HINT), span(1, 1, state="ot=th:8"))
    bench.pass_time(10)
    (trace,) = bench.released
    by_id = {decode.span(item).span_id: (item, decode.span(item)) for item in trace.spans}
    item, cut = by_id[span_id(2).hex()]
    assert item.cut
    assert cut.attributes == {} and cut.name == ""
    assert cut.parent_span_id == span_id(1).hex()
    assert (cut.start_unix_nano, cut.end_unix_nano, cut.flags) == (1_002, 2_002, LOCAL)
    assert cut.resource.service_name == "shop"
    assert by_id[span_id(1).hex()][0].cut
    kept, whole = by_id[span_id(3).hex()]
    assert not kept.cut
    assert whole.attributes[HINT] == "CHAIN"


def test_a_hint_that_comes_late_still_finds_the_spans_before_it() -> None:
    bench = Bench()
    for number in range(2, 40):
        bench.offer(span(1, number, number - 1), span(2, number, number - 1), span(3, number))
    bench.pass_time(5)
    bench.offer(span(1, 40, 39, hint=HINT))
    bench.offer(span(1, 1))
    bench.pass_time(10)
    (trace,) = bench.released
    assert ids(trace) == {span_id(number).hex() for number in range(1, 41)}
    parents = {decode.span(item).span_id: decode.span(item).parent_span_id for item in trace.spans}
    assert parents[span_id(17).hex()] == span_id(16).hex()


def test_a_remote_parent_makes_a_local_root() -> None:
    bench = Bench()
    bench.offer(span(1, 2, 1, hint=HINT, flags=REMOTE))
    bench.pass_time(10)
    assert bench.released[0].complete


@pytest.mark.parametrize("flags", [0, LOCAL])
def test_a_parent_that_is_not_seen_makes_a_local_root_when_a_longer_quiet_period_ended(flags: int) -> None:
    bench = Bench()
    bench.offer(span(1, 2, 1, hint=HINT, flags=flags))
    bench.pass_time(29.9)
    assert bench.released == []
    bench.pass_time(0.1)
    assert bench.released[0].complete


def test_a_slow_answer_still_meets_its_retrieval() -> None:
    bench = Bench()
    bench.offer(span(1, 2, 1, hint=HINT))
    bench.pass_time(25)
    bench.offer(span(1, 3, 1, hint=HINT), span(1, 1))
    bench.pass_time(10)
    assert len(bench.released[0].spans) == 3


def test_log_events_make_the_quiet_period_longer() -> None:
    bench = Bench()
    bench.offer(span(1, 1, hint=LOG_HINT))
    bench.pass_time(25)
    bench.offer_logs(log(1, "the answer"))
    bench.pass_time(29.9)
    assert bench.released == []
    bench.pass_time(0.1)
    (trace,) = bench.released
    assert trace.complete
    assert decode.log_record(trace.logs[0]).body == "the answer"


def test_log_records_may_come_first() -> None:
    bench = Bench()
    bench.offer_logs(log(1, "question"), log(1, "answer"))
    bench.pass_time(4)
    bench.offer(span(1, 1, hint=LOG_HINT))
    bench.pass_time(30)
    (trace,) = bench.released
    assert (len(trace.logs), len(trace.spans), trace.complete) == (2, 1, True)


def test_log_records_alone_are_no_complete_trace() -> None:
    bench = Bench()
    bench.offer_logs(log(1, "question"))
    bench.pass_time(30)
    (trace,) = bench.released
    assert not trace.complete


def test_log_records_without_trace_or_hint_are_unrelated_and_those_that_repeat_duplicates() -> None:
    bench = Bench()
    bench.offer_logs(log(0, "no trace"), log(1, "x", key="http.route"), log(1, "a"), log(1, "a"), log(1, "b"))
    outcomes = {outcome: bench.outcome(outcome, Signal.LOGS) for outcome in ("unrelated", "held", "duplicate")}
    assert outcomes == {"unrelated": 2, "held": 2, "duplicate": 1}
    assert bench.assembler.open_traces == 1


def test_the_deadline_closes_a_trace_that_never_rests() -> None:
    bench = Bench()
    for number in range(1, 121):
        bench.offer(span(1, number, hint=HINT if number % 2 else ""))
        bench.pass_time(5)
    assert [trace.reason for trace in bench.released] == [Release.DEADLINE]
    assert bench.released[0].complete
    bench.offer(span(1, 500, hint=HINT))
    assert bench.outcome("late") == 1


def test_at_the_deadline_a_missing_parent_is_no_local_root() -> None:
    bench = Bench()
    for number in range(2, 122):
        bench.offer(span(1, number, 1, hint=HINT))
        bench.pass_time(5)
    assert [(trace.reason, trace.complete) for trace in bench.released] == [(Release.DEADLINE, False)]


@pytest.mark.parametrize("hint", ["", HINT])
def test_a_closed_trace_is_not_opened_again(hint: str) -> None:
    bench = Bench()
    bench.offer(span(1, 1, hint=hint))
    bench.pass_time(31)
    assert bench.assembler.open_traces == 0
    bench.offer(span(1, 2, 1, hint=HINT), span(1, 1, hint=hint), span(2, 9))
    assert bench.outcome("late") == 2
    bench.offer_logs(log(1, "too late"))
    assert bench.outcome("late", Signal.LOGS) == 1
    assert bench.assembler.open_traces == 1


def test_tombstones_are_bounded_in_number_and_time() -> None:
    bench = Bench(tombstones=40, dedup_window_seconds=1000)
    for number in range(1, 101):
        bench.offer(span(number, 1, hint=HINT if number % 2 else ""))
    bench.pass_time(31)
    for number in range(1, 101):
        bench.offer(span(number, 2))
    assert 10 <= bench.outcome("late") < 60
    fresh = Bench(dedup_window_seconds=100)
    fresh.offer(span(1, 1, hint=HINT), span(2, 1))
    fresh.pass_time(31)
    fresh.pass_time(100)
    fresh.pass_time(100)
    fresh.offer(span(1, 2), span(2, 2))
    assert fresh.outcome("late") == 0


def test_duplicates_are_told_by_trace_and_span_id() -> None:
    bench = Bench()
    bench.offer(span(1, 1), span(1, 1), span(2, 1), span(3, 1, hint=HINT))
    assert (bench.outcome("held"), bench.outcome("duplicate")) == (3, 1)
    bench.offer(span(1, 1), span(1, 2), span(2, 1), span(3, 1, hint=HINT))
    assert (bench.outcome("held"), bench.outcome("duplicate")) == (4, 4)
    bench.pass_time(10)
    assert len(bench.released[0].spans) == 1


def test_a_repeat_is_no_news() -> None:
    bench = Bench()
    bench.offer(span(1, 1, hint=HINT))
    bench.pass_time(6)
    bench.offer(span(1, 1, hint=HINT))
    bench.pass_time(4)
    assert len(bench.released) == 1


def test_of_two_copies_of_a_span_the_one_with_content_is_kept() -> None:
    bench = Bench()
    bench.offer(span(1, 2, 1, hint=HINT), span(1, 1))
    bench.offer(span(1, 1, hint=HINT))
    assert bench.outcome("duplicate") == 1
    bench.pass_time(10)
    assert not any(item.cut for item in bench.released[0].spans)


def test_traces_without_a_hint_are_dropped_and_counted() -> None:
    bench = Bench()
    bench.offer(span(1, 1), span(1, 2, 1), span(2, 1))
    bench.pass_time(20)
    bench.offer(span(2, 2, 1))
    bench.pass_time(10)
    assert bench.released_for(Release.NO_HINT) == 1
    bench.pass_time(20)
    assert bench.released_for(Release.NO_HINT) == 2
    assert bench.released == []


def test_a_trace_that_goes_on_for_long_without_a_hint_is_closed_at_the_deadline() -> None:
    bench = Bench()
    for number in range(1, 130):
        bench.offer(span(1, number), span(1000 + number, 1))
        bench.pass_time(5)
    assert bench.outcome("late") > 0
    assert bench.released == []


def test_own_evaluation_traffic_is_refused() -> None:
    bench = Bench()
    bench.offer(
        span(1, 1, hint="groundwatch.evaluation"),
        span(1, 2, hint=HINT, text="[groundwatch-evaluation] judge this"),
        span(1, 3, hint=HINT),
    )
    bench.offer_logs(log(1, "[groundwatch-evaluation] judge this"))
    assert bench.outcome("own_evaluation") == 2
    assert bench.outcome("own_evaluation", Signal.LOGS) == 1
    bench.pass_time(31)
    assert [len(trace.spans) for trace in bench.released] == [1]


def test_a_span_that_can_not_be_read_costs_only_itself() -> None:
    bench = Bench()
    broken = span(1, 7)[:31]
    bench.take(Batch(Signal.TRACES, []))
    batch = spans([span(1, 1, hint=HINT), span(1, 2, 1)])
    group = batch.groups[0]
    group.items.insert(1, broken)
    group.trace_ids.insert(1, trace_id(1))
    group.span_ids.insert(1, span_id(7))
    bench.take(batch)
    assert (bench.outcome("malformed"), bench.outcome("held")) == (1, 2)
    bench.pass_time(10)
    assert ids(bench.released[0]) == {span_id(1).hex(), span_id(2).hex()}


def test_a_drain_refuses_waits_and_then_gives_up_the_rest() -> None:
    bench = Bench()
    bench.offer(span(1, 1, hint=HINT), span(2, 1))
    bench.pass_time(5)
    bench.offer(span(3, 1, hint=HINT))
    bench.assembler.begin_drain()
    refusal = bench.assembler.offer(Batch(Signal.TRACES, []))
    assert refusal is not None and refusal.reason == "shutting_down"
    assert bench.assembler.waiting_traces == 2
    bench.pass_time(5)
    assert [trace.reason for trace in bench.released] == [Release.QUIET]
    assert bench.assembler.drain() == 1
    bench.check()
    assert bench.released[1].reason is Release.DRAIN and not bench.released[1].complete
    assert bench.assembler.open_traces == 0
    assert bench.assembler.drain() == 0


def test_why_can_be_answered_for_every_state() -> None:
    bench = Bench()
    bench.offer(span(1, 1, hint=HINT), span(2, 1))
    explain = bench.assembler.explain
    assert "a hint was seen" in (explain(trace_id(1).hex()) or "")
    assert "no hint seen" in (explain(trace_id(2).hex()) or "")
    assert explain(trace_id(3).hex()) is None
    bench.pass_time(31)
    assert "late" in (explain(trace_id(1).hex()) or "")
    assert "without a hint" in (explain(trace_id(2).hex()) or "")
    assert [(name, stage) for name, stage, _ in bench.notes.said] == [(trace_id(1).hex(), "assembly")]


def test_no_hints_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="no hints"):
        Assembler(Options(), hints=Hints(()), clock=ManualClock(), telemetry=Telemetry(), downstream=[].append)


def test_each_span_keeps_the_resource_and_scope_that_it_came_under() -> None:
    """Several groups in one request, some of whose spans go: a broken one, one of ours."""
    bench = Bench()
    groups = []
    for number, name in enumerate((b"\n\x01a", b"\n\x01b", b"\n\x01c")):
        first, second = number * 10 + 1, number * 10 + 2
        items = [span(1, first, hint=HINT), span(1, second, first)]
        (group,) = spans(items, resource=RESOURCE + bytes([0x10, number])).groups
        group.scope = name
        groups.append(group)
    groups[0].items[1] = groups[0].items[1][:31]
    own = spans([span(1, 90, hint=HINT)], resource=RESOURCE + b"groundwatch.evaluation").groups[0]
    bench.take(Batch(Signal.TRACES, [groups[0], own, groups[1], groups[2]]))
    bench.offer(span(2, 1))
    assert (bench.outcome("malformed"), bench.outcome("own_evaluation"), bench.outcome("held")) == (1, 1, 6)
    bench.pass_time(10)
    came_under = {decode.span(item).span_id: (item.resource[-1], item.scope) for item in bench.released[0].spans}
    assert came_under == {
        span_id(1).hex(): (0, b"\n\x01a"),
        span_id(11).hex(): (1, b"\n\x01b"),
        span_id(12).hex(): (1, b""),
        span_id(21).hex(): (2, b"\n\x01c"),
        span_id(22).hex(): (2, b""),
    }


def test_cold_spans_keep_their_resource_too() -> None:
    bench = Bench()
    groups = [
        spans([span(1, number, 50)], resource=RESOURCE + bytes([0x10, number])).groups[0] for number in (1, 2, 3)
    ]
    bench.take(Batch(Signal.TRACES, groups))
    bench.offer(span(1, 50, hint=HINT))
    bench.pass_time(10)
    came_under = {item.resource[-1] for item in bench.released[0].spans if item.cut}
    assert came_under == {1, 2, 3}


def test_what_is_known_of_a_trace_is_told_at_each_of_its_times() -> None:
    bench = Bench()

    def told(number: int) -> str | None:
        return bench.assembler.explain(trace_id(number).hex())

    bench.offer(span(1, 1), span(2, 2, 1, hint=HINT))
    bench.pass_time(3)
    assert told(1) == "open for 3 s, no hint seen"
    assert told(2) == "open for 3 s with 1 spans and 0 log records, a hint was seen, no local root yet"
    bench.pass_time(60)
    assert told(1) == "closed without a hint: no span held anything that a configured convention reads"
    assert told(2) == "closed; later spans of it are counted late"
    assert told(3) is None


@pytest.mark.parametrize("name", ["no hex", "0af", "", "topic/0/7", "٣٣"])
def test_what_is_no_trace_id_is_not_known(name: str) -> None:
    assert Bench().assembler.explain(name) is None
