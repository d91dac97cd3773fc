"""Groundedness, local: the calibrated probability that the whole response is supported."""

from __future__ import annotations

from collections.abc import Sequence

from scorers.local.reading import Exchange
from scorers.local.sentences import SupportScorer, sentence_evidence
from scorers.local.support import SentenceSupport


class Groundedness(SupportScorer):
    """One number for the response; the weakest sentence weighs in it beside the average one."""

    name = "groundedness"
    scale = "calibrated probability that every sentence is supported, 0 to 1"

    def _measure(
        self, exchange: Exchange, rows: Sequence[SentenceSupport], supports: Sequence[float]
    ) -> tuple[float, dict[str, object]]:
        weakest = min(range(len(rows)), key=lambda place: supports[place])
        evidence: dict[str, object] = {"weakest": sentence_evidence(rows[weakest], supports[weakest])}
        return self._engine.grounded(exchange), evidence
