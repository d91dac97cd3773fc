"""What outlives the process, put together: the state directory's books and spool, told in metrics, log and health."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from collector.config import Config
from collector.pipeline.books import Books
from collector.pipeline.clock import Clock
from collector.pipeline.durable import Durable
from collector.pipeline.store import Reached
from collector.telemetry import metrics
from collector.telemetry.events import Count, Event, Events, Level
from collector.telemetry.instruments import Telemetry

Reason = Callable[[str, str | None], None]
"""Says why a component is not ready, or (None) that it is."""


class StoreTelemetry:
    """A `Watcher` that counts, logs, and says why the process is not ready."""

    def __init__(self, store: str, *, telemetry: Telemetry, events: Events, reason: Reason) -> None:
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


def make_books(
    config: Config,
    parts: Sequence[Durable],
    *,
    clock: Clock,
    telemetry: Telemetry,
    events: Events,
    reason: Reason,
    reached: Reached,
) -> Books | None:
    """The books of `process.state_dir`, which keep what `parts` know; None without such a directory."""
    if config.process.state_dir is None:
        return None
    books = Books(
        config.process.state_dir / "books.sqlite",
        config.books,
        full_sync=config.process.sync == "full",
        clock=clock,
        watcher=StoreTelemetry("books", telemetry=telemetry, events=events, reason=reason),
        reached=reached,
    )
    books.register(*parts)
    return books
