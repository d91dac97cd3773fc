"""Noncommittal, local: does the response refuse, evade or not know? By rules."""

from __future__ import annotations

from scorers.interaction import Field
from scorers.local.base import LocalBase, Rated
from scorers.local.reading import Exchange
from scorers.outcome import Score
from scorers.scorer import Direction


class Noncommittal(LocalBase):
    """1 where the rules are sure, 0 where they are not; a mixed or hedged response is 0 with the flag `unsure`,
    so the mean is the share of plain refusals, a lower bound of the refusal rate."""

    name = "noncommittal"
    version = "1"
    needs = frozenset({Field.RESPONSE})
    direction = Direction.LOWER_IS_BETTER
    scale = "1 = a plain refusal, 0 = not"
    modelled = False

    def _rate(self, exchange: Exchange) -> Rated:
        found = self._engine.refusal(exchange)
        score = Score(float(found.label == "yes"), label=found.label)
        return Rated(score, {"rule": found.rule}, flags=("unsure",) if found.label == "unsure" else ())
