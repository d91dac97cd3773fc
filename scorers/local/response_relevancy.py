"""Response relevancy, local: does the response answer the question?"""

from __future__ import annotations

from scorers.interaction import Field
from scorers.local.base import LocalBase, Rated
from scorers.local.engine import comparable
from scorers.local.reading import Exchange
from scorers.outcome import NotApplicable, NotApplicableReason, Score


class ResponseRelevancy(LocalBase):
    """The calibrated fit of question and response; a refusal is unscored, as its own metric counts it."""

    name = "response_relevancy"
    version = "1"
    needs = frozenset({Field.QUESTION, Field.RESPONSE})
    scale = "calibrated probability that the response is about the question, 0 to 1"

    def _rate(self, exchange: Exchange) -> Rated:
        assert exchange.question is not None and exchange.response is not None
        refusal = self._engine.refusal(exchange)
        if refusal.label == "yes":
            return Rated(NotApplicable(NotApplicableReason.REFUSAL), {"rule": refusal.rule})
        if not exchange.question.tokens:
            return Rated(NotApplicable(NotApplicableReason.NO_QUESTION))
        if not comparable(exchange.question, [exchange.response]):
            return Rated(NotApplicable(NotApplicableReason.LANGUAGE))
        value = self._engine.response_probability(exchange)
        if value is None:
            return Rated(NotApplicable(NotApplicableReason.NO_CLAIMS))
        return Rated(Score(value), flags=("maybe_refusal",) if refusal.label == "unsure" else ())
