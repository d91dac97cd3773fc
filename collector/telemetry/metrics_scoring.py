"""The scoring half of the table of metrics: estimates, exporters, judging and screening.

`metrics.py` joins it with the rest and re-exports every constant; use them from there.
"""

from __future__ import annotations

from collector.telemetry.spec import MetricSpec, Type

_TABLE: list[MetricSpec] = []


def _metric(spec: MetricSpec) -> MetricSpec:
    _TABLE.append(spec)
    return spec


# --- estimates: weighted sums, read together at each scrape ----------------------------------------------
OUTCOMES = ("scored", "not_applicable", "failed")
"""What became of one metric on one interaction."""
SUM_PARTS = ("w", "w2", "wy", "w2y", "w2y2")
"""The five sums of an estimate: of w, w^2, w y, w^2 y and w^2 y^2 over scored interactions (w weight, y score)."""
JUDGED_LABELS: dict[str, tuple[str, ...] | None] = {"metric": None, "fingerprint": None}
LOCAL_LABELS: dict[str, tuple[str, ...] | None] = {"metric": None, "tier": None, "fingerprint": None}
"""What names a measure, and with its fingerprint (scorer, prompt and model) what it is measured with: scores of two
instruments are two things and never one series."""
_SUM_HELP = ("weights", "squared weights", "weight x score", "squared weight x score", "(weight x score) squared")


def _sums(kind: str, labels: dict[str, tuple[str, ...] | None]) -> tuple[MetricSpec, ...]:
    return tuple(
        _metric(
            MetricSpec(
                f"groundwatch_{kind}_sum_{part}_total",
                Type.COUNTER,
                f"Sum of {text} over scored interactions ({kind} scores).",
                labels,
                group="estimates",
                collected=True,
                segmented=True,
            )
        )
        for part, text in zip(SUM_PARTS, _SUM_HELP, strict=True)
    )


JUDGED_SUMS = _sums("judged", JUDGED_LABELS)
JUDGED_WEIGHT = _metric(
    MetricSpec(
        "groundwatch_judged_weight_total",
        Type.COUNTER,
        "Weight of the interactions chosen for judging, by outcome; coverage = scored / (scored + failed).",
        {**JUDGED_LABELS, "outcome": OUTCOMES},
        group="estimates",
        collected=True,
        segmented=True,
    )
)
JUDGED_UNSCORED_WEIGHT = _metric(
    MetricSpec(
        "groundwatch_judged_unscored_weight_total",
        Type.COUNTER,
        "Weight of the judged interactions that got no score, by reason.",
        {**JUDGED_LABELS, "outcome": OUTCOMES[1:], "reason": None},
        group="estimates",
        collected=True,
    )
)
SCORE_WEIGHT = _metric(
    MetricSpec(
        "groundwatch_score_weight_total",
        Type.COUNTER,
        "Weight of judged scores at or below le, cumulative: the distribution of scores.",
        {**JUDGED_LABELS, "le": None},
        group="estimates",
        collected=True,
        segmented=True,
    )
)
LOCAL_SUMS = _sums("local", LOCAL_LABELS)
LOCAL_WEIGHT = _metric(
    MetricSpec(
        "groundwatch_local_weight_total",
        Type.COUNTER,
        "Weight of the locally scored interactions, by outcome; coverage = scored / (scored + failed).",
        {**LOCAL_LABELS, "outcome": OUTCOMES},
        group="estimates",
        collected=True,
        segmented=True,
    )
)
LOCAL_UNSCORED_WEIGHT = _metric(
    MetricSpec(
        "groundwatch_local_unscored_weight_total",
        Type.COUNTER,
        "Weight of the interactions that got no local score, by reason.",
        {**LOCAL_LABELS, "outcome": OUTCOMES[1:], "reason": None},
        group="estimates",
        collected=True,
    )
)
LOCAL_SCORE_WEIGHT = _metric(
    MetricSpec(
        "groundwatch_local_score_weight_total",
        Type.COUNTER,
        "Weight of local scores at or below le, cumulative, over all segments: the distribution of scores.",
        {**LOCAL_LABELS, "le": None},
        group="estimates",
        collected=True,
    )
)
CONDITIONAL = _metric(
    MetricSpec(
        "groundwatch_conditional_interactions_total",
        Type.COUNTER,
        "Settled interactions whose upstream sampling is unknown; where this grows, estimates speak of received "
        "traffic only.",
        group="estimates",
        collected=True,
        segmented=True,
    )
)
SETTLED = _metric(
    MetricSpec(
        "groundwatch_interactions_settled_total",
        Type.COUNTER,
        "Interactions whose scoring has ended, by fate; each is in the sums from this moment.",
        {"fate": ("sampled_out", "shed", "queued")},
        group="estimates",
    )
)
ESTIMATES_IGNORED = _metric(
    MetricSpec(
        "groundwatch_estimates_ignored_results_total",
        Type.COUNTER,
        "Results that were kept out of the sums: a weight that is no positive number, a second result for the "
        "same metric, a repeated attempt.",
        {"reason": ("weight", "duplicate", "attempt")},
        group="estimates",
    )
)
SEGMENTS_FOLDED = _metric(
    MetricSpec(
        "groundwatch_segments_folded_total",
        Type.COUNTER,
        "Interactions counted under segment 'other' because one more segment would pass the series budget.",
        group="estimates",
    )
)
SERIES = _metric(
    MetricSpec("groundwatch_estimate_series", Type.GAUGE, "Time series that the sums take now.", group="estimates")
)
SCORER_INFO = _metric(
    MetricSpec(
        "groundwatch_scorer_info",
        Type.GAUGE,
        "1 for each instrument seen: metric, kind, tier, version and fingerprint (scorer, prompt and model).",
        {"metric": None, "kind": None, "tier": None, "version": None, "fingerprint": None},
        group="estimates",
    )
)
# --- exporters -------------------------------------------------------------------------------------------
JUDGED_SCORE = _metric(
    MetricSpec(
        "groundwatch_judged_score",
        Type.HISTOGRAM,
        "Judged scores without weights; carries trace ids as exemplars. Read means and shares from the sums.",
        {"metric": None},
        buckets=(0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0),
        group="exporters",
    )
)


EVENTS_EXPORTED = _metric(
    MetricSpec(
        "groundwatch_evaluation_events_total",
        Type.COUNTER,
        "Evaluation events (one per result) by what became of them: sent, failed at the endpoint, dropped because "
        " the queue was full or the time for the last flush was over.",
        {"outcome": ("sent", "failed", "dropped_queue_full", "dropped_shutdown")},
        group="exporters",
    )
)
EVENTS_WAITING = _metric(
    MetricSpec(
        "groundwatch_evaluation_events_waiting",
        Type.GAUGE,
        "Evaluation events that wait to be sent.",
        group="exporters",
    )
)
# --- judging ---------------------------------------------------------------------------------------------
JUDGING_QUEUED = _metric(
    MetricSpec(
        "groundwatch_judging_queued_total",
        Type.COUNTER,
        "Interactions queued for judging, per metric; queued = scored + not_applicable + failed + moved + waiting.",
        {"metric": None},
        group="judging",
    )
)
JUDGING_RESULTS = _metric(
    MetricSpec(
        "groundwatch_judging_results_total",
        Type.COUNTER,
        "Judged interactions per metric, by outcome; the reason says why there is no score ('none' for scored, and for "
        "moved: their Kafka partition went to another replica while they waited).",
        {"metric": None, "outcome": (*OUTCOMES, "moved"), "reason": None},
        group="judging",
    )
)
JUDGING_WAITING = _metric(
    MetricSpec(
        "groundwatch_judging_waiting",
        Type.GAUGE,
        "Interactions queued or being judged now, per metric.",
        {"metric": None},
        group="judging",
    )
)
JUDGING_QUEUE_JOBS = _metric(
    MetricSpec("groundwatch_judging_queue_jobs", Type.GAUGE, "Jobs in the judge queue.", group="judging")
)
JUDGING_QUEUE_BYTES = _metric(
    MetricSpec(
        "groundwatch_judging_queue_bytes",
        Type.GAUGE,
        "Memory that queued jobs are estimated to take.",
        group="judging",
    )
)
JUDGING_RUNNING = _metric(
    MetricSpec("groundwatch_judging_running_jobs", Type.GAUGE, "Jobs being judged now.", group="judging")
)
JUDGING_OLDEST_JOB = _metric(
    MetricSpec(
        "groundwatch_judging_oldest_job_age_seconds",
        Type.GAUGE,
        "Age of the oldest job that waits; 0 when none does.",
        group="judging",
    )
)
JUDGING_OLDEST_SLOT = _metric(
    MetricSpec(
        "groundwatch_judging_oldest_slot_age_seconds",
        Type.GAUGE,
        "Time that the longest running job has held its slot; 0 when none runs.",
        group="judging",
    )
)
JUDGING_KEEP_PROBABILITY = _metric(
    MetricSpec(
        "groundwatch_judging_keep_probability",
        Type.GAUGE,
        "Share of chosen interactions that the queue lets in now; below 1 when judging is behind.",
        group="judging",
    )
)
JUDGING_ABANDONED = _metric(
    MetricSpec(
        "groundwatch_judging_abandoned_slots_total",
        Type.COUNTER,
        "Slots given up because their job did not end after it was cancelled.",
        group="judging",
    )
)
JUDGING_RETRIED = _metric(
    MetricSpec(
        "groundwatch_judging_retried_jobs_total",
        Type.COUNTER,
        "Jobs put back because the judge was down; they wait until max_age.",
        group="judging",
    )
)
JUDGING_WAIT = _metric(
    MetricSpec(
        "groundwatch_judging_wait_seconds",
        Type.HISTOGRAM,
        "Time that a job waited before judging began.",
        buckets=(0.1, 0.5, 1, 5, 15, 60, 180, 420, 900),
        group="judging",
    )
)
JUDGING_TIME = _metric(
    MetricSpec(
        "groundwatch_judging_duration_seconds",
        Type.HISTOGRAM,
        "Time that judging one interaction took, all calls together.",
        buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
        group="judging",
    )
)
# --- screening -------------------------------------------------------------------------------------------
SCREENING_TRACES = _metric(
    MetricSpec(
        "groundwatch_screening_traces_total",
        Type.COUNTER,
        "Released traces by what screening did: screened, shed by hash with a known probability, dropped because "
        "the queue was full or the process stopped, failed in the workers.",
        {"outcome": ("screened", "shed", "dropped_full", "dropped_shutdown", "failed")},
        group="screening",
    )
)
SCREENING_QUEUE_TRACES = _metric(
    MetricSpec(
        "groundwatch_screening_queue_traces", Type.GAUGE, "Traces that wait for screening.", group="screening"
    )
)
SCREENING_QUEUE_BYTES = _metric(
    MetricSpec(
        "groundwatch_screening_queue_bytes",
        Type.GAUGE,
        "Bytes of the traces that wait for screening.",
        group="screening",
    )
)
SCREENING_QUEUE_AGE = _metric(
    MetricSpec(
        "groundwatch_screening_queue_age_seconds",
        Type.GAUGE,
        "How long the oldest trace has waited for screening, in seconds; 0 when none waits.",
        group="screening",
    )
)
SCREENING_KEEP_PROBABILITY = _metric(
    MetricSpec(
        "groundwatch_screening_keep_probability",
        Type.GAUGE,
        "Probability with which a trace is let into screening now; below 1 it sheds for load.",
        group="screening",
    )
)
SCREENING_SECONDS = _metric(
    MetricSpec(
        "groundwatch_screening_batch_seconds",
        Type.HISTOGRAM,
        "Time from handing a batch of traces to a worker to its results, in seconds.",
        buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
        group="screening",
    )
)
SCREENING_WORKER_LOSSES = _metric(
    MetricSpec(
        "groundwatch_screening_worker_losses_total",
        Type.COUNTER,
        "Worker processes replaced because they died or hung, and batches whose handler raised.",
        {"reason": ("died", "hung", "raised", "stopped")},
        group="screening",
    )
)


def scoring_table() -> tuple[MetricSpec, ...]:
    """The rows of this file, in the order of declaration."""
    return tuple(_TABLE)
