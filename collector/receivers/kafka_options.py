"""What can be set about the Kafka receiver."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from collector.pipeline.kafka_client import KafkaClientOptions, TopicName

MIB = 1024 * 1024


class TopicEncoding(StrEnum):
    """How messages are encoded; `auto` looks at each."""

    AUTO = "auto"
    OTLP_PROTO = "otlp_proto"
    OTLP_JSON = "otlp_json"
    RECORDS = "records"


class TopicSignal(StrEnum):
    """What OTLP messages hold; `auto` looks at each."""

    AUTO = "auto"
    TRACES = "traces"
    LOGS = "logs"


class Start(StrEnum):
    """Where a group begins that has committed nothing."""

    EARLIEST = "earliest"
    LATEST = "latest"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TopicOptions(_Model):
    """One topic. A name alone stands for a topic with the defaults."""

    name: TopicName = Field(description="The topic's name.")
    encoding: TopicEncoding = Field(
        default=TopicEncoding.AUTO,
        description="otlp_proto or otlp_json as the Collector's Kafka exporter writes them, records (plain JSON, one "
        "interaction a message, mapped by extract.record), or auto: told by each message's content.",
    )
    signal: TopicSignal = Field(
        default=TopicSignal.AUTO,
        description="traces, logs, or auto: told by each message's content. Naming it saves the look.",
    )


class DeadLetterOptions(_Model):
    """A topic for messages that can not be read."""

    topic: TopicName = Field(description="Where to write them; it must exist.")
    payload: bool = Field(
        default=False,
        description="Write the message itself too. It is not redacted; without it only topic, partition, offset and "
        "reason are written.",
    )


class KafkaOptions(KafkaClientOptions):
    """The Kafka receiver."""

    topics: tuple[TopicOptions, ...] = Field(min_length=1, description="Topics to consume.")
    group_id: str = Field(
        default="groundwatch",
        min_length=1,
        max_length=200,
        description="Consumer group: replicas of one application share it, and with it the partitions.",
    )
    group_instance_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=249,
        description="Static membership: a name that stays over restarts and that no other replica has (a "
        "StatefulSet's pod name: {from_env: HOSTNAME}). A restart within the session timeout moves no partition.",
    )
    start: Start = Field(
        default=Start.LATEST,
        description="Where to begin where the group has committed nothing, or what it committed is gone: earliest "
        "(all that the topic still holds) or latest (only what is new).",
    )
    commit_seconds: float = Field(
        default=2.0,
        gt=0,
        le=300,
        description="Seconds between commits. What was settled since the last one is scored again when a process is "
        "killed and its partition moves.",
    )
    session_timeout_seconds: float = Field(
        default=45.0,
        ge=1,
        le=1800,
        description="After this long without a heartbeat a process is taken for dead and its partitions move.",
    )
    heartbeat_seconds: float = Field(default=3.0, gt=0, le=600, description="Seconds between heartbeats.")
    max_poll_interval_seconds: float = Field(
        default=300.0,
        ge=1,
        le=86_400,
        description="A process that has not asked for messages for this long leaves the group. It asks all the time, "
        "paused partitions or not; only a process that hangs does not.",
    )
    poll_messages: int = Field(
        default=500,
        ge=1,
        le=100_000,
        description="Messages fetched at once; they wait in memory until there is room.",
    )
    max_message_bytes: int = Field(
        default=16 * MIB,
        ge=1024,
        description="A larger message is not read: it is counted, and told to the dead-letter topic.",
    )
    max_waiting_traces: int | None = Field(
        default=None,
        ge=1,
        description="Traces and records that may be between arrival and the end of screening before partitions are "
        "paused. Absent: as many as screening's queue holds without shedding, so that a backlog is worked off "
        "instead of shed.",
    )
    offset_metadata_bytes: int = Field(
        default=4096,
        ge=64,
        le=1_000_000,
        description="Room in a commit for the offsets that are settled out of order: the brokers' "
        "offset.metadata.max.bytes. A partition is paused when it is full.",
    )
    dead_letter: DeadLetterOptions | None = Field(
        default=None, description="Where messages that can not be read are told; absent: to log and metrics only."
    )
    keys_checked: bool = Field(
        default=True,
        description="With several replicas: check that messages are keyed so that all of a trace's lie in one "
        "partition, and do not become ready otherwise. false where that is known by other means.",
    )
    max_shown_partitions: int = Field(
        default=64,
        ge=0,
        description="Partitions that have series of their own for lag; the lag of further ones is one series, `other`.",
    )

    @field_validator("topics", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        """Names alone, or one string of names with commas."""
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        if not isinstance(value, list | tuple):
            return value
        return tuple({"name": one} if isinstance(one, str) else one for one in value)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [topic.name for topic in self.topics]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"topics: {twice!r} is listed twice")
        if self.dead_letter is not None and self.dead_letter.topic in names:
            raise ValueError(
                f"dead_letter.topic: {self.dead_letter.topic!r} is one of the topics that are consumed; name another"
            )
        if self.heartbeat_seconds * 3 > self.session_timeout_seconds:
            raise ValueError(
                f"heartbeat_seconds ({self.heartbeat_seconds:g}) is more than a third of session_timeout_seconds "
                f"({self.session_timeout_seconds:g}): one lost heartbeat would end the membership"
            )
        return self
