"""When to look at what: a timer wheel with lazy entries, O(1) for each."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from collector.assembly.open_trace import OpenTrace

RESOLUTION_SECONDS = 0.25


class Wheel:
    """Holds open traces in buckets of 0.25 s. An entry is only a reminder: who takes it out checks whether the
    trace is due, and puts it back if not. A trace that came due earlier than planned is entered again; the older
    entry no longer carries the trace's bucket and is passed over."""

    __slots__ = ("_buckets", "_order")

    def __init__(self) -> None:
        self._buckets: dict[int, list[OpenTrace]] = {}
        self._order: list[int] = []

    def plan(self, trace: OpenTrace, due: float) -> None:
        """Look at `trace` at `due` (monotonic seconds), or earlier if that is planned already."""
        bucket = int(due / RESOLUTION_SECONDS)
        if trace.bucket != -1 and trace.bucket <= bucket:
            return
        trace.bucket = bucket
        entries = self._buckets.get(bucket)
        if entries is None:
            entries = self._buckets[bucket] = []
            heappush(self._order, bucket)
        entries.append(trace)

    def due(self, now: float) -> Iterator[OpenTrace]:
        """Take out the traces whose bucket has come; each must be closed or planned again."""
        limit = int(now / RESOLUTION_SECONDS)
        while self._order and self._order[0] <= limit:
            bucket = heappop(self._order)
            for trace in self._buckets.pop(bucket):
                if trace.bucket == bucket:
                    trace.bucket = -1
                    yield trace

    def next_due(self) -> float | None:
        """When the first bucket comes, in monotonic seconds."""
        return self._order[0] * RESOLUTION_SECONDS if self._order else None
