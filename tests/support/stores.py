"""A watcher that remembers, and a seam at which writing can be made to fail."""

from __future__ import annotations

import sqlite3


class Watched:
    """What a store told."""

    def __init__(self) -> None:
        self.written = 0
        self.failures: list[str] = []
        self.aside: list[str] = []
        self.unread: list[str] = []

    def wrote(self) -> None:
        self.written += 1

    def failed(self, sentence: str, error: Exception) -> None:
        self.failures.append(sentence)

    def set_aside(self, sentence: str) -> None:
        self.aside.append(sentence)

    def unreadable(self, sentence: str, error: Exception) -> None:
        self.unread.append(sentence)


class Disk:
    """A `Reached` that fails a commit while it is full, and remembers what was reached."""

    def __init__(self) -> None:
        self.full = False
        self.reached: list[str] = []

    def __call__(self, point: str) -> None:
        self.reached.append(point)
        if self.full and point.endswith("before_commit"):
            raise sqlite3.OperationalError("database or disk is full")
