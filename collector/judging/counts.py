"""Conservation of judging, per metric: queued = scored + not_applicable + failed + moved + waiting."""

from __future__ import annotations

from collections.abc import Sequence

from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from scorers.outcome import FailedReason, NotApplicable, NotApplicableReason, Outcome, Result, Score

NO_REASON = "none"


class Counts:
    """Counters per metric, every reason born at 0."""

    def __init__(self, telemetry: Telemetry, names: Sequence[str]) -> None:
        self._telemetry = telemetry
        self._names = tuple(names)
        self._known = set(names)
        for name in names:
            self._birth(name)

    def _birth(self, name: str) -> None:
        self._telemetry.counter(metrics.JUDGING_QUEUED, metric=name)
        self._telemetry.gauge(metrics.JUDGING_WAITING, metric=name)
        reasons = [("scored", NO_REASON), ("moved", NO_REASON)]
        reasons += [("not_applicable", reason.value) for reason in NotApplicableReason]
        reasons += [("failed", reason.value) for reason in FailedReason]
        for outcome, reason in reasons:
            self._telemetry.counter(metrics.JUDGING_RESULTS, metric=name, outcome=outcome, reason=reason)

    def queued(self) -> None:
        """One interaction was offered for judging."""
        for name in self._names:
            self._telemetry.inc(metrics.JUDGING_QUEUED, metric=name)
            self._telemetry.gauge(metrics.JUDGING_WAITING, metric=name).inc()

    def moved(self) -> None:
        """One that waited is another replica's now, and has no result here."""
        for name in self._names:
            self._telemetry.gauge(metrics.JUDGING_WAITING, metric=name).dec()
            self._telemetry.inc(metrics.JUDGING_RESULTS, metric=name, outcome="moved", reason=NO_REASON)

    def ended(self, results: Sequence[Result]) -> None:
        """Its results are there; one of a metric that was not announced is counted as queued with its result."""
        for name in self._names:
            self._telemetry.gauge(metrics.JUDGING_WAITING, metric=name).dec()
        for result in results:
            if result.scorer not in self._known:
                self._telemetry.inc(metrics.JUDGING_QUEUED, metric=result.scorer)
            outcome, reason = named(result.outcome)
            self._telemetry.inc(metrics.JUDGING_RESULTS, metric=result.scorer, outcome=outcome, reason=reason)


def named(outcome: Outcome) -> tuple[str, str]:
    """Outcome and reason as label values."""
    if isinstance(outcome, Score):
        return "scored", NO_REASON
    if isinstance(outcome, NotApplicable):
        return "not_applicable", outcome.reason.value
    return "failed", outcome.reason.value
