"""The policy of strata: each value of a segment has a rate, or a number to be judged an hour."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from collector.pipeline.clock import Clock
from collector.records.found import Found
from collector.sampling.matching import Strict
from collector.sampling.rules import SegmentsOf
from scorers.outcome import Result

_MINUTE_NANO = 60 * 10**9
_MEMORY_MINUTES = 60
# So many interactions tell the traffic to about 14 %; the shorter time they came in, the more it is of now.
_ENOUGH = 50


class Stratum(Strict):
    """How often one value's interactions are judged. In YAML a number alone is a rate."""

    rate: float | None = Field(default=None, ge=0, le=1, description="Share of them that is judged.")
    per_hour: float | None = Field(
        default=None,
        gt=0,
        description="So many an hour, by this process; the rate of each minute comes from the traffic of the minutes "
        "before it.",
    )

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"rate": value} if isinstance(value, int | float) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.rate is None) == (self.per_hour is None):
            raise ValueError("give either rate or per_hour")
        return self


class StratifiedOptions(Strict):
    """Probabilities by the values of one segment, so that small ones have numbers too."""

    type: Literal["stratified"] = Field("stratified", description="This policy.")
    name: str = Field("stratified", description="Its name in decisions, and the key of its hash.")
    segment: str = Field(description="The segment's name.")
    values: dict[str, Stratum] = Field(
        default_factory=dict, description="By the segment's value (other and unset too): a rate, or {per_hour: N}."
    )
    otherwise: Stratum | None = Field(
        default=None,
        description="For each value that is not listed, alike; null = the floor and other policies decide.",
    )
    first_rate: float = Field(
        default=0.05,
        gt=0,
        le=1,
        description="Rate of per_hour values at start, until a whole minute of traffic was seen.",
    )

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.values and self.otherwise is None:
            raise ValueError("nothing would be judged: give values, or otherwise")
        return self

    def segment_values(self) -> list[tuple[str, tuple[str, ...]]]:
        """The segment named, with the values asked for."""
        return [(self.segment, tuple(self.values))]


class Stratified:
    """Judges by the value of one segment.

    A value with `per_hour` gets, for the whole of a minute, the rate per_hour / (its interactions an hour) as the
    earlier minutes tell them: the latest ones that hold 50 together, at most 60. So the probability is fixed before
    the first interaction of its minute is seen. `probability` counts each interaction: ask once for each.
    """

    def __init__(self, options: StratifiedOptions, *, segments: SegmentsOf, clock: Clock) -> None:
        self.name = options.name
        self._segment = options.segment
        self._segments = segments
        self._values = options.values
        self._otherwise = options.otherwise
        self._first_rate = options.first_rate
        self._clock = clock
        self._minute = self._started = self._now_minute()
        self._counts: dict[str, int] = {}  # of this minute, by value; segment values are bounded
        self._earlier: dict[str, deque[tuple[int, int]]] = {}  # (minute, count), the oldest first
        self._rates: dict[str, float] = {}

    def probability(self, found: Found, results: Sequence[Result]) -> float:
        value = next((value for name, value in self._segments(found) if name == self._segment), "")
        stratum = self._values.get(value, self._otherwise)
        if stratum is None:
            return 0.0
        if stratum.per_hour is None:
            return stratum.rate or 0.0
        minute = self._now_minute()
        if minute != self._minute:
            self._turn(minute)
        self._counts[value] = self._counts.get(value, 0) + 1
        rate = self._rates.get(value)
        if rate is None:
            rate = self._rates[value] = self._rate(value, stratum.per_hour)
        return rate

    def _now_minute(self) -> int:
        return self._clock.unix_nano() // _MINUTE_NANO

    def _turn(self, minute: int) -> None:
        if self._minute != self._started:  # of that one only a part was seen
            for value, count in self._counts.items():
                earlier = self._earlier.setdefault(value, deque(maxlen=_MEMORY_MINUTES))
                earlier.append((self._minute, count))
        self._counts = {}
        self._rates = {}
        self._minute = minute

    def _rate(self, value: str, per_hour: float) -> float:
        oldest = max(self._started + 1, self._minute - _MEMORY_MINUTES)
        seen = 0
        since = oldest
        for minute, count in reversed(self._earlier.get(value, ())):
            if minute < oldest:
                break
            seen += count
            if seen >= _ENOUGH:
                since = minute
                break
        if self._minute <= since:
            return self._first_rate
        # None in all that time is less than one; so a value that comes once a day is judged, not forgotten.
        an_hour = max(seen, 1) * 60 / (self._minute - since)
        return min(1.0, per_hour / an_hour)
