"""Labels from files: JSON Lines or CSV, every line checked before any is given to the store."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from collector.review.case import Case
from collector.review.export import uninert
from collector.review.labels import MAX_AUTHOR, MAX_DRAFTS, BadLabel, Draft, LabelKind, Value
from collector.review.people import shown
from collector.review.store import NoCase, ReviewStore

MAX_PROBLEMS = 50
"""Problems that are named one by one; more are counted."""
_FIELDS = ("case", "kind", "metric", "target", "value", "author")


class BadLabels(Exception):
    """Lines that can not be taken. `problems` name file, line, value and cure; at most MAX_PROBLEMS of `count`."""

    def __init__(self, problems: list[str], count: int) -> None:
        self.problems = problems
        self.count = count
        more = f"\n... and {count - len(problems)} more" if count > len(problems) else ""
        super().__init__("\n".join(problems) + more)


@dataclass(frozen=True, slots=True)
class Line:
    """A label as a line says it, with its place in the file."""

    place: str
    case_id: str
    author: str
    draft: Draft


@dataclass(slots=True)
class Imported:
    """What became of a file: `labels` new ones on `cases` cases, `known` that hold already, `left_out` lines that
    were wrong (with `problems`)."""

    labels: int = 0
    cases: int = 0
    known: int = 0
    left_out: int = 0
    problems: list[str] = field(default_factory=list)


def read_lines(path: Path, *, author: str | None = None) -> Iterator[Line | str]:
    """Each line's label, or what is wrong with it. `author` stands in where a line names none.

    A line has `case` (or `id`), `kind`, `value`, and as the kind asks `metric` and `target`; `author`. Raises OSError.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield f"{path}: byte {error.start} is no UTF-8; save the file as UTF-8"
        return
    raw = _csv(text, path) if path.suffix.lower() == ".csv" else _jsonl(text, path)
    for place, values in raw:
        if isinstance(values, str):
            yield f"{place}: {values}"
            continue
        try:
            yield _line(place, values, author)
        except BadLabel as error:
            yield f"{place}: {error}"


def _jsonl(text: str, path: Path) -> Iterator[tuple[str, Mapping[str, object] | str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield place, f"not JSON ({error}); one object a line is needed"
            continue
        yield place, values if isinstance(values, dict) else "not an object; {case, kind, value, ...} is needed"


def _csv(text: str, path: Path) -> Iterator[tuple[str, Mapping[str, object] | str]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), restkey="", restval="")
    try:
        names = reader.fieldnames or ()
        if "kind" not in names or not {"case", "id"} & set(names):
            yield f"{path}:1", f"the columns are {list(names)!r:.200}; case and kind are needed, and {_FIELDS[2:]}"
            return
        for row in reader:
            place = f"{path}:{reader.line_num}"
            if row.get(""):
                yield place, "more cells than the heading names; quote cells that hold a comma"
                continue
            yield place, {name: uninert(value) for name, value in row.items() if value}
    except csv.Error as error:
        yield f"{path}:{reader.line_num}", f"not CSV ({error})"


def _line(place: str, values: Mapping[str, object], author: str | None) -> Line:
    case_id, kind = values.get("case") or values.get("id"), values.get("kind")
    if not isinstance(case_id, str):
        raise BadLabel(f"case is {case_id!r:.80}; the id of a case is needed, as `export` writes it")
    words = [str(one) for one in LabelKind if one is not LabelKind.UNDO]
    if not isinstance(kind, str) or kind not in words:
        raise BadLabel(f"kind is {kind!r:.80}; one of {', '.join(words)} is needed")
    by = values.get("author") or author
    if not isinstance(by, str) or not by.strip() or len(by) > MAX_AUTHOR:
        raise BadLabel(
            f"author is {by!r:.80}; a name of 1 to {MAX_AUTHOR} characters is needed, here or with --author"
        )
    metric = values.get("metric") or ""
    if not isinstance(metric, str):
        raise BadLabel(f"metric is {metric!r:.80}; the name of a metric is needed")
    return Line(
        place,
        case_id,
        by,
        Draft(
            LabelKind(kind), _value(LabelKind(kind), values.get("value")), metric, _target(values.get("target"))
        ),
    )


def _target(value: object) -> int | None:
    if isinstance(value, str):
        return int(value) if value.strip().isascii() and value.strip().isdigit() else -1
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else -1


def _value(kind: LabelKind, value: object) -> Value:
    """A cell's text as what the kind takes; anything else is left for Draft to refuse."""
    if kind is LabelKind.SCORE and isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    if kind is LabelKind.GOLDEN and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def import_labels(
    store: ReviewStore,
    path: Path,
    *,
    author: str | None = None,
    in_order: bool = False,
    keep_good: bool = False,
    dry: bool = False,
) -> Imported:
    """Give a file's labels to the store, those of one case and author together; what holds already is passed over, so
    that an import can be repeated.

    Nothing is written when a line is wrong (BadLabels names each), unless `keep_good`; nothing at all when `dry`.
    `in_order` says that the cases were labelled in the order drawn. Raises OSError, ReviewError.
    """
    found = Imported()
    wanted: dict[tuple[str, str], list[Line]] = defaultdict(list)

    def wrong(problem: str) -> None:
        found.left_out += 1
        if len(found.problems) < MAX_PROBLEMS:
            found.problems.append(problem)

    for one in read_lines(path, author=author):
        if isinstance(one, str):
            wrong(one)
        else:
            wanted[one.case_id, one.author].append(one)
    good: dict[tuple[str, str], list[Draft]] = {}
    for (case_id, by), lines in wanted.items():
        case = store.get(case_id)
        drafts: dict[object, Draft] = {}
        for line in lines:
            problem = _fits(case, line)
            if problem is not None:
                wrong(f"{line.place}: {problem}")
            else:
                drafts[line.draft.kind, line.draft.metric, line.draft.target] = line.draft
        new = [draft for draft in drafts.values() if case is not None and not _holds(case, by, draft)]
        found.known += len(drafts) - len(new)
        if new:
            good[case_id, by] = new
    if found.left_out and not keep_good:
        raise BadLabels(found.problems, found.left_out)
    for (case_id, by), new in good.items():
        for start in range(0, len(new), MAX_DRAFTS):
            part = new[start : start + MAX_DRAFTS]
            if not dry:
                try:
                    store.label(
                        case_id, part, author=by, expected_revision=None, in_order=in_order, source="import"
                    )
                except NoCase as error:
                    wrong(f"{path}: {error}")
                    continue
            found.labels += len(part)
        found.cases += 1
    return found


def _fits(case: Case | None, line: Line) -> str | None:
    """What the case does not have that the label speaks of."""
    draft = line.draft
    if case is None:
        return f"there is no case {line.case_id[:80]!r}; it may have been erased, or be of another store"
    if draft.metric and shown(case, draft.metric) is None:
        have = sorted({one.metric for one in case.results if one.score is not None})
        return f"the case has no score of {draft.metric[:80]!r}; it has {', '.join(have)[:300] or 'none'}"
    if draft.kind is LabelKind.CLAIM:
        result = shown(case, draft.metric)
        count = len(result.verdicts) if result is not None else 0
        if draft.target is None or draft.target >= count:
            return f"target is {draft.target}; {draft.metric} has {count} claims, counted from 0"
    if draft.kind is LabelKind.PASSAGE:
        count = len(case.interaction.contexts or ())
        if draft.target is None or draft.target >= count:
            return f"target is {draft.target}; the case has {count} passages, counted from 0"
    return None


def _holds(case: Case, author: str, draft: Draft) -> bool:
    return any(
        one.author == author
        and (one.kind, one.metric, one.target) == (draft.kind, draft.metric, draft.target)
        and one.value == draft.value
        for one in case.in_effect.labels
    )
