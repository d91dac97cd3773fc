"""SQLite files of our own: opened with care, written by one thread in group commits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

Work = Callable[[sqlite3.Connection], object]
Reached = Callable[[str], None]
"""Told of each commit and acknowledgement boundary as it is reached, by name. A test ends the process there."""

_APPLICATION_ID = 0x47574348
_BUSY_SECONDS = 5.0
_CHECKPOINT_BYTES = 2 * 1024 * 1024
"""Of log: a small disk must have room for it beside the data."""
_JOURNAL_LIMIT_BYTES = 4 * 1024 * 1024


class NotOurs(Exception):
    """A file that can not be used as it is; the text says why, and names no content."""


class Watcher(Protocol):
    """Told how a store fares. Sentences name the file and the cure, and hold no content."""

    def wrote(self) -> None:
        """A group was committed."""
        ...

    def failed(self, sentence: str, error: Exception) -> None:
        """A group could not be written, and will be tried again or was refused."""
        ...

    def set_aside(self, sentence: str) -> None:
        """What lay there could not be used, and a new file was begun."""
        ...

    def unreadable(self, sentence: str, error: Exception) -> None:
        """Something in the file could not be read, and was passed over."""
        ...


def pass_by(_point: str) -> None:
    """A `Reached` that does nothing."""


class StoreFile:
    """One SQLite database, mode 0600, WAL.

    `version` is that of the schema, which `schema` makes in an empty file, with pages of `page_bytes` (a file that is
    there keeps its own). With `full_sync` each commit survives a loss of power, else the end of the process only.
    Deleted content is overwritten with zeros.
    """

    def __init__(self, path: Path, *, schema: str, version: int, full_sync: bool, page_bytes: int = 4_096) -> None:
        self.path = path
        self._schema = schema
        self._version = version
        self._full_sync = full_sync
        self._page_bytes = page_bytes

    def open(self) -> tuple[sqlite3.Connection, str | None]:
        """The connection; and, where what lay there was corrupt, of another program or of a newer version and was set
        aside, a sentence that says so. Raises OSError and sqlite3.Error where no file can be made."""
        try:
            return self._open(), None
        except (sqlite3.DatabaseError, NotOurs) as error:
            if not self.path.exists() or isinstance(error, sqlite3.OperationalError):
                raise  # the place, not what lies there
            aside = self._set_aside()
            told = f"{self.path} {_why(error)}; it was set aside as {aside.name} and a new one was begun"
            return self._open(), told

    def _open(self) -> sqlite3.Connection:
        # Made by us, so that it never has other rights, not even for a moment.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self.path.chmod(0o600)
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        def pragma(text: str) -> object:
            row = connection.execute(f"PRAGMA {text}").fetchone()
            return row[0] if row else None

        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and pragma("application_id") != _APPLICATION_ID:
            raise NotOurs("belongs to another program")
        if tables and pragma("user_version") != self._version:
            raise NotOurs(f"has the version {pragma('user_version')}, not {self._version}")
        if tables and pragma("quick_check(1)") != "ok":
            raise NotOurs("is damaged")
        pragma(f"page_size = {self._page_bytes}")
        pragma("journal_mode = WAL")
        pragma("secure_delete = ON")
        pragma(f"synchronous = {'FULL' if self._full_sync else 'NORMAL'}")
        pragma(f"wal_autocheckpoint = {_CHECKPOINT_BYTES // connection.execute('PRAGMA page_size').fetchone()[0]}")
        pragma(f"journal_size_limit = {_JOURNAL_LIMIT_BYTES}")
        if not tables:
            connection.executescript(
                f"BEGIN IMMEDIATE; PRAGMA application_id = {_APPLICATION_ID}; "
                f"PRAGMA user_version = {self._version}; {self._schema} COMMIT;"
            )

    def _set_aside(self) -> Path:
        """Rename the file and its log. Never deletes: it may hold what somebody can still mend."""
        suffix = f".bad-{time.time_ns()}"
        aside = self.path.with_name(self.path.name + suffix)
        self.path.rename(aside)
        for end in ("-wal", "-shm"):
            beside = self.path.with_name(self.path.name + end)
            if beside.exists():
                beside.rename(self.path.with_name(self.path.name + suffix + end))
        return aside


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, NotOurs) else f"can not be read ({error})"


_Job = tuple[Work, asyncio.Future[None], int]
"""What to do, whom to tell, and how many groups were known to have failed when it was submitted."""


class Writer:
    """One thread that writes: what was submitted while it wrote goes into the next transaction together.

    `submit` is called on the event loop, and the future it gives is done there, after the commit, or fails with the
    error of the whole group, which then is not in the file. What was submitted before that was known fails too, so that
    nothing is in the file without what came before it. `ended` is told of each group, before those who wait.
    `name` stands in front of the points of `reached`.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        name: str,
        reached: Reached = pass_by,
        ended: Callable[[Exception | None], None] | None = None,
    ) -> None:
        self._connection = connection
        self._name = name
        self._reached = reached
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._told_failures = 0  # on the loop
        self._failures = 0  # in the thread
        self._thread = threading.Thread(target=self._run, name=f"{name}-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Work) -> asyncio.Future[None]:
        """Have `work` done, by the writer's thread, in its next transaction."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((work, future, self._told_failures))
        return future

    async def stop(self) -> None:
        """Write what was submitted, then end the thread and close the connection."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        ended = False
        while not ended:
            group = [self._queue.get()]
            while not self._queue.empty():
                group.append(self._queue.get())
            ended = None in group
            works = [entry for entry in group if entry is not None]
            if works:
                self._write(works)
        with contextlib.suppress(sqlite3.Error):  # without it the next process reads the log
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    def _write(self, group: list[_Job]) -> None:
        error: Exception | None = None
        connection = self._connection
        try:
            if any(failures < self._failures for _, _, failures in group):
                raise sqlite3.OperationalError("what was written before failed")
            connection.execute("BEGIN IMMEDIATE")
            for work, _, _ in group:
                work(connection)
            self._reached(f"{self._name}.before_commit")
            connection.execute("COMMIT")
            self._reached(f"{self._name}.after_commit")
        except Exception as raised:  # noqa: BLE001  # whatever it is, those who wait must learn of it
            error = raised
            self._failures += 1
            self._undo()
        futures = [future for _, future, _ in group]
        with contextlib.suppress(RuntimeError):  # the loop is gone, and with it those who waited
            self._loop.call_soon_threadsafe(self._finish, futures, error, self._failures)

    def _undo(self) -> None:
        """Roll back; then give the log's room back, in case that it is room that is missing."""
        for statement in ("ROLLBACK", "PRAGMA wal_checkpoint(TRUNCATE)"):
            # SQLite rolls back by itself on some errors; room is tried for again with the next group.
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute(statement)

    def _finish(self, futures: list[asyncio.Future[None]], error: Exception | None, failures: int) -> None:
        self._told_failures = failures
        if self._ended is not None:
            self._ended(error)
        for future in futures:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
                future.exception()  # retrieved: not everybody who submits waits for it
