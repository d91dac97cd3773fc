"""What a sampling policy is, and how several of them decide together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from collector.records.found import Found
from collector.sampling.hashing import Uniform
from scorers.outcome import Result

FLOOR = "floor"


class Policy(Protocol):
    """Says with which probability an interaction is to be judged.

    The answer rests only on what is known when the trace is released: the interaction and the results of
    screening, never on what comes later, nor on other interactions of this moment.
    """

    @property
    def name(self) -> str:
        """The policy's name in decisions and in the key of its hash; unique among the policies."""
        ...

    def probability(self, found: Found, results: Sequence[Result]) -> float:
        """In [0, 1]."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the policies keep an interaction, with what probability they do, and which one decided."""

    kept: bool
    probability: float
    policy: str


class Policies:
    """Keeps an interaction when any policy does: probability 1 - prod(1 - p_k), each with a hash of its own.

    Where that is below `floor`, the floor decides instead, with its own hash, so that no interaction has a lower
    probability than the floor whatever the policies say.
    """

    def __init__(self, policies: Sequence[Policy], *, floor: float, seed: str) -> None:
        names = [policy.name for policy in policies]
        if len({*names, FLOOR}) != len(names) + 1:
            raise ValueError(f"policies need names of their own, other than {FLOOR!r}: {names}")
        self._policies = [(policy, Uniform(seed, policy.name)) for policy in policies]
        self._floor = floor
        self._floor_hash = Uniform(seed, FLOOR)

    def decide(self, found: Found, results: Sequence[Result]) -> Verdict:
        interaction_id = found.interaction.id
        together = 0.0
        keeper = ""
        likeliest, highest = FLOOR, -1.0
        for policy, uniform in self._policies:
            probability = min(max(policy.probability(found, results), 0.0), 1.0)
            together += probability - together * probability
            if probability > highest:
                likeliest, highest = policy.name, probability
            if not keeper and uniform(interaction_id) < probability:
                keeper = policy.name
        if together < self._floor:
            return Verdict(self._floor_hash(interaction_id) < self._floor, self._floor, FLOOR)
        return Verdict(bool(keeper), together, keeper or likeliest)
