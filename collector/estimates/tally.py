"""Sums that only grow, and by how much they grew in the last minutes, hour or day."""

from __future__ import annotations

from array import array
from collections import deque
from enum import Enum
from typing import NamedTuple

import numpy as np

from collector.stats.interval import Floats

_MINUTE = 60
_MINUTES_KEPT = 61
_QUARTER_MINUTES = 15
_QUARTERS_KEPT = 97


class _State(NamedTuple):
    """The sums at the start of a bucket, by the bucket's number."""

    bucket: int
    sums: array[float]


class Window(Enum):
    """A length in seconds, and the width in seconds of the buckets it is made of.

    A window is its whole buckets and the current one, so it is longer than its name by up to one bucket.
    """

    FIVE_MINUTES = (300, 60)
    HOUR = (3_600, 60)
    DAY = (86_400, 900)

    @property
    def seconds(self) -> int:
        return self.value[0]


class Tally:
    """A flat list of sums, with what they were at the start of each bucket in which they changed.

    So adding costs nothing for windows but a look at the clock, and a quiet tally takes no memory: at most 61 states
    for minutes and 97 for quarters of an hour. Call `touch` before the first addition of an interaction.
    """

    __slots__ = ("_minute", "_minutes", "_quarters", "values")

    def __init__(self, size: int) -> None:
        self.values = [0.0] * size
        self._minute = -1
        self._minutes: deque[_State] = deque()
        self._quarters: deque[_State] = deque()

    @property
    def states(self) -> int:
        """How many earlier states are kept."""
        return len(self._minutes) + len(self._quarters)

    def extend(self, size: int) -> int:
        """Room for so many more sums; gives the place of the first."""
        first = len(self.values)
        self.values.extend([0.0] * size)
        return first

    def touch(self, now: float) -> None:
        """Something will be added at `now` (seconds of the monotonic clock)."""
        minute = int(now // _MINUTE)
        if minute == self._minute:
            return
        self._minute = minute
        state = array("d", self.values)
        _keep(self._minutes, minute, state, _MINUTES_KEPT)
        quarter = minute // _QUARTER_MINUTES
        if not self._quarters or self._quarters[-1].bucket != quarter:
            _keep(self._quarters, quarter, state, _QUARTERS_KEPT)

    def growth(self, now: float, window: Window) -> Floats:
        """By how much each sum grew in the window."""
        seconds, width = window.value
        first = int(now // width) - seconds // width
        states = self._minutes if width == _MINUTE else self._quarters
        base = next((state.sums for state in states if state.bucket >= first), None)
        if base is None:
            return np.zeros(len(self.values))
        grown: Floats = np.array(self.values)
        grown[: len(base)] -= np.frombuffer(base)
        return np.asarray(np.maximum(grown, 0.0))


def _keep(states: deque[_State], bucket: int, state: array[float], most: int) -> None:
    states.append(_State(bucket, state))
    while states[0].bucket <= bucket - most:
        states.popleft()
