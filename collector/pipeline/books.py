"""The books: which results have been counted, and the sums they went into, written together."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from pathlib import Path

from collector.pipeline.clock import Clock
from collector.pipeline.durable import Durable
from collector.pipeline.options import BooksOptions
from collector.pipeline.receipt import Receipt
from collector.pipeline.store import Reached, StoreFile, Watcher, Writer, pass_by

_VERSION = 1
_SCHEMA = """
CREATE TABLE keys (number INTEGER PRIMARY KEY, unix_seconds INTEGER NOT NULL, key BLOB NOT NULL UNIQUE);
CREATE TABLE rows (part TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (part, key)) WITHOUT ROWID;
"""
_KEY_BYTES = 12
"""A chance of 1e-17 that two of half a million keys are one."""
_FORGET_SECONDS = 60.0
_READ_SECONDS = 0.05
"""A look-up waits no longer for a lock: it is made on the event loop."""


class Books:
    """Keys of counted interactions and the rows of `Durable` parts, in one SQLite file, in one transaction.

    `settled` is called when an interaction has been added to every part; its receipt is held until the commit that
    wrote key and sums, so that its source lets go of nothing that could be lost. What is shown to others must be of a
    moment that was committed: `commit(also)` calls `also` at the moment whose state it writes.

    While nothing can be written (the disk is full), all that is to be written is kept and tried again, `watcher` is
    told, and `failing` says why. Keys are forgotten after `window_seconds`, and the oldest when there are more than
    `max_keys`: what is given again later than that counts anew. Belongs to the event loop; only the writing is done
    by a thread.
    """

    def __init__(
        self,
        path: Path,
        options: BooksOptions,
        *,
        full_sync: bool,
        clock: Clock,
        watcher: Watcher,
        reached: Reached = pass_by,
    ) -> None:
        self._file = StoreFile(path, schema=_SCHEMA, version=_VERSION, full_sync=full_sync)
        self._options = options
        self._clock = clock
        self._watcher = watcher
        self._reached = reached
        self._parts: list[Durable] = []
        self._first: list[Callable[[], Awaitable[None]]] = []
        self._reader: sqlite3.Connection | None = None
        self._writer: Writer | None = None
        self._one = asyncio.Lock()
        self._keys: dict[bytes, int] = {}
        self._receipts: list[Receipt] = []
        self._rows: dict[tuple[str, str], bytes] = {}
        self._forget_at = 0.0
        self._committing: set[asyncio.Task[bool]] = set()
        self.failing: str | None = None

    def register(self, *parts: Durable) -> None:
        """Parts whose rows are kept; before `open`. Raises ValueError where two have one name."""
        self._parts += parts
        if len({part.name for part in self._parts}) < len(self._parts):
            raise ValueError(f"two durable parts share a name: {', '.join(part.name for part in self._parts)}")

    def after(self, *written: Callable[[], Awaitable[None]]) -> None:
        """Wait for these before each commit: what must be kept elsewhere of an interaction before its key says that it
        is done with, and must be bounded in time."""
        self._first += written

    def open(self) -> None:
        """Open the file and give every part its rows. Raises OSError where no file can be made."""
        try:
            connection, aside = self._file.open()
            self._reader = sqlite3.connect(self._file.path, timeout=_READ_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise OSError(f"{self._file.path} can not be opened: {error}") from error
        if aside is not None:
            self._watcher.set_aside(f"{aside}: sums begin at 0, and what was counted before may be counted again")
        for part in self._parts:
            self._restore(part, connection)
        self._writer = Writer(connection, "books", self._reached)

    def _restore(self, part: Durable, connection: sqlite3.Connection) -> None:
        rows = dict(connection.execute("SELECT key, value FROM rows WHERE part = ?", (part.name,)).fetchall())
        if not rows:
            return
        try:
            part.restore(rows)
        except Exception as error:  # noqa: BLE001  # a part's bug costs its memory of the past, not the start
            self._watcher.unreadable(
                f"what {self._file.path} holds of {part.name} can not be read: it begins anew", error
            )

    def known(self, key: str) -> bool:
        """Whether the interaction of this id has been counted."""
        if self._reader is None:
            return False
        short = _short(key)
        if short in self._keys:
            return True
        try:
            found = self._reader.execute("SELECT 1 FROM keys WHERE key = ?", (short,)).fetchone()
        except sqlite3.Error as error:
            self._watcher.unreadable(f"{self._file.path} can not be read: repeats are not known", error)
            return False
        return found is not None

    def settled(self, key: str, receipt: Receipt | None = None) -> None:
        """An interaction has been added to every part. The receipt is held until that has been written."""
        if self._writer is None:
            return
        self._keys[_short(key)] = self._clock.unix_nano() // 10**9
        if len(self._keys) > self._options.max_keys:
            del self._keys[next(iter(self._keys))]
        if receipt is not None:
            receipt.hold()
            self._receipts.append(receipt)

    async def commit(self, also: Callable[[], object] | None = None) -> bool:
        """Write all that changed; whether it is in the file. `also` is called at the moment whose state is written.
        True, too, where there is nothing to write and nothing is amiss."""
        # A task of its own, so that who waits may be cancelled and the commit is not.
        task = asyncio.create_task(self._commit(also))
        self._committing.add(task)
        task.add_done_callback(self._committing.discard)
        return await asyncio.shield(task)

    async def _commit(self, also: Callable[[], object] | None) -> bool:
        async with self._one:
            if also is not None:
                also()
            return await self._write(self._writer) if self._writer is not None else True

    async def _write(self, writer: Writer) -> bool:
        for part in self._parts:
            for name, value in part.changed().items():
                self._rows[part.name, name] = value
        keys, rows, receipts = self._keys.copy(), self._rows, self._receipts
        if not (keys or rows or receipts):
            return True
        self._rows, self._receipts = {}, []
        forget = self._clock.monotonic() >= self._forget_at
        before = self._clock.unix_nano() // 10**9 - int(self._options.window_seconds)

        def write(connection: sqlite3.Connection) -> None:
            _write(connection, keys, rows)
            if forget:
                _forget(connection, before, self._options.max_keys)

        try:
            for written in self._first:
                await written()
            await writer.submit(write)
        except Exception as error:  # noqa: BLE001  # of whatever kind: what was to be written must not be lost
            self._rows = {**rows, **self._rows}
            self._receipts = receipts + self._receipts
            self.failing = f"{self._file.path} can not be written ({error}): make room, or mend the disk"
            self._watcher.failed(f"{self.failing}; it is tried again", error)
            return False
        self.failing = None
        self._watcher.wrote()
        for key in keys:
            self._keys.pop(key, None)
        if forget:
            self._forget_at = self._clock.monotonic() + _FORGET_SECONDS
        self._reached("books.before_release")
        for receipt in receipts:
            receipt.release()
        self._reached("books.after_release")
        return True

    async def run(self) -> None:
        """Commit every `commit_seconds`."""
        while True:
            await asyncio.sleep(self._options.commit_seconds)
            await self.commit()

    async def close(self) -> None:
        """Write the rest and close the file. Twice is fine, and so is without `open`."""
        writer = self._writer
        if writer is None:
            return
        await self.commit()
        self._writer = None
        await writer.stop()
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def _short(key: str) -> bytes:
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()


def _write(connection: sqlite3.Connection, keys: dict[bytes, int], rows: dict[tuple[str, str], bytes]) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO keys (key, unix_seconds) VALUES (?, ?)",
        keys.items(),
    )
    connection.executemany(
        "INSERT OR REPLACE INTO rows (part, key, value) VALUES (?, ?, ?)",
        [(*name, value) for name, value in rows.items() if value],
    )
    connection.executemany(
        "DELETE FROM rows WHERE part = ? AND key = ?", [name for name, value in rows.items() if not value]
    )


def _forget(connection: sqlite3.Connection, before: int, most: int) -> None:
    """Forget keys that were written before a Unix time, and all but the last `most`. They were numbered in order."""
    first_young = connection.execute(
        "SELECT number FROM keys WHERE unix_seconds >= ? ORDER BY number LIMIT 1", (before,)
    ).fetchone()
    last = connection.execute("SELECT max(number) FROM keys").fetchone()[0]
    if last is None:
        return
    bound = max(first_young[0] if first_young is not None else last + 1, last - most + 1)
    connection.execute("DELETE FROM keys WHERE number < ?", (bound,))
