"""Which values filters can take, counted over all cases."""

from __future__ import annotations

import sqlite3

from collector.review.query import Facets

_MOST = 100
"""Values listed of each."""
_SEGMENT = "segment."


def facets(connection: sqlite3.Connection) -> Facets:
    tags: dict[str, dict[str, int]] = {}
    for name, value, cases in connection.execute(
        "SELECT name, value, count(*) AS cases FROM tags WHERE name <> 'trace' GROUP BY name, value "
        "ORDER BY cases DESC, value"
    ):
        values = tags.setdefault(name, {})
        if len(values) < _MOST:
            values[value] = cases
    metrics = connection.execute(
        "SELECT metric, kind, count(*) AS cases FROM scores WHERE kind <> '' GROUP BY metric, kind "
        "ORDER BY cases DESC, metric, kind LIMIT ?",
        (_MOST,),
    )
    return Facets(
        services=_column(connection, "service"),
        service_versions=_column(connection, "service_version"),
        prompt_versions=_column(connection, "prompt_version"),
        models=_column(connection, "model"),
        causes=_column(connection, "cause"),
        reasons=tags.get("reason", {}),
        marks=tags.get("mark", {}),
        metrics={(metric, kind): cases for metric, kind, cases in metrics},
        segments={
            name.removeprefix(_SEGMENT): values
            for name, values in sorted(tags.items())
            if name.startswith(_SEGMENT)
        },
        authors=tags.get("author", {}),
    )


def _column(connection: sqlite3.Connection, name: str) -> dict[str, int]:
    statement = (
        f"SELECT {name}, count(*) AS cases FROM cases WHERE {name} IS NOT NULL "  # noqa: S608  # a name of our own
        f"GROUP BY {name} ORDER BY cases DESC, {name} LIMIT ?"
    )
    return dict(connection.execute(statement, (_MOST,)))
