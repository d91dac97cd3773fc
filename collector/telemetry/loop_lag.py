"""How late the event loop wakes up: whatever holds it up holds up ingest."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from collector.pipeline.clock import Clock
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry

_WINDOW_SECONDS = 60.0


class LoopLag:
    """Asks to be woken every `interval_seconds` and records by how much it was late."""

    def __init__(
        self,
        telemetry: Telemetry,
        clock: Clock,
        *,
        interval_seconds: float = 0.25,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._interval = interval_seconds
        self._sleep = sleep
        self._lags: deque[tuple[float, float]] = deque()
        self._histogram = telemetry.histogram(metrics.LOOP_LAG)
        self._longest = telemetry.gauge(metrics.LOOP_LAG_MAX)

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            await self.sample()

    async def sample(self) -> None:
        """Take one sample."""
        asked = self._clock.monotonic() + self._interval
        await self._sleep(self._interval)
        now = self._clock.monotonic()
        lag = max(0.0, now - asked)
        self._histogram.observe(lag)
        while self._lags and self._lags[0][0] <= now - _WINDOW_SECONDS:
            self._lags.popleft()
        while self._lags and self._lags[-1][1] <= lag:  # falling lags only, so the first is the longest
            self._lags.pop()
        self._lags.append((now, lag))
        self._longest.set(self._lags[0][1])
