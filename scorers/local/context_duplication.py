"""Context duplication, local: what share of the passages repeats an earlier one?"""

from __future__ import annotations

from scorers.interaction import Field
from scorers.local.base import LocalBase, Rated
from scorers.local.reading import Exchange, Reading
from scorers.outcome import NotApplicable, NotApplicableReason, Score
from scorers.scorer import Direction

REPEATS_FROM = 0.9
_COMPARED = 100


class ContextDuplication(LocalBase):
    """A passage repeats an earlier one when 0.9 of its weighted distinct tokens are in that one, and it is not
    just a short piece: the earlier one is at most twice as heavy. The first 100 passages are compared."""

    name = "context_duplication"
    version = "1"
    needs = frozenset({Field.CONTEXTS})
    direction = Direction.LOWER_IS_BETTER
    scale = "share of passages that repeat an earlier one, 0 to 1"
    modelled = False

    def _rate(self, exchange: Exchange) -> Rated:
        passages = (exchange.contexts or [])[:_COMPARED]
        if not passages:
            return Rated(NotApplicable(NotApplicableReason.NO_CONTEXTS))
        repeats = {
            later: earlier
            for later in range(1, len(passages))
            if (earlier := self._earlier(passages, later)) is not None
        }
        evidence: dict[str, object] = {
            "repeats": [{"passage": later, "repeats": earlier} for later, earlier in repeats.items()]
        }
        return Rated(Score(len(repeats) / len(passages)), evidence)

    @staticmethod
    def _earlier(passages: list[Reading], later: int) -> int | None:
        mine = passages[later]
        for number, other in enumerate(passages[:later]):
            if mine.text == other.text:
                return number
            if not mine.bulk or other.bulk > 2 * mine.bulk or mine.bulk * REPEATS_FROM > other.bulk:
                continue
            there = other.content
            shared = sum([weight for token, weight in mine.content.items() if token in there])
            if shared >= REPEATS_FROM * mine.bulk:
                return number
        return None
