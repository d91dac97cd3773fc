"""Extraction measured against recorded telemetry whose truth is known: field by field, library by library."""

from __future__ import annotations

import json
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collector.extract.extractor import Extractor
from collector.extract.options import Options
from collector.otlp.batch import Signal
from collector.otlp.decode import Decoder
from collector.otlp.model import LogRecord, RawItem, Span
from collector.receivers.files import read_requests
from collector.records.found import Found, Mark
from scorers.interaction import Field, Interaction

DATA = Path(__file__).parents[1] / "data" / "spans"
FIELDS = (
    "question", "response", "contexts", "inside", "ids", "scores", "model", "usage", "session", "user", "tenant",
    "reference", "history", "rewritten", "error", "not_rag", "absent",
)  # fmt: skip
"""The columns. `inside`: contexts that are only inside of a longer text, found whole or marked as not to be had;
`absent`: fields that are not in the spans, and were not invented."""


@dataclass
class Table:
    """Right and all, by library and field; `wrong` names what was not right."""

    cells: dict[str, dict[str, list[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(lambda: [0, 0]))
    )
    wrong: list[tuple[str, str, Any, Any]] = field(default_factory=list)

    def put(self, row: Mapping[str, Any], name: str, right: bool, wanted: Any = None, got: Any = None) -> None:
        cell = self.cells[f"{row['convention']}/{row['library']}"][name]
        cell[0] += right
        cell[1] += 1
        if not right:
            self.wrong.append((f"{row['convention']}/{row['library']}.{row['case']}", name, wanted, got))

    def total(self, *names: str) -> tuple[int, int]:
        right = sum(cells[name][0] for cells in self.cells.values() for name in names if name in cells)
        return right, sum(cells[name][1] for cells in self.cells.values() for name in names if name in cells)

    def markdown(self) -> str:
        lines = ["| library | " + " | ".join(FIELDS) + " |", "|---" * (len(FIELDS) + 1) + "|"]
        for library in sorted(self.cells):
            cells = self.cells[library]
            shown = [f"{cells[n][0]}/{cells[n][1]}" if n in cells else "" for n in FIELDS]
            lines.append(f"| {library} | " + " | ".join(shown) + " |")
        totals = [self.total(name) for name in FIELDS]
        lines.append("| **all** | " + " | ".join(f"{right}/{all_}" for right, all_ in totals) + " |")
        return "\n".join(lines)


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "expected.jsonl").read_text(encoding="utf-8").splitlines()]


def unpack(into: Path) -> Path:
    """The recordings as files below `into`."""
    with zipfile.ZipFile(DATA / "recordings.zip") as archive:
        archive.extractall(into)
    return into


def load(base: Path, files: Iterable[str]) -> tuple[list[Span], list[LogRecord]]:
    """The decoded spans and log records of some recordings."""
    spans: list[Span] = []
    logs: list[LogRecord] = []
    for raw, signal in raw_items(base, files):
        decoder = Decoder()
        if signal is Signal.TRACES:
            spans.append(decoder.span(raw))
        else:
            logs.append(decoder.log_record(raw))
    return spans, logs


def raw_items(base: Path, files: Iterable[str]) -> Iterable[tuple[RawItem, Signal]]:
    for name in files:
        for batch in read_requests(base / name):
            for group in batch.groups:
                for item in group.items:
                    yield RawItem(item, group.resource, group.scope, group.encoding), batch.signal


def measure(base: Path, options: Options | None = None, only: str = "") -> Table:
    """Extract every recording (of libraries whose name contains `only`) and compare."""
    extractor = Extractor(options or Options())
    table = Table()
    cache: dict[tuple[str, ...], tuple[Found, ...]] = {}
    for row in rows():
        if only not in f"{row['convention']}/{row['library']}":
            continue
        files = tuple(row["files"])
        if files not in cache:
            spans, logs = load(base, files)
            cache[files] = extractor.extract(spans, logs, complete=True).found
        compare(table, row, cache[files])
    return table


def compare(table: Table, row: Mapping[str, Any], found: Iterable[Found]) -> None:
    """Put one expected interaction against what was found."""
    everything = list(found)
    mine = [f for f in everything if set(f.trace_ids) & set(row["trace_ids"])]
    strangers = [f for f in everything if set(f.trace_ids) & set(row.get("unrelated_trace_ids", ()))]
    if len(mine) != row.get("interactions", 1) or strangers:
        table.put(row, "absent", False, "one interaction", [f.interaction.id for f in (*mine, *strangers)])
    item = nearest(row, mine) or Found(Interaction(id=""))
    there = row["in_spans"]
    _texts(table, row, item, there)
    _contexts(table, row, item, there)
    for name in ("session", "user", "tenant"):
        _value(table, row, name, there[name], row[name], getattr(item, name))
    _value(table, row, "model", row["model_seen"] is not None, row["model_seen"], item.model)
    if "input_tokens" in there:
        usage = (item.usage.input_tokens, item.usage.output_tokens) if item.usage is not None else None
        wanted = (row["usage"]["input_tokens"], row["usage"]["output_tokens"])
        _value(table, row, "usage", there["input_tokens"], wanted, usage)
    if "reference" in there:
        _value(table, row, "reference", there["reference"], row["reference"], item.interaction.reference)
    if row.get("history"):
        got = [(turn.role, turn.text) for turn in item.interaction.history]
        wanted_turns = [(turn["role"], turn["content"]) for turn in row["history"]]
        table.put(row, "history", got == wanted_turns, wanted_turns, got)
    if "rewritten_query" in row:
        table.put(
            row,
            "rewritten",
            item.rewritten_query == row["rewritten_query"],
            row["rewritten_query"],
            item.rewritten_query,
        )


def nearest(row: Mapping[str, Any], mine: Iterable[Found]) -> Found | None:
    """Of several interactions of a trace the one that a row tells of: with its question, or else its answer."""

    def likeness(item: Found) -> tuple[bool, bool]:
        told = item.interaction
        return _same(told.question, row["question"]), _same(told.response, row["response"])

    return max(mine, key=likeness, default=None)


def _value(table: Table, row: Mapping[str, Any], name: str, there: bool, wanted: Any, got: Any) -> None:
    if there:
        table.put(row, name, got == wanted, wanted, got)
    else:
        table.put(row, "absent", got is None, f"no {name}", got)


def _same(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one.split() == other.split()


def _texts(table: Table, row: Mapping[str, Any], item: Found, there: Mapping[str, Any]) -> None:
    for name in ("question", "response"):
        got = getattr(item.interaction, name)
        if there[name] == "exact":
            table.put(row, name, _same(got, row[name]), row[name], got)
        elif there[name] == "inside_text":
            table.put(row, name, got is None or _same(got, row[name]), row[name], got)
        else:
            table.put(row, "absent", got is None, f"no {name}", got)
    if row.get("error"):
        told = item.interaction.response is None and (item.error is not None or Mark.NO_RESPONSE in item.marks)
        table.put(row, "error", told, "an error", item.error)


def _short(number: float | None) -> float | None:
    """To three digits, as far as the recording applications agreed with their own telemetry."""
    return None if number is None else round(number, 3)


def _contexts(table: Table, row: Mapping[str, Any], item: Found, there: Mapping[str, Any]) -> None:
    contexts = item.interaction.contexts
    damaged = Field.CONTEXTS in item.interaction.damage
    if row.get("not_rag"):
        table.put(row, "not_rag", contexts is None and Mark.NOT_RAG in item.marks, "no contexts", contexts)
        return
    wanted = row["contexts"]
    got = [p.text for p in contexts] if contexts is not None else None
    right = (
        got is not None
        and len(got) == len(wanted)
        and all(_same(g, w["text"]) for g, w in zip(got, wanted, strict=True))
    )
    if there["contexts"] == "exact":
        table.put(row, "contexts", right, [w["text"] for w in wanted], got)
    elif there["contexts"] == "inside_text":
        table.put(row, "inside", right or damaged, [w["text"] for w in wanted], got)
    elif there["contexts"] == "partly":
        table.put(row, "inside", damaged, "damage", got)
    else:
        table.put(row, "absent", damaged or not any(got or ()), "no contexts", got)
    ids = [p.id for p in contexts or ()]
    if there.get("context_ids"):
        table.put(row, "ids", ids == [w["id"] for w in wanted], [w["id"] for w in wanted], ids)
    elif "context_ids" in there:
        known = [w["id"] for w in wanted]  # they may stand in the text that the contexts were read from
        invented = any(ids) and any(i not in (None, k) for i, k in zip(ids, known, strict=False))
        table.put(row, "absent", not invented, "no ids", ids)
    if there.get("context_scores"):
        scores = [(_short(p.score), _short(p.distance)) for p in contexts or ()]
        expected = [(_short(w.get("score")), _short(w.get("distance"))) for w in wanted]
        table.put(row, "scores", scores == expected, expected, scores)


def lies(row: Mapping[str, Any], item: Found) -> list[str]:
    """What is given out as whole, though it is not what was asked, retrieved or answered."""
    interaction, found = item.interaction, []
    for part in (Field.QUESTION, Field.RESPONSE):
        text = getattr(interaction, part.value)
        if text is not None and part not in interaction.damage and text.split() != (row[part.value] or "").split():
            found.append(f"{part}: {text[:80]}")
    if (
        interaction.contexts
        and Field.CONTEXTS not in interaction.damage
        and Mark.UNVERIFIED_CONTEXTS not in item.marks
    ):
        wanted = [context["text"].split() for context in row["contexts"] or ()]
        if [passage.text.split() for passage in interaction.contexts] != wanted:
            found.append(f"contexts by {item.rules['contexts']}")
    return found
