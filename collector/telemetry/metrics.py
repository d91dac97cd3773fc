"""SOURCE OF TRUTH for every metric that groundwatch exposes.

Instruments, the README's table, dashboards, alert rules and tests are made from this table; nothing else
declares a metric. Add a row here, then use its constant.
"""

from __future__ import annotations

from collector.records.decision import Fate
from collector.records.found import Mark
from collector.records.trace import Release
from collector.telemetry.metrics_estimates import *  # noqa: F403  # one namespace for all constants
from collector.telemetry.metrics_estimates import estimates_table
from collector.telemetry.metrics_judge import *  # noqa: F403  # one namespace for all constants
from collector.telemetry.metrics_judge import judge_table
from collector.telemetry.metrics_kafka import *  # noqa: F403  # one namespace for all constants
from collector.telemetry.metrics_kafka import kafka_table
from collector.telemetry.metrics_results import *  # noqa: F403  # one namespace for all constants
from collector.telemetry.metrics_results import results_table
from collector.telemetry.metrics_review import *  # noqa: F403  # one namespace for all constants
from collector.telemetry.metrics_review import review_table
from collector.telemetry.metrics_scoring import *  # noqa: F403  # one namespace for all constants
from collector.telemetry.metrics_scoring import scoring_table
from collector.telemetry.metrics_state import *  # noqa: F403  # one namespace for all constants
from collector.telemetry.metrics_state import state_table
from collector.telemetry.spec import MetricSpec, Type

SIGNAL = ("traces", "logs")
TRANSPORT = ("grpc", "http", "kafka")
REFUSED = (
    "unauthenticated",
    "too_large",
    "unreadable",
    "unsupported",
    "memory_full",
    "spool_full",
    "spool_failing",
    "starting",
    "shutting_down",
    "own_evaluation",
)
"""Why a whole request was refused at the border."""
ITEM_OUTCOME = ("held", "duplicate", "late", "malformed", "refused", "own_evaluation", "unrelated")
"""What became of a span or log record on arrival; `unrelated` is a log record that belongs to no trace."""

_TABLE: list[MetricSpec] = []


def _metric(spec: MetricSpec) -> MetricSpec:
    _TABLE.append(spec)
    return spec


# --- receivers -------------------------------------------------------------------------------------------
REQUESTS = _metric(
    MetricSpec(
        "groundwatch_receiver_requests_total",
        Type.COUNTER,
        "Export requests that arrived, by what was answered.",
        {"transport": TRANSPORT, "signal": SIGNAL, "outcome": ("accepted", "partial", "refused")},
        group="receivers",
    )
)
REQUESTS_REFUSED = _metric(
    MetricSpec(
        "groundwatch_receiver_refused_requests_total",
        Type.COUNTER,
        "Export requests that were refused whole, by reason.",
        {"transport": TRANSPORT, "reason": REFUSED},
        group="receivers",
    )
)
RECEIVED_BYTES = _metric(
    MetricSpec(
        "groundwatch_receiver_bytes_total",
        Type.COUNTER,
        "Bytes of accepted export requests after decompression.",
        {"transport": TRANSPORT, "signal": SIGNAL},
        group="receivers",
    )
)
ITEMS_RECEIVED = _metric(
    MetricSpec(
        "groundwatch_items_received_total",
        Type.COUNTER,
        "Spans (signal traces) and log records (signal logs) received.",
        {"signal": SIGNAL},
        group="receivers",
    )
)
ITEMS = _metric(
    MetricSpec(
        "groundwatch_items_total",
        Type.COUNTER,
        "Spans and log records by what became of them on arrival; the outcomes sum to the received.",
        {"signal": SIGNAL, "outcome": ITEM_OUTCOME},
        group="receivers",
    )
)
# --- assembly --------------------------------------------------------------------------------------------
TRACES_OPENED = _metric(
    MetricSpec(
        "groundwatch_traces_opened_total", Type.COUNTER, "Traces opened in the assembler.", group="assembly"
    )
)
TRACES_RELEASED = _metric(
    MetricSpec(
        "groundwatch_traces_released_total",
        Type.COUNTER,
        "Traces released from the assembler, by reason.",
        {"reason": tuple(Release)},
        group="assembly",
    )
)
TRACES_OPEN = _metric(
    MetricSpec("groundwatch_traces_open", Type.GAUGE, "Traces open in the assembler now.", group="assembly")
)
ASSEMBLY_BYTES = _metric(
    MetricSpec(
        "groundwatch_assembly_bytes",
        Type.GAUGE,
        "Memory that open traces are estimated to take, in bytes.",
        group="assembly",
    )
)
SPANS_TRIMMED = _metric(
    MetricSpec(
        "groundwatch_spans_trimmed_total",
        Type.COUNTER,
        "Spans of an open trace that were thrown away because the trace passed its cap; marks it incomplete.",
        group="assembly",
    )
)
# --- extraction and funnel -------------------------------------------------------------------------------
TRACES_EXAMINED = _metric(
    MetricSpec(
        "groundwatch_traces_examined_total",
        Type.COUNTER,
        "Released traces that were searched for interactions, by what was found.",
        {"found": ("interactions", "chat_only", "nothing", "error")},
        group="extraction",
    )
)
ITEMS_MALFORMED_LATER = _metric(
    MetricSpec(
        "groundwatch_items_malformed_later_total",
        Type.COUNTER,
        "Spans and log records that were held, and could not be decoded when their trace was released; their "
        "interactions are marked malformed_span and are not scored.",
        group="extraction",
    )
)
INTERACTIONS = _metric(
    MetricSpec(
        "groundwatch_interactions_total",
        Type.COUNTER,
        "Interactions found, by their fate; found = filtered + sampled_out + shed + queued.",
        {"fate": tuple(Fate)},
        group="extraction",
    )
)
INTERACTIONS_FOUND = _metric(
    MetricSpec(
        "groundwatch_interactions_found_total",
        Type.COUNTER,
        "Interactions found in traces and records.",
        group="extraction",
    )
)
INTERACTION_MARKS = _metric(
    MetricSpec(
        "groundwatch_interaction_marks_total",
        Type.COUNTER,
        "Interactions by mark: what was hidden, cut, dropped, unsplit or missing in their telemetry.",
        {"mark": tuple(Mark)},
        group="extraction",
    )
)


_TABLE.extend(kafka_table())
_TABLE.extend(scoring_table())
_TABLE.extend(judge_table())
_TABLE.extend(estimates_table())
_TABLE.extend(state_table())
_TABLE.extend(review_table())
_TABLE.extend(results_table())
# --- the process -----------------------------------------------------------------------------------------
BUILD_INFO = _metric(
    MetricSpec(
        "groundwatch_build_info",
        Type.GAUGE,
        "1, with the version of groundwatch and of Python.",
        {"version": None, "python": None},
        group="process",
    )
)
UNCLEAN_SHUTDOWN = _metric(
    MetricSpec(
        "groundwatch_unclean_shutdown",
        Type.GAUGE,
        "1 when the process before this one ended without draining (its open traces and queued jobs were lost).",
        group="process",
    )
)
PROCESS_MEMORY = _metric(
    MetricSpec(
        "groundwatch_resident_memory_bytes", Type.GAUGE, "Resident memory of this process.", group="process"
    )
)
LOOP_LAG = _metric(
    MetricSpec(
        "groundwatch_event_loop_lag_seconds",
        Type.HISTOGRAM,
        "How much later than asked the event loop woke up, sampled four times a second.",
        buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
        group="process",
    )
)
LOOP_LAG_MAX = _metric(
    MetricSpec(
        "groundwatch_event_loop_lag_max_seconds",
        Type.GAUGE,
        "Longest event-loop lag of the last minute.",
        group="process",
    )
)
LOG_LINES = _metric(
    MetricSpec(
        "groundwatch_log_lines_total",
        Type.COUNTER,
        "Events logged by level; a suppressed one repeats a line that was written shortly before.",
        {"level": ("debug", "info", "warning", "error"), "written": ("yes", "suppressed")},
        group="process",
    )
)


# --- sampling ---------------------------------------------------------------------------------------------
FILTERED = _metric(
    MetricSpec(
        "groundwatch_interactions_filtered_total",
        Type.COUNTER,
        "Interactions that were filtered out and are in no estimate, by reason.",
        {"reason": ("own_evaluation", "not_rag", "not_included", "excluded", "test_traffic")},
        group="sampling",
    )
)
UPSTREAM = _metric(
    MetricSpec(
        "groundwatch_upstream_sampling_total",
        Type.COUNTER,
        "Interactions by what is known of the sampling before us: none, ratio and unknown as configured; for "
        "tracestate read, missing, malformed, or inconsistent (threshold and randomness contradict each other).",
        {"known": ("none", "ratio", "unknown", "read", "missing", "malformed", "inconsistent")},
        group="sampling",
    )
)
UPSTREAM_CAPPED = _metric(
    MetricSpec(
        "groundwatch_upstream_weight_capped_total",
        Type.COUNTER,
        "Interactions whose upstream weight was over max_adjusted_count and was lowered to it.",
        group="sampling",
    )
)
SAMPLING_RATE = _metric(
    MetricSpec(
        "groundwatch_sampling_rate",
        Type.GAUGE,
        "Probability at which an interaction is judged now, after the budget, before shedding; with policies the "
        "mean over about the last hundred interactions.",
        group="sampling",
    )
)
SAMPLING_BUDGET_FACTOR = _metric(
    MetricSpec(
        "groundwatch_sampling_budget_factor",
        Type.GAUGE,
        "What the budget leaves of the rate above the floor, from 0 to 1.",
        group="sampling",
    )
)


def table() -> tuple[MetricSpec, ...]:
    """Every metric, in the order of declaration."""
    return tuple(_TABLE)
