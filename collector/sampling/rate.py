"""The policy of a fixed rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from collector.records.found import Found
from collector.sampling.matching import Strict
from scorers.outcome import Result


class RateOptions(Strict):
    """The same probability for every interaction."""

    type: Literal["rate"] = Field("rate", description="This policy.")
    name: str = Field("rate", description="Its name in decisions, and the key of its hash.")
    rate: float = Field(gt=0, le=1, description="Share of interactions that it judges.")


class Rate:
    """Judges every interaction with the same probability."""

    def __init__(self, rate: float, *, name: str = "rate") -> None:
        self.name = name
        self._rate = rate

    def probability(self, found: Found, results: Sequence[Result]) -> float:
        return self._rate
