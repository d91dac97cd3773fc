"""The agreement report as it stands, kept for a while, since reading all cases takes seconds."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice

from collector.pipeline.clock import Clock
from collector.review.agreement import Builder, Settings
from collector.review.case import Reason
from collector.review.figures import Agreement
from collector.review.query import Query
from collector.review.store import ReviewError, ReviewStore
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from scorers.judge.figures import Figure

MAX_CASES = 20_000
"""Cases that a report here is made of, the newest; `groundwatch agreement` takes all."""
KEPT_SECONDS = 300.0
_MAX_REPORTS = 4
_MAX_METRICS = 50
_RENEW_SECONDS = 300.0
_STALE_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class Report:
    """A report, when it was made, and whether there were more than `MAX_CASES`."""

    agreement: Agreement
    made_unix: float
    cut: bool


class Standing:
    """Makes reports when asked, one at a time, and keeps each for `KEPT_SECONDS`. Called in threads."""

    def __init__(self, store: ReviewStore, clock: Clock, *, max_cases: int = MAX_CASES) -> None:
        self._store = store
        self._clock = clock
        self._max_cases = max_cases
        self._lock = threading.Lock()
        self._reports: OrderedDict[str | None, tuple[float, Report]] = OrderedDict()

    def report(self, by: str | None = None) -> Report:
        """The report with figures for each value of `by` (see `Settings`). Raises ReviewError."""
        with self._lock:
            held = self._reports.get(by)
            now = self._clock.monotonic()
            if held is not None and now - held[0] < KEPT_SECONDS:
                return held[1]
            made = self.make(Settings(by=by))
            self._reports.pop(by, None)
            self._reports[by] = now, made
            while len(self._reports) > _MAX_REPORTS:
                self._reports.popitem(last=False)
            return made

    def make(
        self, settings: Settings, *, quality_only: bool = False, going: Callable[[], bool] = lambda: True
    ) -> Report:
        """A report of now: of the control part, and of what else was labelled. `quality_only` leaves out what takes
        longest, the comparisons. Ends early, with what was read, when `going` is false."""
        control = self._store.each(Query(reason=Reason.CONTROL))
        others = (
            case
            for case in self._store.each(Query(labelled=True))
            if all(pick.reason is not Reason.CONTROL for pick in case.picks)
        )
        builder, count = Builder(settings), 0
        for case in islice(control if quality_only else chain(control, others), self._max_cases + 1):
            if not going():
                break
            count += 1
            if count <= self._max_cases:
                builder.add(case)
        agreement = builder.report(quality_only=quality_only)
        return Report(agreement, self._clock.unix_nano() / 1e9, count > self._max_cases)


class Gauges:
    """The corrected quality on /metrics, renewed when people labelled more cases, and every hour."""

    def __init__(self, store: ReviewStore, clock: Clock, telemetry: Telemetry) -> None:
        self._store = store
        self._standing = Standing(store, clock)
        self._clock = clock
        self._telemetry = telemetry
        self._made: tuple[int, float] | None = None
        self._shown: set[str] = set()
        self._going = True

    async def run(self) -> None:
        """Renew from time to time, for ever. A store that does not answer is asked again the next time."""
        try:
            while True:
                with suppress(ReviewError):
                    await asyncio.to_thread(self.renew)
                await asyncio.sleep(_RENEW_SECONDS)
        finally:
            self._going = False  # the process's end waits for its threads

    def renew(self) -> None:
        """Set the gauges, if the store has another number of labelled cases or an hour went by. Takes seconds; called
        in a thread. Raises ReviewError."""
        labelled, now = self._store.stats().labelled, self._clock.monotonic()
        if self._made is not None and self._made[0] == labelled and now - self._made[1] < _STALE_SECONDS:
            return
        self._made = labelled, now
        if not labelled and not self._shown:
            return
        report = self._standing.make(Settings(), quality_only=True, going=lambda: self._going)
        if not self._going:
            return
        found = report.agreement.corrected[:_MAX_METRICS]
        told = {one.metric: one for one in found if one.mean is not None}
        for metric, one in told.items():
            self._set(metric, one.mean, one.first_mean, one.labels)
        for metric in self._shown - set(told):
            self._set(metric, None, math.nan, 0)  # too few labels are left
        self._shown |= set(told)

    def _set(self, metric: str, mean: Figure | None, own: float, labels: int) -> None:
        low, high = (mean.low, mean.high) if mean is not None else (None, None)
        for spec, value in (
            (metrics.CORRECTED_MEAN, mean.value if mean is not None else None),
            (metrics.CORRECTED_LOWER, low),
            (metrics.CORRECTED_UPPER, high),
            (metrics.CORRECTED_UNCORRECTED, own),
            (metrics.CORRECTED_LABELS, labels),
        ):
            self._telemetry.gauge(spec, metric=metric).set(math.nan if value is None else value)
