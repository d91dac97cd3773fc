"""Rows of the table about the judge: its calls, what they cost, and how well it judges.

`metrics.py` joins it with the rest and re-exports every constant; use them from there.
"""

from __future__ import annotations

from collector.telemetry.spec import MetricSpec, Type
from scorers.judge.observer import BreakerState, CallKind, CallOutcome

_TABLE: list[MetricSpec] = []


def _metric(spec: MetricSpec) -> MetricSpec:
    _TABLE.append(spec)
    return spec


# --- the judge's calls -----------------------------------------------------------------------------------
JUDGE_CALLS = _metric(
    MetricSpec(
        "groundwatch_judge_calls_total",
        Type.COUNTER,
        "Calls to the judge's endpoints, by how they ended.",
        {"endpoint": None, "kind": tuple(CallKind), "outcome": tuple(CallOutcome)},
        group="judge",
    )
)
JUDGE_CALL_TIME = _metric(
    MetricSpec(
        "groundwatch_judge_call_duration_seconds",
        Type.HISTOGRAM,
        "Time that one call to the judge took.",
        {"endpoint": None, "kind": tuple(CallKind)},
        buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
        group="judge",
    )
)
JUDGE_TOKENS = _metric(
    MetricSpec(
        "groundwatch_judge_tokens_total",
        Type.COUNTER,
        "Tokens of judge calls; cached ones are part of the input; estimated where the endpoint reported none.",
        {"endpoint": None, "direction": ("input", "output", "cached"), "source": ("reported", "estimated")},
        group="judge",
    )
)
JUDGE_COST = _metric(
    MetricSpec(
        "groundwatch_judge_cost_usd_total",
        Type.COUNTER,
        "Cost of judge calls in US dollars; absent (not 0) while no call had a known price.",
        {"endpoint": None},
        group="judge",
    )
)
JUDGE_UNPRICED = _metric(
    MetricSpec(
        "groundwatch_judge_unpriced_calls_total",
        Type.COUNTER,
        "Judge calls whose price is unknown; their cost is in no number.",
        {"endpoint": None},
        group="judge",
    )
)
JUDGE_CACHE = _metric(
    MetricSpec(
        "groundwatch_judge_cache_lookups_total",
        Type.COUNTER,
        "Lookups in the cache of verdicts.",
        {"result": ("hit", "miss")},
        group="judge",
    )
)
JUDGE_REASKED = _metric(
    MetricSpec(
        "groundwatch_judge_reasked_answers_total",
        Type.COUNTER,
        "Answers that a reply left out and that were asked again.",
        group="judge",
    )
)
JUDGE_BREAKER = _metric(
    MetricSpec(
        "groundwatch_judge_breaker_state",
        Type.GAUGE,
        "1 for the state that the endpoint's circuit breaker is in.",
        {"endpoint": None, "state": tuple(BreakerState)},
        group="judge",
    )
)
JUDGE_BREAKER_CHANGES = _metric(
    MetricSpec(
        "groundwatch_judge_breaker_opened_total",
        Type.COUNTER,
        "Times that an endpoint's circuit breaker opened, by cause.",
        {"endpoint": None, "cause": (*CallOutcome, "other")},
        group="judge",
    )
)
JUDGE_CONCURRENCY = _metric(
    MetricSpec(
        "groundwatch_judge_concurrency_limit",
        Type.GAUGE,
        "Calls that may be in flight to the endpoint now.",
        {"endpoint": None},
        group="judge",
    )
)
JUDGE_BUDGET = _metric(
    MetricSpec(
        "groundwatch_judge_budget_spent_ratio",
        Type.GAUGE,
        "Largest share of any limit of the budget that is spent in the period, 0 to 1.",
        {"period": ("hour", "day")},
        group="judge",
    )
)
JUDGE_BUDGET_BLOWN = _metric(
    MetricSpec(
        "groundwatch_judge_budget_blown",
        Type.GAUGE,
        "1 while the budget's fuse is blown: results are failed (budget) and estimates stop.",
        {"period": ("hour", "day")},
        group="judge",
    )
)
# --- how well the judge judges ------------------------------------------------------------------------------
JUDGE_NOISE_PAIRS = _metric(
    MetricSpec(
        "groundwatch_judge_noise_pairs_total",
        Type.COUNTER,
        "Interactions judged twice on purpose where both tries gave a score; repeats are in no estimate.",
        {"metric": None},
        group="judge",
    )
)
JUDGE_NOISE_SQUARES = _metric(
    MetricSpec(
        "groundwatch_judge_noise_squared_difference_total",
        Type.COUNTER,
        "Sum over those pairs of (first score - second score)^2; the judge's noise is the root of this by twice the "
        "pairs.",
        {"metric": None},
        group="judge",
    )
)
JUDGE_REPEATS = _metric(
    MetricSpec(
        "groundwatch_judge_repeats_total",
        Type.COUNTER,
        "Interactions chosen to be judged twice: judged, or left out because judging was behind or stopping.",
        {"outcome": ("judged", "left_out")},
        group="judge",
    )
)
CANARY_RESULTS = _metric(
    MetricSpec(
        "groundwatch_judge_canary_results_total",
        Type.COUNTER,
        "Expectations on planted cases, by how they came out; failed ones were not answered.",
        {"endpoint": None, "kind": None, "language": None, "result": ("right", "wrong", "failed")},
        group="judge",
    )
)
CANARY_ACCURACY = _metric(
    MetricSpec(
        "groundwatch_judge_canary_accuracy",
        Type.GAUGE,
        "Share of the last canary's answered expectations that came out as planted, 0 to 1; NaN where none was "
        "answered.",
        {"endpoint": None, "kind": None, "language": None},
        group="judge",
    )
)
CANARY_TIME = _metric(
    MetricSpec(
        "groundwatch_judge_canary_timestamp_seconds",
        Type.GAUGE,
        "When a canary was last answered, in seconds since 1970; 0 before the first.",
        {"endpoint": None},
        group="judge",
    )
)


def judge_table() -> tuple[MetricSpec, ...]:
    """The rows of this file, in the order of declaration."""
    return tuple(_TABLE)
