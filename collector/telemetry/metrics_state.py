"""Rows of the table about what outlives the process: the books and the spool.

`metrics.py` joins it with the rest and re-exports every constant; use them from there.
"""

from __future__ import annotations

from collector.telemetry.spec import MetricSpec, Type

_TABLE: list[MetricSpec] = []
STORES = ("books", "spool")


def _metric(spec: MetricSpec) -> MetricSpec:
    _TABLE.append(spec)
    return spec


INTERACTIONS_REPEATED = _metric(
    MetricSpec(
        "groundwatch_interactions_repeated_total",
        Type.COUNTER,
        "Interactions that came again after they had been counted (a client or a source gave them twice, or a restart "
        "read them again) and were not counted again: noticed when screened, or only when settled.",
        {"noticed": ("screened", "settled")},
        group="state",
    )
)
STATE_COMMITS = _metric(
    MetricSpec(
        "groundwatch_state_commits_total",
        Type.COUNTER,
        "Group commits to the files in process.state_dir, by what came of them.",
        {"store": STORES, "outcome": ("written", "failed")},
        group="state",
    )
)
STATE_FAILING = _metric(
    MetricSpec(
        "groundwatch_state_failing",
        Type.GAUGE,
        "1 while a file in process.state_dir can not be written: /metrics stands still, new work is refused.",
        {"store": STORES},
        group="state",
    )
)
STATE_SET_ASIDE = _metric(
    MetricSpec(
        "groundwatch_state_files_set_aside",
        Type.GAUGE,
        "Files in process.state_dir that this process found damaged or foreign, renamed and replaced by new ones.",
        {"store": STORES},
        group="state",
    )
)
STATE_UNREADABLE = _metric(
    MetricSpec(
        "groundwatch_state_unreadable_total",
        Type.COUNTER,
        "Rows, or reads, of the files in process.state_dir that failed and were passed over.",
        {"store": STORES},
        group="state",
    )
)
SPOOL_BYTES = _metric(
    MetricSpec(
        "groundwatch_spool_bytes",
        Type.GAUGE,
        "Content in the spool: acknowledged, and not yet settled.",
        group="state",
    )
)
SPOOL_REQUESTS = _metric(
    MetricSpec("groundwatch_spool_requests", Type.GAUGE, "Requests with content in the spool.", group="state")
)
SPOOL_RESTORED = _metric(
    MetricSpec(
        "groundwatch_spool_restored_total",
        Type.COUNTER,
        "Requests that were in the spool at the start and were read again.",
        group="state",
    )
)


def state_table() -> tuple[MetricSpec, ...]:
    """The rows of this file, in the order of declaration."""
    return tuple(_TABLE)
