"""Small clients of a test's Kafka: make topics, write messages, read what a group committed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaConnectionError
from aiokafka.structs import OffsetAndMetadata


class Sent(NamedTuple):
    """A message to write."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int | None = None


async def make_topics(bootstrap: str, topics: Mapping[str, int], *, copies: int = 1) -> None:
    """Topics by their number of partitions. Patient with brokers that are being started."""
    async with asyncio.timeout(30):
        while True:
            admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
            try:
                await admin.start()
                break
            except KafkaConnectionError:
                await admin.close()
                await asyncio.sleep(0.2)
    try:
        answer = await admin.create_topics([NewTopic(name, count, copies) for name, count in topics.items()])
        assert all(error == 0 for _, error, *_ in answer.topic_errors), answer
    finally:
        await admin.close()


async def produce(bootstrap: str, messages: Iterable[Sent], **options: Any) -> None:
    """Write messages, each partition's in their order; acknowledged by all copies when it returns. Patient with brokers
    that are being started."""
    producer = await _producer(bootstrap, options)
    try:
        sent = [
            await producer.send(
                one.topic, one.value, key=one.key, headers=list(one.headers), partition=one.partition
            )
            for one in messages
        ]
        for one in sent:
            await one
    finally:
        await producer.stop()


async def _producer(bootstrap: str, options: Mapping[str, Any]) -> AIOKafkaProducer:
    async with asyncio.timeout(30):
        while True:
            producer = AIOKafkaProducer(bootstrap_servers=bootstrap, **{"acks": "all", **options})
            try:
                await producer.start()
            except KafkaConnectionError:
                await producer.stop()
                await asyncio.sleep(0.2)
            else:
                return producer


async def committed(bootstrap: str, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """What a group has committed."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        found: dict[TopicPartition, OffsetAndMetadata] = await admin.list_consumer_group_offsets(group)
        return found
    finally:
        await admin.close()


async def ends(bootstrap: str, topic: str) -> int:
    """How many messages were ever written to a topic, all partitions together."""
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap)
    await consumer.start()
    try:
        found: dict[TopicPartition, int] = await consumer.end_offsets(consumer.assignment())
        return sum(found.values())
    finally:
        await consumer.stop()


async def everything(bootstrap: str, topic: str) -> list[Any]:
    """All messages that a topic holds now."""
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        places = consumer.assignment()
        end = await consumer.end_offsets(places)
        found: list[Any] = []
        while any([await consumer.position(place) < end[place] for place in places]):
            for messages in (await consumer.getmany(timeout_ms=1000)).values():
                found += messages
        return found
    finally:
        await consumer.stop()
