"""The life of the process: start downstream first, serve, drain upstream first, force on the second signal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from collector.pipeline.clock import Clock
from collector.telemetry.events import Event, Events, Level


@dataclass(frozen=True, slots=True)
class Part:
    """Something that starts and stops.

    `stop` gets the seconds that are left of the grace time, drains within them, then lets go of what it holds;
    it may be called without `start`, and twice. A part that overruns is abandoned, logged and passed over.
    """

    name: str
    start: Callable[[], Awaitable[None]] | None = None
    stop: Callable[[float], Awaitable[None]] | None = None


class Background:
    """A task that runs as long as the process. One that ends by itself is a bug: it is logged, and readiness says
    so (`on_end` is given the name and the reason), since a pipeline with a dead part must not look healthy."""

    def __init__(
        self,
        name: str,
        run: Callable[[], Coroutine[Any, Any, None]],
        *,
        on_end: Callable[[str, str | None], None],
        events: Events,
    ) -> None:
        self._name = name
        self._run = run
        self._on_end = on_end
        self._events = events
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self._name)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        self._on_end(self._name, "its task ended; restart the process")
        self._events.tell(
            Event("background_ended", Level.ERROR, "a background task ended by itself", {"part": self._name}),
            error,
        )

    async def stop(self) -> None:
        if self._task is not None:
            self._task.remove_done_callback(self._ended)
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None


class Service:
    """Runs parts. SIGTERM and SIGINT ask for the end, SIGHUP calls `on_reload`.

    `start_order` has what is downstream first; `stop_order` what is upstream first."""

    def __init__(
        self,
        *,
        start_order: Sequence[Part],
        stop_order: Sequence[Part],
        grace_seconds: float,
        clock: Clock,
        events: Events,
        on_state: Callable[[str | None], None],
        on_ready: Callable[[], None],
        on_reload: Callable[[], None],
    ) -> None:
        self._start_order = tuple(start_order)
        self._stop_order = tuple(stop_order)
        self._grace = grace_seconds
        self._clock = clock
        self._events = events
        self._on_state = on_state
        self._on_ready = on_ready
        self._on_reload = on_reload
        self._asked = asyncio.Event()
        self._forced = asyncio.Event()

    def ask_to_stop(self) -> None:
        """What a signal does: the first asks for an orderly end, the second for an end at once."""
        (self._forced if self._asked.is_set() else self._asked).set()

    async def run(self) -> int:
        """Start, serve until asked to stop, drain. Returns 0, or 1 when the end was forced."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.ask_to_stop)
        loop.add_signal_handler(signal.SIGHUP, self._on_reload)
        try:
            await self._start()
            if not self._asked.is_set():
                self._on_state(None)
                self._on_ready()
                await self._asked.wait()
            return await self._stop()
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(number)

    async def _start(self) -> None:
        try:
            for part in self._start_order:
                if part.start is not None and not self._asked.is_set():
                    await part.start()
        except BaseException:
            # What was started must not be left behind when its neighbour can not start.
            await self._stop()
            raise

    async def _stop(self) -> int:
        self._on_state("shutting down")
        self._events.tell(Event("draining", Level.INFO, "stopping: draining what was accepted"))
        drain = asyncio.create_task(self._drain(), name="drain")
        forced = asyncio.create_task(self._forced.wait(), name="force")
        await asyncio.wait({drain, forced}, return_when=asyncio.FIRST_COMPLETED)
        forced.cancel()
        if drain.done():
            drain.result()
            return 0
        drain.cancel()
        await asyncio.wait({drain}, timeout=5)
        self._events.tell(
            Event("forced", Level.WARNING, "stopped at once by a second signal: what was open is lost")
        )
        return 1

    async def _drain(self) -> None:
        deadline = self._clock.monotonic() + self._grace
        for part in self._stop_order:
            if part.stop is None:
                continue
            left = max(0.0, deadline - self._clock.monotonic())
            try:
                async with asyncio.timeout(left + 5):
                    await part.stop(left)
            except TimeoutError as error:
                self._tell_failure(part, "part_overran", "did not stop within the grace time", error)
            except Exception as error:  # noqa: BLE001  # one part's failure must not keep the others from stopping
                self._tell_failure(part, "part_failed_to_stop", "failed while stopping", error)

    def _tell_failure(self, part: Part, name: str, what: str, error: Exception) -> None:
        self._events.tell(Event(name, Level.ERROR, f"a part {what}", {"part": part.name}), error)
