"""What goes when a store has grown too old, too many or too large: the oldest first, labelled cases last."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from collector.pipeline.clock import Clock
from collector.review import rows
from collector.review.options import Options
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry

_DAY = 86_400.0
_STEP = 250
"""Cases deleted in one transaction, so that a person's label does not wait long behind it."""
_SHED_SHARE = 20
"""Over the limit of bytes a twentieth of all cases goes at once: the index must be merged for it to help."""
_MERGE_PAGES = 256
_VACUUM_PAGES = 2_000


def used_bytes(connection: sqlite3.Connection) -> int:
    """What the file's pages take that are not free."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)


def give_back(connection: sqlite3.Connection, pages: int) -> None:
    """Give up to so many free pages back to the disk. As a script: `execute` stops after the first page."""
    connection.executescript(f"PRAGMA incremental_vacuum({pages})")


class Retention:
    """Keeps the limits of age, count and bytes, in small steps on the writer's connection, between transactions.

    The full-text index only marks words as deleted; they leave it, and give their room back, when all its parts are
    merged. That rewrites the index, so it is done once a day after deletions, and when bytes are short.
    """

    def __init__(self, options: Options, *, clock: Clock, telemetry: Telemetry) -> None:
        self._options = options
        self._clock = clock
        self._retired = {
            reason: telemetry.counter(metrics.REVIEW_RETIRED, reason=reason)
            for reason in metrics.REVIEW_RETIREMENTS
        }
        self._kept = telemetry.gauge(metrics.REVIEW_KEPT)
        self._bytes = telemetry.gauge(metrics.REVIEW_BYTES)
        self._gone = 0
        self._unmerged = False
        self._merging = False
        self._merged_at = clock.monotonic()

    def keep(self, connection: sqlite3.Connection) -> int:
        """Delete all that is over a limit; returns how many cases went."""
        before = self._gone
        while self.step(connection):
            pass
        return self._gone - before

    def step(self, connection: sqlite3.Connection) -> bool:
        """Do one small thing of what is to be done; False when nothing is."""
        worked = self._merge(connection) if self._merging else self._shed(connection) or self._merge_is_due()
        if worked:
            give_back(connection, _VACUUM_PAGES)
        else:
            connection.execute("PRAGMA optimize")
            (cases,) = connection.execute("SELECT count(*) FROM cases").fetchone()
            self._kept.set(cases)
            self._bytes.set(used_bytes(connection))
        return worked

    def _shed(self, connection: sqlite3.Connection) -> bool:
        options, now = self._options, self._clock.unix_nano() / 1e9
        for labelled, days in ((0, options.max_age_days), (1, options.labelled_max_age_days)):
            old = _numbers(
                connection,
                "SELECT n FROM cases WHERE golden = 0 AND labelled = ? AND ended < ? ORDER BY ended LIMIT ?",
                (labelled, now - days * _DAY, _STEP),
            )
            if old:
                return self._retire(connection, old, "age")
        (cases,) = connection.execute("SELECT count(*) FROM cases").fetchone()
        if cases > options.max_cases:
            return self._retire(connection, _oldest(connection, min(_STEP, cases - options.max_cases)), "count")
        if cases and used_bytes(connection) > options.max_bytes:
            if not self._unmerged:
                self._retire(connection, _oldest(connection, 1 + cases // _SHED_SHARE), "bytes")
            self._merging = True
            return True
        return False

    def _retire(self, connection: sqlite3.Connection, numbers: Sequence[int], reason: str) -> bool:
        connection.execute("BEGIN IMMEDIATE")
        rows.remove(connection, numbers)
        connection.execute("COMMIT")
        self._retired[reason].inc(len(numbers))
        self._gone += len(numbers)
        self._unmerged = True
        return True

    def _merge_is_due(self) -> bool:
        if self._unmerged and self._clock.monotonic() - self._merged_at >= _DAY:
            self._merging = True
        return self._merging

    def _merge(self, connection: sqlite3.Connection) -> bool:
        """A piece of the merge of all parts of the index; it has ended when a piece changes nothing."""
        before = connection.total_changes
        connection.execute("INSERT INTO words (words, rank) VALUES ('merge', ?)", (-_MERGE_PAGES,))
        if connection.total_changes - before < 2:
            self._merging, self._unmerged = False, False
            self._merged_at = self._clock.monotonic()
        return True


def _oldest(connection: sqlite3.Connection, limit: int) -> list[int]:
    return _numbers(connection, "SELECT n FROM cases ORDER BY golden, labelled, ended LIMIT ?", (limit,))


def _numbers(connection: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> list[int]:
    return [number for (number,) in connection.execute(statement, values)]
