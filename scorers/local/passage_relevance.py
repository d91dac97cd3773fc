"""Passage relevance, local: what share of the passages is relevant to the question?"""

from __future__ import annotations

import math

from scorers.interaction import Field
from scorers.local.base import LocalBase, Rated
from scorers.local.engine import comparable
from scorers.local.reading import Exchange
from scorers.outcome import NotApplicable, NotApplicableReason, Score


class PassageRelevance(LocalBase):
    """The mean calibrated relevance of the passages: the expected precision at k."""

    name = "passage_relevance"
    version = "1"
    needs = frozenset({Field.QUESTION, Field.CONTEXTS})
    scale = "expected share of passages that are relevant (precision at k), 0 to 1"

    def _rate(self, exchange: Exchange) -> Rated:
        assert exchange.question is not None and exchange.contexts is not None
        if not exchange.contexts:
            return Rated(NotApplicable(NotApplicableReason.NO_CONTEXTS))
        if not exchange.question.tokens:
            return Rated(NotApplicable(NotApplicableReason.NO_QUESTION))
        if not comparable(exchange.question, exchange.contexts):
            return Rated(NotApplicable(NotApplicableReason.LANGUAGE))
        found = self._engine.passage_probabilities(exchange)
        return Rated(Score(math.fsum(found) / len(found)), {"passages": [round(value, 4) for value in found]})
