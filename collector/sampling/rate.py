"""The policy of a fixed rate."""

from __future__ import annotations

from collections.abc import Sequence

from collector.records.found import Found
from scorers.outcome import Result


class Rate:
    """Judges every interaction with the same probability."""

    name = "rate"

    def __init__(self, rate: float) -> None:
        self._rate = rate

    def probability(self, found: Found, results: Sequence[Result]) -> float:
        return self._rate
