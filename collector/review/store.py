"""The protocol of a review store; its values are in `case` (Case), `labels` (Draft, Label), `query` (Query, Page)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from collector.review.case import Case
from collector.review.labels import Draft
from collector.review.query import Erased, Facets, Page, Query, Stats, Subject

MAX_PAGE = 200
"""Most rows of a page."""


class ReviewError(Exception):
    """What a review store raises.

    ReviewError
    +-- StoreUnavailable   the store can not be opened, or does not answer in time: trying again may help
    +-- NoCase             there is no such case (any more)
    +-- Conflict           somebody was there first: look at the case again, then decide
    +-- NothingToUndo      the author has no label there that still holds
    """


class StoreUnavailable(ReviewError):
    pass


class NoCase(ReviewError):
    def __init__(self, case_id: str) -> None:
        super().__init__(f"there is no case {case_id[:80]!r}; it may have been erased or have grown too old")


class NothingToUndo(ReviewError):
    def __init__(self, case_id: str, author: str) -> None:
        super().__init__(f"{author!r} has nothing to undo on case {case_id[:80]!r}")


class Conflict(ReviewError):
    """The case is at another revision than the one that was looked at. `case` is as it is now."""

    def __init__(self, case: Case, expected_revision: int) -> None:
        self.case = case
        self.expected_revision = expected_revision
        by = case.labels[-1].author if case.labels else "nobody"
        super().__init__(
            f"case {case.id[:80]!r} is at revision {case.revision}, not {expected_revision}: {by!r} was there first"
        )


class ReviewStore(Protocol):
    """Keeps cases and labels. Safe for use from several threads.

    All methods but `put` and `stats` may take milliseconds and more: an event loop calls them in a thread. Readers
    see what was committed before they began. Ids are any text.
    """

    def put(self, case: Case, ended: Callable[[], None] | None = None) -> bool:
        """Take a case, or merge it with what is kept of the same interaction (`collector.review.case.merge`).

        Never waits: it is written soon. Returns False when the bounded queue is full; the case is dropped and
        counted, since ingest must not be slowed. A case of an erased subject that ended before the erasure is
        refused silently. `ended` is called once, from any thread, when the case that was taken is committed or has
        failed to be (which is counted); not for one that still waits when the store is closed.
        """
        ...

    def flush(self, timeout_seconds: float = 30.0) -> None:
        """Wait until everything put before is committed. Raises StoreUnavailable when that takes longer."""
        ...

    def get(self, case_id: str) -> Case | None:
        """The case with all its labels; None where there is none."""
        ...

    def find(self, query: Query, *, after: str | None = None, limit: int = 50) -> Page:
        """A page of the answer, `limit` from 1 to MAX_PAGE. Raises BadQuery for a bad `after` or limit."""
        ...

    def count(self, query: Query, *, at_most: int = 10_000) -> int:
        """How many cases fit; counting ends at `at_most`."""
        ...

    def each(self, query: Query) -> Iterator[Case]:
        """All cases that fit, whole, in the query's order; for exports. Read in pages: cases that come or go
        meanwhile may be in it or not, no case is in it twice."""
        ...

    def facets(self) -> Facets: ...

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
        """Append labels, all or none, and return the case at its new revision, when they are safe on disk.

        Raises NoCase; Conflict when the case is not at `expected_revision` (None: whatever it is at, for imports);
        BadLabel.
        """
        ...

    def undo(self, case_id: str, *, author: str, expected_revision: int | None) -> Case:
        """Take back the author's last labels that still hold. Raises NoCase, Conflict, NothingToUndo."""
        ...

    def erase(self, subject: Subject) -> Erased:
        """Erase all cases of a subject with their labels and index entries, overwritten on disk, and verify it.
        Cases of that subject that ended before now are refused from now on. Raises StoreUnavailable when it can
        not be verified; nothing of the subject is ever half erased."""
        ...

    def retain(self) -> int:
        """Erase what is over the limits of age, count and bytes; returns how many cases went. Called by the store
        itself from time to time."""
        ...

    def stats(self) -> Stats: ...

    def close(self) -> None:
        """Write what waits, and let go of the file. Twice is fine."""
        ...
