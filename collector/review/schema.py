"""The tables of the SQLite store, and how an older file becomes one of this version."""

from __future__ import annotations

import sqlite3

from collector.review.store import StoreUnavailable

APPLICATION_ID = 0x67776376
"""Marks the file as ours ("gwcv"), so that no other database is taken for a review store."""

_FIRST = """
CREATE TABLE cases (
    n INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice, so that a page's cursor stays good
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    ended REAL NOT NULL,
    stored REAL NOT NULL,
    service TEXT NOT NULL,
    service_version TEXT,
    prompt_version TEXT,
    model TEXT,
    session TEXT,
    user TEXT,
    cause TEXT,
    lowest REAL NOT NULL,  -- 2 where there is no score, so that those come last
    probability REAL,
    draw REAL,
    revision INTEGER NOT NULL DEFAULT 0,
    labelled INTEGER NOT NULL DEFAULT 0,
    golden INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL
);
CREATE INDEX cases_ended ON cases (ended);
CREATE INDEX cases_lowest ON cases (lowest);
CREATE INDEX cases_draw ON cases (draw, n, labelled) WHERE draw IS NOT NULL;
CREATE INDEX cases_service ON cases (service, ended);
CREATE INDEX cases_service_version ON cases (service_version, ended);
CREATE INDEX cases_prompt_version ON cases (prompt_version, ended) WHERE prompt_version IS NOT NULL;
CREATE INDEX cases_model ON cases (model, ended);
CREATE INDEX cases_cause ON cases (cause, ended);
CREATE INDEX cases_session ON cases (session) WHERE session IS NOT NULL;
CREATE INDEX cases_user ON cases (user) WHERE user IS NOT NULL;
CREATE INDEX cases_retention ON cases (golden, labelled, ended);
CREATE INDEX cases_labelled ON cases (ended) WHERE labelled = 1;
CREATE INDEX cases_golden ON cases (ended) WHERE golden = 1;
CREATE INDEX cases_skipped ON cases (ended) WHERE skipped = 1;
-- Apart from the columns that lists read, so that those stay few pages.
CREATE TABLE bodies (n INTEGER PRIMARY KEY, body BLOB NOT NULL);
-- kind '' is the judged score where there is one, else the local one.
CREATE TABLE scores (
    metric TEXT NOT NULL, kind TEXT NOT NULL, value REAL NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY (metric, kind, value, n)
) WITHOUT ROWID;
CREATE INDEX scores_n ON scores (n, metric, kind, value);
CREATE TABLE tags (
    name TEXT NOT NULL, value TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (name, value, n)
) WITHOUT ROWID;
CREATE INDEX tags_n ON tags (n, name, value);
CREATE TABLE labels (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    n INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    kind TEXT NOT NULL,
    author TEXT NOT NULL,
    at REAL NOT NULL,
    value TEXT NOT NULL,  -- JSON
    metric TEXT NOT NULL,
    target INTEGER,
    in_order INTEGER NOT NULL,
    source TEXT NOT NULL
);
CREATE INDEX labels_n ON labels (n);
-- Keyed hashes of erased subjects: their cases from before that time are not taken again.
CREATE TABLE erased (kind TEXT NOT NULL, key BLOB NOT NULL, at REAL NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('salt', randomblob(32));
-- How many cases have each value, kept up to date by triggers: counting them takes longer than a page may.
CREATE TABLE counts (
    name TEXT NOT NULL, value TEXT NOT NULL, cases INTEGER NOT NULL, PRIMARY KEY (name, value)
) WITHOUT ROWID;
CREATE TRIGGER counts_empty AFTER UPDATE OF cases ON counts WHEN new.cases <= 0 BEGIN
    DELETE FROM counts WHERE name = new.name AND value = new.value;
END;
CREATE TRIGGER tags_counted AFTER INSERT ON tags WHEN new.name <> 'trace' BEGIN
    INSERT INTO counts VALUES (new.name, new.value, 1) ON CONFLICT DO UPDATE SET cases = cases + 1;
END;
CREATE TRIGGER tags_discounted AFTER DELETE ON tags WHEN old.name <> 'trace' BEGIN
    UPDATE counts SET cases = cases - 1 WHERE name = old.name AND value = old.value;
END;
CREATE TRIGGER scores_counted AFTER INSERT ON scores WHEN new.kind <> '' BEGIN
    INSERT INTO counts VALUES ('metric.' || new.kind, new.metric, 1) ON CONFLICT DO UPDATE SET cases = cases + 1;
END;
CREATE TRIGGER scores_discounted AFTER DELETE ON scores WHEN old.kind <> '' BEGIN
    UPDATE counts SET cases = cases - 1 WHERE name = 'metric.' || old.kind AND value = old.metric;
END;
-- Keeps no copy of the texts: they are in the bodies.
CREATE VIRTUAL TABLE words USING fts5(question, response, content='', tokenize='unicode61 remove_diacritics 2');
"""

MIGRATIONS = (_FIRST,)
"""Scripts from version to version; the file's `user_version` says how many it has had. Never changed, only added."""


def migrate(connection: sqlite3.Connection, *, name: str) -> None:
    """Bring an open file to this version, each step in one transaction. Raises StoreUnavailable for another
    program's file, or one of a newer version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (tables or version):
        raise StoreUnavailable(f"review.path: {name!r} is a database of something else: give a file of its own")
    if version > len(MIGRATIONS):
        raise StoreUnavailable(
            f"review.path: {name!r} was written by a newer groundwatch (format {version}, this one knows up to "
            f"{len(MIGRATIONS)}): run that version, or give another file"
        )
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE; {script} PRAGMA application_id = {APPLICATION_ID}; "
                f"PRAGMA user_version = {number}; COMMIT;"
            )
        except sqlite3.OperationalError:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            (now,) = connection.execute("PRAGMA user_version").fetchone()
            if now < number:  # else another process that opened it in this moment has done the step
                raise
