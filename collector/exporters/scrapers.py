"""Who scrapes /metrics regularly, and one more scrape by each of them before the end."""

from __future__ import annotations

import asyncio

from collector.pipeline.clock import Clock

_MOST = 16
"""Scrapers that are remembered: there are one or two."""
_LATE = 1.5
"""A scraper is waited for until so many of its intervals have passed since its last scrape."""
_GONE = 3.0
"""One that has not come for so many intervals is gone."""


class Scrapers:
    """Counters that no state directory keeps end with their process, and with them what nobody has scraped. So the end
    waits for those who come regularly, which is known from the second scrape on, each for as long as it may take it to
    come again. Belongs to the event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: dict[str, float] = {}
        self._interval: dict[str, float] = {}
        self._awaited: dict[str, float] = {}
        self._came = asyncio.Event()

    def begins(self, name: str) -> float:
        """A scrape begins; give its moment to `ended`. An empty name is nobody's."""
        now = self._clock.monotonic()
        if not name:
            return now
        last = self._last.pop(name, None)
        if last is not None:
            self._interval[name] = now - last
        self._last[name] = now
        if len(self._last) > _MOST:
            oldest = next(iter(self._last))
            del self._last[oldest]
            self._interval.pop(oldest, None)
        return now

    def ended(self, name: str, began: float) -> None:
        """It has been answered."""
        if name in self._awaited and began >= self._awaited[name]:
            del self._awaited[name]
            self._came.set()

    async def once_more(self, seconds: float) -> bool:
        """Wait until each that comes regularly has scraped what is there now, for at most so long. Whether all have."""
        now = self._clock.monotonic()
        due = {
            name: self._last[name] + _LATE * interval
            for name, interval in self._interval.items()
            if now - self._last[name] <= _GONE * interval
        }
        self._awaited = dict.fromkeys(due, now)
        try:
            async with asyncio.timeout(min(seconds, max(due.values(), default=now) - now)):
                while self._awaited:
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            pass
        return not self._awaited
