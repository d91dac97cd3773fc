"""Dead letters with a producer that writes, fails or hangs."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable

import pytest

from collector.pipeline.clock import ManualClock
from collector.pipeline.receipt import Receipt
from collector.receivers.kafka_dead import DeadLetters
from collector.receivers.kafka_options import DeadLetterOptions
from collector.telemetry import metrics
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from tests.unit.receivers.test_kafka_partition import One


class Refused(Exception):
    """What a producer raises."""


class Producer:
    """Keeps what is written; `fails` says when it does not."""

    def __init__(self, fails: Callable[[], bool] = lambda: False, *, no_start: bool = False) -> None:
        self.written: list[tuple[str, bytes]] = []
        self.started = self.stopped = 0
        self.go = asyncio.Event()
        self.go.set()
        self._fails = fails
        self._no_start = no_start

    async def start(self) -> None:
        self.started += 1
        if self._no_start:
            raise Refused

    async def send_and_wait(self, topic: str, value: bytes, /) -> None:
        await self.go.wait()
        if self._fails():
            raise Refused
        self.written.append((topic, value))

    async def stop(self) -> None:
        self.stopped += 1


class Letters:
    """Dead letters and what came of them."""

    def __init__(self, producer: Producer, *, payload: bool = False) -> None:
        self.telemetry = Telemetry()
        self.settled: list[int] = []
        self.dead = DeadLetters(
            DeadLetterOptions(topic="dead", payload=payload),
            lambda: producer,
            errors=(Refused,),
            telemetry=self.telemetry,
            events=Events(self.telemetry, ManualClock(), logging.getLogger("test.dead")),
        )

    def tell(self, offset: int, value: bytes = b"x") -> None:
        receipt = Receipt(lambda: self.settled.append(offset))
        self.dead.tell(One(offset, value=value), "unreadable", receipt)
        receipt.release()

    def count(self, outcome: str) -> float:
        return (
            self.telemetry.registry.get_sample_value(metrics.KAFKA_DEAD_LETTERS.name, {"outcome": outcome}) or 0.0
        )


async def test_a_message_is_settled_when_its_letter_is_written() -> None:
    producer = Producer()
    letters = Letters(producer)
    producer.go.clear()
    letters.tell(3)
    await asyncio.sleep(0)
    assert letters.settled == []
    producer.go.set()
    await letters.dead.close(5)
    assert letters.settled == [3]
    ((topic, value),) = producer.written
    told = json.loads(value)
    assert (topic, told["offset"], told["reason"], told["bytes"]) == ("dead", 3, "unreadable", 1)
    assert (producer.started, producer.stopped) == (1, 1)


@pytest.mark.parametrize("no_start", [True, False])
async def test_a_letter_that_can_not_be_written_is_counted_and_settles_all_the_same(no_start: bool) -> None:
    producer = Producer(lambda: True, no_start=no_start)
    letters = Letters(producer)
    letters.tell(1)
    letters.tell(2)
    await letters.dead.close(5)
    assert letters.settled == [1, 2]
    assert letters.count("failed") == 2
    assert producer.started == producer.stopped


async def test_more_letters_than_may_wait_are_counted_as_failed_at_once() -> None:
    producer = Producer()
    producer.go.clear()
    letters = Letters(producer)
    for offset in range(1_010):
        letters.tell(offset)
    assert letters.count("failed") == 10
    assert letters.settled == list(range(1_000, 1_010))
    producer.go.set()
    await letters.dead.close(5)
    assert len(letters.settled) == 1_010
    assert letters.count("written") == 1_000


async def test_payloads_that_wait_are_bounded_in_bytes() -> None:
    producer = Producer()
    producer.go.clear()
    letters = Letters(producer, payload=True)
    for offset in range(5):
        letters.tell(offset, b"x" * 10_000_000)
    assert 1 <= letters.count("failed") <= 4
    producer.go.set()
    await letters.dead.close(5)
    assert sorted(letters.settled) == [0, 1, 2, 3, 4]


async def test_closing_does_not_wait_for_ever_and_settles_nothing_that_was_not_told() -> None:
    producer = Producer()
    producer.go.clear()
    letters = Letters(producer)
    letters.tell(1)
    await letters.dead.close(0.01)
    assert producer.stopped == 1
    assert letters.count("written") == 0
    assert letters.settled == []
