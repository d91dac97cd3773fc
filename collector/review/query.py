"""What is asked of the store, and what it answers with."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from collector.review.case import Case, Reason


class BadQuery(ValueError):
    """A question that can not be answered; the text says why."""


class Sort(StrEnum):
    NEWEST = "newest"
    OLDEST = "oldest"
    LOWEST = "lowest"  # lowest score first: of `metric` (and `kind`) where given, else each case's lowest
    HIGHEST = "highest"  # the other way round, for metrics where less is better
    DRAWN = "drawn"  # the order drawn; only cases with a known probability


@dataclass(frozen=True, slots=True)
class Query:
    """Which cases; every part that is given must fit.

    `score_min` and `score_max` (inclusive) need `metric`, and so does `kind`: local or judged; None is the judged score
    where there is one, else the local one. Cases without that score do not fit a range, nor sort by it. `text` is
    words, each of which must occur in question or response, in any order; "several words" in quotes must stand
    together; a word that ends in * stands for all that begin so. Times are Unix seconds: from inclusive, until
    exclusive, of the interaction's end. `labelled`: True with a judgement of a person, False without. `author`
    labelled it. `trace_id`, `session` and `user` are exact.
    """

    text: str = ""
    metric: str | None = None
    kind: str | None = None
    score_min: float | None = None
    score_max: float | None = None
    cause: str | None = None
    reason: Reason | None = None
    mark: str | None = None
    segments: Mapping[str, str] = field(default_factory=dict)
    service: str | None = None
    service_version: str | None = None
    prompt_version: str | None = None
    model: str | None = None
    since_unix: float | None = None
    until_unix: float | None = None
    labelled: bool | None = None
    golden: bool | None = None
    skipped: bool | None = None
    author: str | None = None
    trace_id: str | None = None
    session: str | None = None
    user: str | None = None
    sort: Sort = Sort.NEWEST

    def __post_init__(self) -> None:
        if (self.score_min is not None or self.score_max is not None) and not self.metric:
            raise BadQuery("a range of scores needs the metric that it speaks of")


@dataclass(frozen=True, slots=True)
class Row:
    """A case in a list. `scores` are those of the first tries by (metric, kind); `lowest` is the least of those
    where more is better. `title` is the beginning of the question."""

    id: str
    title: str
    ended_unix: float
    service: str
    service_version: str | None
    prompt_version: str | None
    model: str | None
    cause: str | None
    lowest: float | None
    scores: Mapping[tuple[str, str], float]
    reasons: tuple[Reason, ...]
    probability: float | None
    order: float | None
    revision: int
    labelled: bool
    golden: bool
    skipped: bool
    authors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Part of an answer. `next` continues behind the last row, None at the end; it is opaque, and stays good when
    cases come and go."""

    rows: tuple[Row, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Facets:
    """The values that filters can take, each with its number of cases, most frequent first; bounded."""

    services: Mapping[str, int]
    service_versions: Mapping[str, int]
    prompt_versions: Mapping[str, int]
    models: Mapping[str, int]
    causes: Mapping[str, int]
    reasons: Mapping[str, int]
    marks: Mapping[str, int]
    metrics: Mapping[tuple[str, str], int]
    segments: Mapping[str, Mapping[str, int]]
    authors: Mapping[str, int]


class SubjectKind(StrEnum):
    TRACE = "trace"
    USER = "user"
    SESSION = "session"
    CASE = "case"


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose cases are to be erased: by trace, user, session or case id. `also` are other forms under which the id
    may stand (as redaction writes it)."""

    kind: SubjectKind
    id: str
    also: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.id, *self.also)


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure took: cases and labels, with the cases' ids. It is verified: nothing of them is left in
    tables, indexes or the file."""

    case_ids: tuple[str, ...] = ()
    labels: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """The store now. `bytes` is what the cases take on disk; `waiting` are writes that are not done yet."""

    cases: int
    labelled: int
    golden: int
    bytes: int
    waiting: int
    oldest_unix: float | None = None


def cursor(key: float, number: int) -> str:
    """A page's opaque continuation: the sort key and the number of its last row."""
    return base64.urlsafe_b64encode(json.dumps([key, number]).encode()).decode().rstrip("=")


def read_cursor(text: str) -> tuple[float, int]:
    """Raises BadQuery for what `cursor` did not write."""
    try:
        key, number = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return float(key), int(number)
    except (binascii.Error, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadQuery(
            "the place to continue from is not one that was given out; start at the first page"
        ) from error


__all__ = [
    "BadQuery",
    "Case",
    "Erased",
    "Facets",
    "Page",
    "Query",
    "Row",
    "Sort",
    "Stats",
    "Subject",
    "SubjectKind",
    "cursor",
    "read_cursor",
]
