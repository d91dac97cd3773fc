"""From messages to what takes them: the assembler by the border, screening for plain records, or the dead letters."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Protocol

from collector.otlp.batch import Signal
from collector.otlp.request import RequestReader, UnreadableRequest
from collector.pipeline.clock import Clock
from collector.pipeline.receipt import Receipt
from collector.receivers.border import Accepted, Border
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
_UNREADABLE = Kind(Content.UNREADABLE)
_TOGETHER, _TOGETHER_BYTES = 64, 256 * 1024
"""Requests of spans that are handed on at once, at most."""


class Records(Protocol):
    """Takes plain records, and with them the hold on their receipt."""

    def __call__(self, record: ReleasedTrace, /) -> None: ...


class Feed:
    """Hands messages on: requests of spans several at a time, all else one by one."""

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

    def offer(self, waiting: deque[Waiting], most: int = _TOGETHER) -> Refused | None:
        """Hand on the first message, or the first few (at most `most`), and take them off; a refusal leaves them as
        they were.

        Never raises for a message: one that provokes an error even alone is poison.
        """
        failure: Exception | None = None
        for together in (min(most, _TOGETHER), 1):
            try:
                return self._offer(waiting, together)
            except Exception as error:  # noqa: BLE001  # one odd message must not hold up its partition; it is logged
                failure = error
        message, receipt = waiting.popleft()
        self._outcomes["poison"].inc()
        self._dead.tell(message, "error", receipt, failure)
        receipt.release()
        return None

    def _offer(self, waiting: deque[Waiting], together: int) -> Refused | None:
        kind = self._kind(waiting[0].message)
        if kind.content is Content.REQUEST and kind.signal is Signal.TRACES:
            return self._spans(waiting, kind, together)
        message, receipt = waiting[0]
        value = message.value or _NO_VALUE
        if kind.content is Content.REQUEST:
            answer = self._border.take(value, kind.signal, kind.encoding, receipt)
            refused = self._answered(waiting[0], kind, answer)
            if refused is not None:
                return refused
            if isinstance(answer, Accepted):
                self._outcomes["taken"].inc()
        elif kind.content is Content.RECORD:
            self._record(message, value, receipt)
        elif kind.content is Content.UNREADABLE:
            self._poison(message, receipt, self._why_unreadable(value))
        else:
            self._outcomes["unwanted"].inc()
            receipt.release()
        waiting.popleft()
        return None

    def _kind(self, message: Message) -> Kind:
        value = message.value or _NO_VALUE
        if len(value) > self._options.max_message_bytes:
            return _UNREADABLE
        return kind_of(value, message.headers, self._topics[message.topic])

    def _why_unreadable(self, value: bytes) -> str:
        return "too_large" if len(value) > self._options.max_message_bytes else "unreadable"

    def _spans(self, waiting: deque[Waiting], kind: Kind, most: int) -> Refused | None:
        """Requests of spans that stand together are taken together: a Collector that divides by trace writes small
        ones."""
        taken = [waiting[0]]
        size = len(waiting[0].message.value or _NO_VALUE)
        for one in islice(waiting, 1, most):
            size += len(one.message.value or _NO_VALUE)
            if size > _TOGETHER_BYTES or self._kind(one.message) != kind:
                break
            taken.append(one)
        bodies = [(one.message.value or _NO_VALUE, one.receipt) for one in taken]
        accepted = 0
        try:
            for one, answer in zip(taken, self._border.take_spans(bodies, kind.encoding), strict=True):
                refused = self._answered(one, kind, answer)
                if refused is not None:
                    return refused  # of those that can be read all are taken, or none; a poisonous one is popped alone
                accepted += isinstance(answer, Accepted)
                waiting.popleft()
        finally:
            self._outcomes["taken"].inc(accepted)
        return None

    def _answered(self, one: Waiting, kind: Kind, answer: Accepted | Refused) -> Refused | None:
        """What was said to one request: let go of its receipt, unless it is to be tried again."""
        message, receipt = one
        if isinstance(answer, Refused):
            if answer.row.retryable:
                return answer
            self._poison(message, receipt, _POISON.get(answer.reason, "unreadable"))
            return None
        if self._options.keys_checked and self._keys.wants(message.topic):
            self._look(message, message.value or _NO_VALUE, kind)
        receipt.release()
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
