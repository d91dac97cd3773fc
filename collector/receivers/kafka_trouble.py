"""Connecting to Kafka, and what is wrong when that fails, in words that say what to change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka import errors
from aiokafka.admin import AIOKafkaAdminClient

from collector.pipeline.kafka_client import KafkaUnusable, why_unreachable
from collector.receivers.kafka_options import KafkaOptions


async def connect(options: KafkaOptions, arguments: Mapping[str, Any]) -> AIOKafkaAdminClient:
    """An admin client of a cluster on which all topics can be read; `arguments` are those of `client_arguments`.

    Raises KafkaUnusable, KafkaError.
    """
    admin = AIOKafkaAdminClient(**arguments)
    try:
        try:
            await admin.start()
        except errors.KafkaConnectionError as error:
            raise KafkaUnusable(await why_unreachable(arguments)) from error
        problem = missing_topics(await admin.describe_topics([topic.name for topic in options.topics]))
        if problem is not None:
            raise KafkaUnusable(problem)
    except BaseException:
        await admin.close()
        raise
    return admin


async def tried(options: KafkaOptions, arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with these settings, tried once; None where the topics can be described."""
    try:
        await (await connect(options, arguments)).close()
    except (KafkaUnusable, errors.KafkaError, OSError, TimeoutError) as error:
        return in_words(error, options)
    return None


def missing_topics(described: Iterable[Mapping[str, Any]]) -> str | None:
    """Which topics can not be read, from a description of all; None where all can."""
    unknown, forbidden, invalid = [], [], []
    for topic in described:
        error = errors.for_code(topic["error_code"])
        if error is errors.UnknownTopicOrPartitionError:
            unknown.append(topic["topic"])
        elif error is errors.TopicAuthorizationFailedError:
            forbidden.append(topic["topic"])
        elif error is errors.InvalidTopicError:
            invalid.append(topic["topic"])
    if unknown:
        names = " and no topic ".join(unknown)
        return f"the cluster has no topic {names}: create it, or correct receivers.kafka.topics"
    if forbidden:
        return f"the user may not read topic {' and topic '.join(forbidden)}: grant Describe and Read"
    return f"{invalid[0]!r} is no name of a topic; correct receivers.kafka.topics" if invalid else None


def in_words(error: BaseException, options: KafkaOptions) -> str:
    """Why there is no membership. Names settings, never secrets."""
    if isinstance(error, KafkaUnusable):
        return str(error)
    group = options.group_id
    if isinstance(error, errors.GroupAuthorizationFailedError):
        return f"the user may not join the group {group}: grant Read on the group, or use another group_id"
    if isinstance(error, errors.TopicAuthorizationFailedError):
        return "the user may not read one of the topics: grant Describe and Read"
    if isinstance(error, errors.InvalidSessionTimeoutError):
        return (
            f"the brokers do not allow session_timeout_seconds {options.session_timeout_seconds:g}; it must lie "
            "between their group.min.session.timeout.ms and group.max.session.timeout.ms"
        )
    if isinstance(error, errors.InconsistentGroupProtocolError):
        return (
            f"the group {group} has members that are no groundwatch, or divide partitions in another way; use a "
            "group_id of our own"
        )
    if isinstance(error, errors.InvalidGroupIdError):
        return f"the brokers do not take {group!r} as a group_id; use another"
    if isinstance(error, errors.KafkaConnectionError | OSError | TimeoutError):
        return "the connection to the brokers is lost; connecting again"
    return f"the brokers answer with {type(error).__name__}"
