"""What people say of a case. Labels are appended and never changed; an undo is one more label."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

MAX_TEXT = 20_000
"""Characters of a comment or a reference answer."""
MAX_AUTHOR = 200
MAX_DRAFTS = 500
"""Labels of one submission."""
MAX_TARGET = 100_000


_LONE = re.compile("[\ud800-\udfff]")


class LabelKind(StrEnum):
    AGREE = "agree"  # with the score of `metric` (value "agree" or "disagree")
    CLAIM = "claim"  # claim number `target` of `metric`: supported, unsupported, contradicted or unknown
    PASSAGE = "passage"  # passage at rank `target` (from 0): relevant or irrelevant
    SCORE = "score"  # the right score of `metric`, in [0, 1]
    COMMENT = "comment"
    REFERENCE = "reference"  # the right answer, in words
    GOLDEN = "golden"  # part of the golden set, or not
    SKIP = "skip"  # looked at and left without a label: a non-response
    UNDO = "undo"  # takes back the labels of revision `target`


_WORDS = {
    LabelKind.AGREE: ("agree", "disagree"),
    LabelKind.CLAIM: ("supported", "unsupported", "contradicted", "unknown"),
    LabelKind.PASSAGE: ("relevant", "irrelevant"),
}
_OF_METRIC = (LabelKind.AGREE, LabelKind.CLAIM, LabelKind.SCORE)
_WITH_TARGET = (LabelKind.CLAIM, LabelKind.PASSAGE, LabelKind.UNDO)

Value = str | float | bool | None


class BadLabel(ValueError):
    """A label that can not be meant; the text says what is wrong and what may stand there."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A label as somebody gives it. `metric` and `target` are for the kinds that need them (see LabelKind).

    Raises BadLabel when made with a value that its kind does not take.
    """

    kind: LabelKind
    value: Value = None
    metric: str = ""
    target: int | None = None

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem:
            raise BadLabel(f"label {self.kind.value}: {problem}")


@dataclass(frozen=True, slots=True)
class Label:
    """A label as the store keeps it.

    `revision` is the case's revision that it made; labels given together share one. `in_order` tells that the case
    was labelled when its turn came in the order drawn: only such labels of a case with a known probability may
    enter estimates. `source` tells the way in: ui, api, import.
    """

    kind: LabelKind
    author: str
    at_unix: float
    revision: int
    value: Value = None
    metric: str = ""
    target: int | None = None
    in_order: bool = False
    source: str = "ui"

    @property
    def place(self) -> tuple[LabelKind, str, int | None]:
        """What it speaks of; of two by one author the later one holds."""
        return self.kind, self.metric, self.target


@dataclass(frozen=True, slots=True)
class Labelled:
    """The labels that hold: of each author the last one for each place, without what was undone.

    `authors` are those who gave one, in order of their last; `golden` is what the last to say it said. `skipped`
    is true where somebody looked and nobody gave a label.
    """

    labels: tuple[Label, ...] = ()
    authors: tuple[str, ...] = ()
    golden: bool = False
    skipped: bool = False
    undone: frozenset[int] = field(default_factory=frozenset)

    def of(self, kind: LabelKind, *, metric: str = "", author: str | None = None) -> tuple[Label, ...]:
        """Those of a kind (and metric, and author), oldest first."""
        return tuple(
            one
            for one in self.labels
            if one.kind is kind and one.metric == metric and author in (None, one.author)
        )


_NO_JUDGEMENT = frozenset({LabelKind.SKIP, LabelKind.UNDO, LabelKind.GOLDEN})


def in_effect(labels: Sequence[Label]) -> Labelled:
    """What holds of all labels ever given to a case, in the order given."""
    undone = frozenset(one.target for one in labels if one.kind is LabelKind.UNDO and one.target is not None)
    held: dict[tuple[str, LabelKind, str, int | None], Label] = {}
    for one in labels:
        if one.revision in undone or one.kind is LabelKind.UNDO:
            continue
        key = (one.author, *one.place)
        held.pop(key, None)
        held[key] = one
    golden = [one for one in held.values() if one.kind is LabelKind.GOLDEN]
    judged = [one for one in held.values() if one.kind not in _NO_JUDGEMENT]
    authors = dict.fromkeys(one.author for one in reversed(judged))
    return Labelled(
        labels=tuple(held.values()),
        authors=tuple(reversed(authors)),
        golden=bool(golden and golden[-1].value),
        skipped=not judged and any(one.kind is LabelKind.SKIP for one in held.values()),
        undone=undone,
    )


def last_undoable(labels: Sequence[Label], author: str) -> int | None:
    """The author's last revision that was not undone; None where there is none."""
    undone = in_effect(labels).undone
    own = [
        one.revision
        for one in labels
        if one.author == author and one.kind is not LabelKind.UNDO and one.revision not in undone
    ]
    return max(own, default=None)


def checked(drafts: Sequence[Draft], author: str) -> None:
    """Raises BadLabel when a submission can not be taken whole."""
    if not author.strip() or len(author) > MAX_AUTHOR:
        raise BadLabel(f"author: a name of 1 to {MAX_AUTHOR} characters is needed")
    if _LONE.search(author) or any(_LONE.search(f"{one.metric}{one.value}") for one in drafts):
        raise BadLabel("half of a surrogate pair is no text")
    if not drafts:
        raise BadLabel("nothing to label was given")
    if len(drafts) > MAX_DRAFTS:
        raise BadLabel(f"{len(drafts)} labels at once; at most {MAX_DRAFTS}")
    if any(draft.kind is LabelKind.UNDO for draft in drafts):
        raise BadLabel("label undo: ask the store to undo, which finds what is to be taken back")


def _problem(draft: Draft) -> str | None:
    kind, value = draft.kind, draft.value
    if kind in _OF_METRIC and not draft.metric:
        return "the metric is missing"
    if kind in _WITH_TARGET and not (isinstance(draft.target, int) and 0 <= draft.target <= MAX_TARGET):
        return f"target: a number from 0 to {MAX_TARGET} is needed, not {draft.target!r}"
    if kind in _WORDS and value not in _WORDS[kind]:
        return f"value {_shown(value)} is none of {', '.join(_WORDS[kind])}"
    if kind is LabelKind.SCORE:
        right = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
        return None if right else f"value {_shown(value)} is no score from 0 to 1"
    if kind in (LabelKind.COMMENT, LabelKind.REFERENCE):
        right = isinstance(value, str) and value.strip() != "" and len(value) <= MAX_TEXT
        return None if right else f"a text of 1 to {MAX_TEXT} characters is needed"
    if kind is LabelKind.GOLDEN and not isinstance(value, bool):
        return f"value {_shown(value)} is neither true nor false"
    return None


def _shown(value: Value) -> str:
    return repr(value)[:80]
