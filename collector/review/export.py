"""Cases as files for other tools: JSON Lines, CSV, Parquet, and the form that Ragas' EvaluationDataset reads.

Every writer takes cases one at a time, so a file of any size is written in bounded memory.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec

from collector.review.case import Case
from collector.review.labels import Label
from collector.review.people import reference_of, said

ROWS_AT_A_TIME = 250
"""Cases of one row group of a Parquet file."""


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    RAGAS = "ragas"


class MissingPackage(Exception):
    """The format needs a package that is not installed; the text says how to get it."""


COLUMNS: Mapping[str, tuple[str, str]] = {
    "id": ("text", "the case, which is the interaction's id"),
    "ended": ("time", "when the interaction ended, UTC"),
    "question": ("text", "the user's question, redacted as everything else"),
    "contexts": ("texts", "the passages in rank order"),
    "context_ids": ("json", "the passages' own ids, null where not known"),
    "response": ("text", "the answer"),
    "reference": ("text", "the right answer: people's last, else what came with the interaction"),
    "history": ("json", "earlier messages, [{role, content}]"),
    "people": ("json", "what people say each metric's score should be, the mean over those who said"),
    "labels": ("json", "labels that hold now: kind, metric, target, value, author, at, in_order, source"),
    "golden": ("flag", "part of the golden set"),
    "skipped": ("flag", "looked at and left without a label: a non-response"),
    "weight": (
        "number",
        "what a judged score counts for among all traffic: upstream weight / probability of being judged",
    ),
    "local_weight": ("number", "what a local score counts for among all traffic"),
    "probability": (
        "number",
        "pi, the probability with which the case was kept; empty where it is not known, and then the case may enter "
        "no estimate",
    ),
    "case_weight": (
        "number",
        "weight / probability: weigh cases by it, over those that have one, and means are those of the traffic",
    ),
    "order": (
        "number",
        "place in the order drawn, in [0, 1): those under t are a random share t of what has a probability",
    ),
    "reasons": ("json", "why it was kept"),
    "cause": ("text", "where it broke, by its scores together"),
    "marks": ("json", "what was noted when it was found"),
    "feedback": ("json", "what users said: score, comment, source, name, at_unix"),
    "segments": ("json", "segment values"),
    "service": ("text", "the application"),
    "service_version": ("text", "its version"),
    "prompt_version": ("text", "its prompt's version"),
    "environment": ("text", "where it runs"),
    "model": ("text", "the model that answered"),
    "judge_model": ("text", "the model that judged"),
    "cost_usd": ("number", "what judging it cost; empty where no price is known"),
    "trace_ids": ("json", "its traces"),
    "session": ("text", "its session, as redaction left it"),
    "user": ("text", "its user, as redaction left it"),
    "error": ("text", "the application's own error"),
}
"""Every column with its kind and meaning; scores come behind, as `score.METRIC.KIND`, and people's, as
`people.METRIC`."""


def about() -> str:
    """The columns and their meaning, for people."""
    width = max(len(name) for name in COLUMNS)
    lines = [f"{name:{width}}  {meaning}" for name, (_, meaning) in COLUMNS.items()]
    lines += [
        f"{'score.M.KIND':{width}}  CSV and Parquet: the first try's score of metric M, judged or local",
        f"{'people.M':{width}}  CSV and Parquet: what people say that score should be",
        f"{'results':{width}}  JSON Lines: all results, with claims, verdicts, reasons and evidence",
    ]
    return "\n".join(lines)


def record(case: Case, *, threshold: float = 0.5) -> dict[str, Any]:
    """One case as plain values, by the names of `COLUMNS`."""
    held, interaction, origin = case.in_effect, case.interaction, case.origin
    contexts = interaction.contexts
    probability = case.probability
    metrics = dict.fromkeys(one.metric for one in case.results if one.score is not None)
    views = {metric: said(case, metric, threshold=threshold) for metric in metrics} if held.authors else {}
    return {
        "id": case.id,
        "ended": datetime.fromtimestamp(case.ended_unix, UTC),
        "question": interaction.question,
        "contexts": None if contexts is None else [passage.text for passage in contexts],
        "context_ids": None if contexts is None else [passage.id for passage in contexts],
        "response": interaction.response,
        "reference": reference_of(case),
        "history": [{"role": turn.role, "content": turn.text} for turn in interaction.history],
        "people": {metric: view.middle for metric, view in views.items() if view is not None},
        "labels": [_label(one) for one in held.labels],
        "golden": held.golden,
        "skipped": held.skipped,
        "weight": case.weight,
        "local_weight": case.local_weight,
        "probability": probability,
        "case_weight": None if probability is None else case.weight / probability,
        "order": case.control.order if case.control is not None else None,
        "reasons": [str(pick.reason) for pick in case.picks],
        "cause": str(case.diagnosis.cause) if case.diagnosis is not None and case.diagnosis.cause else None,
        "marks": list(case.marks),
        "feedback": [asdict(one) for one in case.feedback],
        "segments": dict(case.segments),
        "service": origin.service,
        "service_version": origin.service_version,
        "prompt_version": origin.prompt_version,
        "environment": origin.environment,
        "model": origin.model,
        "judge_model": case.judge_model,
        "cost_usd": case.cost_usd,
        "trace_ids": list(origin.trace_ids),
        "session": origin.session,
        "user": origin.user,
        "error": origin.error,
    }


def _label(one: Label) -> dict[str, object]:
    return {
        "kind": str(one.kind),
        "metric": one.metric,
        "target": one.target,
        "value": one.value,
        "author": one.author,
        "at": datetime.fromtimestamp(one.at_unix, UTC).isoformat(),
        "in_order": one.in_order,
        "source": one.source,
    }


def _scores(case: Case) -> dict[tuple[str, str], float]:
    """The first tries' scores by metric and kind, the fast tier's of local ones."""
    found: dict[tuple[str, str], float] = {}
    for one in sorted(case.results, key=lambda one: one.tier == "full"):
        if one.score is not None and not one.attempt:
            found.setdefault((one.metric, one.kind), one.score)
    return found


def to_json(value: object) -> str:
    """One line of JSON; times as ISO 8601."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def write_jsonl(cases: Iterable[Case], out: IO[str]) -> int:
    """One object a line, everything in it. Returns how many cases were written, as all writers do."""
    count = 0
    for case in cases:
        scores: dict[str, dict[str, float]] = {}
        for (metric, kind), score in _scores(case).items():
            scores.setdefault(metric, {})[kind] = score
        results = msgspec.to_builtins(case.results, enc_hook=str)
        out.write(to_json(record(case) | {"scores": scores, "results": results}) + "\n")
        count += 1
    return count


def write_ragas(cases: Iterable[Case], out: IO[str]) -> int:
    """What `ragas.EvaluationDataset.from_jsonl` reads, a single turn a line; further fields, which it passes over,
    carry id, weights and people's scores."""
    count = 0
    for case in cases:
        whole = record(case)
        line = {
            "user_input": whole["question"],
            "retrieved_contexts": whole["contexts"],
            "response": whole["response"],
            "reference": whole["reference"],
        }
        ids = whole["context_ids"]
        if ids and None not in ids:
            line["retrieved_context_ids"] = ids
        line = {name: value for name, value in line.items() if value is not None}
        for name in ("id", "weight", "probability", "case_weight", "people"):
            line[name] = whole[name]
        out.write(to_json(line) + "\n")
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class Layout:
    """The score columns of a table: which metrics, of which kinds, and for which metrics people may have spoken."""

    scores: Sequence[tuple[str, str]]

    @property
    def metrics(self) -> list[str]:
        return list(dict.fromkeys(metric for metric, _ in self.scores))

    def row(self, case: Case) -> dict[str, Any]:
        """The case by column. What has no column of its own (a metric that came while the file was written) is still
        in `people` and `labels`."""
        whole, found = record(case), _scores(case)
        row = dict(whole)
        row.update({f"score.{metric}.{kind}": found.get((metric, kind)) for metric, kind in self.scores})
        row.update({f"people.{metric}": whole["people"].get(metric) for metric in self.metrics})
        return row

    @property
    def names(self) -> list[str]:
        own = [f"score.{metric}.{kind}" for metric, kind in self.scores]
        return [*COLUMNS, *own, *(f"people.{metric}" for metric in self.metrics)]


_FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
"""First characters that make a spreadsheet compute a cell, and their full-width forms."""


def inert(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula: an apostrophe before what would begin one."""
    first = text.lstrip()[:1]
    return f"'{text}" if (first and first in _FORMULA) or text[:1] in ("\t", "\r", "\n") else text


def uninert(text: str) -> str:
    """Takes back what `inert` did."""
    rest = text[1:]
    return rest if text[:1] == "'" and inert(rest) != rest else text


def write_csv(cases: Iterable[Case], layout: Layout, out: IO[str]) -> int:
    """A table for spreadsheets; lists and mappings as JSON, formulas made inert."""
    writer = csv.writer(out)
    writer.writerow([inert(name) for name in layout.names])
    count = 0
    for case in cases:
        row = layout.row(case)
        writer.writerow([_cell(row[name]) for name in layout.names])
        count += 1
    return count


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return to_json(value)


def write_parquet(cases: Iterable[Case], layout: Layout, path: Path) -> int:
    """A Parquet file with each column's meaning as its metadata. Raises MissingPackage without pyarrow."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingPackage(
            "Parquet needs the package pyarrow: pip install 'groundwatch[parquet]', or choose another format"
        ) from error
    types = {
        "text": arrow.string(),
        "json": arrow.string(),
        "texts": arrow.list_(arrow.string()),
        "time": arrow.timestamp("us", tz="UTC"),
        "number": arrow.float64(),
        "flag": arrow.bool_(),
    }
    kinds = {name: COLUMNS.get(name, ("number", "a score in [0, 1]")) for name in layout.names}
    schema = arrow.schema(
        [
            arrow.field(name, types[kind], metadata={"description": meaning})
            for name, (kind, meaning) in kinds.items()
        ]
    )
    count = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for part in _parts(layout.row(case) for case in cases):
            columns = [
                [to_json(row[name]) if kind == "json" and row[name] is not None else row[name] for row in part]
                for name, (kind, _) in kinds.items()
            ]
            made = [arrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_table(arrow.Table.from_arrays(made, schema=schema))
            count += len(part)
    return count


def _parts(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    return iter(lambda: list(islice(rows, ROWS_AT_A_TIME)), [])
