"""What can be set about the results topic."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from collector.pipeline.kafka_client import KafkaClientOptions, TopicName

MIB = 1024 * 1024


class TopicCompression(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class KafkaResultsOptions(KafkaClientOptions):
    """Where what became of each interaction is written as JSON. What is not set here of the cluster (brokers, tls,
    sasl) is as in receivers.kafka, where brokers are not set."""

    topic: TopicName = Field(
        description="The topic; it must exist, and be none of those that are consumed. Keyed by interaction id."
    )
    compression: TopicCompression = Field(
        default=TopicCompression.ZSTD, description="Of batches: none, gzip, snappy, lz4 or zstd."
    )
    filtered: bool = Field(
        default=False,
        description="Write also interactions that are filtered (no retrieval, test traffic, own evaluations).",
    )
    queue_messages: int = Field(
        default=20_000,
        ge=1,
        description="Messages that may wait for the brokers. When as many wait, what came over OTLP without a spool "
        "is dropped and counted; from Kafka and the spool nothing more is taken in until there is room.",
    )
    queue_bytes: int = Field(default=64 * MIB, ge=1024, description="The same in bytes of JSON.")
    max_message_bytes: int = Field(
        default=1_000_000,
        ge=10_000,
        description="A larger message is written without content, and says so; the brokers' message.max.bytes or less.",
    )
    linger_seconds: float = Field(
        default=0.05, ge=0, le=10, description="How long a message may wait for others to be sent together."
    )
    batch_bytes: int = Field(default=64 * 1024, ge=1024, description="Most bytes of one batch of a partition.")
    retry_seconds: float = Field(
        default=30.0,
        gt=0,
        le=600,
        description="Longest time between two tries to connect; the first comes after half a second.",
    )
