"""How many cases a day each reason may take in each segment, and the share that the control part takes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable

from collector.pipeline.clock import Clock

_DAY = 86_400.0
_HOUR = 3_600.0
_MINUTE = 60.0
_HOURS_AT_LEAST = 12
"""A quota can not be spent in fewer hours than this, so that it sees day and night."""
_REMEMBERED_MINUTES = 60


class Quotas:
    """At most `per_day` a key in any 24 hours, and about a twelfth of that in any hour. Keys over `max_keys` share
    one with those of the same quota; each holds at most `per_day` times."""

    def __init__(self, clock: Clock, *, max_keys: int) -> None:
        self._clock = clock
        self._max_keys = max_keys
        self._taken: dict[Hashable, deque[float]] = {}

    def take(self, key: Hashable, per_day: int) -> bool:
        """True, and counted, when the key has something left."""
        if per_day <= 0:
            return False
        if key not in self._taken and len(self._taken) >= self._max_keys:
            key = per_day
        taken = self._taken.setdefault(key, deque(maxlen=per_day))
        now = self._clock.monotonic()
        per_hour = math.ceil(per_day / _HOURS_AT_LEAST)
        if len(taken) == per_day and now - taken[0] < _DAY:
            return False
        if len(taken) >= per_hour and now - taken[-per_hour] < _HOUR:
            return False
        taken.append(now)
        return True


class ControlRate:
    """The share of interactions for the control part: `rate`, or less where that would be over `per_day`.

    The share of a minute comes from the counts of the hour before it, so that it is known before the minute's first
    interaction; a share that followed the day's count would be known only afterwards.
    """

    def __init__(self, clock: Clock, *, rate: float, per_day: float) -> None:
        self._clock = clock
        self._rate = rate if per_day > 0 else 0.0
        self._per_minute = per_day * _MINUTE / _DAY
        self._minutes: deque[int] = deque(maxlen=_REMEMBERED_MINUTES)
        self._minute = self._now()
        self._count = 0
        self._share = self._rate

    def next(self) -> float:
        """The share for one more interaction, which is counted."""
        now = self._now()
        if now != self._minute:
            self._minutes.append(self._count)
            self._minutes.extend([0] * min(now - self._minute - 1, _REMEMBERED_MINUTES))
            self._minute, self._count = now, 0
            mean = sum(self._minutes) / len(self._minutes)
            self._share = min(self._rate, self._per_minute / mean) if mean else self._rate
        self._count += 1
        return self._share

    def _now(self) -> int:
        return int(self._clock.monotonic() / _MINUTE)
