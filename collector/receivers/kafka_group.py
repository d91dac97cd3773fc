"""Membership of the consumer group: which partitions are ours, where each is read from, what is committed.

aiokafka's rebalances are eager: every partition is revoked, then some are assigned. A partition that comes back goes on
as if nothing had happened, if the coordinator holds what this process committed; else, and when it does not come back,
what was made of its unsettled messages is dropped, and its new owner reads them again. Until that is known, which takes
as long as the slowest member needs to let go, its messages are in doubt, and nothing is counted of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import IllegalStateError, KafkaError, OffsetMetadataTooLargeError
from aiokafka.structs import OffsetAndMetadata

from collector.receivers.kafka_offsets import Commit
from collector.receivers.kafka_options import KafkaOptions, Start
from collector.receivers.kafka_partition import Partition
from collector.telemetry import metrics
from collector.telemetry.events import Count, Event, Events, Level
from collector.telemetry.instruments import Telemetry

_COMMIT_SECONDS = 10.0
_SETTLE_SECONDS = 5.0
_RETRY_SECONDS = 0.5
_LEAST_ROOM = 64
_Places = Iterable[TopicPartition]
_Told = Callable[[_Places], Awaitable[None]]


class Group:
    """The partitions of this process. It outlives connections: `attach` gives it the one that is in use."""

    def __init__(
        self,
        options: KafkaOptions,
        *,
        telemetry: Telemetry,
        events: Events,
        decided: Callable[[], None],
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        """`decided` is called when it is known whose receipts are: those who hold lost ones let go of what they made,
        and what waited because of a doubt is counted. `settle` settles what has been counted, before the commit at a
        rebalance."""
        self._options = options
        self._telemetry = telemetry
        self._events = events
        self._decided = decided
        self._settle = settle
        self._room = options.offset_metadata_bytes
        self._consumer: AIOKafkaConsumer | None = None
        self._admin: AIOKafkaAdminClient | None = None
        self._placing: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._one_commit = asyncio.Lock()
        self.partitions: dict[TopicPartition, Partition] = {}
        self.placed: set[TopicPartition] = set()
        """Those that are ours now and are read from a known offset."""

    def attach(self, consumer: AIOKafkaConsumer, admin: AIOKafkaAdminClient) -> ConsumerRebalanceListener:
        """Use this connection from now on. Returns what is to be told of its rebalances."""
        self._consumer, self._admin, self._failure = consumer, admin, None
        return _Listener(partial(self._told, self._revoked), partial(self._told, self._assigned))

    async def detach(self) -> None:
        """The connection is gone."""
        await self._stop_placing()
        self._doubt()
        self.placed.clear()
        self._consumer = self._admin = None

    async def _stop_placing(self) -> None:
        task, self._placing = self._placing, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    def check(self) -> None:
        """Raise what went wrong in the background, where partitions would stay paused without a word."""
        if self._failure is not None:
            raise self._failure
        if self._placing is not None and self._placing.done() and not self._placing.cancelled():
            self._placing.result()

    async def _told(self, what: _Told, places: _Places) -> None:
        """Do what a rebalance asks for. aiokafka would only log what is raised here; `check` raises it."""
        try:
            await what(places)
        except Exception as error:  # noqa: BLE001  # raised by `check`, where the connection is made anew
            self._failure = error

    # --- rebalances

    async def _revoked(self, revoked: _Places) -> None:
        await self._stop_placing()
        self._doubt()
        if self.placed:
            self._telemetry.inc(metrics.KAFKA_REBALANCES)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SETTLE_SECONDS):
                    await self._settle()
            await self.commit()
        self.placed.clear()

    def _doubt(self) -> None:
        """What would be counted from now on could not be committed before somebody else may read it again."""
        for partition in self.partitions.values():
            partition.doubt(True)

    async def _assigned(self, assigned: _Places) -> None:
        """First pause what was assigned, before anything is awaited, so that nothing is fetched from a place that is
        not known yet; the rest takes requests, and must not hold up the membership."""
        mine = set(assigned)
        assert self._consumer is not None
        self._consumer.pause(*mine)
        self._lose(self.partitions.keys() - mine)
        self._placing = asyncio.create_task(self._place(mine), name="kafka placing")

    def _lose(self, gone: _Places) -> None:
        moved = 0
        for place in list(gone):
            moved += self.partitions.pop(place).lose()
        if moved:
            self._telemetry.inc(metrics.KAFKA_MOVED, moved)
            self._decided()

    def replace(self, places: _Places) -> None:
        """Find out anew where these are to be read from: the broker has no such offset any more."""
        again = self.placed.intersection(places)
        self.placed -= again
        if self._consumer is None or not again:
            return
        self._consumer.pause(*again)
        self._lose(self.partitions.keys() & again)
        waiting = self._placing if self._placing is not None and not self._placing.done() else None
        self._placing = asyncio.create_task(self._place(again, after=waiting), name="kafka placing")

    async def _place(self, mine: set[TopicPartition], after: asyncio.Task[None] | None = None) -> None:
        """Ask for the offsets of these partitions, until there is an answer, and start reading there."""
        if after is not None:
            await asyncio.wait({after})
        while mine:
            consumer, admin = self._consumer, self._admin
            assert consumer is not None
            assert admin is not None
            places = list(mine)
            try:
                async with asyncio.timeout(_COMMIT_SECONDS):
                    held = await admin.list_consumer_group_offsets(self._options.group_id, partitions=places)
                    first = await consumer.beginning_offsets(places)
                    end = await consumer.end_offsets(places)
            except (KafkaError, TimeoutError) as error:
                self._events.tell(
                    Event("kafka_offsets_unknown", Level.WARNING, "the brokers do not tell offsets; trying again"),
                    error,
                )
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            if not mine <= consumer.assignment():
                return  # the next assignment places its own
            for place in places:
                self._place_one(place, _commit_of(held.get(place)), first[place], end[place])
                partition = self.partitions[place]
                partition.highwater = max(partition.highwater, end[place])
                consumer.seek(place, partition.fetch_from)
                partition.doubt(False)
            self.placed |= mine
            self._decided()
            await (
                self.commit()
            )  # a group without an offset has one from now on: `latest` must not skip at a restart
            return

    def _place_one(self, place: TopicPartition, held: Commit | None, first: int, end: int) -> None:
        known = self.partitions.get(place)
        if known is not None:
            if known.is_mine(held) and first <= known.fetch_from <= end:
                return
            self._lose([place])
        if held is None:
            start = first if self._options.start is Start.EARLIEST else end
        elif first <= held.offset <= end:
            start = held.offset
        else:
            start = first
            self._tell_gap(place, held.offset, first, end)
        self.partitions[place] = partition = Partition(place.topic, place.partition, held, start)
        if partition.foreign:
            self._events.tell(
                Event(
                    "kafka_foreign_commit",
                    Level.WARNING,
                    "the group's commit has a text that is not groundwatch's; what was settled behind it is read again",
                    {"topic": place.topic, "partition": place.partition, "group": self._options.group_id},
                )
            )

    def _tell_gap(self, place: TopicPartition, committed: int, first: int, end: int) -> None:
        deleted = max(0, first - committed)
        self._events.tell(
            Event(
                "kafka_offset_gone",
                Level.ERROR,
                "the committed offset is not in the partition any more: retention deleted messages that were not "
                "read, or the topic was made anew",
                {
                    "topic": place.topic,
                    "partition": place.partition,
                    "committed": committed,
                    "first": first,
                    "end": end,
                },
                Count(metrics.KAFKA_PASSED_OVER, amount=deleted) if deleted else None,
            )
        )

    # --- commits

    def look(self, place: TopicPartition) -> None:
        """Find out whether a commit can still say what is settled of a partition."""
        self.partitions[place].look(self._room)

    async def commit(self) -> bool:
        """Commit what changed; whether all is committed. Never raises for a broker that does not take it: the next
        commit says it again."""
        async with self._one_commit:
            consumer = self._consumer
            sent: dict[TopicPartition, Commit] = {}
            for place in self.placed:
                commit = self.partitions[place].to_commit(self._room)
                if commit is not None:
                    sent[place] = commit
            if not sent or consumer is None:
                return True
            for place, commit in sent.items():
                self.partitions[place].sending(commit)
            try:
                async with asyncio.timeout(_COMMIT_SECONDS):
                    await consumer.commit(
                        {place: OffsetAndMetadata(commit.offset, commit.text) for place, commit in sent.items()}
                    )
            except (KafkaError, IllegalStateError, TimeoutError) as error:
                self._not_committed(error)
                return False
            for place, commit in sent.items():
                if place in self.partitions:
                    self.partitions[place].sent(commit)
            self._telemetry.inc(metrics.KAFKA_COMMITS, outcome="ok")
            return True

    def _not_committed(self, error: Exception) -> None:
        if isinstance(error, OffsetMetadataTooLargeError) and self._room > _LEAST_ROOM:
            self._room = max(_LEAST_ROOM, self._room // 2)
        self._events.tell(
            Event(
                "kafka_commit_failed",
                Level.WARNING,
                "offsets could not be committed; the next commit says them again",
                {"room": self._room},
                Count(metrics.KAFKA_COMMITS, {"outcome": "failed"}),
            ),
            error,
        )


def _commit_of(held: OffsetAndMetadata | None) -> Commit | None:
    return None if held is None or held.offset < 0 else Commit(held.offset, held.metadata or "")


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Told by aiokafka, which awaits what it gets."""

    def __init__(self, revoked: _Told, assigned: _Told) -> None:
        self._revoked = revoked
        self._assigned = assigned

    def on_partitions_revoked(self, revoked: _Places) -> Awaitable[None]:
        return self._revoked(revoked)

    def on_partitions_assigned(self, assigned: _Places) -> Awaitable[None]:
        return self._assigned(assigned)


def lag_of(
    partitions: Mapping[TopicPartition, Partition], consumer: AIOKafkaConsumer
) -> dict[TopicPartition, int]:
    """Messages between the first that is not settled and the end as of the last fetch, of each partition."""
    found = {}
    for place, partition in partitions.items():
        partition.highwater = max(partition.highwater, consumer.highwater(place) or 0)
        found[place] = max(0, partition.highwater - partition.offset)
    return found
