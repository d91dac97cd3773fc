"""What outlives the process, put together: the state directory's books and spool, told in metrics, log and health."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from collector.config import Config, Durability, Sync
from collector.otlp.model import Encoding
from collector.otlp.request import RequestReader
from collector.pipeline.books import Books
from collector.pipeline.clock import Clock
from collector.pipeline.lock import StateDir
from collector.pipeline.receipt import Receipt
from collector.pipeline.spool import Body, Spool
from collector.pipeline.store import Reached
from collector.receivers.border import Border
from collector.receivers.status import Reason
from collector.records.batch import Intake, Signal
from collector.telemetry import metrics
from collector.telemetry.events import Count, Event, Events, Level
from collector.telemetry.instruments import Telemetry

Says = Callable[[str, str | None], None]
"""Says why a component is not ready, or (None) that it is."""
_SPOOL_FILE = "spool.sqlite"
_READING_SECONDS = 2.0
"""So long the start waits for the spool; then it goes on in the background, so that health can be asked for."""


class StoreTelemetry:
    """A `Watcher` that counts, logs, and says why the process is not ready."""

    def __init__(self, store: str, *, telemetry: Telemetry, events: Events, reason: Says) -> None:
        self._store = store
        self._telemetry = telemetry
        self._events = events
        self._reason = reason
        self._failing = False

    def wrote(self) -> None:
        self._telemetry.inc(metrics.STATE_COMMITS, store=self._store, outcome="written")
        if self._failing:
            self._failing = False
            self._telemetry.set(metrics.STATE_FAILING, 0, store=self._store)
            self._reason(self._store, None)
            self._events.tell(
                Event("state_recovered", Level.INFO, "state is written again", {"store": self._store})
            )

    def failed(self, sentence: str, error: Exception) -> None:
        self._telemetry.set(metrics.STATE_FAILING, 1, store=self._store)
        self._failing = True
        self._reason(self._store, sentence)
        count = Count(metrics.STATE_COMMITS, {"store": self._store, "outcome": "failed"})
        fields = {"store": self._store, "reason": sentence}
        self._events.tell(
            Event("state_not_written", Level.ERROR, "state can not be written", fields, count), error
        )

    def set_aside(self, sentence: str) -> None:
        self._telemetry.set(metrics.STATE_SET_ASIDE, 1, store=self._store)
        fields = {"store": self._store, "reason": sentence}
        self._events.tell(Event("state_set_aside", Level.ERROR, "a state file can not be used", fields))

    def unreadable(self, sentence: str, error: Exception) -> None:
        count = Count(metrics.STATE_UNREADABLE, {"store": self._store})
        fields = {"store": self._store, "reason": sentence}
        self._events.tell(Event("state_unreadable", Level.ERROR, "state can not be read", fields, count), error)


class State:
    """What `process.state_dir` holds: the lock, the books, and the spool. Without such a directory, nothing.

    `spool` is open, too, where an earlier process spooled and this one does not, so that what it acknowledged is
    scored; `keeps` is where this one's requests go.
    """

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock,
        telemetry: Telemetry,
        events: Events,
        reason: Says,
        reached: Reached,
    ) -> None:
        self._telemetry = telemetry
        self._events = events
        self._reason = reason
        self._directory: StateDir | None = None
        self._reading: asyncio.Task[None] | None = None
        self.books: Books | None = None
        self.spool: Spool | None = None
        self.keeps: Spool | None = None
        path = config.process.state_dir
        if path is None:
            return
        self._directory = StateDir(path)
        full_sync = config.process.sync is Sync.FULL

        def watcher(store: str) -> StoreTelemetry:
            return StoreTelemetry(store, telemetry=telemetry, events=events, reason=reason)

        self.books = Books(
            path / "books.sqlite",
            config.books,
            full_sync=full_sync,
            clock=clock,
            watcher=watcher("books"),
            reached=reached,
        )
        spools = config.process.durability is Durability.SPOOL
        if spools or (path / _SPOOL_FILE).exists():
            self.spool = spool = Spool(
                path / _SPOOL_FILE, config.spool, full_sync=full_sync, watcher=watcher("spool"), reached=reached
            )
            self.keeps = spool if spools else None
            telemetry.gauge(metrics.SPOOL_BYTES).set_function(lambda: float(spool.bytes))
            telemetry.gauge(metrics.SPOOL_REQUESTS).set_function(lambda: float(spool.requests))

    def open(self) -> bool:
        """Take the directory, open the files, give the durable parts what was kept. True after an unclean end. Raises
        StateDirError and OSError."""
        if self._directory is None:
            return False
        unclean = self._directory.open()
        for store in (self.books, self.spool):
            if store is not None:
                store.open()
        return unclean

    async def read_again(self, intake: Intake, borders: Collection[Border]) -> None:
        """Offer what the spool holds to the intake. Until that is done, `borders` refuse everything, with a hint, and
        the process is not ready; a spool of usual size is done when this returns."""
        spool = self.spool
        if spool is None or not spool.left:
            return
        for border in borders:
            border.close(spool.retry_seconds, Reason.STARTING)
        self._reading = asyncio.create_task(self._read_again(spool, intake, borders), name="spool reading")
        self._reading.add_done_callback(self._reading_ended)
        await asyncio.wait({self._reading}, timeout=_READING_SECONDS)

    async def _read_again(self, spool: Spool, intake: Intake, borders: Collection[Border]) -> None:
        reader = RequestReader(max_item_bytes=2**31, max_parts=2**63)

        async def offer(body: Body, receipt: Receipt) -> None:
            batch = reader.read(body[2], Signal(body[0]), Encoding(body[1]))
            batch.receipt = receipt
            while (refusal := intake.offer(batch)) is not None:
                self._reason("spool", f"reading the spool again: {spool.left} requests left")
                await asyncio.sleep(min(refusal.retry_after_seconds, spool.retry_seconds))
            self._telemetry.inc(metrics.ITEMS_RECEIVED, len(batch), signal=batch.signal)
            self._telemetry.inc(metrics.SPOOL_RESTORED)
            await asyncio.sleep(0)

        given = await spool.restore(offer)
        self._reason("spool", None)
        for border in borders:
            if border.closed is not None and border.closed.reason is Reason.STARTING:
                border.open()
        fields = {"requests": given}
        self._events.tell(Event("spool_read", Level.INFO, "what was in the spool was read again", fields))

    def _reading_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._reason("spool", "what the spool holds could not be read again, see the log; restart the process")
            self._events.tell(
                Event("spool_reading_failed", Level.ERROR, "reading the spool again ended by an error"), error
            )

    async def close(self) -> None:
        """Write the rest and give the directory back. Twice is fine, and so is without `open`."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
        for store in (self.books, self.spool):  # in this order: what is written in the books leaves the spool
            if store is not None:
                await store.close()
        if self._directory is not None:
            self._directory.close()
