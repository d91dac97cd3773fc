"""The one writer of a database: a thread that takes what waits and commits it together."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from collector.review.store import StoreUnavailable

_T = TypeVar("_T")
_MOST_TOGETHER = 256
_MAINTAIN_SECONDS = 60.0

Work = Callable[[sqlite3.Connection], _T]


@dataclass(slots=True)
class _Task:
    run: Work[object]
    bytes: int
    alone: bool
    lost: Callable[[], None]
    future: Future[object] = field(default_factory=Future)


class Writer:
    """Runs work on a connection of its own, in the order given, many pieces in one transaction.

    A piece that raises is taken back alone and its error given to whoever waits for it; the others stand. When the
    transaction itself fails (disk full, locked for longer than the connection waits), all of its pieces get
    StoreUnavailable, and those that nobody waits for are told to `lost`. `maintain` runs between transactions, from
    time to time and when `nudge` asks for it, and again as long as it returns True. `offer` is bounded by `max_items`
    and `max_bytes`; `call` is not, since its callers wait. `told` hears, in the thread, of each transaction that wrote
    something (None) and of each that could not, or not all (why).
    """

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        maintain: Work[bool],
        *,
        max_items: int,
        max_bytes: int,
        told: Callable[[Exception | None], None] = lambda _error: None,
    ) -> None:
        self._connect = connect
        self._maintain = maintain
        self._told = told
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._tasks: deque[_Task] = deque()
        self._bytes = 0
        self._offered = 0
        self._busy = 0
        self._nudged = False
        self._closing = False
        self._wake = threading.Condition()  # protects all of the above but the connection, which is the thread's
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Connect, raising what that raises, and begin with what waits."""
        self._connection = self._connect()
        self._thread = threading.Thread(target=self._loop, name="review-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Pieces that are not committed yet."""
        return len(self._tasks) + self._busy

    def offer(
        self,
        run: Work[_T],
        *,
        size: int,
        lost: Callable[[], None],
        written: Callable[[_T], None] | None = None,
    ) -> bool:
        """Do it soon; False when too much waits already. Never blocks for longer than a few instructions.

        `written` is called by the writer's thread, with what `run` gave, when it is committed.
        """
        task = _Task(run, size, alone=False, lost=lost)
        if written is not None:
            tell: Callable[[Any], None] = written
            task.future.add_done_callback(lambda future: None if future.exception() else tell(future.result()))
        with self._wake:
            if self._closing or self._offered >= self._max_items or self._bytes + size > self._max_bytes:
                return False
            self._tasks.append(task)
            self._offered += 1
            self._bytes += size
            self._wake.notify()
        return True

    def call(self, run: Work[_T], *, timeout_seconds: float, alone: bool = False) -> _T:
        """Do it and wait until it is committed; what it raises is raised here. `alone`: outside of a transaction.

        Raises StoreUnavailable when that takes longer (it may still be done), or when the writer is closed.
        """
        task = _Task(run, 0, alone=alone, lost=_nobody)
        with self._wake:
            if self._closing or self._thread is None:
                raise StoreUnavailable("the review store is not open")
            self._tasks.append(task)
            self._wake.notify()
        try:
            return task.future.result(timeout_seconds)  # type: ignore[return-value]  # the future holds what `run` gave
        except TimeoutError as error:
            raise StoreUnavailable(
                f"the review store did not answer within {timeout_seconds:g} s; try again"
            ) from error

    def nudge(self) -> None:
        """Ask for maintenance soon."""
        with self._wake:
            self._nudged = True
            self._wake.notify()

    def close(self, timeout_seconds: float) -> int:
        """Write what waits, end the thread and close the connection. Returns how many offered pieces were
        left over when the time was out. Twice is fine."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(timeout_seconds)
        with self._wake:
            left = list(self._tasks)
            self._tasks.clear()
        for task in left:
            task.future.set_exception(StoreUnavailable("the review store is not open"))
        return sum(task.lost is not _nobody for task in left)

    def _loop(self) -> None:
        try:
            while True:
                with self._wake:
                    if not self._tasks and not self._closing and not self._nudged:
                        self._wake.wait(_MAINTAIN_SECONDS)
                    batch = self._batch()
                    due = not batch or self._nudged
                    self._nudged = False
                    ending = self._closing and not batch
                if batch:
                    self._run(batch)
                if ending:
                    return
                if due:
                    self._tidy()
        finally:
            self._connection.close()

    def _batch(self) -> list[_Task]:
        """What goes into the next transaction; work that runs alone is a batch of its own. The lock is held."""
        batch: list[_Task] = []
        while self._tasks and len(batch) < _MOST_TOGETHER and not (batch and self._tasks[0].alone):
            batch.append(self._tasks.popleft())
            if batch[-1].alone:
                break
        self._busy = len(batch)
        return batch

    def _run(self, batch: list[_Task]) -> None:
        done: list[tuple[_Task, object]] = []
        trouble: Exception | None = None
        changes = self._connection.total_changes
        try:
            if batch[0].alone:
                done.append((batch[0], batch[0].run(self._connection)))
            else:
                self._connection.execute("BEGIN IMMEDIATE")
                for task in batch:
                    trouble = self._piece(task, done) or trouble
                self._connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001  # whatever breaks a transaction must not end the thread
            trouble = error
            self._take_back()
            for task in batch:
                if not task.future.done():
                    task.lost()
                    task.future.set_exception(_unavailable(error))
        else:
            for task, result in done:
                task.future.set_result(result)
        if trouble is not None or self._connection.total_changes > changes:
            self._told(trouble)
        with self._wake:
            self._busy = 0
            self._bytes -= sum(task.bytes for task in batch)
            self._offered -= sum(task.lost is not _nobody for task in batch)

    def _piece(self, task: _Task, done: list[tuple[_Task, object]]) -> Exception | None:
        """Do one piece; the error, where it was the file's."""
        trouble: Exception | None = None
        self._connection.execute("SAVEPOINT piece")
        try:
            done.append((task, task.run(self._connection)))
        except Exception as error:  # noqa: BLE001  # one piece's error belongs to whoever waits for it
            self._connection.execute("ROLLBACK TO piece")
            task.lost()
            trouble = error if isinstance(error, sqlite3.OperationalError) else None
            task.future.set_exception(_unavailable(error) if trouble is not None else error)
        self._connection.execute("RELEASE piece")
        return trouble

    def _take_back(self) -> None:
        with contextlib.suppress(sqlite3.Error):  # SQLite rolls back by itself on some errors
            self._connection.execute("ROLLBACK")

    def _tidy(self) -> None:
        try:
            if self._maintain(self._connection):
                self.nudge()
        except Exception as error:  # noqa: BLE001  # whatever it meets in the file must not end the thread
            self._take_back()
            # Where another process holds the file, the next time will do, and limits are kept a minute later.
            if not (isinstance(error, sqlite3.OperationalError) and "locked" in str(error)):
                self._told(error)


def _nobody() -> None:
    """Somebody waits for it: there is nobody else to tell of its loss."""


def _unavailable(error: Exception) -> Exception:
    if isinstance(error, sqlite3.Error):
        return StoreUnavailable(f"the review store can not write: {error}")
    return error
