"""Language match, local: is the response in the question's language?"""

from __future__ import annotations

from scorers.interaction import Field
from scorers.local.base import LocalBase, Rated
from scorers.local.reading import Exchange
from scorers.outcome import NotApplicable, NotApplicableReason, Score


class LanguageMatch(LocalBase):
    """By script, and for Latin script by function words; not applicable where either side gives no clear guess."""

    name = "language_match"
    version = "1"
    needs = frozenset({Field.QUESTION, Field.RESPONSE})
    scale = "1 = the same language, 0 = another"
    modelled = False

    def _rate(self, exchange: Exchange) -> Rated:
        assert exchange.question is not None and exchange.response is not None
        asked = exchange.question.language
        answered = exchange.response.language
        evidence: dict[str, object] = {"question": asked, "response": answered}
        if asked is None or answered is None:
            return Rated(NotApplicable(NotApplicableReason.LANGUAGE), evidence)
        return Rated(Score(float(asked == answered)), evidence)
