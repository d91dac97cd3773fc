"""Trials of a judge on labelled rows: what is asked, in which order, and what came back; kept as JSON Lines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from scorers.errors import ScorerError
from scorers.local.labelled import Labelled, LabelledSet
from scorers.outcome import Failed, NotApplicable, Result, Score

SCORED = "scored"


class BadTrials(ScorerError):
    """An earlier output can not be continued; the message says file, line, value and cure."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One metric of one trial: `value` where it was scored, else `reason`. No text of the row is kept."""

    metric: str
    outcome: str
    reason: str
    value: float | None
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Trial:
    """One interaction judged once, all scorers together. `cost_usd` is None where any call had no known price."""

    set: str
    id: str
    plan: str
    attempt: int
    seconds: float
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    estimated: bool
    results: tuple[Measured, ...]

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.set, self.id, self.plan, self.attempt


def trial(name: str, row_id: str, results: Sequence[Result], *, plan: str, attempt: int, seconds: float) -> Trial:
    """What one judging gave."""
    usages = [result.usage for result in results if result.usage is not None and result.usage.calls]
    costs = [usage.cost_usd for usage in usages]
    return Trial(
        set=name,
        id=row_id,
        plan=plan,
        attempt=attempt,
        seconds=seconds,
        calls=sum(usage.calls for usage in usages),
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        estimated=any(usage.estimated for usage in usages),
        results=tuple(_measured(result) for result in results),
    )


def _measured(result: Result) -> Measured:
    match result.outcome:
        case Score(value=value):
            return Measured(result.scorer, SCORED, "", value, result.fingerprint)
        case NotApplicable(reason=reason):
            return Measured(result.scorer, "not_applicable", str(reason), None, result.fingerprint)
        case Failed(reason=failed):
            return Measured(result.scorer, "failed", str(failed), None, result.fingerprint)


def chosen(rows: Sequence[Labelled], limit: int | None) -> list[Labelled]:
    """At most `limit` rows, good and bad ones in turn, in an order that a hash of their ids decides.

    The same rows on every machine, and a longer choice begins with a shorter one, so that a run can be continued.
    """
    ordered = sorted(rows, key=lambda row: hashlib.blake2b(row.interaction.id.encode("utf-8", "replace")).digest())
    good = [row for row in ordered if row.label >= 0.5]
    bad = [row for row in ordered if row.label < 0.5]
    shorter = min(len(good), len(bad))
    turns = [row for pair in zip(good, bad, strict=False) for row in pair]
    turns += good[shorter:] + bad[shorter:]
    return turns[:limit]


def with_question(row: Labelled, question: str | None) -> Labelled:
    """The row, with `question` where it has none."""
    if question is None or (row.interaction.question or "").strip():
        return row
    return replace(row, interaction=replace(row.interaction, question=question))


def check_ids(one: LabelledSet) -> None:
    """Raises `BadTrials` where two rows of a set have the same id: their results could not be told apart."""
    seen: set[str] = set()
    for row in one.rows:
        if row.interaction.id in seen:
            raise BadTrials(f"{one.name}: the id {row.interaction.id!r} occurs twice; ids must differ")
        seen.add(row.interaction.id)


_TRIAL: TypeAdapter[Trial] = TypeAdapter(Trial)
_OPENING = b'{"set":'


def to_json(one: Trial) -> str:
    """One line of JSON."""
    return _TRIAL.dump_json(one).decode()


def _cut_off(line: bytes) -> bool:
    """Whether it is the beginning of a trial, left by a process that was killed while it wrote."""
    if not (line.startswith(_OPENING) or _OPENING.startswith(line)):
        return False
    try:
        json.loads(line)
    except ValueError:
        return True
    return False


def read_trials(path: Path, fingerprints: Iterable[str]) -> list[Trial]:
    """The trials of an earlier output, each once; a cut-off line is none, and failed ones are tried again.

    Raises `BadTrials` for a line of something else, and for results of another instrument (another model, prompt
    or plan) than `fingerprints`.
    """
    known = set(fingerprints)
    found: dict[tuple[str, str, str, int], Trial] = {}
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            one = _TRIAL.validate_json(line)
        except ValidationError as error:
            if _cut_off(line):
                continue
            raise BadTrials(f"{path}:{number}: no trial of bench-judge; name another file") from error
        other = [m.fingerprint for m in one.results if "@" in m.fingerprint and m.fingerprint not in known]
        if other:
            raise BadTrials(
                f"{path}:{number}: measured by {other[0]}, which this run does not use; name another file"
            )
        if not any(m.outcome == "failed" for m in one.results):
            found.setdefault(one.key, one)
    return list(found.values())
