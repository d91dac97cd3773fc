"""From settled interactions to weighted sums and windows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from collector.estimates.options import Options
from collector.estimates.sums import Measure, Sums, Term
from collector.estimates.window import Estimate, Wanted, Window, Windows
from collector.pipeline.clock import Clock
from collector.records.decision import Fate
from collector.records.settled import Settled
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from collector.telemetry.spec import Family
from scorers.outcome import FailedReason, NotApplicable, Result, Score

_MAX_INSTRUMENTS = 8
"""Fingerprints shown per measure; a configuration has one, a reload or a new model a few more."""


class Estimates:
    """The downstream of scoring that every number comes from.

    `declared` are the measures that the configured scorers can give; their series exist at 0 from the start.
    `settle` and `announce` belong to one thread (the event loop); `families` may be called from any.
    """

    def __init__(
        self,
        options: Options,
        *,
        declared: Iterable[Measure],
        segment_names: Sequence[str],
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._sums = Sums(declared, segment_names, series_budget=options.series_budget)
        self._windows = Windows(min_n_eff_interval=options.min_n_eff_interval)
        self._clock = clock
        self._telemetry = telemetry
        self._instruments: dict[Measure, set[str]] = {}
        self._settled = {
            fate: telemetry.counter(metrics.SETTLED, fate=fate) for fate in Fate if fate != "filtered"
        }
        self._folded = telemetry.counter(metrics.SEGMENTS_FOLDED)
        telemetry.gauge(metrics.SERIES).set_function(lambda: float(self._sums.series))

    @property
    def measures(self) -> tuple[Measure, ...]:
        return self._sums.measures

    @property
    def segments(self) -> tuple[tuple[str, ...], ...]:
        return self._sums.segments

    @property
    def series(self) -> int:
        """Time series that the sums take now."""
        return self._sums.series

    def families(self) -> list[Family]:
        """See `Sums.families`; makes this a `Source` for the Prometheus exporter."""
        return self._sums.families()

    def announce(self, segments: Iterable[tuple[str, str]]) -> None:
        """An interaction of these segments was screened: its series are born at 0 before it settles."""
        self._sums.announce(segments)

    def settle(self, settled: Settled) -> None:
        """Add one interaction at its settlement: sampled out, shed, answered or failed.

        Local results weigh u / screening probability, judged ones that / inclusion probability. *Not applicable*
        leaves the domain, *failed* counts against coverage. A filtered interaction is in no estimate.
        """
        decision = settled.decision
        if decision.fate is Fate.FILTERED:
            return
        self._settled[decision.fate].inc()
        local_weight = _ratio(decision.upstream_weight, settled.screening_probability)
        terms = self._terms(settled.local, local_weight)
        if decision.fate is Fate.QUEUED:
            terms += self._terms(settled.judged, _ratio(local_weight, decision.probability))
        folded = self._sums.folded
        segment = self._sums.announce(settled.segments)
        self._folded.inc(self._sums.folded - folded)
        self._sums.add(terms, segment=segment, conditional=decision.conditional)
        self._windows.add(self._clock.monotonic(), terms, segment=segment, conditional=decision.conditional)

    def _terms(self, results: Sequence[Result], weight: float) -> list[Term]:
        terms: dict[Measure, Term] = {}
        for result in results:
            measure = Measure(result.scorer, result.kind, result.tier)
            if not (0 < weight < math.inf):
                self._telemetry.inc(metrics.ESTIMATES_IGNORED, reason="weight")
            elif result.attempt:
                self._telemetry.inc(metrics.ESTIMATES_IGNORED, reason="attempt")
            elif measure in terms:
                self._telemetry.inc(metrics.ESTIMATES_IGNORED, reason="duplicate")
            else:
                terms[measure] = _term(measure, _ratio(weight, result.probability), result)
                self._show_instrument(measure, result)
        return list(terms.values())

    def _show_instrument(self, measure: Measure, result: Result) -> None:
        shown = self._instruments.setdefault(measure, set())
        if result.fingerprint in shown or len(shown) >= _MAX_INSTRUMENTS:
            return
        shown.add(result.fingerprint)
        self._telemetry.set(
            metrics.SCORER_INFO,
            1,
            metric=measure.metric,
            kind=measure.kind,
            tier=measure.tier or "",
            version=result.version,
            fingerprint=result.fingerprint,
        )

    def estimate(self, measure: Measure, window: Window, segment: tuple[str, ...] | None = None) -> Estimate:
        """The estimate of one measure now, of all segments together where `segment` is None."""
        (found,) = self._windows.estimates(self._clock.monotonic(), [(measure, segment)], window)
        return found

    def all(self, window: Window) -> list[Estimate]:
        """Every measure's estimate: the total first, then each segment that had an interaction in the window."""
        wanted: list[Wanted] = []
        for measure in self.measures:
            wanted.append((measure, None))
            if self._sums.segment_names:
                wanted += [(measure, segment) for segment in self._windows.segments(measure)]
        found = self._windows.estimates(self._clock.monotonic(), wanted, window)
        return [e for e in found if e.segment is None or e.scored or e.not_applicable or e.failed]


def _ratio(weight: float, probability: float) -> float:
    return weight / probability if probability > 0 else math.nan


def _term(measure: Measure, weight: float, result: Result) -> Term:
    outcome = result.outcome
    if isinstance(outcome, Score):
        if 0 <= outcome.value <= 1:
            return Term(measure, weight, outcome.value)
        return Term(measure, weight, None, ("failed", FailedReason.SCORER_ERROR.value))
    name = "not_applicable" if isinstance(outcome, NotApplicable) else "failed"
    return Term(measure, weight, None, (name, outcome.reason.value))
