"""Whether an interaction is judged, with the probability that makes the answer usable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Fate(StrEnum):
    """What became of an interaction: found = filtered + sampled_out + shed + queued (conservation)."""

    FILTERED = "filtered"
    SAMPLED_OUT = "sampled_out"
    SHED = "shed"
    QUEUED = "queued"


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision.

    `probability` is the inclusion probability of our own sampling, in (0, 1], fixed when the decision is made;
    `upstream_weight` (u >= 1) the adjusted count that upstream samplers gave, capped; `policy` the policy that
    decided. The weight of a kept interaction is `upstream_weight / probability`. `conditional` is true where
    upstream sampling is unknown, so that estimates speak of received traffic only.

    `least_probability` and `highest_upstream_weight` bound what *any* interaction could have been given at that
    moment: they follow from the configuration, the budget and the queue, never from the interaction. 0 and infinity
    where nothing is known.
    """

    fate: Fate
    probability: float
    policy: str
    upstream_weight: float = 1.0
    conditional: bool = False
    least_probability: float = 0.0
    highest_upstream_weight: float = math.inf

    @property
    def weight(self) -> float:
        return self.upstream_weight / self.probability
