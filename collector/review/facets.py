"""Which values filters can take, and how many cases have each: read from counts that the database keeps."""

from __future__ import annotations

import sqlite3

from collector.review.query import Facets

_MOST = 100
"""Values listed of each, and segments."""
_SEGMENT = "segment."
_METRIC = "metric."


def facets(connection: sqlite3.Connection) -> Facets:
    segments = _names(connection, _SEGMENT)
    metrics = {
        (metric, name.removeprefix(_METRIC)): cases
        for name in _names(connection, _METRIC)
        for metric, cases in _values(connection, name).items()
    }
    return Facets(
        services=_values(connection, "service"),
        service_versions=_values(connection, "service_version"),
        prompt_versions=_values(connection, "prompt_version"),
        models=_values(connection, "model"),
        causes=_values(connection, "cause"),
        reasons=_values(connection, "reason"),
        marks=_values(connection, "mark"),
        metrics=dict(sorted(metrics.items(), key=lambda one: (-one[1], one[0]))),
        segments={name.removeprefix(_SEGMENT): _values(connection, name) for name in segments},
        authors=_values(connection, "author"),
    )


def _values(connection: sqlite3.Connection, name: str) -> dict[str, int]:
    found = connection.execute(
        "SELECT value, cases FROM counts WHERE name = ? ORDER BY cases DESC, value LIMIT ?", (name, _MOST)
    )
    return dict(found)


def _names(connection: sqlite3.Connection, prefix: str) -> list[str]:
    found = connection.execute(
        "SELECT DISTINCT name FROM counts WHERE name >= ? AND name < ? ORDER BY name LIMIT ?",
        (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1), _MOST),
    )
    return [name for (name,) in found]
