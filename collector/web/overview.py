"""Makes the status page's value from what the stages know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry

from collector.estimates.detect_choice import Watched
from collector.estimates.estimates import Estimates
from collector.estimates.window import Estimate, Window
from collector.pipeline.clock import Clock
from collector.records.decision import Fate
from collector.web.health import Health
from collector.web.recent import Recent
from collector.web.status import CAUSES, CauseRow, ChangeRow, ScoreRow, Status, VersionRow
from scorers.scorer import Direction

_WORST = 20


class Overview:
    """Called on each request of the page or of `/api/v1/status`; reads, never changes.

    `directions` maps a metric's name to its direction; `notes` are sentences for the reader that were found at
    start (what is not run, and why).
    """

    def __init__(
        self,
        *,
        version: str,
        estimates: Estimates,
        segment_names: Sequence[str],
        registry: CollectorRegistry,
        recent: Recent,
        health: Health,
        judge: Callable[[], str],
        directions: Mapping[str, Direction],
        notes: Sequence[str],
        clock: Clock,
        watched: Callable[[], list[Watched]],
    ) -> None:
        self._version = version
        self._estimates = estimates
        self._segment_names = tuple(segment_names)
        self._registry = registry
        self._recent = recent
        self._health = health
        self._judge = judge
        self._directions = directions
        self._notes = tuple(notes)
        self._clock = clock
        self._watched = watched
        self._started = clock.monotonic()

    def status(self) -> Status:
        rows = [
            self._row(one) for window in (Window.FIVE_MINUTES, Window.HOUR) for one in self._estimates.all(window)
        ]
        shown = [row for row in rows if row.scored or row.not_applicable or row.failed]
        return Status(
            version=self._version,
            uptime_seconds=self._clock.monotonic() - self._started,
            ready=self._health.ready,
            reasons=self._health.reasons,
            judge=self._judge(),
            funnel=self._funnel(),
            estimates=shown,
            worst=self._recent.worst(_WORST),
            gaps=self._recent.gaps(),
            notes=list(self._notes),
            causes=[
                CauseRow(str(one.cause), str(one.kind), one.share, Window.HOUR.seconds, CAUSES[one.cause])
                for one in self._estimates.causes(Window.HOUR)
            ],
            versions=[
                VersionRow(
                    one.service,
                    one.version,
                    one.measure.metric,
                    str(one.measure.kind),
                    str(one.measure.tier) if one.measure.tier else None,
                    Window.HOUR.seconds,
                    one.mean,
                    one.lower,
                    one.upper,
                    one.n_eff,
                )
                for one in self._estimates.versions(Window.HOUR)
            ],
            changes=[
                ChangeRow(c.dimension, c.service, c.metric, c.value, c.first_seen, c.last_seen)
                for c in sorted(self._estimates.changes(), key=lambda c: -c.first_seen)
            ],
            watched=self._watched(),
        )

    def _row(self, one: Estimate) -> ScoreRow:
        measure = one.measure
        direction = self._directions.get(measure.metric, Direction.HIGHER_IS_BETTER)
        return ScoreRow(
            metric=measure.metric,
            kind=str(measure.kind),
            tier=str(measure.tier) if measure.tier else None,
            segment=dict(zip(self._segment_names, one.segment, strict=True)) if one.segment is not None else {},
            window_seconds=one.window.seconds,
            mean=one.mean,
            lower=one.lower,
            upper=one.upper,
            n_eff=one.n_eff,
            coverage=one.coverage,
            scored=one.scored,
            not_applicable=one.not_applicable,
            failed=one.failed,
            direction=str(direction),
            conditional=one.conditional,
            cluster_ratio=one.cluster_ratio,
            gain=one.gain,
            controlled=one.controlled,
        )

    def _funnel(self) -> dict[str, int]:
        def value(name: str, **labels: str) -> int:
            return int(self._registry.get_sample_value(name, labels) or 0)

        funnel = {
            "spans received": value("groundwatch_items_received_total", signal="traces"),
            "traces opened": value("groundwatch_traces_opened_total"),
            "traces with interactions": value("groundwatch_traces_examined_total", found="interactions"),
            "interactions found": value("groundwatch_interactions_found_total"),
        }
        for fate in Fate:
            funnel[fate.value.replace("_", " ")] = value("groundwatch_interactions_total", fate=fate.value)
        return funnel
