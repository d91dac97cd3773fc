"""A topic read by a consumer group, for what needs no order and may see a message twice: a batch is committed when
whoever takes it asks for the next one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from collector.pipeline.kafka_client import (
    KafkaClientOptions,
    KafkaUnusable,
    client_arguments,
    require_kafka,
    why_unreachable,
)

if TYPE_CHECKING:
    from aiokafka import AIOKafkaConsumer, TopicPartition

_POLL_MS = 500
_ASSIGNED_SECONDS = 60.0


async def follow_topic(
    options: KafkaClientOptions,
    topic: str,
    *,
    group: str,
    environ: Mapping[str, str],
    forever: bool,
    batch: int = 500,
) -> AsyncIterator[list[tuple[str, bytes]]]:
    """Batches of (place, value), from where the group is, at first from the earliest message. Ends where the topic
    ended at the start, unless `forever`; then an empty batch is given now and again. Messages without a value are left
    out.

    Raises KafkaUnusable with a sentence where it can not be read.
    """
    require_kafka()
    arguments = client_arguments(options, environ)
    from aiokafka import AIOKafkaConsumer
    from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

    consumer = AIOKafkaConsumer(
        **arguments, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest", max_poll_records=batch
    )
    try:
        try:
            await consumer.start()
        except (KafkaError, OSError) as error:
            raise KafkaUnusable(await why_unreachable(arguments)) from error
        if topic not in await consumer.topics():
            raise KafkaUnusable(f"there is no topic {topic!r}, or the user may not read it")
        consumer.subscribe([topic])
        ends = {} if forever else await _ends(consumer)
        while forever or await _open(consumer, ends):
            found = await consumer.getmany(timeout_ms=_POLL_MS)
            messages = [one for of_partition in found.values() for one in of_partition]
            values = [(f"{one.topic}/{one.partition}/{one.offset}", one.value) for one in messages]
            if values or forever:
                yield [(place, value) for place, value in values if value is not None]
            if messages:
                # A partition that moved meanwhile is read again by its new owner, which does no harm.
                with contextlib.suppress(CommitFailedError, IllegalStateError):
                    await consumer.commit()
    except KafkaError as error:
        raise KafkaUnusable(f"topic {topic!r} can not be read: {type(error).__name__}") from error
    finally:
        await consumer.stop()


async def _ends(consumer: AIOKafkaConsumer) -> dict[TopicPartition, int]:
    """Where each partition that this process was given ends now."""
    try:
        async with asyncio.timeout(_ASSIGNED_SECONDS):
            while not consumer.assignment():  # noqa: ASYNC110  # the client has no event for it
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        raise KafkaUnusable(
            "no partition was assigned: every one is taken by another process of the group; name another --group"
        ) from error
    ends: dict[TopicPartition, int] = await consumer.end_offsets(list(consumer.assignment()))
    return ends


async def _open(consumer: AIOKafkaConsumer, ends: dict[TopicPartition, int]) -> bool:
    """Whether a partition is still ours and not read to its end."""
    ours = consumer.assignment()
    for partition in [one for one in ends if one not in ours]:
        del ends[partition]
    for partition, end in ends.items():
        if await consumer.position(partition) < end:
            return True
    return False
