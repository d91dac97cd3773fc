"""The one clock. Made in `app.py` and handed down, so that tests move time instead of sleeping."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        ...

    def unix_nano(self) -> int:
        """Wall-clock time in nanoseconds since 1970."""
        ...


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def unix_nano(self) -> int:
        return time.time_ns()


class ManualClock:
    """A clock that moves when told to; `advance` takes seconds."""

    def __init__(self, *, start_unix_nano: int = 1_700_000_000_000_000_000) -> None:
        self._now = 0.0
        self._start = start_unix_nano

    def monotonic(self) -> float:
        return self._now

    def unix_nano(self) -> int:
        return self._start + int(self._now * 1e9)

    def advance(self, seconds: float) -> None:
        self._now += seconds
