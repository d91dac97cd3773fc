"""Context count, local: did retrieval find anything, and how much?"""

from __future__ import annotations

from scorers.interaction import Field
from scorers.local.base import LocalBase, Rated
from scorers.local.reading import Exchange
from scorers.outcome import Score


class ContextCount(LocalBase):
    """Value: whether there is at least one passage, so that the mean is the share of answers with contexts.
    Raw: the number of passages."""

    name = "context_count"
    version = "1"
    needs = frozenset({Field.CONTEXTS})
    scale = "1 = at least one passage, 0 = none; raw = number of passages"
    modelled = False

    def _rate(self, exchange: Exchange) -> Rated:
        count = len(exchange.interaction.contexts or ())
        return Rated(Score(float(count > 0), raw=float(count)), {"passages": count})

    def _reads_texts(self) -> bool:
        return False
