"""Alerts about Kafka: messages that wait, messages that can not be read, results that are not written."""

from __future__ import annotations

from collector.telemetry import metrics
from dashboards.alerting import Alert
from dashboards.names import by, increase
from dashboards.options import HOUR, Options

QUARTER = HOUR // 4
_MANY = 1_000
_UNWRITTEN_SECONDS = 600
_OLD_SECONDS = 2_700
"""Longer than any message waits for its outcome: ten minutes open, a quarter of an hour for the judge, and its call."""


def kafka_alerts(options: Options) -> list[Alert]:
    """Lag that grows, offsets that do not move, poison, a results topic that takes nothing."""
    keep = options.keep
    quarter = options.time(QUARTER)
    lag = f"sum {by(keep)} ({metrics.KAFKA_LAG.name})"
    earlier = f"sum {by(keep)} ({metrics.KAFKA_LAG.name} offset {quarter})"
    poison = increase(metrics.KAFKA_POISON, quarter, (*keep, "reason"))
    dropped = increase(metrics.RESULTS_MESSAGES, quarter, keep, 'outcome=~"dropped.*"')
    return [
        Alert(
            "GroundwatchKafkaLag",
            f"{lag} > {_MANY} and {lag} >= {earlier}",
            hold=QUARTER,
            severity="warning",
            category="pipeline",
            summary="{{ $value | humanize }} messages wait in Kafka, and no fewer than before ({{ $labels.job }})",
            description="More arrive than are settled. What retention deletes before it is read is lost; "
            "groundwatch_kafka_deleted_messages_total counts it.",
            labels={"cause": "behind"},
        ),
        Alert(
            "GroundwatchKafkaLag",
            f"max {by((*keep, 'instance'))} ({metrics.KAFKA_OLDEST.name}) > {_OLD_SECONDS}",
            hold=300,
            severity="warning",
            category="pipeline",
            summary="A message has had no outcome for {{ $value | humanizeDuration }} ({{ $labels.instance }})",
            description="The committed offset stands still at it. When more are settled behind it than a commit can "
            "name, the partition is paused.",
            labels={"cause": "stuck"},
        ),
        Alert(
            "GroundwatchDeadLetters",
            f"{poison} > 0",
            hold=0,
            severity="warning",
            category="instrumentation",
            summary="Messages in Kafka can not be read: {{ $labels.reason }} ({{ $labels.job }})",
            description="{{ $value | humanize }} in a quarter of an hour were passed over. The log, and the "
            "dead-letter topic where there is one, name topic, partition and offset.",
        ),
        Alert(
            "GroundwatchResultsNotWritten",
            f"max {by((*keep, 'instance'))} ({metrics.RESULTS_OLDEST.name}) > {_UNWRITTEN_SECONDS}",
            hold=300,
            severity="warning",
            category="pipeline",
            summary="A result waits for its topic since {{ $value | humanizeDuration }} ({{ $labels.instance }})",
            description="Nothing is lost yet. When the queue is full nothing more is read from Kafka, a spool refuses, "
            "and results of what came over OTLP without a spool are dropped.",
            labels={"cause": "waiting"},
        ),
        Alert(
            "GroundwatchResultsNotWritten",
            f"{dropped} > 0",
            hold=0,
            severity="warning",
            category="pipeline",
            summary="{{ $value | humanize }} results were not written to their topic ({{ $labels.job }})",
            description="They are in the estimates, and in no message: the queue was full, a message too large, or the "
            "process ended.",
            labels={"cause": "dropped"},
        ),
    ]
