"""A range of a topic, read once from its beginning to its end, without a consumer group and without commits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from collector.pipeline.kafka_client import (
    KafkaClientOptions,
    KafkaUnusable,
    client_arguments,
    require_kafka,
    why_unreachable,
)

if TYPE_CHECKING:
    from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

_POLL_MS = 500
_MAX_FETCH_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """A place in every partition that is read: an offset, or the first message at or after a time (Unix ms)."""

    offset: int | None = None
    unix_ms: int | None = None


EVERYTHING = Place()


def place(text: str) -> Place:
    """An offset (`1200`) or a time (`2026-11-30T10:00:00Z`; without a zone it is UTC). Raises ValueError."""
    if text.isdecimal():
        return Place(offset=int(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is neither an offset (1200) nor a time (2026-11-30T10:00:00Z)") from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return Place(unix_ms=int(moment.timestamp() * 1000))


async def read_range(
    options: KafkaClientOptions,
    topic: str,
    *,
    environ: Mapping[str, str],
    partitions: Sequence[int] = (),
    start: Place = EVERYTHING,
    end: Place = EVERYTHING,
) -> AsyncIterator[ConsumerRecord[bytes, bytes]]:
    """The messages from `start` up to, and without, `end`: by default all that the topic holds now. What is written
    while it is read is not waited for.

    Raises KafkaUnusable with a sentence where there is no broker, topic or partition.
    """
    require_kafka()
    arguments = client_arguments(options, environ)
    from aiokafka import AIOKafkaConsumer
    from aiokafka.errors import KafkaError

    wanted = await _partitions(arguments, topic, partitions)
    consumer = AIOKafkaConsumer(
        **arguments,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=_MAX_FETCH_BYTES,
    )
    try:
        await consumer.start()
        ends = await _seek(consumer, wanted, start, end)
        while ends:
            found = await consumer.getmany(*ends, timeout_ms=_POLL_MS)
            for partition, messages in found.items():
                for message in messages:
                    if message.offset < ends[partition]:
                        yield message
            for partition in [one for one in ends if await consumer.position(one) >= ends[one]]:
                del ends[partition]
                consumer.pause(partition)
    except KafkaError as error:
        raise KafkaUnusable(f"topic {topic!r} can not be read: {type(error).__name__}") from error
    finally:
        await consumer.stop()


async def _partitions(arguments: Mapping[str, Any], topic: str, asked: Sequence[int]) -> list[TopicPartition]:
    """Those that are asked for, else all that the topic has."""
    from aiokafka import TopicPartition
    from aiokafka.admin import AIOKafkaAdminClient
    from aiokafka.errors import KafkaError, for_code

    admin = AIOKafkaAdminClient(**arguments)
    try:
        try:
            await admin.start()
        except (KafkaError, OSError) as error:
            raise KafkaUnusable(await why_unreachable(arguments)) from error
        described = (await admin.describe_topics([topic]))[0]
    finally:
        await admin.close()
    if described["error_code"]:
        raise KafkaUnusable(
            f"topic {topic!r} can not be read: {for_code(described['error_code']).__name__}; check its name, and that "
            "the user has Describe and Read"
        )
    there = sorted(one["partition"] for one in described["partitions"])
    unknown = next((one for one in asked if one not in there), None)
    if unknown is not None:
        raise KafkaUnusable(f"topic {topic!r} has no partition {unknown}; it has 0 to {there[-1]}")
    return [TopicPartition(topic, number) for number in asked or there]


async def _seek(
    consumer: AIOKafkaConsumer, wanted: Sequence[TopicPartition], start: Place, end: Place
) -> dict[TopicPartition, int]:
    """Assign and place the partitions; returns where each that holds something ends."""
    consumer.assign(wanted)
    firsts = await consumer.beginning_offsets(wanted)
    lasts = await consumer.end_offsets(wanted)
    begins = await _offsets(consumer, wanted, start, otherwise=firsts, none=lasts)
    stops = await _offsets(consumer, wanted, end, otherwise=lasts, none=lasts)
    ends: dict[TopicPartition, int] = {}
    for partition in wanted:
        first = max(firsts[partition], begins[partition])
        last = min(lasts[partition], stops[partition])
        if first < last:
            consumer.seek(partition, first)
            ends[partition] = last
        else:
            consumer.pause(partition)
    return ends


async def _offsets(
    consumer: AIOKafkaConsumer,
    partitions: Sequence[TopicPartition],
    where: Place,
    *,
    otherwise: Mapping[TopicPartition, int],
    none: Mapping[TopicPartition, int],
) -> Mapping[TopicPartition, int]:
    """`otherwise` where nothing was asked for, `none` where no message is as late as asked for."""
    if where.offset is not None:
        return dict.fromkeys(partitions, where.offset)
    if where.unix_ms is None:
        return otherwise
    found: dict[Any, Any] = await consumer.offsets_for_times(dict.fromkeys(partitions, where.unix_ms))
    return {one: found[one].offset if found.get(one) is not None else none[one] for one in partitions}
