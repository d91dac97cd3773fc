"""Judged scores with the trace they belong to: the way from a bad number to an answer."""

from __future__ import annotations

from collections.abc import Iterable

from collector.records.settled import Settled
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from scorers.outcome import Score

_TRACE_ID_LENGTH = 32


class ScoreExemplars:
    """A downstream of scoring that keeps a plain histogram of judged scores with trace ids as exemplars.

    It knows no weights, so nothing else may be read from it. `judged` are the metrics born at 0.
    """

    def __init__(self, telemetry: Telemetry, judged: Iterable[str]) -> None:
        self._telemetry = telemetry
        for metric in judged:
            telemetry.histogram(metrics.JUDGED_SCORE, metric=metric)

    def settle(self, settled: Settled) -> None:
        """Observe the scores among the judged results."""
        ids = settled.found.trace_ids
        exemplar = {"trace_id": ids[0]} if ids and len(ids[0]) == _TRACE_ID_LENGTH else None
        for result in settled.judged:
            if isinstance(result.outcome, Score) and not result.attempt:
                histogram = self._telemetry.histogram(metrics.JUDGED_SCORE, metric=result.scorer)
                histogram.observe(result.outcome.value, exemplar)
