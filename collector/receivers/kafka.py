"""The Kafka receiver: connects, polls, hands on what there is room for, commits what is settled.

The poll loop awaits nothing but the brokers. What can not be handed on now stays here, partitions are paused, and the
loop goes on asking, since a member that does not ask is put out of its group.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError

from collector.pipeline.clock import Clock
from collector.pipeline.kafka_client import KafkaUnusable, client_arguments
from collector.receivers.border import Border
from collector.receivers.kafka_dead import DeadLetters
from collector.receivers.kafka_feed import Feed, Records
from collector.receivers.kafka_group import Group, lag_of
from collector.receivers.kafka_keys import KeyWatch
from collector.receivers.kafka_offsets import Taken
from collector.receivers.kafka_options import KafkaOptions, TopicEncoding
from collector.receivers.kafka_trouble import connect, in_words
from collector.telemetry import metrics
from collector.telemetry.events import Event, Events, Level
from collector.telemetry.instruments import Telemetry
from collector.telemetry.spec import Family

_POLL_MS = 500
_PAUSED_POLL_MS = 100
_TURN_SECONDS = 0.01
"""For so long messages are handed on before the event loop gets a turn."""
_ENOUGH_ROOM = 0.8
"""Fill, as `fill` tells it, down to which paused partitions stay paused."""
_BACKOFF_SECONDS = (0.5, 15.0)
_CLOSE_SECONDS = 5.0
_METADATA_SECONDS = 60
_JOIN_SECONDS = 5.0
"""How much longer than a session a request may take."""
_FETCH_BYTES = 16 * 1024 * 1024
"""Of one fetch, compressed; what was fetched waits in memory."""
_COMPONENT, _KEYS_COMPONENT = "kafka", "kafka keys"
OTHER = "other"


class KafkaReceiver:
    """A member of a consumer group, from `start` to `close`."""

    def __init__(
        self,
        options: KafkaOptions,
        *,
        environ: Mapping[str, str],
        border: Border,
        records: Records,
        fill: Callable[[], float],
        most: int,
        decided: Callable[[], None],
        settle: Callable[[], Awaitable[None]],
        health: Callable[[str, str | None], None],
        clock: Clock,
        telemetry: Telemetry,
        events: Events,
    ) -> None:
        """`fill` tells how full what comes next is, `most` how many traces that is when it is full, at 1: from there on
        partitions are paused. `decided` is called when it is known which receipts were lost to another replica and
        which are ours; `settle` before the commit at which partitions may move: what was counted here should be settled
        by then, or it is counted there too. `health` takes the reason why this is not ready, or None."""
        self._options = options
        self._environ = environ
        self._fill = fill
        self._most = most
        self._health = health
        self._clock = clock
        self._telemetry = telemetry
        self._events = events
        self._keys = KeyWatch()
        self._dead = DeadLetters(
            options.dead_letter, self._producer, errors=(KafkaError,), telemetry=telemetry, events=events
        )
        self._feed = Feed(
            options,
            border=border,
            records=records,
            dead=self._dead,
            keys=self._keys,
            clock=clock,
            telemetry=telemetry,
        )
        self._group = Group(options, telemetry=telemetry, events=events, decided=decided, settle=settle)
        self._consumer: AIOKafkaConsumer | None = None
        self._task: asyncio.Task[None] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._closing = asyncio.Event()
        self._reason: str | None = "connecting"
        self._was_connected = False
        self._cause: str | None = None
        """Why all partitions are paused now."""
        self._retry_at = 0.0
        self._lag: tuple[tuple[tuple[str, str], float], ...] = ()
        health(_COMPONENT, "connecting to Kafka")

    # --- life

    async def start(self) -> None:
        """Begin; connecting goes on in the background, and readiness says how far it is."""
        self._task = asyncio.create_task(self._run(), name="kafka")

    async def stop_polling(self, seconds: float) -> None:
        """Take no more messages. Stays in the group, so that what is settled from now on can be committed."""
        self._stopping.set()
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.wait({self._polling}, timeout=max(0.1, seconds))

    async def close(self, seconds: float) -> None:
        """Commit what was settled, leave the group. What is not settled is read again by the partition's next owner."""
        self._stopping.set()
        self._closing.set()
        await self._dead.close(min(_CLOSE_SECONDS, seconds))
        if self._task is None:
            return
        await asyncio.wait({self._task}, timeout=max(1.0, seconds))
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=1)
        self._task = None

    async def _run(self) -> None:
        first, longest = _BACKOFF_SECONDS
        backoff = first
        while not self._stopping.is_set():
            try:
                await self._session()
            except (KafkaError, KafkaUnusable, OSError, TimeoutError) as error:
                self._tell(in_words(error, self._options), error)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001  # aiokafka raises what it meets; a receiver that ends for good is worse
                self._tell(f"an unexpected error ({type(error).__name__}); see the log", error)
            if self._stopping.is_set():
                return
            if self._was_connected:
                self._was_connected, backoff = False, first
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(backoff):
                    await self._stopping.wait()
            backoff = min(longest, backoff * 2)

    def _tell(self, reason: str | None, error: BaseException | None) -> None:
        """Say the state to readiness, and to the log when it changed."""
        if reason == self._reason:
            return
        self._reason = reason
        self._health(_COMPONENT, reason)
        self._telemetry.set(metrics.KAFKA_CONNECTED, 1 if reason is None else 0)
        if reason is None:
            self._was_connected = True
            topics = ", ".join(topic.name for topic in self._options.topics)
            told = {"topics": topics, "group": self._options.group_id}
            self._events.tell(Event("kafka_connected", Level.INFO, "a member of the consumer group", told))
        else:
            self._events.tell(
                Event("kafka_not_connected", Level.WARNING, "no messages of Kafka are read", {"reason": reason}),
                error,
            )

    async def _session(self) -> None:
        """From connecting to the end of the connection."""
        arguments = client_arguments(self._options, self._environ)
        admin = await connect(self._options, arguments)
        consumer: AIOKafkaConsumer | None = None
        try:
            names = [topic.name for topic in self._options.topics]
            consumer = self._make_consumer(arguments)
            consumer.subscribe(names, listener=self._group.attach(consumer, admin))
            await consumer.start()
            self._consumer = consumer
            self._tell(None, None)
            await self._serve(consumer)
        finally:
            self._consumer = None
            await self._group.detach()
            for client in (consumer, admin):
                if client is not None:
                    with contextlib.suppress(KafkaError, OSError, TimeoutError):
                        async with asyncio.timeout(_CLOSE_SECONDS):
                            await (client.stop() if isinstance(client, AIOKafkaConsumer) else client.close())

    def _make_consumer(self, arguments: Mapping[str, Any]) -> AIOKafkaConsumer:
        options = self._options
        # Brokers answer a request to join when all members have, or were given up for dead.
        joined_within = int((options.session_timeout_seconds + _JOIN_SECONDS) * 1000)
        return AIOKafkaConsumer(
            **{**arguments, "request_timeout_ms": max(arguments["request_timeout_ms"], joined_within)},
            group_id=options.group_id,
            group_instance_id=options.group_instance_id,
            auto_offset_reset="none",  # where to read from is decided in kafka_group, by what was committed
            enable_auto_commit=False,
            session_timeout_ms=int(options.session_timeout_seconds * 1000),
            heartbeat_interval_ms=int(options.heartbeat_seconds * 1000),
            max_poll_interval_ms=int(options.max_poll_interval_seconds * 1000),
            metadata_max_age_ms=_METADATA_SECONDS * 1000,
            fetch_max_bytes=_FETCH_BYTES,
            # Partitions of one number of all topics to one member: spans and their log records stay together.
            partition_assignment_strategy=(RangePartitionAssignor,),
        )

    def _producer(self) -> AIOKafkaProducer:
        return AIOKafkaProducer(**client_arguments(self._options, self._environ), acks="all")

    async def _serve(self, consumer: AIOKafkaConsumer) -> None:
        """Poll and commit until asked to stop; then commit until asked to close."""
        committing = asyncio.create_task(self._commit_now_and_then(consumer), name="kafka commits")
        self._polling = asyncio.create_task(self._poll(consumer), name="kafka poll")
        try:
            ended, _ = await asyncio.wait({self._polling, committing}, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                if not task.cancelled():
                    task.result()
            await self._closing.wait()
            await self._group.commit()
        finally:
            for task in (committing, self._polling):
                task.cancel()
            await asyncio.wait({committing, self._polling})

    async def _commit_now_and_then(self, consumer: AIOKafkaConsumer) -> None:
        while True:
            await asyncio.sleep(self._options.commit_seconds)
            await self._group.commit()
            self._check_keys(consumer)

    def _check_keys(self, consumer: AIOKafkaConsumer) -> None:
        if not self._options.keys_checked:
            return
        counts = {
            topic.name: len(consumer.partitions_for_topic(topic.name) or ())
            for topic in self._options.topics
            if topic.encoding is not TopicEncoding.RECORDS
        }
        mine = sum(place.topic in counts for place in consumer.assignment())
        self._health(_KEYS_COMPONENT, self._keys.problem(counts, mine))

    # --- messages

    async def _poll(self, consumer: AIOKafkaConsumer) -> None:
        while not self._stopping.is_set():
            self._group.check()
            waits = await self._hand_on()
            self._pause(consumer)
            try:
                fetched = await consumer.getmany(
                    timeout_ms=_PAUSED_POLL_MS if waits else _POLL_MS, max_records=self._options.poll_messages
                )
            except (NoOffsetForPartitionError, OffsetOutOfRangeError) as error:
                self._group.replace(_named(error))
                continue
            now = self._clock.monotonic()
            for place, messages in fetched.items():
                if place in self._group.placed:
                    told = self._group.partitions[place].fetched(messages, now)
                    self._group.look(place)
                    for taken, outcome in ((Taken.SETTLED, "settled_before"), (Taken.REPEATED, "repeated")):
                        if told[taken]:
                            self._telemetry.inc(metrics.KAFKA_MESSAGES, told[taken], outcome=outcome)

    async def _hand_on(self) -> bool:
        """Hand on what waits, as long as there is room; whether something still waits."""
        turn = self._clock.monotonic() + _TURN_SECONDS
        for partition in list(self._group.partitions.values()):
            while partition.waiting:
                if not self._has_room():
                    return True
                refused = self._feed.offer(partition.waiting, int((1 - self._fill()) * self._most))
                if refused is not None:
                    self._blocked("memory_full")
                    self._retry_at = self._clock.monotonic() + refused.retry_after_seconds
                    return True
                if self._clock.monotonic() >= turn:
                    await asyncio.sleep(0)
                    turn = self._clock.monotonic() + _TURN_SECONDS
        return False

    def _has_room(self) -> bool:
        if self._clock.monotonic() < self._retry_at:
            return False
        if self._fill() >= (_ENOUGH_ROOM if self._cause == "room" else 1):
            self._blocked("room")
            return False
        self._cause = None
        return True

    def _blocked(self, cause: str) -> None:
        if self._cause != cause:
            self._cause = cause
            self._telemetry.inc(metrics.KAFKA_PAUSES, cause=cause)

    def _pause(self, consumer: AIOKafkaConsumer) -> None:
        """Pause and resume partitions: all while there is no room, one while a commit can not say more of it."""
        group = self._group
        blocked = not self._has_room()
        paused: set[TopicPartition] = consumer.paused()
        wanted: set[TopicPartition] = set()
        for place in consumer.assignment():
            full = place in group.placed and group.partitions[place].full
            if full and place not in paused:
                self._telemetry.inc(metrics.KAFKA_PAUSES, cause="offsets_full")
            if blocked or full or place not in group.placed:
                wanted.add(place)
        consumer.pause(*(wanted - paused))
        consumer.resume(*(paused - wanted))

    # --- what is shown

    def refresh(self) -> None:
        """Set gauges and lag; called on the event loop before each scrape."""
        partitions = self._group.partitions
        oldest = [since for one in partitions.values() if (since := one.oldest) is not None]
        age = self._clock.monotonic() - min(oldest) if oldest else 0.0
        consumer = self._consumer
        self._telemetry.set(metrics.KAFKA_PARTITIONS, len(self._group.placed))
        self._telemetry.set(metrics.KAFKA_UNSETTLED, sum(one.unsettled for one in partitions.values()))
        self._telemetry.set(metrics.KAFKA_OLDEST, age)
        self._telemetry.set(metrics.KAFKA_PAUSED, len(consumer.paused()) if consumer is not None else 0)
        if consumer is None:
            self._lag = ()
            return
        mine = {place: partitions[place] for place in sorted(self._group.placed)}
        lag = list(lag_of(mine, consumer).items())
        shown = self._options.max_shown_partitions
        samples = [((place.topic, str(place.partition)), float(count)) for place, count in lag[:shown]]
        if len(lag) > shown:
            samples.append(((OTHER, OTHER), float(sum(count for _, count in lag[shown:]))))
        self._lag = tuple(samples)

    def families(self) -> list[Family]:
        """Lag, as of the last `refresh`: partitions come and go, and with them their series."""
        return [Family(metrics.KAFKA_LAG, tuple(metrics.KAFKA_LAG.labels), self._lag)]


def _named(error: KafkaError) -> set[TopicPartition]:
    """The partitions that an error of aiokafka names: one, or several with their offsets."""
    named = error.args[0] if error.args else ()
    if isinstance(named, TopicPartition):
        return {named}
    return (
        {place for place in named if isinstance(place, TopicPartition)}
        if isinstance(named, dict | list)
        else set()
    )
