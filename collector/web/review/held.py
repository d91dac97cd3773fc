"""Values that cost much and may be a little old."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool

from collector.pipeline.clock import Clock
from collector.review.store import ReviewError

_T = TypeVar("_T")


class Held(Generic[_T]):
    """What `make` gave last. Older than `fresh_seconds` it is given once more and made anew meanwhile; older than
    `good_seconds` whoever asks waits for the new one. What `make` raises is raised to those who wait."""

    def __init__(self, make: Callable[[], _T], *, clock: Clock, fresh_seconds: float, good_seconds: float) -> None:
        self._make = make
        self._clock = clock
        self._fresh = fresh_seconds
        self._good = good_seconds
        self._held: tuple[float, _T] | None = None
        self._task: asyncio.Task[None] | None = None

    async def get(self) -> _T:
        held = self._held
        age = self._clock.monotonic() - held[0] if held is not None else None
        if held is None or age is None or age > self._good:
            return await self._renew()
        if age > self._fresh and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._renew_quietly(), name="review page values")
        return held[1]

    async def _renew(self) -> _T:
        asked = self._clock.monotonic()
        value = await run_in_threadpool(self._make)
        self._held = asked, value
        return value

    async def _renew_quietly(self) -> None:
        try:
            await self._renew()
        except ReviewError:
            return  # nobody waits for it; who asks when it is too old is told
