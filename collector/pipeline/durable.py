"""What has a state that outlives the process, as the books (`collector.pipeline.books`) keep it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Durable(Protocol):
    """A part of the process whose state is written in one transaction with the keys of the results that made it.

    Rows are small and independent: `changed` gives those that differ since it was last called, whole, so that the
    last write of a row counts. A row's key is text of at most 200 characters, its value bytes of the part's own
    format, which begins with the part's own version: bytes that `restore` can not read mean a fresh start of that
    row, told to the log, and never a crash. An empty value takes the row away. Both are called on the event loop's
    thread.
    """

    @property
    def name(self) -> str:
        """Names the part in the file: lower case, stable over releases."""
        ...

    def changed(self) -> Mapping[str, bytes]:
        """Rows that changed since the last call."""
        ...

    def restore(self, rows: Mapping[str, bytes]) -> None:
        """Take over what was kept; called once, before the first event, with all rows of this part."""
        ...
