"""Alerts about the judge and its queue."""

from __future__ import annotations

from collector.telemetry import metrics
from dashboards.alerting import Alert
from dashboards.names import JUDGED, by, increase, select, series
from dashboards.options import HOUR, Options

HALF_HOUR = HOUR // 2
QUARTER = HOUR // 4
ENDPOINT = "endpoint"
SHADOW = "shadow"
"""The default name of a judge that only looks on (`judge.shadow.name`)."""


def judge_alerts(options: Options) -> list[Alert]:
    """Failing, wrong, behind, stuck, out of money; and what could not be scored."""
    keep = options.keep
    half = options.time(HALF_HOUR)
    failed = increase(
        metrics.JUDGING_RESULTS, half, (*keep, "reason"), 'outcome="failed"', 'reason!~"incomplete|queue_full"'
    )
    tried = increase(metrics.JUDGING_RESULTS, half, keep, 'outcome=~"scored|failed"', 'reason!="incomplete"')
    match = f"on ({', '.join(keep)})"
    coverage = "total", JUDGED.name, "coverage", "1h"
    counted = increase(metrics.JUDGING_RESULTS, options.time(HOUR), (*keep, "metric"), 'outcome=~"scored|failed"')
    segment_n, segment_coverage = (series("segment", JUDGED.name, what, "1h") for what in ("n_eff", "coverage"))
    dropped = increase(metrics.JUDGING_RESULTS, options.time(QUARTER), keep, 'reason="queue_full"')
    # What was not answered is NaN, which no comparison keeps; the shadow's opinion enters no judged series.
    not_shadow = f'{ENDPOINT}!="{SHADOW}"'
    answered = f"({select(metrics.CANARY_ACCURACY, not_shadow)} >= 0)"
    right = f"avg by ({', '.join((*keep, 'instance', ENDPOINT))}) {answered}"
    return [
        Alert(
            "GroundwatchJudgeFailing",
            f"{failed} / {match} group_left () {tried} > {options.max_judge_failures:g} and {failed} >= 5",
            hold=600,
            severity="critical",
            category="judge",
            summary="Judging fails: {{ $labels.reason }} ({{ $labels.job }})",
            description="{{ $value | humanizePercentage }} of the judged results of the last half hour failed for "
            "this reason.",
        ),
        Alert(
            "GroundwatchCanaryLow",
            f"min {by((*keep, ENDPOINT))} ({right}) < {options.min_canary:g}",
            hold=300,
            severity="critical",
            category="judge",
            summary="The judge gets only {{ $value | humanizePercentage }} of the planted cases right "
            "({{ $labels.job }})",
            description="Answers whose right score is known (supported, contradicted, off topic, a refusal, in two "
            "languages) were scored wrong, so what the judge says of real ones is not to be believed: judged quality "
            "alerts are off until it passes.",
        ),
        Alert(
            "GroundwatchCoverageLow",
            f"{series(*coverage)} < {options.min_coverage:g} and on ({', '.join((*keep, 'metric'))}) {counted} >= 20",
            hold=HALF_HOUR,
            severity="warning",
            category="judge",
            summary="Only {{ $value | humanizePercentage }} of {{ $labels.metric }} could be scored "
            "({{ $labels.job }})",
            description="Judges fail more often on long, odd and bad answers, so the mean of what was scored is no "
            "longer that of all: quality alerts of this metric are off. See the bounds beside the mean.",
            labels={"level": "total"},
        ),
        Alert(
            "GroundwatchCoverageLow",
            f"{segment_coverage} < {options.min_coverage:g} and {segment_n} / {segment_coverage} >= 20",
            hold=HALF_HOUR,
            severity="warning",
            category="judge",
            summary="Only {{ $value | humanizePercentage }} of {{ $labels.metric }} could be scored for "
            + ", ".join(f"{{{{ $labels.{name} }}}}" for name in options.segments),
            description="Judges fail more often on long, odd and bad answers, so the mean of what was scored is no "
            "longer that of all: quality alerts of this metric are off here. See the bounds beside the mean.",
            labels={"level": "segment"},
        ),
        Alert(
            "GroundwatchBudgetFuse",
            f"max {by((*keep, 'period'))} ({metrics.JUDGE_BUDGET_BLOWN.name}) == 1",
            hold=0,
            severity="warning",
            category="judge",
            summary="The judge's budget for the {{ $labels.period }} is spent ({{ $labels.job }})",
            description="The fuse is blown: results fail with reason budget and judged estimates stop until the "
            "period ends.",
        ),
        Alert(
            "GroundwatchQueueOld",
            f"max {by(keep)} ({metrics.JUDGING_OLDEST_JOB.name}) > 300",
            hold=300,
            severity="warning",
            category="judge",
            summary="The judge is behind by {{ $value | humanizeDuration }} ({{ $labels.job }})",
            description="The oldest job has waited for over five minutes. Jobs wait at most max_age, and before the "
            "queue is full some are shed.",
            labels={"queue": "judging"},
        ),
        Alert(
            "GroundwatchQueueOld",
            f"max {by(keep)} ({metrics.SCREENING_QUEUE_AGE.name}) > 60",
            hold=300,
            severity="warning",
            category="pipeline",
            summary="Screening is behind by {{ $value | humanizeDuration }} ({{ $labels.job }})",
            description="The oldest trace has waited for over a minute. Before the queue is full traces are shed.",
            labels={"queue": "screening"},
        ),
        Alert(
            "GroundwatchJudgeStuck",
            f"max {by((*keep, 'instance'))} ({metrics.JUDGING_OLDEST_SLOT.name}) > 600",
            hold=60,
            severity="warning",
            category="judge",
            summary="A judge call has held its slot for {{ $value | humanizeDuration }} ({{ $labels.instance }})",
            description="It does not end although it was cancelled; when all slots are taken so, nothing is judged.",
        ),
        Alert(
            "GroundwatchResultsDropped",
            f"{dropped} > 0",
            hold=0,
            severity="warning",
            category="judge",
            summary="Jobs were dropped from the full judge queue ({{ $labels.job }})",
            description="{{ $value | humanize }} results in a quarter of an hour were dropped with a probability "
            "that is not known; they count as failed.",
        ),
    ]
