"""Deliveries that became another replica's: nothing of them is handed on or counted, and they may come again."""

from __future__ import annotations

import random

import pytest

from collector.pipeline.receipt import Receipt
from collector.sampling.options import Options as SamplingOptions
from collector.telemetry import metrics
from collector.telemetry.spec import MetricSpec
from tests.support import traces
from tests.support.line import Handle, Line, handler

QUIET = 11.0
ALL = SamplingOptions(rate=1.0)


@pytest.fixture(scope="module")
def handle() -> Handle:
    return handler()


def give(line: Line, spans: list[traces.Span]) -> Receipt:
    """One delivery of these spans."""
    receipt = Receipt(lambda: None)
    line.take(traces.body(spans), receipt)
    return receipt


def drop(line: Line) -> None:
    """As the composition root does it."""
    line.assembler.drop_lost()
    line.judging.drop_lost()


def count(line: Line, spec: MetricSpec, **labels: str) -> float:
    value = line.telemetry.registry.get_sample_value(spec.name, labels)
    assert value is not None, (spec.name, labels)
    return value


async def test_an_open_trace_is_forgotten_and_may_come_again(handle: Handle) -> None:
    line = Line(handle)
    await line.screening.start()
    dice = random.Random(1)
    lost, kept = traces.rag_trace(dice), traces.rag_trace(dice)
    receipt = give(line, lost)
    other = give(line, kept)
    receipt.lose()
    drop(line)
    assert not receipt.open
    assert line.assembler.hinted[0] == 1
    assert count(line, metrics.TRACES_RELEASED, reason="moved") == 1
    assert count(line, metrics.TRACES_OPENED) == line.assembler.open_traces + 1
    again = give(line, lost)
    await line.pass_time(QUIET)
    assert len(line.settled) == 2
    assert not again.open
    assert not other.open
    await line.screening.stop(0)


async def test_a_trace_of_two_deliveries_is_lost_with_one_of_them(handle: Handle) -> None:
    line = Line(handle)
    await line.screening.start()
    spans = traces.rag_trace(random.Random(2))
    first, second = give(line, spans[:1]), give(line, spans[1:])
    second.lose()
    drop(line)
    assert not first.open
    await line.pass_time(QUIET)
    assert line.settled == []
    await line.screening.stop(0)


async def test_a_trace_that_was_handed_on_leaves_no_tombstone_when_it_is_lost(handle: Handle) -> None:
    """Else its messages, when they come again, would be late spans, settled without an outcome."""
    line = Line(handle)
    spans = traces.rag_trace(random.Random(3))
    receipt = give(line, spans)
    await line.pass_time(QUIET)  # released; screening has not been started
    assert line.screening.waiting == 1
    receipt.lose()
    drop(line)
    await line.screening.start()
    await line.turn()
    assert line.settled == []
    assert count(line, metrics.INTERACTIONS_FOUND) == 0
    assert not receipt.open
    again = give(line, spans)
    await line.pass_time(QUIET)
    assert len(line.settled) == 1
    assert count(line, metrics.ITEMS, signal="traces", outcome="late") == 0
    assert not again.open
    await line.screening.stop(0)


async def test_a_job_that_waits_for_the_judge_ends_without_a_result(handle: Handle) -> None:
    line = Line(handle, sampling=ALL, mood=lambda _: "hangs")
    await line.screening.start()
    dice = random.Random(4)
    receipts = [give(line, traces.rag_trace(dice)) for _ in range(20)]
    await line.pass_time(QUIET)
    waiting = line.judging.waiting
    assert waiting == 20
    for receipt in receipts:
        receipt.lose()
    drop(line)
    running = line.judging.waiting
    assert running < waiting
    moved = count(line, metrics.JUDGING_RESULTS, metric="faithfulness", outcome="moved", reason="none")
    assert moved == waiting - running
    assert line.settled == []
    await line.judging.drain(0)
    await line.screening.stop(0)


async def test_a_judge_that_answers_too_late_settles_nothing(handle: Handle) -> None:
    line = Line(handle, sampling=ALL, mood=lambda _: "hangs")
    await line.screening.start()
    receipt = give(line, traces.rag_trace(random.Random(5)))
    await line.pass_time(QUIET)
    assert line.judging.waiting == 1
    receipt.lose()
    drop(line)
    assert line.judging.waiting == 1  # it is being judged
    await line.pass_time(200)  # over its deadline
    assert line.judging.waiting == 0
    assert line.settled == []
    assert count(line, metrics.INTERACTIONS_MOVED) == 1
    assert not receipt.open
    await line.screening.stop(0)


@pytest.mark.parametrize("lost", [False, True], ids=["ours", "lost"])
async def test_what_ends_in_doubt_is_counted_when_it_is_ours_and_dropped_when_it_is_not(
    handle: Handle, lost: bool
) -> None:
    line = Line(handle, sampling=ALL)
    await line.screening.start()
    receipt = give(line, traces.rag_trace(random.Random(6)))
    other = give(line, traces.rag_trace(random.Random(7)))
    receipt.doubt(True)
    await line.pass_time(QUIET)
    assert line.judging.waiting == 0
    assert len(line.settled) == 1  # the other one
    assert not other.open
    line.flow.decided()  # about others
    assert receipt.open
    if lost:
        receipt.lose()
    receipt.doubt(False)
    line.flow.decided()
    assert len(line.settled) == 2 - lost
    assert count(line, metrics.INTERACTIONS_MOVED) == lost
    assert not receipt.open
    await line.screening.stop(0)
