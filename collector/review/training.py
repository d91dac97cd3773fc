"""People's labels as rows on which the local scorers can be fitted."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from collector.review.case import Case
from collector.review.labels import LabelKind
from collector.review.people import Said, said
from scorers.interaction import Interaction, Passage
from scorers.local.calibration import SetReport
from scorers.local.labelled import TASKS, Labelled, LabelledSet

MIN_ROWS = 200
MIN_CLASS = 40
"""Rows, and rows of the rarer class, under which no model is fitted: one of support has 23 coefficients, and fewer
than some dozens of the rarer class decide them by chance."""
GOOD, BAD = 0.75, 0.5
"""Scores by people from which a row is good, and up to which it is bad; those between say neither."""
_HALF = 0.5
PREFIX = "review-"
"""Begins the names of sets made of people's labels."""


class TooFewLabels(Exception):
    """No task has enough labelled rows; the text says what there is."""


class Rows:
    """Collects rows from cases, one at a time.

    `picked` also takes cases that were picked for what they are. Without it only those with a known probability are
    taken, each with its weight, so that probabilities are those of the traffic.
    """

    def __init__(self, *, picked: bool = False) -> None:
        self._picked = picked
        self._rows: dict[str, list[Labelled]] = defaultdict(list)
        self.left_out = 0

    def add(self, case: Case) -> None:
        if not case.in_effect.authors:
            return
        probability = case.probability
        if probability is None and not self._picked:
            self.left_out += 1
            return
        weight = 1.0 if self._picked or probability is None else case.weight / probability
        for row in _rows(case):
            self._rows[row.task].append(replace(row, weight=weight))

    def sets(self) -> tuple[list[LabelledSet], list[str]]:
        """A set for each task with enough rows, and for the others a sentence that says why not."""
        sets: list[LabelledSet] = []
        reasons: list[str] = []
        for task in TASKS:
            rows = self._rows[task]
            good = sum(row.label for row in rows)
            rarer = int(min(good, len(rows) - good))
            if len(rows) < MIN_ROWS or rarer < MIN_CLASS:
                reasons.append(
                    f"{task}: {len(rows)} labelled rows, {rarer} of the rarer class; {MIN_ROWS} and {MIN_CLASS} are "
                    "needed, since fewer decide the coefficients by chance"
                )
            else:
                sets.append(
                    LabelledSet(f"{PREFIX}{task}", rows, licence="own labels", origin="labels of the review store")
                )
        if not sets:
            left = f"; {self.left_out} labelled cases were picked for what they are (--picked takes them too)"
            raise TooFewLabels("\n".join(reasons) + (left if self.left_out else ""))
        return sets, reasons


def improved(reports: Iterable[SetReport]) -> set[str]:
    """Models (as `support.fast`) that got better on held-out rows of people's labels."""
    return {f"{one.model}.{one.tier}" for one in reports if one.name.startswith(PREFIX) and one.better}


def _rows(case: Case) -> list[Labelled]:
    interaction = case.interaction
    group = _group(case)
    rows: list[Labelled] = []
    if interaction.response and interaction.contexts:
        label = _supported(case)
        if label is not None:
            rows.append(Labelled(interaction, "groundedness", label, group))
    rows += _passages(case, interaction, group)
    if interaction.question and interaction.response:
        label = _label(said(case, "response_relevancy", threshold=_HALF))
        if label is not None:
            rows.append(Labelled(interaction, "response_relevancy", label, group))
    return rows


def _group(case: Case) -> str:
    """Cases of one question are never on both sides of a split."""
    asked = " ".join((case.interaction.question or "").casefold().split()) or case.origin.session or case.id
    return hashlib.blake2b(asked.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _supported(case: Case) -> float | None:
    """Whether the whole response is supported: all of faithfulness, or a good groundedness."""
    view = said(case, "faithfulness", threshold=_HALF)
    if view is not None and view.low == view.high:
        return float(view.low > 0.999)
    if view is not None and view.high <= _HALF:
        return 0.0
    return _label(said(case, "groundedness", threshold=_HALF))


def _label(view: Said | None) -> float | None:
    if view is None:
        return None
    if view.low < view.high:
        return float(view.low >= _HALF)
    return 1.0 if view.low >= GOOD else 0.0 if view.high <= BAD else None


def _passages(case: Case, interaction: Interaction, group: str) -> list[Labelled]:
    """A row for each passage that people labelled, by most of them; else for a lone passage by the score."""
    contexts = interaction.contexts
    if not interaction.question or not contexts:
        return []
    votes: dict[int, Counter[bool]] = defaultdict(Counter)
    for one in case.in_effect.labels:
        if one.kind is LabelKind.PASSAGE and one.target is not None and one.target < len(contexts):
            votes[one.target][one.value == "relevant"] += 1
    rows = [
        _passage(interaction, contexts[rank], rank, float(count[True] > count[False]), group)
        for rank, count in sorted(votes.items())
        if count[True] != count[False]
    ]
    if not votes and len(contexts) == 1:
        label = _label(said(case, "context_relevance", threshold=_HALF))
        if label is not None:
            rows.append(_passage(interaction, contexts[0], 0, label, group))
    return rows


def _passage(interaction: Interaction, passage: Passage, rank: int, label: float, group: str) -> Labelled:
    alone = Interaction(f"{interaction.id}:{rank}", interaction.question, (passage,), interaction.response)
    return Labelled(alone, "context_relevance", label, group)
