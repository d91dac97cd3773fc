"""A store with cases and labels, in a real SQLite file, for what reads one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from collector.pipeline.clock import ManualClock
from collector.review.case import Case
from collector.review.labels import Draft, LabelKind
from collector.review.options import Options
from collector.review.sqlite import SqliteStore
from collector.telemetry.instruments import Telemetry


@contextmanager
def sqlite(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path, Options(), clock=ManualClock(), telemetry=Telemetry())
    store.open()
    try:
        yield store
    finally:
        store.close()


def fill(path: Path, cases: Iterable[Case]) -> Path:
    """A file with these cases, and their labels given again."""
    with sqlite(path) as store:
        for case in cases:
            assert store.put(case)
        store.flush()
    return path


def score(value: float, metric: str = "faithfulness") -> Draft:
    return Draft(LabelKind.SCORE, value, metric)
