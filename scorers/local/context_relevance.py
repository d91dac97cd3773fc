"""Context relevance, local: does any passage answer the question?"""

from __future__ import annotations

from scorers.interaction import Field
from scorers.local.base import LocalBase, Rated
from scorers.local.engine import comparable
from scorers.local.reading import Exchange
from scorers.outcome import NotApplicable, NotApplicableReason, Score


class ContextRelevance(LocalBase):
    """The calibrated relevance of the most relevant passage."""

    name = "context_relevance"
    version = "1"
    needs = frozenset({Field.QUESTION, Field.CONTEXTS})
    scale = "calibrated probability that the best passage answers the question, 0 to 1"

    def _rate(self, exchange: Exchange) -> Rated:
        assert exchange.question is not None and exchange.contexts is not None
        if not any(reading.tokens for reading in exchange.contexts):
            return Rated(Score(0.0, label="no_contexts"), {"contexts": 0})
        if not exchange.question.tokens:
            return Rated(NotApplicable(NotApplicableReason.NO_QUESTION))
        if not comparable(exchange.question, exchange.contexts):
            return Rated(NotApplicable(NotApplicableReason.LANGUAGE))
        found = self._engine.passage_probabilities(exchange)
        best = max(range(len(found)), key=lambda place: found[place])
        return Rated(Score(found[best]), {"passage": best, "passages": [round(value, 4) for value in found]})
