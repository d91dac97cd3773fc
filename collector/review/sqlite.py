"""The review store in one SQLite file: WAL, one writer thread with group commit, readers beside it."""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from collector.pipeline.clock import Clock
from collector.review import rows
from collector.review.case import Case, Reason, text_bytes
from collector.review.erasure import clear_log, erase
from collector.review.facets import facets
from collector.review.labels import Draft, Label, LabelKind, checked, last_undoable
from collector.review.options import Options
from collector.review.query import BadQuery, Erased, Facets, Page, Query, Row, Stats, Subject, cursor
from collector.review.retention import Retention, used_bytes
from collector.review.schema import migrate
from collector.review.search import FEW, counting, select
from collector.review.store import Conflict, NoCase, NothingToUndo, StoreUnavailable
from collector.review.writer import Writer
from collector.telemetry import metrics
from collector.telemetry.events import Event, Events, Level
from collector.telemetry.instruments import Telemetry

_T = TypeVar("_T")
_BUSY_SECONDS = 30.0
"""How long the writer waits for another process's transaction: an erasure in a large file takes seconds."""
_WRITE_SECONDS = 60.0
_READERS = 4
_CASE_OVERHEAD_BYTES = 4_096
_NEW_UNTIL_RETENTION = 500
_ROW = (
    "c.id, c.title, c.ended, c.service, c.service_version, c.prompt_version, c.model, c.cause, c.lowest, "
    "c.probability, c.draw, c.revision, c.labelled, c.golden, c.skipped"
)


class SqliteStore:
    """A `ReviewStore` in the file `path`, readable by its owner only.

    Several processes may have it open: each has its own writer, and SQLite's lock puts them in order; `busy_seconds`
    is how long one waits for another. `events` are told when it can not be written, and when it can again.
    `most_listed` is for tests: see `collector.review.search.FEW`.
    """

    def __init__(
        self,
        path: Path,
        options: Options,
        *,
        clock: Clock,
        telemetry: Telemetry,
        events: Events | None = None,
        busy_seconds: float = _BUSY_SECONDS,
        most_listed: int = FEW,
    ) -> None:
        self._path = path
        self._events = events
        self._failing = False
        self._most_listed = most_listed
        self._options = options
        self._clock = clock
        self._outcomes = {
            outcome: telemetry.counter(metrics.REVIEW_CASES, outcome=outcome)
            for outcome in metrics.REVIEW_CASE_OUTCOMES
        }
        self._labels = {
            kind: telemetry.counter(metrics.REVIEW_LABELS, kind=kind) for kind in metrics.REVIEW_LABEL_KINDS
        }
        self._retention = Retention(options, clock=clock, telemetry=telemetry)
        self._retired = telemetry.counter(metrics.REVIEW_RETIRED, reason="request")
        self._since_retention = 0
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._opened = 0
        self._open = False
        self._lock = threading.Lock()  # protects _opened and _open
        self._writer = Writer(
            lambda: self._connect(busy_seconds),
            self._retention.step,
            max_items=options.queue_cases,
            max_bytes=options.queue_bytes,
            told=self._wrote,
        )
        telemetry.gauge(metrics.REVIEW_WAITING).set_function(lambda: float(self._writer.waiting))

    def open(self) -> None:
        """Open the file, making it, with its directory, where absent. Raises StoreUnavailable when that can not be.
        Before it, cases that are put wait, and everything else is unavailable."""
        try:
            _make_private(self._path)
            self._writer.start()
        except (OSError, sqlite3.Error) as error:
            raise StoreUnavailable(
                f"review.path: {str(self._path)!r} can not be used ({error}): make it a file that this user may write; "
                "one that is damaged is to be moved away, with its -wal"
            ) from error
        self._open = True
        self._writer.nudge()

    # --- writing

    def put(self, case: Case, ended: Callable[[], None] | None = None) -> bool:
        def became(outcome: str) -> None:
            self._outcomes[outcome].inc()
            if ended is not None:
                ended()

        taken = self._writer.offer(
            lambda connection: self._put(connection, case),
            size=_size(case),
            lost=lambda: became("failed"),
            written=became,
        )
        if not taken:
            self._outcomes["queue_full"].inc()
        return taken

    def _wrote(self, error: Exception | None) -> None:
        """Tell of trouble when it begins and ends: cases are counted one by one. Called by the writer's thread."""
        failing = error is not None
        if failing == self._failing or self._events is None:
            return
        self._failing = failing
        if failing:
            reason = f"{self._path} can not be written ({error}): make room, or mend the disk"
            event = Event(
                "review_not_written",
                Level.ERROR,
                "cases for review can not be written and are lost until they can",
                {"reason": reason},
            )
        else:
            event = Event("review_written_again", Level.INFO, "cases for review are written again")
        self._events.tell(event, error)

    def _put(self, connection: sqlite3.Connection, case: Case) -> str:
        now = self._clock.unix_nano() / 1e9
        try:
            outcome = rows.put(connection, case, now_unix=now, max_bytes=self._options.max_case_bytes)
        except rows.TooLarge:
            outcome = "too_large"
        self._since_retention += 1
        if self._since_retention >= _NEW_UNTIL_RETENTION:
            self._since_retention = 0
            self._writer.nudge()
        return outcome

    def flush(self, timeout_seconds: float = 30.0) -> None:
        self._writer.call(lambda _: None, timeout_seconds=timeout_seconds)

    def label(
        self,
        case_id: str,
        drafts: Sequence[Draft],
        *,
        author: str,
        expected_revision: int | None,
        in_order: bool = False,
        source: str = "ui",
    ) -> Case:
        checked(drafts, author)

        def run(connection: sqlite3.Connection) -> Case:
            number, case = _expected(connection, case_id, expected_revision)
            now, revision = self._clock.unix_nano() / 1e9, case.revision + 1
            labels = [
                Label(one.kind, author, now, revision, one.value, one.metric, one.target, in_order, source)
                for one in drafts
            ]
            return rows.add_labels(connection, number, case, labels)

        case = self._write(run)
        for draft in drafts:
            self._labels[draft.kind].inc()
        return case

    def undo(self, case_id: str, *, author: str, expected_revision: int | None) -> Case:
        def run(connection: sqlite3.Connection) -> Case:
            number, case = _expected(connection, case_id, expected_revision)
            target = last_undoable(case.labels, author)
            if target is None:
                raise NothingToUndo(case_id, author)
            now, revision = self._clock.unix_nano() / 1e9, case.revision + 1
            label = Label(LabelKind.UNDO, author, now, revision, target=target)
            return rows.add_labels(connection, number, case, [label])

        case = self._write(run)
        self._labels[LabelKind.UNDO].inc()
        return case

    def erase(self, subject: Subject) -> Erased:
        now = self._clock.unix_nano() / 1e9
        erased = self._write(lambda connection: erase(connection, subject, now_unix=now))
        self._writer.call(
            lambda connection: clear_log(connection, self._path, erased), timeout_seconds=600, alone=True
        )
        self._retired.inc(len(erased.case_ids))
        return erased

    def retain(self) -> int:
        return self._writer.call(self._retention.keep, timeout_seconds=600, alone=True)

    def _write(self, run: Callable[[sqlite3.Connection], _T]) -> _T:
        try:
            return self._writer.call(run, timeout_seconds=_WRITE_SECONDS)
        except (UnicodeEncodeError, OverflowError) as error:
            raise BadQuery("a text or number there can not be kept") from error

    # --- reading

    def get(self, case_id: str) -> Case | None:
        with self._reader() as connection:
            connection.execute("BEGIN")  # body and labels of one moment
            held = rows.load(connection, case_id)
            connection.execute("COMMIT")
        return held[1] if held is not None else None

    def find(self, query: Query, *, after: str | None = None, limit: int = 50) -> Page:
        with self._reader() as connection:
            connection.execute("BEGIN")
            statement, values = select(
                connection, query, what=_ROW, after=after, limit=limit, most_listed=self._most_listed
            )
            found = connection.execute(statement, values).fetchall()
            page = tuple(_row(connection, one) for one in found[:limit])
            connection.execute("COMMIT")
        return Page(page, cursor(found[limit - 1][-2], found[limit - 1][-1]) if len(found) > limit else None)

    def count(self, query: Query, *, at_most: int = 10_000) -> int:
        with self._reader() as connection:
            (number,) = connection.execute(
                *counting(connection, query, at_most, most_listed=self._most_listed)
            ).fetchone()
        return int(number)

    def each(self, query: Query) -> Iterator[Case]:
        after: str | None = None
        told: set[str] = set()  # a case that is merged meanwhile may come again at another place
        while True:
            page = self.find(query, after=after, limit=100)
            for row in page.rows:
                case = self.get(row.id) if row.id not in told else None
                if case is not None:
                    told.add(row.id)
                    yield case
            after = page.next
            if after is None:
                return

    def facets(self) -> Facets:
        with self._reader() as connection:
            return facets(connection)

    def stats(self) -> Stats:
        with self._reader() as connection:
            cases, labelled, golden, oldest = connection.execute(
                "SELECT count(*), ifnull(sum(labelled), 0), ifnull(sum(golden), 0), min(ended) FROM cases"
            ).fetchone()
            return Stats(cases, labelled, golden, used_bytes(connection), self._writer.waiting, oldest)

    def close(self) -> None:
        with self._lock:
            self._open = False
        # Readers first: the last connection to close takes the log away, which a reader may not.
        while not self._idle.empty():
            self._idle.get_nowait().close()
        self._outcomes["shutdown"].inc(self._writer.close(_WRITE_SECONDS))

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """A connection that only reads, and gives up what takes too long."""
        connection = self._borrow()
        until = self._clock.monotonic() + self._options.read_seconds
        connection.set_progress_handler(lambda: self._clock.monotonic() > until, 1_000)
        try:
            yield connection
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                raise StoreUnavailable(
                    f"the search took longer than review.read_seconds ({self._options.read_seconds:g} s): ask for less"
                ) from error
            raise StoreUnavailable(f"the review store can not be read: {error}") from error
        except (UnicodeEncodeError, OverflowError) as error:
            raise BadQuery("a text or number there can not be looked for") from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if self._open:
                self._idle.put(connection)
            else:
                connection.close()

    def _borrow(self) -> sqlite3.Connection:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            pass
        with self._lock:
            if not self._open:
                raise StoreUnavailable("the review store is not open")
            new = self._opened < _READERS
            self._opened += new
        if new:
            connection = self._connect(self._options.read_seconds)
            connection.execute("PRAGMA query_only = ON")
            return connection
        try:
            return self._idle.get(timeout=self._options.read_seconds)
        except queue.Empty as error:
            raise StoreUnavailable("all readers of the review store are busy; try again") from error

    def _connect(self, busy_seconds: float) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        # A file's pages can be given back only when this is said before its first table.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # a label that was answered for is on disk
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        migrate(connection, name=str(self._path))
        return connection


def _make_private(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Made before SQLite makes it, which would leave the mode to the umask; its log and index copy the mode.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    path.chmod(0o600)


def _size(case: Case) -> int:
    """About the bytes that a case holds in memory."""
    return _CASE_OVERHEAD_BYTES + text_bytes(case.interaction)


def _expected(connection: sqlite3.Connection, case_id: str, revision: int | None) -> tuple[int, Case]:
    held = rows.load(connection, case_id)
    if held is None:
        raise NoCase(case_id)
    if revision is not None and held[1].revision != revision:
        raise Conflict(held[1], revision)
    return held


def _row(connection: sqlite3.Connection, columns: tuple[Any, ...]) -> Row:
    *plain, lowest, probability, draw, revision, labelled, golden, skipped, _, number = columns
    case_id, title, ended, service, service_version, prompt_version, model, cause = plain
    scores = connection.execute("SELECT metric, kind, value FROM scores WHERE n = ? AND kind <> ''", (number,))
    tags = connection.execute(
        "SELECT name, value FROM tags WHERE n = ? AND name IN ('reason', 'author')", (number,)
    ).fetchall()
    return Row(
        id=case_id,
        title=title,
        ended_unix=ended,
        service=service,
        service_version=service_version,
        prompt_version=prompt_version,
        model=model,
        cause=cause,
        lowest=lowest if lowest < rows.NO_SCORE else None,
        scores={(metric, kind): value for metric, kind, value in scores},
        reasons=tuple(Reason(value) for name, value in tags if name == "reason"),
        probability=probability,
        order=draw,
        revision=revision,
        labelled=bool(labelled),
        golden=bool(golden),
        skipped=bool(skipped),
        authors=tuple(value for name, value in tags if name == "author"),
    )
