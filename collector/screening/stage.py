"""The screening stage: a bounded queue of released traces in front of worker processes.

It never blocks and never loses in silence. When workers fall behind, traces are shed by a keyed hash of their id
with a probability that is known before they are let in and that goes with every interaction found in them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from collector.pipeline.clock import Clock
from collector.pipeline.receipt import Receipt
from collector.pipeline.workers import BatchFailedError
from collector.records.settled import Screened
from collector.records.trace import ReleasedTrace
from collector.screening.options import Options
from collector.screening.screen import Examined
from collector.screening.shares import place_in_unit
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry

_LOG = logging.getLogger(__name__)
_TRACE_OVERHEAD = 250  # measured: 210 bytes for a released trace's own objects,
_ITEM_OVERHEAD = 120  # and 117 for each item
_DELIVERIES = 32  # traces and interactions handed on before the event loop gets a turn


class Pool(Protocol):
    """What screening needs of `collector.pipeline.workers.WorkerPool`."""

    @property
    def workers(self) -> int: ...

    async def run(self, batch: Sequence[ReleasedTrace], /) -> list[Examined]: ...


class Notes(Protocol):
    """Takes what is told about a trace, for `groundwatch why`."""

    def note(self, trace_id: str, stage: str, text: str) -> None: ...


def size_of(trace: ReleasedTrace) -> int:
    """Bytes that a waiting trace is counted with; resources and scopes are shared, and counted once a trace."""
    items = (*trace.spans, *trace.logs)
    shared = {id(part): len(part) for item in items for part in (item.resource, item.scope)}
    if trace.record is not None:
        return _TRACE_OVERHEAD + len(trace.record)
    return _TRACE_OVERHEAD + sum(len(item.data) + _ITEM_OVERHEAD for item in items) + sum(shared.values())


_Held = tuple[ReleasedTrace, Receipt | None]
"""A trace as it goes to a worker, and the receipt that stays here."""


def _release(receipt: Receipt | None) -> None:
    if receipt is not None:
        receipt.release()


class Screening:
    """Takes released traces, hands `Screened` to `downstream`. Lives on one event loop.

    `accept` is the assembler's downstream. `downstream` must not block. Traces are delivered as batches finish, so
    their order is not kept.
    """

    def __init__(
        self,
        options: Options,
        *,
        pool: Pool,
        clock: Clock,
        telemetry: Telemetry,
        downstream: Callable[[Screened], None],
        notes: Notes | None = None,
    ) -> None:
        self._options = options
        self._pool = pool
        self._clock = clock
        self._telemetry = telemetry
        self._downstream = downstream
        self._notes = notes
        self._queue: deque[tuple[float, int, ReleasedTrace, Receipt | None]] = deque()
        self._bytes = 0
        self._under_way = 0
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._tasks: list[asyncio.Task[None]] = []
        self._keep = 1.0
        self._outcomes = {
            outcome: telemetry.counter(metrics.SCREENING_TRACES, outcome=outcome)
            for outcome in ("screened", "shed", "dropped_full", "dropped_shutdown", "failed")
        }
        self._examined = {
            seen: telemetry.counter(metrics.TRACES_EXAMINED, found=seen)
            for seen in metrics.TRACES_EXAMINED.labels["found"] or ()
        }
        self._malformed = telemetry.counter(metrics.ITEMS_MALFORMED_LATER)
        self._seconds = telemetry.histogram(metrics.SCREENING_SECONDS)
        telemetry.set(metrics.SCREENING_KEEP_PROBABILITY, 1.0)

    @property
    def waiting(self) -> int:
        """Traces that wait or are with a worker."""
        return len(self._queue) + self._under_way

    @property
    def fill(self) -> float:
        """How full the queue is, in traces or bytes, whichever is fuller: 1 is full."""
        options = self._options
        return max(len(self._queue) / options.queue_traces, self._bytes / options.queue_bytes)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the traces that wait."""
        return self._bytes

    def accept(self, trace: ReleasedTrace) -> None:
        """Take a trace, or shed or drop it with a count. Never blocks, never raises for a trace.

        The trace's receipt is released when all that was found in it is settled, or when it is given up."""
        receipt = trace.receipt
        if receipt is not None:
            trace = replace(trace, receipt=None)  # it stays in this process
        size = size_of(trace)
        keep = self._keep_probability()
        if keep < 1.0 and place_in_unit(self._options.salt, trace.trace_id) >= keep:
            self._outcomes["shed"].inc()
            self._note(trace.trace_id, f"shed for load; kept with probability {keep:.4g}")
            _release(receipt)
            return
        full = len(self._queue) >= self._options.queue_traces or (
            self._queue and self._bytes + size > self._options.queue_bytes
        )
        if full:
            self._outcomes["dropped_full"].inc()
            self._note(trace.trace_id, "dropped: the screening queue is full")
            _release(receipt)
            return
        if keep < 1.0:
            trace = replace(trace, kept_probability=trace.kept_probability * keep)
        self._queue.append((self._clock.monotonic(), size, trace, receipt))
        self._bytes += size
        self._idle.clear()
        self._wake.set()

    def _keep_probability(self) -> float:
        """1 up to the fill `shed_from`, then falling in halves to `min_keep_probability` at a full queue.

        Steps instead of a slope keep the number of distinct weights small. Whether a trace is kept depends on its
        hash, the probability only on those before it, so the inverse probability is its weight.
        """
        options = self._options
        fill = self.fill
        keep = 1.0
        if fill > options.shed_from:
            over = min(1.0, (fill - options.shed_from) / (1.0 - options.shed_from))
            steps = 1 + int(over * 6)
            keep = max(options.min_keep_probability, 0.5**steps)
        if keep != self._keep:
            self._keep = keep
            self._telemetry.set(metrics.SCREENING_KEEP_PROBABILITY, keep)
        return keep

    async def start(self) -> None:
        """Start handing traces to the pool, which is started by its owner."""
        if not self._tasks:
            count = max(1, self._pool.workers)
            self._tasks = [asyncio.create_task(self._work(), name=f"screening-{i}") for i in range(count)]

    def refresh(self) -> None:
        """Set the queue's gauges; called before each scrape or once a second."""
        self._telemetry.set(metrics.SCREENING_QUEUE_TRACES, len(self._queue))
        self._telemetry.set(metrics.SCREENING_QUEUE_BYTES, self._bytes)
        age = self._clock.monotonic() - self._queue[0][0] if self._queue else 0.0
        self._telemetry.set(metrics.SCREENING_QUEUE_AGE, age)
        self._keep_probability()

    async def stop(self, seconds: float) -> int:
        """Screen what waits for up to `seconds`, then drop and count the rest; returns how many were dropped.

        Receipts of what was dropped stay open: its source gives it again to the next process. Twice is fine, and so is
        without start.
        """
        if self._tasks:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._idle.wait()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        dropped = len(self._queue) + self._under_way
        for _, _, trace, _ in self._queue:
            self._note(trace.trace_id, "dropped: the process stopped before it was screened")
        self._queue.clear()
        self._bytes = self._under_way = 0
        self._idle.set()
        if dropped:
            self._outcomes["dropped_shutdown"].inc(dropped)
        self.refresh()
        return dropped

    async def _work(self) -> None:
        while True:
            while not self._queue:
                self._wake.clear()
                await self._wake.wait()
            batch = self._next_batch()
            self._under_way += len(batch)
            await self._screen(batch)
            if not self._queue and not self._under_way:
                self._idle.set()

    def _next_batch(self) -> list[_Held]:
        batch: list[_Held] = []
        total = 0
        while self._queue and len(batch) < self._options.batch_traces:
            _, size, trace, receipt = self._queue[0]
            if batch and total + size > self._options.batch_bytes:
                break
            self._queue.popleft()
            self._bytes -= size
            total += size
            batch.append((trace, receipt))
        return batch

    async def _screen(self, batch: list[_Held]) -> None:
        started = self._clock.monotonic()
        try:
            examined = await self._pool.run([trace for trace, _ in batch])
        except Exception as error:  # noqa: BLE001  # whatever the pool raises costs its traces, not this task
            why = error.loss.value if isinstance(error, BatchFailedError) else type(error).__name__
            if len(batch) > 1:
                for held in batch:  # one by one, so that only the trace that breaks a worker is lost
                    await self._screen([held])
                return
            self._under_way -= 1
            self._outcomes["failed"].inc()
            self._examined["error"].inc()
            self._note(batch[0][0].trace_id, f"screening failed: {why}")
            _LOG.error("screening of a trace failed: %s", error if isinstance(error, BatchFailedError) else why)
            _release(batch[0][1])
            return
        self._seconds.observe(self._clock.monotonic() - started)
        delivered = 0
        for (trace, receipt), one in zip(batch, examined, strict=True):
            self._under_way -= 1
            self._outcomes["screened"].inc()
            self._examined[one.seen if one.seen in self._examined else "error"].inc()
            self._malformed.inc(one.malformed)
            if one.malformed and trace.record is not None and receipt is not None:
                receipt.reject("unreadable_record")
            for screened in one.screened:
                if receipt is not None:
                    receipt.hold()
                    self._deliver(trace, replace(screened, receipt=receipt))
                else:
                    self._deliver(trace, screened)
            _release(receipt)
            delivered += 1 + len(one.screened)
            if delivered >= _DELIVERIES:
                delivered = 0
                await asyncio.sleep(0)

    def _deliver(self, trace: ReleasedTrace, screened: Screened) -> None:
        try:
            self._downstream(screened)
        except Exception:  # noqa: BLE001  # what is downstream must not stop screening; it is a bug, so it is logged
            _LOG.exception("handing on a screened interaction failed")
            self._note(trace.trace_id, "handing on the screened interaction failed")

    def _note(self, trace_id: str, text: str) -> None:
        if self._notes is not None:
            self._notes.note(trace_id, "screening", text)
