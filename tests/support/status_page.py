"""What a status page shows on a bad day: all of its parts, with names as long as they get."""

from __future__ import annotations

from collector.estimates.detect_choice import Watched
from collector.records.diagnosis import Cause
from collector.web.status import CAUSES, CauseRow, Gap, ScoreRow, Status, VersionRow, Worst

NOON = 1_700_000_000.0
_METRICS = ("faithfulness", "groundedness", "context_relevance", "response_relevancy")
_LONG = "customer-support-assistant-eu-central"


def _row(metric: str, kind: str, segment: dict[str, str], window: int, mean: float | None) -> ScoreRow:
    return ScoreRow(
        metric=metric, kind=kind, tier=None if kind == "judged" else "fast", segment=segment, window_seconds=window,
        mean=mean, lower=None if mean is None else mean - 0.06, upper=None if mean is None else mean + 0.05,
        n_eff=3.0 if mean is None else 1234.5, coverage=0.84, scored=123456, not_applicable=3210, failed=17,
        cluster_ratio=1.7, gain=1.4, controlled=kind == "judged",
    )  # fmt: skip


def _alarm(metric: str, tenant: str) -> Watched:
    segment = {"service": _LONG, "tenant": tenant}
    return Watched(
        series=f"{metric}/service={_LONG},tenant={tenant}", metric=metric, kind="judged", segment=segment,
        state="alarm", level=0.873, given=False, direction="higher", evidence=1.4, threshold=9.1, progress=1.0,
        baseline_n=2100.0, alarms=1, alarm_since=NOON, acknowledged=None,
    )  # fmt: skip


def busy() -> Status:
    """A status with every section."""
    return Status(
        version="1.2.3",
        uptime_seconds=61,
        ready=False,
        reasons={"judging": "the judge at https://api.example.com/v1 has not answered for 300 seconds"},
        judge="gpt-4o-mini-2024-07-18",
        funnel={"traces received": 1234567, "interactions found": 234567, "screened": 234500, "judged": 11725},
        estimates=[
            _row(metric, kind, segment, window, mean)
            for metric in _METRICS
            for kind in ("judged", "local")
            for segment in ({}, {"service": _LONG, "tenant": "acme"}, {"service": _LONG, "tenant": "bolt"})
            for window, mean in ((300, None), (3600, 0.8123))
        ],
        worst=[
            Worst(f"{number:032x}", f"i-{number}", _LONG, _METRICS[number % 4], "judged", number / 50, NOON)
            for number in range(8)
        ],
        gaps=[
            Gap(_LONG, "the texts of the retrieved documents", 4321,
                "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true in the application's environment"),
        ],
        notes=["the sampling of service 'shop' is unknown: numbers speak of what was received only"],
        causes=[CauseRow(str(cause), "judged", 0.09, 3600, says) for cause, says in CAUSES.items()
                if cause is not Cause.UNDETERMINED],
        versions=[
            VersionRow(_LONG, version, metric, "judged", None, 3600, 0.81, 0.7, 0.9, 812.0)
            for version in ("2026.11.30-rc1+8f3c2d1", "2026.12.01+1a2b3c4") for metric in _METRICS
        ],
        watched=[_alarm("faithfulness", "acme"), _alarm("response_relevancy", "bolt")],
    )  # fmt: skip
