"""What became of each interaction, as one JSON message in a topic of Kafka: at least once, with its key."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from collector.exporters.kafka_options import KafkaResultsOptions
from collector.exporters.kafka_producer import TopicProducer, Undeliverable, is_too_large, why_not
from collector.pipeline.clock import Clock
from collector.pipeline.kafka_client import KafkaUnusable
from collector.pipeline.receipt import Receipt
from collector.records.decision import Fate
from collector.records.result_json import decode, encode, from_settled, key_of, without_content
from collector.records.settled import Settled
from collector.telemetry import metrics
from collector.telemetry.events import Event, Events, Level
from collector.telemetry.instruments import Telemetry

_ROW_VERSION = b"\x01"
_FIRST_RETRY_SECONDS = 0.5
_LOOK_SECONDS = 1.0


class _Message:
    """One message until all in-sync brokers have it."""

    __slots__ = ("flight", "key", "number", "receipt", "sent_at", "since", "value")

    def __init__(self, number: int, key: bytes, value: bytes, receipt: Receipt | None, since: float) -> None:
        self.number = number
        self.key = key
        self.value = value
        self.receipt = receipt
        self.since = since
        self.sent_at = since
        self.flight: asyncio.Future[Any] | None = None

    def row(self) -> bytes:
        """As it is kept over a restart."""
        return _ROW_VERSION + len(self.key).to_bytes(4, "big") + self.key + self.value


class KafkaResults:
    """A downstream of scoring that writes to the results topic.

    `settle` never waits: it makes the message and leaves it to `run`, which sends, and tries again for as long as it
    takes. A receipt is held until the brokers have the message, so that its source (a Kafka offset, a spooled
    request) gives it again after a crash. Where the process keeps books, which know what was counted and would pass
    over what is given again, this is one of their `Durable` parts: a message that waits when they are written is
    written with them, and sent after a restart.

    When the queue is full, a message without receipt is dropped and counted. One with a receipt is still taken, and
    `full` tells whoever feeds the process from Kafka or the spool to take in nothing more; so the overshoot is what
    was in the process already.

    `on_state` hears why the process should not be ready: before the first connection, and while the queue is full
    and the brokers take nothing. An outage that the queue can bear is told by metrics and the log only: it is no
    reason to send an application's traces elsewhere. Lives on the event loop.
    """

    name = "results"

    def __init__(
        self,
        options: KafkaResultsOptions,
        *,
        connect: Callable[[], Awaitable[TopicProducer]],
        content: bool,
        version: str,
        judge_model: str | None,
        durable: bool,
        clock: Clock,
        telemetry: Telemetry,
        events: Events,
        on_state: Callable[[str | None], None],
    ) -> None:
        self._options = options
        self._connect = connect
        self._content = content
        self._version = version
        self._judge_model = judge_model
        self._durable = durable
        self._clock = clock
        self._events = events
        self._on_state = on_state
        self._waiting: dict[int, _Message] = {}
        self._queue: deque[_Message] = deque()
        self._flying: dict[int, _Message] = {}
        self._bytes = 0
        self._number = 0
        self._unwritten: dict[int, _Message] = {}
        self._written: set[int] = set()
        self._erase: list[int] = []
        self._wake = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._failure = ""
        self._trouble: str | None = "not connected yet"
        self._connected_once = False
        self._told: str | None = None
        self._sent = 0
        self._closed = False
        self._outcomes = {
            outcome: telemetry.counter(metrics.RESULTS_MESSAGES, outcome=outcome)
            for outcome in metrics.RESULTS_MESSAGES.labels["outcome"] or ()
        }
        self._failures = telemetry.counter(metrics.RESULTS_FAILURES)
        self._stripped = telemetry.counter(metrics.RESULTS_WITHOUT_CONTENT)
        telemetry.gauge(metrics.RESULTS_WAITING).set_function(lambda: float(len(self._waiting)))
        telemetry.gauge(metrics.RESULTS_WAITING_BYTES).set_function(lambda: float(self._bytes))
        telemetry.gauge(metrics.RESULTS_OLDEST).set_function(self._oldest)
        telemetry.gauge(metrics.RESULTS_CONNECTED).set_function(lambda: float(self._trouble is None))
        self._tell()

    @property
    def waiting(self) -> int:
        """Messages that the brokers do not have yet."""
        return len(self._waiting)

    @property
    def fill(self) -> float:
        """How full the queue is, in messages or bytes, whichever is fuller: 1 is full."""
        return max(len(self._waiting) / self._options.queue_messages, self._bytes / self._options.queue_bytes)

    @property
    def full(self) -> bool:
        """Whether nothing more should be taken in from a source that keeps what is not settled."""
        return self.fill >= 1

    def is_full(self) -> bool:
        """The same, for whoever asks later."""
        return self.full

    # --- in

    def settle(self, settled: Settled) -> None:
        """Take one interaction."""
        if settled.decision.fate is Fate.FILTERED and not self._options.filtered:
            return
        receipt = settled.receipt
        if self._closed or (receipt is None and self.full):
            if receipt is not None:
                receipt.hold()  # for good: its source gives it again at the next start
                self._outcomes["kept"].inc()
            else:
                self._outcomes["dropped_shutdown" if self._closed else "dropped_queue_full"].inc()
            self._tell()
            return
        made = from_settled(
            settled,
            content=self._content,
            settled_unix_nano=self._clock.unix_nano(),
            groundwatch_version=self._version,
            judge_model=self._judge_model,
        )
        value = encode(made)
        if len(value) > self._options.max_message_bytes and made.content is not None:
            self._stripped.inc()
            value = encode(without_content(made, "too_large"))
        if len(value) > self._options.max_message_bytes:
            self._outcomes["dropped_too_large"].inc()
            return
        if receipt is not None:
            receipt.hold()
        self._take(_Message(self._number, key_of(made), value, receipt, self._clock.monotonic()))
        if self.full:
            self._tell()

    def _take(self, message: _Message) -> None:
        self._number = max(self._number, message.number) + 1
        self._waiting[message.number] = message
        self._queue.append(message)
        self._bytes += len(message.value)
        if self._durable and message.number not in self._written:
            self._unwritten[message.number] = message
        self._empty.clear()
        self._wake.set()

    def _done(self, message: _Message, outcome: str) -> None:
        """The message waits no longer."""
        del self._waiting[message.number]
        self._bytes -= len(message.value)
        self._outcomes[outcome].inc()
        self._unwritten.pop(message.number, None)
        if message.number in self._written:
            self._written.discard(message.number)
            self._erase.append(message.number)
        if message.receipt is not None:
            message.receipt.release()
        if not self._waiting:
            self._empty.set()

    # --- out

    async def run(self) -> None:
        """Connect, send, and begin again after a failure; never ends by itself."""
        pause = first = min(_FIRST_RETRY_SECONDS, self._options.retry_seconds)
        while True:
            try:
                producer = await self._connect()
            except (Undeliverable, KafkaUnusable) as error:
                self._in_trouble(str(error))
            else:
                self._connected_once = True
                self._in_trouble(None)
                before = self._sent
                try:
                    why = await self._pump(producer)
                finally:
                    self._take_back()
                    await producer.close()
                self._in_trouble(why)
                if self._sent > before:
                    pause = first
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._options.retry_seconds)

    async def _pump(self, producer: TopicProducer) -> str:
        """Send what waits until something fails; returns why."""
        self._failure = ""
        while not self._failure:
            if not self._queue:
                await self._rest()
                continue
            message = self._queue.popleft()
            if message.receipt is not None and message.receipt.lost:
                self._done(message, "moved")
                continue
            try:
                flight = await producer.send(message.key, message.value)
            except asyncio.CancelledError:
                self._queue.appendleft(message)
                raise
            except Exception as error:  # noqa: BLE001  # whatever the client raises, the message is kept and told of
                self._failed(message, error)
                continue
            message.flight, message.sent_at = flight, self._clock.monotonic()
            self._flying[message.number] = message
            flight.add_done_callback(partial(self._landed, message))
        return self._failure

    async def _rest(self) -> None:
        """Wait for messages, and look whether those under way are acknowledged at all."""
        self._wake.clear()
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            longest = 2 * self._options.request_timeout_seconds
            first = next(iter(self._flying.values()), None)
            if first is not None and self._clock.monotonic() - first.sent_at > longest:
                self._failures.inc()
                self._failure = f"no message was acknowledged for {longest:g} s"

    def _landed(self, message: _Message, flight: asyncio.Future[Any]) -> None:
        error = None if flight.cancelled() else flight.exception()
        if message.flight is not flight:
            return  # taken back meanwhile
        message.flight = None
        del self._flying[message.number]
        if flight.cancelled():
            self._queue.appendleft(message)
        elif error is not None:
            self._failed(message, error)
        else:
            self._sent += 1
            self._done(message, "sent")
            if self._told is not None:
                self._tell()

    def _failed(self, message: _Message, error: BaseException) -> None:
        if is_too_large(error):
            self._shrink(message)
            return
        self._queue.appendleft(message)
        self._failures.inc()
        self._failure = why_not(error)
        self._wake.set()

    def _shrink(self, message: _Message) -> None:
        """The brokers take no message of this size: it goes without content, or not at all."""
        made = decode(message.value)
        if made.content is None:
            self._done(message, "dropped_too_large")
            return
        self._stripped.inc()
        self._bytes -= len(message.value)
        message.value = encode(without_content(made, "too_large"))
        self._bytes += len(message.value)
        self._queue.appendleft(message)
        self._wake.set()

    def _take_back(self) -> None:
        """What was handed over and not acknowledged is sent again: it may then be there twice, with its key."""
        for message in reversed(self._flying.values()):
            message.flight = None
            self._queue.appendleft(message)
        self._flying.clear()

    async def flush(self, seconds: float) -> None:
        """Wait until nothing waits, for at most so long."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._empty.wait()
        except TimeoutError:
            return

    def close(self) -> None:
        """Take nothing more, and count what is left: kept by the books or by its source, else dropped. Call it when
        `run` has ended. Twice is fine."""
        if self._closed:
            return
        self._closed = True
        for message in self._waiting.values():
            kept = self._durable or message.receipt is not None
            self._outcomes["kept" if kept else "dropped_shutdown"].inc()

    # --- over restarts (Durable)

    def changed(self) -> Mapping[str, bytes]:
        """Messages that wait and are not in the books yet, and the names of those that went."""
        rows = {str(number): b"" for number in self._erase}
        rows |= {str(number): message.row() for number, message in self._unwritten.items()}
        self._written.update(self._unwritten)
        self._unwritten.clear()
        self._erase.clear()
        return rows

    def restore(self, rows: Mapping[str, bytes]) -> None:
        """Messages that waited when the last process ended. One that can not be read raises ValueError after all
        others were taken."""
        bad: list[str] = []
        now = self._clock.monotonic()
        for name in sorted(rows, key=lambda name: (len(name), name)):
            row = rows[name]
            size = int.from_bytes(row[1:5], "big")
            if row[:1] != _ROW_VERSION or not name.isdecimal() or len(row) < 5 + size:
                bad.append(name)
                continue
            self._written.add(int(name))
            self._take(_Message(int(name), row[5 : 5 + size], row[5 + size :], None, now))
        if bad:
            raise ValueError(f"{len(bad)} of {len(rows)} waiting messages can not be read")

    # --- what is told

    def _in_trouble(self, why: str | None) -> None:
        was, self._trouble = self._trouble, why
        if why is not None and why != was:
            self._events.tell(
                Event(
                    "results_topic_failing",
                    Level.WARNING,
                    "the results topic can not be written; it is tried again",
                    {"topic": self._options.topic, "why": why, "waiting": len(self._waiting)},
                )
            )
        elif why is None and was is not None:
            self._events.tell(
                Event(
                    "results_topic_connected",
                    Level.INFO,
                    "connected to the results topic",
                    {"topic": self._options.topic},
                )
            )
        self._tell()

    def _tell(self) -> None:
        """Say whether the process should be ready, where that changed."""
        counts = not self._connected_once or self.full
        state = f"{self._options.topic}: {self._trouble}" if self._trouble is not None and counts else None
        if state != self._told:
            self._told = state
            self._on_state(state)

    def _oldest(self) -> float:
        first = next(iter(self._waiting.values()), None)
        return 0.0 if first is None else self._clock.monotonic() - first.since
