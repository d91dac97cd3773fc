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
_MERGE_PAGES = 500


def used_bytes(connection: sqlite3.Connection) -> int:
    """What the file's pages take that are not free."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)


class Retention:
    """Keeps the limits of age, count and bytes; runs on the writer's connection, between transactions."""

    def __init__(self, options: Options, *, clock: Clock, telemetry: Telemetry) -> None:
        self._options = options
        self._clock = clock
        self._retired = {
            reason: telemetry.counter(metrics.REVIEW_RETIRED, reason=reason)
            for reason in metrics.REVIEW_RETIREMENTS
        }
        self._kept = telemetry.gauge(metrics.REVIEW_KEPT)
        self._bytes = telemetry.gauge(metrics.REVIEW_BYTES)

    def keep(self, connection: sqlite3.Connection) -> int:
        """Delete what is over a limit; returns how many cases went."""
        gone = self._too_old(connection) + self._too_many(connection) + self._too_large(connection)
        if gone:
            # Deleted words leave the full-text index only when its parts are merged; free pages go back to the disk.
            connection.execute("INSERT INTO words (words, rank) VALUES ('merge', ?)", (_MERGE_PAGES,))
            connection.execute("PRAGMA incremental_vacuum").fetchall()
        connection.execute("PRAGMA optimize")
        (cases,) = connection.execute("SELECT count(*) FROM cases").fetchone()
        self._kept.set(cases)
        self._bytes.set(used_bytes(connection))
        return gone

    def _too_old(self, connection: sqlite3.Connection) -> int:
        now = self._clock.unix_nano() / 1e9
        gone = 0
        for labelled, days in ((0, self._options.max_age_days), (1, self._options.labelled_max_age_days)):
            while numbers := _numbers(
                connection,
                "SELECT n FROM cases WHERE golden = 0 AND labelled = ? AND ended < ? ORDER BY ended LIMIT ?",
                (labelled, now - days * _DAY, _STEP),
            ):
                gone += self._retire(connection, numbers, "age")
        return gone

    def _too_many(self, connection: sqlite3.Connection) -> int:
        (cases,) = connection.execute("SELECT count(*) FROM cases").fetchone()
        over, gone = cases - self._options.max_cases, 0
        while gone < over and (numbers := _oldest(connection, min(_STEP, over - gone))):
            gone += self._retire(connection, numbers, "count")
        return gone

    def _too_large(self, connection: sqlite3.Connection) -> int:
        gone = 0
        while used_bytes(connection) > self._options.max_bytes and (numbers := _oldest(connection, _STEP)):
            gone += self._retire(connection, numbers, "bytes")
            # The words of deleted cases take room until merged: without this, more cases would go for their sake.
            connection.execute("INSERT INTO words (words, rank) VALUES ('merge', ?)", (_MERGE_PAGES,))
        return gone

    def _retire(self, connection: sqlite3.Connection, numbers: Sequence[int], reason: str) -> int:
        connection.execute("BEGIN IMMEDIATE")
        rows.remove(connection, numbers)
        connection.execute("COMMIT")
        self._retired[reason].inc(len(numbers))
        return len(numbers)


def _oldest(connection: sqlite3.Connection, limit: int) -> list[int]:
    return _numbers(connection, "SELECT n FROM cases ORDER BY golden, labelled, ended LIMIT ?", (limit,))


def _numbers(connection: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> list[int]:
    return [number for (number,) in connection.execute(statement, values)]
