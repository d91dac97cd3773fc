"""Rows of the table about cases for review.

`metrics.py` joins it with the rest and re-exports every constant; use them from there.
"""

from __future__ import annotations

from collector.telemetry.spec import MetricSpec, Type

_TABLE: list[MetricSpec] = []


def _metric(spec: MetricSpec) -> MetricSpec:
    _TABLE.append(spec)
    return spec


REVIEW_CASE_OUTCOMES = ("stored", "merged", "erased", "queue_full", "too_large", "failed", "shutdown")
REVIEW_RETIREMENTS = ("age", "count", "bytes", "request")
REVIEW_LABEL_KINDS = (
    "agree",
    "claim",
    "passage",
    "score",
    "comment",
    "reference",
    "golden",
    "skip",
    "undo",
)
REVIEW_REASONS = (
    "control",
    "low_score",
    "disagreement",
    "judge_noise",
    "diagnosis",
    "feedback",
    "ingested",
)

REVIEW_FEEDBACK_OUTCOMES = ("picked", "attached", "content", "unknown", "failed")

REVIEW_PICKED = _metric(
    MetricSpec(
        "groundwatch_review_picked_total",
        Type.COUNTER,
        "Interactions picked as cases for review, by reason; one that fits several reasons counts in each.",
        {"reason": REVIEW_REASONS},
        group="review",
    )
)
REVIEW_OVER_QUOTA = _metric(
    MetricSpec(
        "groundwatch_review_over_quota_total",
        Type.COUNTER,
        "Interactions that a reason would have picked, over the day's quota of their segment.",
        {"reason": REVIEW_REASONS},
        group="review",
    )
)
REVIEW_CASES = _metric(
    MetricSpec(
        "groundwatch_review_cases_total",
        Type.COUNTER,
        "Cases handed to the review store: stored, merged (was there already), erased (its subject was, before), or "
        "dropped because the queue was full, the case too large, the file not writable, or the process ended.",
        {"outcome": REVIEW_CASE_OUTCOMES},
        group="review",
    )
)
REVIEW_RETIRED = _metric(
    MetricSpec(
        "groundwatch_review_retired_total",
        Type.COUNTER,
        "Cases deleted from the review store: over the limit of age, count or bytes, or on a subject's request.",
        {"reason": REVIEW_RETIREMENTS},
        group="review",
    )
)
REVIEW_LABELS = _metric(
    MetricSpec(
        "groundwatch_review_labels_total",
        Type.COUNTER,
        "Labels that people gave, by kind.",
        {"kind": REVIEW_LABEL_KINDS},
        group="review",
    )
)
REVIEW_FEEDBACK = _metric(
    MetricSpec(
        "groundwatch_review_feedback_total",
        Type.COUNTER,
        "Users' feedback: picked (made a case), attached (to a case that was there), content (good, or over the quota: "
        "no case), unknown (its interaction is not remembered), or failed (the store did not answer).",
        {"outcome": REVIEW_FEEDBACK_OUTCOMES},
        group="review",
    )
)
REVIEW_KEPT = _metric(
    MetricSpec("groundwatch_review_store_cases", Type.GAUGE, "Cases in the review store now.", group="review")
)
REVIEW_BYTES = _metric(
    MetricSpec(
        "groundwatch_review_store_bytes",
        Type.GAUGE,
        "Bytes that cases take in the review store's file.",
        group="review",
    )
)
REVIEW_WAITING = _metric(
    MetricSpec(
        "groundwatch_review_waiting", Type.GAUGE, "Cases and labels that wait to be written.", group="review"
    )
)
CORRECTED_MEAN = _metric(
    MetricSpec(
        "groundwatch_corrected_mean",
        Type.GAUGE,
        "Mean of all traffic as people would score it, 0 to 1: the judge's corrected by labels in the order drawn; "
        "from 50 labels on, over what the review store holds.",
        {"metric": None},
        group="review",
    )
)
CORRECTED_LOWER = _metric(
    MetricSpec(
        "groundwatch_corrected_mean_lower",
        Type.GAUGE,
        "Lower end of the corrected mean's 95 % interval.",
        {"metric": None},
        group="review",
    )
)
CORRECTED_UPPER = _metric(
    MetricSpec(
        "groundwatch_corrected_mean_upper",
        Type.GAUGE,
        "Upper end of the corrected mean's 95 % interval.",
        {"metric": None},
        group="review",
    )
)
CORRECTED_UNCORRECTED = _metric(
    MetricSpec(
        "groundwatch_corrected_uncorrected_mean",
        Type.GAUGE,
        "Mean of the same traffic by the judge alone (without a judge: by the local score).",
        {"metric": None},
        group="review",
    )
)
CORRECTED_LABELS = _metric(
    MetricSpec(
        "groundwatch_corrected_labels",
        Type.GAUGE,
        "Labels that the corrected mean rests on.",
        {"metric": None},
        group="review",
    )
)


def review_table() -> tuple[MetricSpec, ...]:
    """Every metric of this file, in the order of declaration."""
    return tuple(_TABLE)
