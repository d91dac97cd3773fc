"""What is written for one case: its row, body, scores, tags, labels and words. Statements on one connection."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b

from collector.review.case import Case, merge
from collector.review.codec import BadCase, pack, storable, unpack
from collector.review.labels import Label, LabelKind
from collector.review.query import Subject, SubjectKind
from collector.review.words import indexable

TITLE_CHARS = 200
NO_SCORE = 2.0
"""Stands for no score where rows are sorted by the lowest: behind all scores."""

_INSERT = """INSERT INTO cases (id, title, ended, stored, service, service_version, prompt_version, model, session,
user, cause, lowest, probability, draw, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_UPDATE = """UPDATE cases SET id = ?, title = ?, ended = ?, stored = ?, service = ?, service_version = ?,
prompt_version = ?, model = ?, session = ?, user = ?, cause = ?, lowest = ?, probability = ?, draw = ?, bytes = ?
WHERE n = ?"""


class TooLarge(ValueError):
    """A case is over the limit of bytes."""


def load(connection: sqlite3.Connection, case_id: str) -> tuple[int, Case] | None:
    """A case by its id, with its number, its labels and its revision."""
    row = connection.execute(
        "SELECT c.n, c.revision, c.stored, b.body FROM cases c JOIN bodies b ON b.n = c.n WHERE c.id = ?",
        (case_id,),
    ).fetchone()
    if row is None:
        return None
    number, revision, stored, body = row
    return number, assemble(connection, number, revision, stored, body)


def assemble(connection: sqlite3.Connection, number: int, revision: int, stored: float, body: bytes) -> Case:
    case = unpack(body)
    labels = [
        Label(LabelKind(kind), author, at, made, json.loads(value), metric, target, bool(in_order), source)
        for kind, author, at, made, value, metric, target, in_order, source in connection.execute(
            "SELECT kind, author, at, revision, value, metric, target, in_order, source FROM labels WHERE n = ? "
            "ORDER BY seq",
            (number,),
        )
    ]
    return replace(case, revision=revision, labels=tuple(labels), stored_unix=stored)


def put(connection: sqlite3.Connection, case: Case, *, now_unix: float, max_bytes: int) -> str:
    """Write or merge a case; returns what became of it: stored, merged, or erased (its subject was, since)."""
    if _was_erased(connection, case):
        return "erased"
    case, encoded = storable(replace(case, stored_unix=now_unix))
    held = load(connection, case.id)
    if held is None:
        values = _values(case, encoded, max_bytes)
        number = connection.execute(_INSERT, values).lastrowid
        assert number is not None
    else:
        number, old = held
        case, encoded = storable(merge(old, case))
        values = _values(case, encoded, max_bytes)
        _forget_words(connection, number, old)
        connection.execute(_UPDATE, (*values, number))
        connection.execute("DELETE FROM scores WHERE n = ?", (number,))
        connection.execute("DELETE FROM tags WHERE n = ? AND name <> 'author'", (number,))
    connection.execute("INSERT OR REPLACE INTO bodies (n, body) VALUES (?, ?)", (number, pack(encoded)))
    connection.execute("INSERT INTO words (rowid, question, response) VALUES (?, ?, ?)", (number, *_words(case)))
    connection.executemany(
        "INSERT OR IGNORE INTO scores (metric, kind, value, n) VALUES (?, ?, ?, ?)",
        [(metric, kind, value, number) for (metric, kind), value in _scores(case).items()],
    )
    connection.executemany(
        "INSERT OR IGNORE INTO tags (name, value, n) VALUES (?, ?, ?)",
        [(name, value, number) for name, value in _tags(case)],
    )
    return "merged" if held else "stored"


def add_labels(connection: sqlite3.Connection, number: int, case: Case, labels: Sequence[Label]) -> Case:
    """Append labels and bring what lists show up to date; returns the case with them."""
    connection.executemany(
        "INSERT INTO labels (n, revision, kind, author, at, value, metric, target, in_order, source) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                number,
                one.revision,
                one.kind.value,
                one.author,
                one.at_unix,
                json.dumps(one.value),
                one.metric,
                one.target,
                int(one.in_order),
                one.source,
            )
            for one in labels
        ],
    )
    case = replace(case, labels=(*case.labels, *labels), revision=labels[-1].revision)
    now = case.in_effect
    connection.execute(
        "UPDATE cases SET revision = ?, labelled = ?, golden = ?, skipped = ? WHERE n = ?",
        (case.revision, int(bool(now.authors)), int(now.golden), int(now.skipped), number),
    )
    connection.execute("DELETE FROM tags WHERE n = ? AND name = 'author'", (number,))
    connection.executemany(
        "INSERT OR IGNORE INTO tags (name, value, n) VALUES ('author', ?, ?)",
        [(author, number) for author in now.authors],
    )
    return case


def remove(connection: sqlite3.Connection, numbers: Iterable[int]) -> int:
    """Delete cases with all that hangs on them; returns how many labels went with them.

    The words of a case that can not be read stay in the index, which takes words out only by being given them.
    """
    labels = 0
    for number in numbers:
        row = connection.execute("SELECT body FROM bodies WHERE n = ?", (number,)).fetchone()
        if row is not None:
            with contextlib.suppress(BadCase):
                _forget_words(connection, number, unpack(row[0]))
        labels += connection.execute("DELETE FROM labels WHERE n = ?", (number,)).rowcount
        for table in ("tags", "scores", "bodies", "cases"):
            connection.execute(f"DELETE FROM {table} WHERE n = ?", (number,))  # noqa: S608  # a name of our own
    return labels


def of_subject(connection: sqlite3.Connection, subject: Subject) -> list[tuple[int, str]]:
    """Numbers and ids of a subject's cases."""
    condition = {
        SubjectKind.TRACE: "n IN (SELECT n FROM tags WHERE name = 'trace' AND value = ?)",
        SubjectKind.USER: "user = ?",
        SubjectKind.SESSION: "session = ?",
        SubjectKind.CASE: "id = ?",
    }[subject.kind]
    found: dict[int, str] = {}
    for one in subject.ids:
        found.update(
            connection.execute(f"SELECT n, id FROM cases WHERE {condition}", (one,))  # noqa: S608  # as above
        )
    return list(found.items())


def note_erasure(connection: sqlite3.Connection, subject: Subject, now_unix: float) -> None:
    """Remember that a subject was erased, by a hash with the file's own key: the id itself is not kept."""
    salt = _salt(connection)
    connection.executemany(
        "INSERT OR REPLACE INTO erased (kind, key, at) VALUES (?, ?, ?)",
        [(subject.kind.value, _hash(salt, one), now_unix) for one in subject.ids],
    )


def _was_erased(connection: sqlite3.Connection, case: Case) -> bool:
    if connection.execute("SELECT 1 FROM erased LIMIT 1").fetchone() is None:
        return False
    salt = _salt(connection)
    ids = [(SubjectKind.CASE, case.id), *((SubjectKind.TRACE, one) for one in case.origin.trace_ids)]
    ids += [(SubjectKind.USER, case.origin.user)] if case.origin.user else []
    ids += [(SubjectKind.SESSION, case.origin.session)] if case.origin.session else []
    return any(
        connection.execute(
            "SELECT 1 FROM erased WHERE kind = ? AND key = ? AND at >= ?",
            (kind, _hash(salt, one), case.ended_unix),
        ).fetchone()
        for kind, one in ids
    )


def _salt(connection: sqlite3.Connection) -> bytes:
    (salt,) = connection.execute("SELECT value FROM meta WHERE name = 'salt'").fetchone()
    assert isinstance(salt, bytes)
    return salt


def _hash(salt: bytes, text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), key=salt, digest_size=16).digest()


def _values(case: Case, encoded: bytes, max_bytes: int) -> tuple[object, ...]:
    if len(encoded) > max_bytes:
        raise TooLarge(f"{len(encoded)} bytes")
    origin, control = case.origin, case.control
    lowest = case.lowest
    return (
        case.id,
        (case.interaction.question or "")[:TITLE_CHARS],
        case.ended_unix,
        case.stored_unix,
        origin.service,
        origin.service_version,
        origin.prompt_version,
        origin.model,
        origin.session,
        origin.user,
        case.diagnosis.cause if case.diagnosis is not None else None,
        NO_SCORE if lowest is None else lowest,
        control.probability if control is not None else None,
        control.order if control is not None else None,
        len(encoded),
    )


def _scores(case: Case) -> dict[tuple[str, str], float]:
    first = [one for one in case.results if one.score is not None and not one.attempt]
    scores = {(one.metric, one.kind): one.score for one in first if one.score is not None}
    for metric in {metric for metric, _ in scores}:
        preferred = case.score(metric)
        if preferred is not None:
            scores[metric, ""] = preferred
    return scores


def _tags(case: Case) -> list[tuple[str, str]]:
    origin = case.origin
    counted = {
        "service": origin.service,
        "service_version": origin.service_version,
        "prompt_version": origin.prompt_version,
        "model": origin.model,
        "cause": case.diagnosis.cause if case.diagnosis is not None else None,
    }
    return [
        *((name, value) for name, value in counted.items() if value is not None),
        *(("trace", one) for one in case.origin.trace_ids),
        *(("reason", pick.reason.value) for pick in case.picks),
        *(("mark", mark) for mark in case.marks),
        *((f"segment.{name}", value) for name, value in case.segments.items()),
    ]


def _words(case: Case) -> tuple[str, str]:
    return indexable(case.interaction.question), indexable(case.interaction.response)


def _forget_words(connection: sqlite3.Connection, number: int, case: Case) -> None:
    connection.execute(
        "INSERT INTO words (words, rowid, question, response) VALUES ('delete', ?, ?, ?)", (number, *_words(case))
    )
