"""From a message to what takes it: the assembler by the border, screening for plain records, or the dead letters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from collector.otlp.request import RequestReader, UnreadableRequest
from collector.pipeline.clock import Clock
from collector.pipeline.receipt import Receipt
from collector.receivers.border import Border
from collector.receivers.kafka_dead import DeadLetters
from collector.receivers.kafka_keys import KeyWatch
from collector.receivers.kafka_message import Content, Kind, kind_of
from collector.receivers.kafka_options import KafkaOptions
from collector.receivers.kafka_partition import Message, Waiting
from collector.receivers.status import Reason, Refused
from collector.records.trace import Release, ReleasedTrace
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry

_POISON = {Reason.UNREADABLE: "unreadable", Reason.TOO_LARGE: "too_large"}
_NO_VALUE = b""


class Records(Protocol):
    """Takes plain records, and with them the hold on their receipt."""

    def __call__(self, record: ReleasedTrace, /) -> None: ...


class Feed:
    """Hands messages on, one by one."""

    def __init__(
        self,
        options: KafkaOptions,
        *,
        border: Border,
        records: Records,
        dead: DeadLetters,
        keys: KeyWatch,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._options = options
        self._topics = {topic.name: topic for topic in options.topics}
        self._border = border
        self._records = records
        self._dead = dead
        self._keys = keys
        self._clock = clock
        self._reader = RequestReader()
        self._outcomes = {
            outcome: telemetry.counter(metrics.KAFKA_MESSAGES, outcome=outcome)
            for outcome in ("taken", "unwanted", "poison")
        }
        self._received_records = telemetry.counter(metrics.KAFKA_RECORDS)

    def offer(self, waiting: Waiting) -> Refused | None:
        """Hand on one message, and let go of its receipt; a refusal leaves both as they were."""
        message, receipt = waiting
        value = message.value or _NO_VALUE
        if len(value) > self._options.max_message_bytes:
            self._poison(message, receipt, "too_large")
            return None
        kind = kind_of(value, message.headers, self._topics[message.topic])
        if kind.content is Content.REQUEST:
            return self._request(message, value, kind, receipt)
        if kind.content is Content.RECORD:
            self._record(message, value, receipt)
        elif kind.content is Content.UNREADABLE:
            self._poison(message, receipt, "unreadable")
        else:
            self._outcomes["unwanted"].inc()
            receipt.release()
        return None

    def _request(self, message: Message, value: bytes, kind: Kind, receipt: Receipt) -> Refused | None:
        answer = self._border.take(value, kind.signal, kind.encoding, receipt)
        if isinstance(answer, Refused):
            if answer.row.retryable:
                return answer
            self._poison(message, receipt, _POISON.get(answer.reason, "unreadable"))
            return None
        self._outcomes["taken"].inc()
        receipt.release()
        if self._options.keys_checked and self._keys.wants(message.topic):
            self._look(message, value, kind)
        return None

    def _look(self, message: Message, value: bytes, kind: Kind) -> None:
        try:
            batch = self._reader.read(value, kind.signal, kind.encoding)
        except UnreadableRequest:
            return
        ids = {trace_id for group in batch.groups for trace_id in group.trace_ids if trace_id}
        self._keys.saw(message.topic, message.partition, kind.signal, key=message.key, trace_ids=ids)

    def _record(self, message: Message, value: bytes, receipt: Receipt) -> None:
        told: Callable[[str], None] = partial(
            self._rejected, message if self._dead.with_payload else _Coordinates(message), receipt
        )
        receipt.rejected = told
        self._outcomes["taken"].inc()
        self._received_records.inc()
        self._records(
            ReleasedTrace(
                trace_id=f"{message.topic}/{message.partition}/{message.offset}",
                spans=(),
                logs=(),
                reason=Release.QUIET,
                has_root=True,
                opened_unix_nano=self._clock.unix_nano(),
                receipt=receipt,
                record=value,
            )
        )

    def _rejected(self, message: Message, receipt: Receipt, reason: str) -> None:
        """A record was taken, and a worker could not read it."""
        self._dead.tell(message, reason, receipt)

    def _poison(self, message: Message, receipt: Receipt, reason: str) -> None:
        self._outcomes["poison"].inc()
        self._dead.tell(message, reason, receipt)
        receipt.release()


class _Coordinates:
    """A message without its value, which need not stay in memory."""

    __slots__ = ("headers", "key", "offset", "partition", "timestamp", "topic", "value")

    def __init__(self, message: Message) -> None:
        self.topic, self.partition, self.offset = message.topic, message.partition, message.offset
        self.timestamp = message.timestamp
        self.key: bytes | None = None
        self.value: bytes | None = None
        self.headers: tuple[tuple[str, bytes], ...] = ()
