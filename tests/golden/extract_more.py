"""Extraction measured against the second set of recordings, of other libraries and versions than it was built with."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collector.extract.extractor import Extractor
from collector.extract.options import Options
from collector.records.found import Found
from tests.golden.extract_measure import Table, compare, load

ARCHIVE = Path(__file__).parents[1] / "data" / "spans_more" / "recordings.tar.xz"
_KEYS = {
    "question": "question_keys",
    "answer": "response_keys",
    "contexts": "documents_keys",
    "context_ids": "context_ids_keys",
    "context_scores": "context_scores_keys",
    "session": "session_keys",
    "user": "user_keys",
    "tenant": "tenant_keys",
    "model": "model_keys",
    "input_tokens": "input_tokens_keys",
    "output_tokens": "output_tokens_keys",
}


def unpack(into: Path) -> Path:
    """The recordings and the expected rows as files below `into`."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(into, filter="data")
    return into


def rows(base: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (base / "expected.jsonl").read_text(encoding="utf-8").splitlines()]


def options_of(row: dict[str, Any]) -> Options:
    """The configuration that a row's `mapping` stands for; the defaults where it has none."""
    mapping = row.get("mapping", {})
    return Options.model_validate({_KEYS[name]: (key.removeprefix("resource:"),) for name, key in mapping.items()})


def extracted(base: Path, only: str = "") -> Iterator[tuple[dict[str, Any], tuple[Found, ...]]]:
    """Each row with all that is found in its files; `only` is a part of the name of its library."""
    cache: dict[tuple[str, ...], tuple[Found, ...]] = {}
    for row in rows(base):
        if only not in f"{row['convention']}/{row['library']}":
            continue
        files = tuple(row["files"])
        if files not in cache:
            spans, logs = load(base, files)
            cache[files] = Extractor(options_of(row)).extract(spans, logs, complete=True).found
        yield row, cache[files]


def measure(base: Path, only: str = "") -> Table:
    table = Table()
    for row, found in extracted(base, only):
        compare(table, row, found)
    return table
