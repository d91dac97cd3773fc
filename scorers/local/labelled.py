"""Labelled texts as JSON Lines: one object a line, checked with the place in the error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scorers.errors import ScorerError
from scorers.interaction import Interaction, Passage

TASKS = ("groundedness", "context_relevance", "response_relevancy")


class BadLabelledFile(ScorerError):
    """A line of a labelled file can not be used; the message says file, line, value and cure."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """One row: what people (or a construction) say of the interaction, from 0 (bad) to 1 (good).

    `group` is the source document or question: rows of one group are never on both sides of a split. `weight` is
    what the row counts for beside the others of its set.
    """

    interaction: Interaction
    task: str
    label: float
    group: str
    language: str | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """The rows of one file, all of one task.

    `weight` is the set's share in fitting; 0 or `fit` false keeps it out. `written_from_contexts` says that people
    wrote the good responses from the contexts, so that these rows are supported ones too.
    """

    name: str
    rows: Sequence[Labelled]
    licence: str = "not stated"
    origin: str = ""
    fit: bool = True
    weight: float = 1.0
    written_from_contexts: bool = False

    def supported_answers(self) -> LabelledSet | None:
        """The good rows as a groundedness set of supported responses, where they are known to be."""
        rows = [
            replace(row, task="groundedness", label=1.0)
            for row in self.rows
            if row.label == 1.0 and row.interaction.contexts and self.written_from_contexts
        ]
        return replace(self, name=f"{self.name}+contexts", rows=rows, weight=self.weight / 2) if rows else None

    @property
    def task(self) -> str:
        return self.rows[0].task

    @property
    def graded(self) -> bool:
        return any(row.label not in (0.0, 1.0) for row in self.rows)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None  # some converters write NaN for an absent question


def _named(value: object, otherwise: str) -> str:
    """A null id or group is none: else all such rows would be one group, and no interval could be told."""
    return otherwise if value is None else str(value)


def _row(raw: Mapping[str, object], place: str) -> Labelled:
    task, label, contexts = raw.get("task"), raw.get("label"), raw.get("contexts")
    if task not in TASKS:
        raise BadLabelledFile(f"{place}: task is {task!r}; use one of {', '.join(TASKS)}")
    if isinstance(label, bool) or not isinstance(label, int | float) or not 0 <= label <= 1:
        raise BadLabelledFile(f"{place}: label is {label!r}; use a number from 0 (bad) to 1 (good)")
    if contexts is not None and not (isinstance(contexts, list) and all(isinstance(c, str) for c in contexts)):
        raise BadLabelledFile(f"{place}: contexts is not a list of texts")
    identity = _named(raw.get("id"), place)
    interaction = Interaction(
        identity,
        _text(raw.get("question")),
        None if contexts is None else tuple(Passage(text) for text in contexts),
        _text(raw.get("response")),
    )
    return Labelled(
        interaction, str(task), float(label), _named(raw.get("group"), identity), _text(raw.get("lang"))
    )


def _lines(path: Path) -> Iterator[Labelled]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            place = f"{path}:{number}"
            try:
                raw = json.loads(line)
            except ValueError as error:
                why = "not text in UTF-8" if isinstance(error, UnicodeDecodeError) else f"not JSON: {error}"
                raise BadLabelledFile(f"{place}: {why}; one object a line is needed") from error
            if not isinstance(raw, dict):
                raise BadLabelledFile(f"{place}: not an object")
            yield _row(raw, place)


def read_set(path: Path, about: Mapping[str, Mapping[str, object]] | None = None) -> LabelledSet:
    """One file as a set named after it. `about` (name to licence, origin, fit, weight) describes known sets."""
    rows = list(_lines(path))
    if not rows:
        raise BadLabelledFile(f"{path}: holds no row")
    tasks = {row.task for row in rows}
    if len(tasks) != 1:
        raise BadLabelledFile(f"{path}: holds several tasks ({', '.join(sorted(tasks))}); use one file for each")
    known = dict((about or {}).get(path.stem, {}))
    weight = known.get("weight", 1.0)
    return LabelledSet(
        path.stem,
        rows,
        licence=str(known.get("licence", "not stated")),
        origin=str(known.get("origin", "")),
        fit=bool(known.get("fit", True)),
        written_from_contexts=bool(known.get("written_from_contexts", False)),
        weight=float(weight) if isinstance(weight, int | float) else 1.0,
    )
