"""The metrics of the results topic; part of the table in `collector.telemetry.metrics`."""

from __future__ import annotations

from collector.telemetry.spec import MetricSpec, Type

_GROUP = "results"

RESULTS_MESSAGES = MetricSpec(
    "groundwatch_results_messages_total",
    Type.COUNTER,
    "Messages for the results topic, by what became of them: sent, which all in-sync brokers have; kept at the end of "
    "the process, for the next; moved to the replica that has their partition now; dropped because the queue was full, "
    "the message too large without its content too, or the process ended.",
    {
        "outcome": (
            "sent",
            "kept",
            "moved",
            "dropped_queue_full",
            "dropped_too_large",
            "dropped_shutdown",
        )
    },
    group=_GROUP,
)
RESULTS_FAILURES = MetricSpec(
    "groundwatch_results_failures_total",
    Type.COUNTER,
    "Tries to write to the results topic that failed; they are repeated.",
    group=_GROUP,
)
RESULTS_WITHOUT_CONTENT = MetricSpec(
    "groundwatch_results_without_content_total",
    Type.COUNTER,
    "Messages that were written without their content because they were too large with it.",
    group=_GROUP,
)
RESULTS_WAITING = MetricSpec(
    "groundwatch_results_waiting_messages",
    Type.GAUGE,
    "Messages for the results topic that the brokers do not have yet.",
    group=_GROUP,
)
RESULTS_WAITING_BYTES = MetricSpec(
    "groundwatch_results_waiting_bytes", Type.GAUGE, "The same in bytes of JSON.", group=_GROUP
)
RESULTS_OLDEST = MetricSpec(
    "groundwatch_results_oldest_waiting_seconds",
    Type.GAUGE,
    "For how long the oldest message has waited for the brokers.",
    group=_GROUP,
)
RESULTS_CONNECTED = MetricSpec(
    "groundwatch_results_connected",
    Type.GAUGE,
    "1 while the results topic can be written; the log says why when it can not.",
    group=_GROUP,
)


def results_table() -> tuple[MetricSpec, ...]:
    """Every metric of the results topic, in the order of declaration."""
    return (
        RESULTS_MESSAGES,
        RESULTS_FAILURES,
        RESULTS_WITHOUT_CONTENT,
        RESULTS_WAITING,
        RESULTS_WAITING_BYTES,
        RESULTS_OLDEST,
        RESULTS_CONNECTED,
    )
