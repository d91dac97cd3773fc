"""A query as SQL. Every value is bound; only names of our own are written into the text."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from collector.review.query import BadQuery, Query, Sort, read_cursor
from collector.review.store import MAX_PAGE
from collector.review.words import match

_COLUMNS = {
    "cause": "cause",
    "service": "service",
    "service_version": "service_version",
    "prompt_version": "prompt_version",
    "model": "model",
    "session": "session",
    "user": "user",
}
FEW = 10_000
"""Matches of one condition that are listed; more are looked for case by case."""
_FLAGS = ("labelled", "golden", "skipped")


@dataclass(slots=True)
class _Sql:
    connection: sqlite3.Connection
    most_listed: int
    counting: bool
    source: str = "cases c"
    joins: str = ""
    where: list[str] = field(default_factory=list)
    values: list[object] = field(default_factory=list)

    def add(self, condition: str, *values: object) -> None:
        self.where.append(condition)
        self.values.extend(values)

    def tagged(self, name: str, value: str) -> None:
        if self.counting or self.few("SELECT 1 FROM tags WHERE name = ? AND value = ?", name, value):
            self.add("c.n IN (SELECT n FROM tags WHERE name = ? AND value = ?)", name, value)
        else:
            self.add("EXISTS (SELECT 1 FROM tags t WHERE t.name = ? AND t.value = ? AND t.n = c.n)", name, value)

    def few(self, rows: str, *values: object) -> bool:
        """Few matches are listed and looked up; of many, each case is asked, since the first page is found at once."""
        counted = f"SELECT count(*) FROM ({rows} LIMIT {self.most_listed + 1})"  # noqa: S608  # values are bound
        (matches,) = self.connection.execute(counted, values).fetchone()
        return bool(matches <= self.most_listed)

    def text(self, select: str) -> str:
        where = " AND ".join(self.where) or "1"
        return f"SELECT {select} FROM {self.source}{self.joins} WHERE {where}"  # noqa: S608  # values are bound


def select(
    connection: sqlite3.Connection,
    query: Query,
    *,
    what: str,
    after: str | None,
    limit: int,
    most_listed: int = FEW,
) -> tuple[str, list[object]]:
    """A page's statement: `what` (columns of `c`), then the sort key and the number; one row more than the page
    has, to tell whether there is another. Raises BadQuery."""
    if not 1 <= limit <= MAX_PAGE:
        raise BadQuery(f"a page has 1 to {MAX_PAGE} rows, not {limit}")
    sql = _filters(query, _Sql(connection, most_listed, counting=False))
    by_score = query.metric is not None and query.sort in (Sort.LOWEST, Sort.HIGHEST)
    key = {
        Sort.NEWEST: "c.ended",
        Sort.OLDEST: "c.ended",
        Sort.LOWEST: "s.value" if by_score else "c.lowest",
        Sort.HIGHEST: "s.value" if by_score else "c.lowest",
        Sort.DRAWN: "c.draw",
    }[query.sort]
    descending = query.sort in (Sort.NEWEST, Sort.HIGHEST)
    if after is not None:
        sql.add(f"({key}, c.n) {'<' if descending else '>'} (?, ?)", *read_cursor(after))
    way = "DESC" if descending else "ASC"
    text = f"{sql.text(f'{what}, {key}, c.n')} ORDER BY {key} {way}, c.n {way} LIMIT ?"
    return text, [*sql.values, limit + 1]


def counting(
    connection: sqlite3.Connection, query: Query, at_most: int, *, most_listed: int = FEW
) -> tuple[str, list[object]]:
    sql = _filters(query, _Sql(connection, most_listed, counting=True))
    return f"SELECT count(*) FROM ({sql.text('1')} LIMIT ?)", [*sql.values, at_most]  # noqa: S608  # values are bound


def _filters(query: Query, sql: _Sql) -> _Sql:
    if query.sort is Sort.DRAWN:
        sql.add("c.draw IS NOT NULL")
    if query.sort is Sort.HIGHEST and query.metric is None:
        sql.add("c.lowest <= 1")
    if query.metric is not None:
        # Of a page in another order the cases come first, in that order: the scores would all have to be sorted.
        by_score = sql.counting or query.sort in (Sort.LOWEST, Sort.HIGHEST)
        sql.joins = f" {'' if by_score else 'CROSS '}JOIN scores s ON s.n = c.n AND s.metric = ? AND s.kind = ?"
        sql.values += [query.metric, query.kind or ""]
        if query.score_min is not None:
            sql.add("s.value >= ?", query.score_min)
        if query.score_max is not None:
            sql.add("s.value <= ?", query.score_max)
    if query.text.strip():
        expression = match(query.text)
        if expression is None:
            sql.add("0")
        elif sql.few("SELECT rowid FROM words WHERE words MATCH ?", expression):
            sql.add("c.n IN (SELECT rowid FROM words WHERE words MATCH ?)", expression)
        elif sql.counting:  # no order is asked for, so the index gives one match after the other
            sql.source = "words CROSS JOIN cases c ON c.n = words.rowid"
            sql.add("words MATCH ?", expression)
        else:
            sql.add("EXISTS (SELECT 1 FROM words WHERE words MATCH ? AND rowid = c.n)", expression)
    for name, column in _COLUMNS.items():
        value = getattr(query, name)
        if value is not None:
            sql.add(f"c.{column} = ?", value)
    for name in _FLAGS:
        flag = getattr(query, name)
        if flag is not None:
            # Written, not bound: the planner must know it to use a partial index.
            sql.add(f"c.{name} = {int(flag)}")
    if query.since_unix is not None:
        sql.add("c.ended >= ?", query.since_unix)
    if query.until_unix is not None:
        sql.add("c.ended < ?", query.until_unix)
    for name in ("reason", "mark", "author"):
        value = getattr(query, name)
        if value is not None:
            sql.tagged(name, str(value))
    if query.trace_id is not None:
        sql.tagged("trace", query.trace_id)
    for segment, value in query.segments.items():
        sql.tagged(f"segment.{segment}", value)
    return sql
