"""A connection to the brokers through which messages go to one topic, with errors in words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from collector.exporters.kafka_options import KafkaResultsOptions, TopicCompression
from collector.pipeline.kafka_client import client_arguments, require_kafka, why_unreachable
from scorers.judge.marker import HEADER, HEADER_VALUE

_HEADERS = [(HEADER, HEADER_VALUE.encode())]
"""Our own receiver refuses messages with it, whatever topic somebody copied them to."""
_TOPIC_SECONDS = 5.0
_CLOSE_SECONDS = 5.0
_RETRY_BACKOFF_MS = 500
_OVERHEAD_BYTES = 64 * 1024
"""Room in a request beside the message: its key, headers and framing."""


class TopicProducer(Protocol):
    """What the exporter needs of a connection."""

    async def send(self, key: bytes, value: bytes) -> asyncio.Future[Any]:
        """Hand a message over; waits while there is no room. The future is done when all in-sync brokers have it,
        or fails. Raises as the future does."""
        ...

    async def close(self) -> None:
        """Let go at once; what was not acknowledged may have been written or not."""
        ...


class Undeliverable(Exception):
    """There is no connection; the text says why and what to change."""


class AiokafkaProducer:
    """An idempotent producer with acks=all."""

    def __init__(self, producer: Any, topic: str) -> None:
        self._producer = producer
        self._topic = topic

    async def send(self, key: bytes, value: bytes) -> asyncio.Future[Any]:
        sent: asyncio.Future[Any] = await self._producer.send(self._topic, value, key, headers=_HEADERS)
        return sent

    async def close(self) -> None:
        await close_now(self._producer)


async def connect(options: KafkaResultsOptions, environ: Mapping[str, str]) -> AiokafkaProducer:
    """Raises Undeliverable, also where the topic does not exist; KafkaUnusable where another try can not help."""
    require_kafka()
    arguments = client_arguments(options, environ)
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError

    compression = None if options.compression is TopicCompression.NONE else options.compression.value
    producer = AIOKafkaProducer(
        **arguments,
        acks="all",
        enable_idempotence=True,
        compression_type=compression,
        linger_ms=int(options.linger_seconds * 1000),
        max_batch_size=options.batch_bytes,
        max_request_size=options.max_message_bytes + _OVERHEAD_BYTES,
        retry_backoff_ms=_RETRY_BACKOFF_MS,
    )
    started = False
    try:
        async with asyncio.timeout(2 * options.request_timeout_seconds):
            await producer.start()
        started = True
        async with asyncio.timeout(_TOPIC_SECONDS):
            await producer.partitions_for(options.topic)
    except (KafkaError, OSError, TimeoutError) as error:
        await close_now(producer)
        if started and isinstance(error, TimeoutError | UnknownTopicOrPartitionError):
            raise Undeliverable(
                f"topic {options.topic!r} does not exist on {', '.join(options.brokers)}; create it"
            ) from error
        raise Undeliverable(why_not(error) if started else await why_unreachable(arguments)) from error
    except BaseException:
        await close_now(producer)
        raise
    return AiokafkaProducer(producer, options.topic)


async def close_now(producer: Any) -> None:
    """Close an aiokafka producer without waiting for brokers that do not answer.

    Its `stop` waits until every batch is acknowledged, which an idempotent producer tries for ever; so its parts are
    ended one by one.
    """
    sender = producer._sender.sender_task
    if sender is not None:
        sender.cancel()
        await asyncio.wait({sender}, timeout=_CLOSE_SECONDS)
    producer._closed = True  # else it warns that it was forgotten
    await producer.client.close()


def is_too_large(error: BaseException) -> bool:
    """Whether the message itself is what the brokers, or the client, refuse."""
    from aiokafka.errors import MessageSizeTooLargeError, RecordListTooLargeError, RecordTooLargeError

    return isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError | RecordTooLargeError)


def why_not(error: BaseException) -> str:
    """A failure in words that hold nothing of the message."""
    from aiokafka.errors import ClusterAuthorizationFailedError, TopicAuthorizationFailedError

    if isinstance(error, TopicAuthorizationFailedError):
        return "this user may not write to the topic; allow it WRITE and DESCRIBE"
    if isinstance(error, ClusterAuthorizationFailedError):
        return "this user may not write idempotently; allow it IDEMPOTENT_WRITE on the cluster"
    if isinstance(error, TimeoutError):
        return "the brokers do not answer in time"
    return f"the brokers do not take messages ({type(error).__name__})"
