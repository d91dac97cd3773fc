"""The spool: requests that were acknowledged and are not yet settled, in one SQLite file.

It holds content as it arrived, before redaction: its file is for its owner alone, rows are deleted and overwritten
with zeros when they are settled, and the log is emptied when the process ends in order.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from collector.pipeline.options import SpoolOptions
from collector.pipeline.receipt import Receipt
from collector.pipeline.store import Reached, StoreFile, Watcher, Writer, pass_by

_VERSION = 1
_SCHEMA = """
CREATE TABLE requests (number INTEGER PRIMARY KEY, signal TEXT NOT NULL, encoding TEXT NOT NULL, body BLOB NOT NULL);
"""
_PAGE_BYTES = 16_384
"""A request fills several pages, and each costs a write and a checksum; measured, a quarter less CPU of the writing
thread than with SQLite's 4,096."""
_ERASE_SECONDS = 0.2
"""What is settled within this time is deleted together."""
_RETRY_SECONDS = 1.0
_PROBE_BYTES = 65_536
_WRITING_BYTES = 64 * 1024 * 1024
"""What may be on its way to the disk, and so in memory: a disk that hangs must not fill it."""

Body = tuple[str, str, bytes]
"""Signal, encoding, and the body of a request of that."""
_Row = tuple[int, str, str, bytes]


class Entry:
    """One request on its way into the spool. `receipt` is for those who hold something of it, and held once by whoever
    made the entry; when all have let go, what `keep` wrote is deleted."""

    __slots__ = ("_spool", "numbers", "receipt")

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self.numbers: list[int] = []
        self.receipt = Receipt(self._settled)

    def _settled(self) -> None:
        self._spool.settled(self.numbers)

    async def keep(self, bodies: Sequence[Body]) -> bool:
        """Write what must survive; whether it is in the file. Call it once, while the receipt is held."""
        return await self._spool.keep(self, bodies)


class Spool:
    """Requests in the order in which they came. Belongs to the event loop; only the writing is done by a thread.

    `max_bytes` bounds the content that waits, and 64 MiB what is on its way to the disk; one request may go over them.
    While it is `full`, or `failing` (nothing can
    be written: the disk is full), ask for nothing to be kept and have the client try again in `retry_seconds`. It finds
    out by itself when there is room again.
    """

    retry_seconds = _RETRY_SECONDS

    def __init__(
        self,
        path: Path,
        options: SpoolOptions,
        *,
        full_sync: bool,
        watcher: Watcher,
        reached: Reached = pass_by,
    ) -> None:
        self._file = StoreFile(path, schema=_SCHEMA, version=_VERSION, full_sync=full_sync, page_bytes=_PAGE_BYTES)
        self._max_bytes = options.max_bytes
        self._watcher = watcher
        self._reached = reached
        self._writer: Writer | None = None
        self._reader: sqlite3.Connection | None = None
        self._sizes: dict[int, int] = {}
        self._next = 1
        self._left: deque[int] = deque()
        self._settled: list[int] = []
        self._unwritten: dict[int, _Row] = {}
        self._erasing: asyncio.TimerHandle | None = None
        self._writing = 0
        self.bytes = 0
        self.failing: str | None = None
        self.no_room: Callable[[], bool] = lambda: False
        """Whether what comes after the last outcome (a topic of results) can hold no more either."""

    @property
    def requests(self) -> int:
        return len(self._sizes)

    @property
    def full(self) -> bool:
        return self.bytes >= self._max_bytes or self._writing >= _WRITING_BYTES or self.no_room()

    @property
    def left(self) -> int:
        """Requests of an earlier process that have not been read again yet."""
        return len(self._left)

    def open(self) -> None:
        """Open the file. Raises OSError where no file can be made."""
        try:
            connection, aside = self._file.open()
            self._reader = sqlite3.connect(self._file.path, isolation_level=None)
            sizes = dict(
                connection.execute("SELECT number, length(body) FROM requests ORDER BY number").fetchall()
            )
        except sqlite3.Error as error:
            raise OSError(f"{self._file.path} can not be opened: {error}") from error
        if aside is not None:
            self._watcher.set_aside(
                f"{aside}: what it held and can not be read was acknowledged, and is not scored"
            )
        self._sizes = sizes
        self.bytes = sum(sizes.values())
        self._left = deque(sizes)
        self._next = max(sizes, default=0) + 1
        self._writer = Writer(connection, "spool", self._reached, self._group_ended)

    async def restore(self, offer: Callable[[Body, Receipt], Awaitable[None]]) -> int:
        """Give what an earlier process left, in order, with a receipt that `offer` need not release; how many. What
        raises ValueError can not be read: it is deleted and told."""
        given = 0
        while self._left:
            number = self._left[0]
            receipt = Receipt(partial(self.settled, [number]))
            try:
                body = self._read(number)
                await offer(body, receipt)
                given += 1
            except (ValueError, sqlite3.Error) as error:
                self._watcher.unreadable(f"request {number} in {self._file.path} can not be read", error)
            self._left.popleft()
            receipt.release()
        return given

    def _read(self, number: int) -> Body:
        assert self._reader is not None
        row = self._reader.execute(
            "SELECT signal, encoding, body FROM requests WHERE number = ?", (number,)
        ).fetchone()
        if row is None:
            raise ValueError("the row is gone")
        signal, encoding, body = row
        return signal, encoding, body

    async def keep(self, entry: Entry, bodies: Sequence[Body]) -> bool:
        """See `Entry.keep`."""
        if self._writer is None:
            return False
        rows: list[_Row] = []
        for body in bodies:
            number, self._next = self._next, self._next + 1
            entry.numbers.append(number)
            self._sizes[number] = len(body[2])
            self.bytes += len(body[2])
            rows.append((number, *body))
        return await self._done(self._writer.submit(partial(_write, rows, ())), rows)

    async def written(self) -> bool:
        """Whether all that was to be kept so far is in the file."""
        return self._writer is not None and await self._done(self._writer.submit(_nothing), ())

    async def _done(self, written: asyncio.Future[None], rows: Sequence[_Row]) -> bool:
        size = sum(len(row[3]) for row in rows)
        self._writing += size
        written.add_done_callback(lambda done: self._ended(rows, size, done))
        try:
            await asyncio.shield(written)
        except sqlite3.Error:
            return False
        self._reached("spool.before_acknowledge")
        return True

    def _ended(self, rows: Sequence[_Row], size: int, done: asyncio.Future[None]) -> None:
        self._writing -= size
        self._inserted(rows, done)

    def _inserted(self, rows: Sequence[_Row], done: asyncio.Future[None]) -> None:
        """What could not be written is held, and written when it can be: the client gives it again, and then its spans
        are known."""
        if done.cancelled() or done.exception() is not None:
            self._unwritten.update((row[0], row) for row in rows if row[0] not in self._settled)

    def settled(self, numbers: Sequence[int]) -> None:
        """Nobody needs these any more. They are deleted soon."""
        if numbers:
            for number in numbers:
                self._unwritten.pop(number, None)
            self._settled += numbers
            if self._erasing is None:
                self._erase_in(_ERASE_SECONDS)

    def _erase_in(self, seconds: float) -> None:
        self._erasing = asyncio.get_running_loop().call_later(seconds, self._erase)

    def _erase(self) -> None:
        """Delete what is settled; after a failure, write what could not be written, too."""
        self._erasing = None
        numbers, self._settled = self._settled, []
        rows, self._unwritten = list(self._unwritten.values()), {}
        if self._writer is None or not (numbers or self.failing):
            return
        done = self._writer.submit(partial(_write, rows, numbers) if numbers or rows else _probe)
        done.add_done_callback(partial(self._inserted, rows))
        done.add_done_callback(partial(self._erased, numbers))

    def _erased(self, numbers: list[int], done: asyncio.Future[None]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._settled = numbers + self._settled
            return
        for number in numbers:
            self.bytes -= self._sizes.pop(number, 0)

    def _group_ended(self, error: Exception | None) -> None:
        if error is None:
            self.failing = None
            self._watcher.wrote()
            return
        self.failing = f"{self._file.path} can not be written ({error}): make room, or mend the disk"
        self._watcher.failed(f"{self.failing}; new work is refused until then", error)
        if self._erasing is not None:
            self._erasing.cancel()
        self._erase_in(_RETRY_SECONDS)

    async def close(self) -> None:
        """Delete what is settled and close the file. Twice is fine, and so is without `open`."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        if self._erasing is not None:
            self._erasing.cancel()
        if self._settled:
            writer.submit(partial(_write, (), self._settled))
        if self._reader is not None:
            self._reader.close()
        await writer.stop()


def _write(rows: Sequence[_Row], settled: Sequence[int], connection: sqlite3.Connection) -> None:
    connection.executemany("INSERT INTO requests (number, signal, encoding, body) VALUES (?, ?, ?, ?)", rows)
    connection.executemany("DELETE FROM requests WHERE number = ?", [(number,) for number in settled])


def _nothing(_connection: sqlite3.Connection) -> None:
    """Only to be after what was submitted before."""


def _probe(connection: sqlite3.Connection) -> None:
    """Write and take away as much as a small request takes."""
    connection.execute("INSERT INTO requests VALUES (0, '', '', zeroblob(?))", (_PROBE_BYTES,))
    connection.execute("DELETE FROM requests WHERE number = 0")
