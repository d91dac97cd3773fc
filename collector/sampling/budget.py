"""The budget: lowers the sampling probability by what earlier minutes consumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from collector.pipeline.clock import Clock
from collector.sampling.options import BudgetOptions

_MINUTE_NANO = 60 * 10**9
_MINUTES_A_DAY = 1440
# Weight of the newest minute in the running mean of the traffic; about the last six minutes count.
_NEWEST = 0.3
# From so many judged interactions on, what one costs is taken from the ledger.
_ENOUGH_JUDGED = 5
_NO_DAY = -1


class Spent(Protocol):
    """What judging has spent on one UTC day."""

    @property
    def day(self) -> int: ...
    @property
    def calls(self) -> int: ...
    @property
    def cost_usd(self) -> float: ...
    @property
    def interactions(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Cut:
    """What the budget leaves of a probability P: max(lowest, floor * kept_floor + factor * (P - floor)).

    `factor` and `kept_floor` lie in [0, 1]; the floor is cut only when the factor is 0.
    """

    factor: float = 1.0
    kept_floor: float = 1.0

    def of(self, probability: float, *, floor: float, lowest: float) -> float:
        if self.factor == 1.0:
            return probability
        base = min(floor, probability)
        cut = base * self.kept_floor + self.factor * (probability - base)
        return max(cut, min(lowest, probability))

    @classmethod
    def to(cls, allowed: float, *, seen: float, wanted: float, floor: float) -> Cut:
        """The cut by which `allowed` interactions are judged, of `seen` ones whose probabilities add up to `wanted`;
        the floor is served first."""
        at_floor = min(floor * seen, wanted)
        above = wanted - at_floor
        if allowed < at_floor:
            return cls(0.0, allowed / at_floor)
        return cls(min(1.0, (allowed - at_floor) / above) if above > 0 else 1.0)


class Budget:
    """Spreads what is left of the day's budget over the minutes that are left of it.

    Each minute, from the traffic of the minutes before and what a judged interaction has cost so far, it fixes a
    `Cut` for the coming minute: the floor is given its share first, what lies above gets the rest. Interactions
    that are queued but not yet judged are counted as if they had been. The first minute is not cut.
    """

    def __init__(self, options: BudgetOptions, *, floor: float, clock: Clock) -> None:
        self._options = options
        self._floor = floor
        self._clock = clock
        self._spent: Callable[[], Spent] | None = None
        self._minute = self._now_minute()
        self._day = _NO_DAY
        self._queued = 0
        self._judged = 0
        self._seen = 0
        self._sum = 0.0
        self._mean_seen = 0.0
        self._mean_sum = 0.0
        self._known = False
        self._cut = Cut()

    def connect(self, spent: Callable[[], Spent]) -> None:
        self._spent = spent

    def reconfigure(self, options: BudgetOptions, *, floor: float) -> None:
        """Use other limits from the next minute on."""
        self._options = options
        self._floor = floor

    def _now_minute(self) -> int:
        return self._clock.unix_nano() // _MINUTE_NANO

    def cut(self) -> Cut:
        """The cut of this minute."""
        minute = self._now_minute()
        if minute != self._minute:
            self._turn(minute)
        return self._cut

    def seen(self, probability: float) -> None:
        """An interaction came that would be judged with this probability if there were no budget."""
        self._seen += 1
        self._sum += probability

    def queued(self) -> None:
        """An interaction was given to the judge."""
        self._queued += 1

    def _turn(self, minute: int) -> None:
        passed = max(1, min(minute - self._minute, _MINUTES_A_DAY))
        self._minute = minute
        # Minutes without traffic in between pull the mean down as minutes of zero.
        newest = _NEWEST if self._known else 1.0
        idle = (1.0 - _NEWEST) ** (passed - 1)
        self._mean_seen = (self._mean_seen * (1.0 - newest) + self._seen * newest) * idle
        self._mean_sum = (self._mean_sum * (1.0 - newest) + self._sum * newest) * idle
        self._known = True
        self._seen, self._sum = 0, 0.0
        self._cut = self._next_cut(minute)

    def _next_cut(self, minute: int) -> Cut:
        if self._spent is None:
            return Cut()
        spent = self._spent()
        if spent.day != self._day:
            if self._day != _NO_DAY:
                # What still waits from yesterday will be on today's account.
                self._queued = max(0, self._queued - self._judged)
            self._day = spent.day
        self._judged = spent.interactions
        allowed = self._allowed(spent, _MINUTES_A_DAY - minute % _MINUTES_A_DAY)
        if allowed is None:
            return Cut()
        return Cut.to(allowed, seen=self._mean_seen, wanted=self._mean_sum, floor=self._floor)

    def _allowed(self, spent: Spent, minutes_left: int) -> float | None:
        """Interactions that may be judged in the coming minute; None = no limit."""
        options = self._options
        waiting = max(0, self._queued - spent.interactions)
        limits = []
        enough = spent.interactions >= _ENOUGH_JUDGED
        if options.calls_per_day is not None:
            each = spent.calls / spent.interactions if enough and spent.calls else options.expected_calls
            limits.append(self._share(options.calls_per_day, spent.calls, each, waiting))
        if options.usd_per_day is not None and enough and spent.cost_usd > 0:
            each = spent.cost_usd / spent.interactions
            limits.append(self._share(options.usd_per_day, spent.cost_usd, each, waiting))
        return min(limits) / minutes_left if limits else None

    def _share(self, limit: float, used: float, each: float, waiting: int) -> float:
        left = limit * self._options.share - used - waiting * each
        return max(0.0, left / each)
