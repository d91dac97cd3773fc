"""A directory that belongs to one process at a time, with the mark by which an unclean end is known."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO


class StateDirError(Exception):
    """The directory can not be used; the text names it and says why."""


class StateDir:
    """Locks `path` and remembers whether the last holder ended in order.

    The lock is the kernel's (flock), so it can not outlive its process. The mark is a file that exists while the
    directory is held: found at `open`, it says that the last holder did not come to its `close`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: IO[bytes] | None = None

    def open(self) -> bool:
        """Take the directory, making it where absent. Returns True after an unclean end. Raises StateDirError."""
        try:
            self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = (self._path / "lock").open("ab")
        except OSError as error:
            raise StateDirError(
                f"process.state_dir: {str(self._path)!r} can not be used ({error.strerror}): give a directory that "
                "this user may write"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise StateDirError(
                f"process.state_dir: {str(self._path)!r} is in use by another groundwatch: give each its own"
            ) from error
        self._lock = lock
        mark = self._path / "running"
        unclean = mark.exists()
        mark.write_text(f"{os.getpid()}\n", encoding="ascii")
        return unclean

    def close(self) -> None:
        """End in order: take the mark away, release the lock. Twice is fine."""
        if self._lock is not None:
            (self._path / "running").unlink(missing_ok=True)
            self._lock.close()
            self._lock = None
