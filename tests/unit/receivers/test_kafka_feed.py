"""What becomes of messages one by one and together: refusals, poison, and bugs behind the border."""

from __future__ import annotations

import json
import logging
import random
from collections import deque
from collections.abc import Callable

import pytest

from collector.otlp.request import Interner
from collector.pipeline.clock import ManualClock
from collector.pipeline.receipt import Receipt
from collector.receivers.border import Border
from collector.receivers.kafka_dead import DeadLetters
from collector.receivers.kafka_feed import Feed
from collector.receivers.kafka_keys import KeyWatch
from collector.receivers.kafka_options import KafkaOptions
from collector.receivers.kafka_partition import Waiting
from collector.records.batch import Batch, Refusal
from collector.records.trace import ReleasedTrace
from collector.telemetry import metrics
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from tests.support import traces
from tests.unit.receivers.test_kafka_partition import One


class Intake:
    """Takes batches, holds receipts of their traces, refuses or raises where it is told to."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.refusal: Refusal | None = None
        self.bad: bytes | None = None

    def offer(self, batch: Batch) -> Refusal | None:
        if self.bad is not None and any(self.bad in group.trace_ids for group in batch.groups):
            raise KeyError("a bug")
        if self.refusal is None:
            self.batches.append(batch)
            for receipts in (batch.receipts or {}).values():
                for receipt in receipts:
                    receipt.hold()
        return self.refusal


class Bench:
    """A feed, and what stands around it."""

    def __init__(self) -> None:
        self.intake = Intake()
        self.telemetry = Telemetry()
        self.records: list[ReleasedTrace] = []
        self.settled: list[int] = []
        clock = ManualClock()
        events = Events(self.telemetry, clock, logging.getLogger("test.feed"))
        no_producer: Callable[[], object] = lambda: None  # noqa: E731  # no dead-letter topic: it is never called
        self.feed = Feed(
            KafkaOptions.model_validate({"brokers": "a:1", "topics": "t", "max_message_bytes": 20_000}),
            border=Border(
                transport="kafka",
                intake=self.intake,
                telemetry=self.telemetry,
                max_item_bytes=10_000,
                intern=Interner(),
            ),
            records=self.records.append,
            dead=DeadLetters(None, no_producer, errors=(), telemetry=self.telemetry, events=events),  # type: ignore[arg-type]  # see there
            keys=KeyWatch(),
            clock=clock,
            telemetry=self.telemetry,
        )

    def waiting(self, *values: bytes | None) -> deque[Waiting]:
        return deque(
            Waiting(One(offset, value=value), Receipt(lambda offset=offset: self.settled.append(offset)))
            for offset, value in enumerate(values)
        )

    def count(self, **labels: str) -> float:
        name = metrics.KAFKA_POISON.name if "reason" in labels else metrics.KAFKA_MESSAGES.name
        return self.telemetry.registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
def bench() -> Bench:
    return Bench()


def bodies(count: int) -> tuple[list[bytes], list[bytes]]:
    dice = random.Random(1)
    made = [traces.rag_trace(dice) for _ in range(count)]
    return [traces.body(spans) for spans in made], [spans[0].trace_id for spans in made]


RECORD = json.dumps({"question": "q", "contexts": ["c"], "response": "r"}).encode()


def test_requests_of_spans_are_taken_together_and_each_trace_holds_its_own_message(bench: Bench) -> None:
    sent, names = bodies(70)
    waiting = bench.waiting(*sent)
    assert bench.feed.offer(waiting) is None
    assert len(waiting) == 6
    (batch,) = bench.intake.batches
    assert batch.receipts is not None
    assert list(batch.receipts) == names[:64]
    assert bench.settled == []
    batch.receipts[names[3]][0].release()
    assert bench.settled == [3]
    assert bench.count(outcome="taken") == 64


def test_messages_of_one_trace_are_all_held_by_it(bench: Bench) -> None:
    spans = traces.rag_trace(random.Random(2))
    waiting = bench.waiting(traces.body(spans[:1]), traces.body(spans[1:]))
    bench.feed.offer(waiting)
    assert bench.intake.batches[0].receipts is not None
    receipts = bench.intake.batches[0].receipts[spans[0].trace_id]
    assert len(receipts) == 2
    for receipt in receipts:
        receipt.release()
    assert sorted(bench.settled) == [0, 1]


def test_what_stands_between_keeps_its_place(bench: Bench) -> None:
    sent, _ = bodies(3)
    waiting = bench.waiting(sent[0], RECORD, sent[1], b"{", None, sent[2])
    while waiting:
        assert bench.feed.offer(waiting) is None
    assert [len(batch.receipts or ()) for batch in bench.intake.batches] == [1, 1, 1]
    assert [one.trace_id for one in bench.records] == ["t/0/1"]
    assert bench.settled == [3, 4]
    assert bench.count(reason="unreadable") == 1
    assert bench.count(outcome="unwanted") == 1


def test_a_refusal_leaves_all_as_they_were(bench: Bench) -> None:
    sent, _ = bodies(5)
    waiting = bench.waiting(*sent)
    bench.intake.refusal = Refusal("memory_full", 2.0)
    refused = bench.feed.offer(waiting)
    assert refused is not None
    assert refused.retry_after_seconds == 2.0
    assert len(waiting) == 5
    bench.intake.refusal = None
    assert bench.feed.offer(waiting) is None
    assert not waiting
    assert bench.settled == []


def test_poison_among_good_ones_costs_itself_only(bench: Bench) -> None:
    sent, names = bodies(3)
    damaged = sent[1][:-20]
    waiting = bench.waiting(sent[0], damaged, sent[2], b"x" * 20_001)
    while waiting:
        bench.feed.offer(waiting)
    held = [name for batch in bench.intake.batches for name in batch.receipts or ()]
    assert set(held) >= {names[0], names[2]}
    assert 3 in bench.settled
    assert bench.count(reason="too_large") == 1
    assert 0 not in bench.settled
    assert 2 not in bench.settled


def test_a_message_that_provokes_an_error_is_passed_over_alone(bench: Bench) -> None:
    sent, names = bodies(5)
    bench.intake.bad = names[2]
    waiting = bench.waiting(*sent)
    while waiting:
        assert bench.feed.offer(waiting) is None
    held = [name for batch in bench.intake.batches for name in batch.receipts or ()]
    assert held == [names[0], names[1], names[3], names[4]]
    assert bench.settled == [2]
    assert bench.count(reason="error") == 1


def test_a_record_that_a_worker_can_not_read_is_told_when_that_is_found_out(bench: Bench) -> None:
    waiting = bench.waiting(RECORD)
    bench.feed.offer(waiting)
    (record,) = bench.records
    assert record.receipt is not None
    assert bench.settled == []
    record.receipt.reject("unreadable_record")
    record.receipt.release()
    assert bench.settled == [0]
    assert bench.count(reason="unreadable_record") == 1
