"""Alerts about what outlives the process: books, spool and review store that can not be written, a spool that fills."""

from __future__ import annotations

from collector.telemetry import metrics
from dashboards.alerting import Alert
from dashboards.names import by, increase
from dashboards.options import HOUR, Options

QUARTER = HOUR // 4


def state_alerts(options: Options) -> list[Alert]:
    """Files of `process.state_dir` that are not written, were set aside, or are full."""
    one = (*options.keep, "instance")
    store = (*one, "store")
    unwritten = increase(metrics.REVIEW_CASES, options.time(QUARTER), one, 'outcome=~"failed|queue_full"')
    full = increase(metrics.REQUESTS_REFUSED, options.time(QUARTER), one, 'reason="spool_full"')
    return [
        Alert(
            "GroundwatchStateNotWritten",
            f"max {by(store)} ({metrics.STATE_FAILING.name}) > 0",
            hold=60,
            severity="critical",
            category="pipeline",
            summary="The {{ $labels.store }} can not be written ({{ $labels.instance }})",
            description="The disk is full or broken. /metrics stands at what was last written, and a spool takes "
            "nothing new; it goes on by itself when there is room.",
        ),
        Alert(
            "GroundwatchStateSetAside",
            f"max {by(store)} ({metrics.STATE_SET_ASIDE.name}) > 0",
            hold=0,
            severity="warning",
            category="pipeline",
            summary="The {{ $labels.store }} were damaged or foreign, and begun anew ({{ $labels.instance }})",
            description="What they held is set aside in process.state_dir: sums began at 0, or what was acknowledged "
            "and waited is not scored.",
        ),
        Alert(
            "GroundwatchSpoolFull",
            f"{full} > 0",
            hold=300,
            severity="warning",
            category="pipeline",
            summary="The spool is full and requests are refused ({{ $labels.instance }})",
            description="{{ $value | humanize }} requests in a quarter of an hour. What waits, waits for the judge or "
            "for screening.",
        ),
        Alert(
            "GroundwatchReviewNotWritten",
            f"{unwritten} > 0",
            hold=300,
            severity="warning",
            category="pipeline",
            summary="Cases for review are not stored ({{ $labels.instance }})",
            description="{{ $value | humanize }} cases in a quarter of an hour: the review store can not be written, "
            "or not as fast as they come. Scores and estimates are not touched.",
        ),
    ]
