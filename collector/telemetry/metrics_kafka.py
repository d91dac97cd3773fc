"""The metrics of the Kafka receiver; part of the table in `collector.telemetry.metrics`."""

from __future__ import annotations

from collector.telemetry.spec import MetricSpec, Type

MESSAGE_OUTCOME = ("taken", "settled_before", "repeated", "unwanted", "poison")
POISON = ("unreadable", "too_large", "unreadable_record", "error")
PAUSE = ("room", "memory_full", "offsets_full")
_GROUP = "kafka"

KAFKA_CONNECTED = MetricSpec(
    "groundwatch_kafka_connected",
    Type.GAUGE,
    "1 while this process is a member of its consumer group; readiness says why when it is not.",
    group=_GROUP,
)
KAFKA_PARTITIONS = MetricSpec(
    "groundwatch_kafka_partitions", Type.GAUGE, "Partitions that this process consumes now.", group=_GROUP
)
KAFKA_LAG = MetricSpec(
    "groundwatch_kafka_lag_messages",
    Type.GAUGE,
    "Messages between the first that is not settled and the end of the partition, as of the last fetch. Beyond "
    "max_shown_partitions the sum of the others, as topic and partition `other`.",
    {"topic": None, "partition": None},
    group=_GROUP,
    collected=True,
)
KAFKA_UNSETTLED = MetricSpec(
    "groundwatch_kafka_unsettled_messages",
    Type.GAUGE,
    "Messages that were fetched and have no outcome yet: their traces are open, or wait for screening or the judge.",
    group=_GROUP,
)
KAFKA_OLDEST = MetricSpec(
    "groundwatch_kafka_oldest_unsettled_seconds",
    Type.GAUGE,
    "For how long the oldest message without an outcome has been here.",
    group=_GROUP,
)
KAFKA_MESSAGES = MetricSpec(
    "groundwatch_kafka_messages_total",
    Type.COUNTER,
    "Messages fetched, by what became of them: taken in; settled_before, as a former owner's commit says; repeated, "
    "which wait here already; unwanted (metrics, profiles, empty); poison.",
    {"outcome": MESSAGE_OUTCOME},
    group=_GROUP,
)
KAFKA_RECORDS = MetricSpec(
    "groundwatch_records_received_total",
    Type.COUNTER,
    "Plain records received, which need no assembly and go to screening at once.",
    group=_GROUP,
)
KAFKA_POISON = MetricSpec(
    "groundwatch_kafka_poison_total",
    Type.COUNTER,
    "Messages that can not be read, by reason; they are settled, so that they hold nothing up. `error` is a bug.",
    {"reason": POISON},
    group=_GROUP,
)
KAFKA_DEAD_LETTERS = MetricSpec(
    "groundwatch_kafka_dead_letters_total",
    Type.COUNTER,
    "Poison messages told to the dead-letter topic, and those that could not be told.",
    {"outcome": ("written", "failed")},
    group=_GROUP,
)
KAFKA_COMMITS = MetricSpec(
    "groundwatch_kafka_commits_total",
    Type.COUNTER,
    "Commits; one that failed is tried again with the next.",
    {"outcome": ("ok", "failed")},
    group=_GROUP,
)
KAFKA_REBALANCES = MetricSpec(
    "groundwatch_kafka_rebalances_total",
    Type.COUNTER,
    "How often the group divided its partitions anew while this process was in it.",
    group=_GROUP,
)
KAFKA_MOVED = MetricSpec(
    "groundwatch_kafka_messages_moved_total",
    Type.COUNTER,
    "Messages without an outcome whose partition went to another replica, which fetches them again; what was made of "
    "them here is dropped, uncounted.",
    group=_GROUP,
)
KAFKA_PAUSES = MetricSpec(
    "groundwatch_kafka_pauses_total",
    Type.COUNTER,
    "How often partitions were paused, by cause: no room in screening's queue, memory of open traces full, or more "
    "offsets settled out of order than a commit can name.",
    {"cause": PAUSE},
    group=_GROUP,
)
KAFKA_PAUSED = MetricSpec(
    "groundwatch_kafka_paused_partitions", Type.GAUGE, "Partitions paused now.", group=_GROUP
)
KAFKA_PASSED_OVER = MetricSpec(
    "groundwatch_kafka_deleted_messages_total",
    Type.COUNTER,
    "Messages that were deleted by the topic's retention before they were fetched: lag was longer than retention.",
    group=_GROUP,
)
INTERACTIONS_MOVED = MetricSpec(
    "groundwatch_interactions_moved_total",
    Type.COUNTER,
    "Interactions found here and dropped before they were settled, since their partition went to another replica.",
    group=_GROUP,
)


def kafka_table() -> tuple[MetricSpec, ...]:
    """Every metric of the receiver, in the order of declaration."""
    return (
        KAFKA_CONNECTED,
        KAFKA_PARTITIONS,
        KAFKA_LAG,
        KAFKA_UNSETTLED,
        KAFKA_OLDEST,
        KAFKA_MESSAGES,
        KAFKA_RECORDS,
        KAFKA_POISON,
        KAFKA_DEAD_LETTERS,
        KAFKA_COMMITS,
        KAFKA_REBALANCES,
        KAFKA_MOVED,
        KAFKA_PAUSES,
        KAFKA_PAUSED,
        KAFKA_PASSED_OVER,
        INTERACTIONS_MOVED,
    )
