"""A data subject's request: what is erased, and how it is made sure that nothing of it is left in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from ahocorasick_rs import BytesAhoCorasick

from collector.review import rows
from collector.review.query import Erased, Subject
from collector.review.retention import give_back
from collector.review.store import StoreUnavailable

_ALL_PAGES = 2**30
_CHUNK_BYTES = 4 * 2**20
_SURE_CHARS = 16
"""Ids shorter than this may stand in another case's text by chance, so the file is not searched for them."""


def erase(connection: sqlite3.Connection, subject: Subject, *, now_unix: float) -> Erased:
    """Within a transaction: delete the subject's cases, and take their words out of the index for good.

    SQLite overwrites deleted rows with zeros (secure_delete), but the full-text index only marks words as deleted:
    merging all its parts into one leaves them out.
    """
    found = rows.of_subject(connection, subject)
    labels = rows.remove(connection, (number for number, _ in found))
    rows.note_erasure(connection, subject, now_unix)
    if found:
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
    left = rows.of_subject(connection, subject)
    numbers = [number for number, _ in found]
    for table, column in (("bodies", "n"), ("scores", "n"), ("tags", "n"), ("labels", "n"), ("words", "rowid")):
        for number in numbers:
            statement = f"SELECT 1 FROM {table} WHERE {column} = ?"  # noqa: S608  # names of our own
            if connection.execute(statement, (number,)).fetchone() is not None:
                left.append((number, ""))
    if left:
        raise StoreUnavailable(f"{len(left)} cases of the {subject.kind} could not be erased; nothing was")
    return Erased(tuple(case_id for _, case_id in found), labels)


def clear_log(connection: sqlite3.Connection, path: Path, erased: Erased) -> None:
    """After the transaction: empty the write-ahead log, which holds older pages, give free pages back, and look
    into the files for the erased cases' ids. Raises StoreUnavailable when a reader keeps the log, or an id is found.
    """
    if not erased.case_ids:
        return
    give_back(connection, _ALL_PAGES)
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise StoreUnavailable(
            "the cases are erased, but a reader holds on to the write-ahead log, which still has them: erase again "
            "when it has ended"
        )
    ids = [one for one in erased.case_ids if len(one) >= _SURE_CHARS and not _quoted(connection, one)]
    if ids and any(_holds(file, ids) for file in (path, path.with_name(path.name + "-wal")) if file.exists()):
        raise StoreUnavailable(
            f"an erased case is still found in {str(path)!r}: copy what is wanted, delete the file"
        )


def _quoted(connection: sqlite3.Connection, case_id: str) -> bool:
    """True where somebody wrote the id into another case's label, which stays."""
    found = connection.execute("SELECT 1 FROM labels WHERE instr(value, ?) LIMIT 1", (case_id,)).fetchone()
    return found is not None


def _holds(file: Path, ids: list[str]) -> bool:
    searched = BytesAhoCorasick([one.encode() for one in ids])
    overlap = max(len(one.encode()) for one in ids)
    return any(searched.find_matches_as_indexes(chunk) for chunk in _chunks(file, overlap))


def _chunks(file: Path, overlap: int) -> Iterator[bytes]:
    with file.open("rb") as stream:
        tail = b""
        while block := stream.read(_CHUNK_BYTES):
            yield tail + block
            tail = block[-overlap:]
