"""Context incomplete, local: do contexts exist that can not be judged whole?"""

from __future__ import annotations

import re

from scorers.interaction import Field
from scorers.local.base import LocalBase, Rated
from scorers.local.reading import Exchange
from scorers.outcome import NotApplicable, NotApplicableReason, Score
from scorers.scorer import Direction

_CUT = re.compile(
    r"(?:…|\.\.\.|[\[(<{]?\b(?:truncated|cut off|shortened|omitted)\b[^\n]{0,20}[\])>}]?)\s*$", re.IGNORECASE
)


class ContextIncomplete(LocalBase):
    """1 where the telemetry damaged the contexts (hidden, cut, dropped, unsplit, without text) or a passage ends
    in a cut mark; such interactions fail faithfulness and groundedness, and this says how many they are."""

    name = "context_incomplete"
    version = "1"
    needs: frozenset[Field] = frozenset()
    direction = Direction.LOWER_IS_BETTER
    scale = "1 = contexts are damaged or cut, 0 = whole"
    modelled = False

    def _rate(self, exchange: Exchange) -> Rated:
        interaction = exchange.interaction
        damage = interaction.damage.get(Field.CONTEXTS)
        if damage is not None:
            return Rated(Score(1.0, label=str(damage)), {"damage": str(damage)})
        if interaction.contexts is None:
            return Rated(NotApplicable(NotApplicableReason.NO_CONTEXTS))
        cut = [rank for rank, passage in enumerate(interaction.contexts) if _CUT.search(passage.text[-60:])]
        if cut:
            return Rated(Score(1.0, label="cut_mark"), {"passages": cut[:100]})
        return Rated(Score(0.0, label="whole"))

    def _reads_texts(self) -> bool:
        return False
