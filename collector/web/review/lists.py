"""In which order people are handed cases: the control part as drawn, or a search."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import parse_qsl

from pydantic import ValidationError

from collector.review.query import Query, Row, Sort
from collector.review.store import MAX_PAGE, ReviewStore
from collector.web.review.filters import Asked, read

QUEUE = "queue"
"""Stands for the control part in a page's address, where else a search's query string stands."""
_AHEAD = 50
"""So far from the front of the order drawn a case may be labelled "in its turn": several people work at once."""

DRAWN = Query(labelled=False, skipped=False, sort=Sort.DRAWN)
"""Cases with a known probability that nobody has looked at, in the order drawn."""


@dataclass(frozen=True, slots=True)
class Working:
    """The list that somebody works through; None = the control part."""

    asked: Asked | None = None

    @classmethod
    def of(cls, text: str) -> Working:
        """From a page's address; what is no search any more is the control part."""
        if text == QUEUE or not text:
            return cls()
        try:
            return cls(read(parse_qsl(text, keep_blank_values=True, max_num_fields=100)))
        except (ValidationError, ValueError):
            return cls()

    @property
    def in_order(self) -> bool:
        return self.asked is None

    @property
    def text(self) -> str:
        """As it stands in an address."""
        if self.asked is None:
            return QUEUE
        return self.asked.encoded(after=self.asked.after or "") or "sort=newest"

    @property
    def back(self) -> str:
        """The page that shows the list."""
        return "/review" if self.asked is None else f"/review/search?{self.text}"


def following(
    store: ReviewStore, working: Working, *, case_id: str | None, taken: Collection[str]
) -> tuple[str, Working] | None:
    """The case after `case_id` in the list, and the list where it goes on; None at the end. Cases that others look
    at are left out."""

    def free(rows: Collection[Row]) -> str | None:
        return next((row.id for row in rows if row.id != case_id and row.id not in taken), None)

    if working.asked is None:
        found = free(store.find(DRAWN, limit=_AHEAD).rows)
        return (found, working) if found else None
    query, after = working.asked.query(), working.asked.after
    while True:
        page = store.find(query, after=after, limit=MAX_PAGE)
        ids = [row.id for row in page.rows]
        behind = page.rows[ids.index(case_id) + 1 :] if case_id in ids else page.rows
        found = free(behind)
        if found is not None:
            return found, Working(working.asked.model_copy(update={"after": after}))
        if page.next is None:
            return None
        after = page.next


def its_turn(store: ReviewStore, case_id: str) -> bool:
    """Whether the case stands at the front of the order drawn: only labels given there may enter estimates, and a
    page's address alone must not say so."""
    return any(row.id == case_id for row in store.find(DRAWN, limit=_AHEAD).rows)
