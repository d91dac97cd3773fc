"""Messages that can not be read: counted, logged by their coordinates, and told to a topic where one is configured."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from collector.pipeline.kafka_client import KafkaUnusable
from collector.pipeline.receipt import Receipt
from collector.receivers.kafka_options import DeadLetterOptions
from collector.receivers.kafka_partition import Message
from collector.telemetry import metrics
from collector.telemetry.events import Count, Event, Events, Level
from collector.telemetry.instruments import Telemetry

SCHEMA = "groundwatch.dead_letter.v1"
_MOST_LETTERS = 1_000
_MOST_BYTES = 32 * 1024 * 1024
_SECONDS = 30.0


class Producer(Protocol):
    """What is used of aiokafka's producer."""

    async def start(self) -> None: ...

    async def send_and_wait(self, topic: str, value: bytes, /) -> object: ...

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Letter:
    value: bytes
    receipt: Receipt


class DeadLetters:
    """Takes messages that can not be read. Never waits: letters are written in the background, and the message is not
    settled before its letter is written, or has failed to be within half a minute."""

    def __init__(
        self,
        options: DeadLetterOptions | None,
        connect: Callable[[], Producer],
        *,
        errors: tuple[type[Exception], ...],
        telemetry: Telemetry,
        events: Events,
    ) -> None:
        """`connect` makes a producer, which is not started; `errors` are what it raises when it can not write."""
        self._options = options
        self._connect = connect
        self._errors: tuple[type[Exception], ...] = (*errors, KafkaUnusable, TimeoutError, OSError)
        self._telemetry = telemetry
        self._events = events
        self._letters: deque[_Letter] = deque()
        self._bytes = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def with_payload(self) -> bool:
        return self._options is not None and self._options.payload

    def tell(self, message: Message, reason: str, receipt: Receipt, error: Exception | None = None) -> None:
        """Count and log one message, and write its letter; `receipt` is held until that is done."""
        place: dict[str, str | int] = {
            "topic": message.topic,
            "partition": message.partition,
            "offset": message.offset,
            "reason": reason,
        }
        if message.value is not None:
            place["bytes"] = len(message.value)
        self._events.tell(
            Event(
                f"kafka_poison_{reason}",
                Level.WARNING,
                "a message can not be read and is passed over",
                place,
                Count(metrics.KAFKA_POISON, {"reason": reason}),
            ),
            error,
        )
        if self._options is None:
            return
        letter: dict[str, object] = {"schema": SCHEMA, **place, "timestamp_ms": message.timestamp}
        if self._options.payload:
            letter["payload_base64"] = base64.b64encode(message.value or b"").decode()
        value = json.dumps(letter).encode()
        if len(self._letters) >= _MOST_LETTERS or (self._letters and self._bytes + len(value) > _MOST_BYTES):
            self._failed(None)
            return
        receipt.hold()
        self._letters.append(_Letter(value, receipt))
        self._bytes += len(value)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write(self._options.topic), name="dead letters")

    async def _write(self, topic: str) -> None:
        """Write what waits, then end."""
        producer: Producer | None = None
        try:
            while self._letters:
                letter = self._letters.popleft()
                self._bytes -= len(letter.value)
                try:
                    async with asyncio.timeout(_SECONDS):
                        if producer is None:
                            fresh = self._connect()
                            try:
                                await fresh.start()
                            except BaseException:
                                await fresh.stop()
                                raise
                            producer = fresh
                        await producer.send_and_wait(topic, letter.value)
                    self._telemetry.inc(metrics.KAFKA_DEAD_LETTERS, outcome="written")
                except self._errors as error:
                    self._failed(error)
                # A letter that the end of the process cuts off is not settled: its message is read again.
                letter.receipt.release()
        finally:
            if producer is not None:
                await producer.stop()

    def _failed(self, error: Exception | None) -> None:
        self._events.tell(
            Event(
                "kafka_dead_letter_failed",
                Level.ERROR,
                "a dead letter could not be written; the log names the message",
                count=Count(metrics.KAFKA_DEAD_LETTERS, {"outcome": "failed"}),
            ),
            error,
        )

    async def close(self, seconds: float) -> None:
        """Write what waits within that time."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=seconds)
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=1)
