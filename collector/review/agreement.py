"""How well the judge agrees with people, and the local scores with both; and what the quality is in people's terms.

Weighted figures take cases in the order drawn alone: those of the control, with a known probability, whose place in
the order was reached. Such cases are a random share of all that were kept, whatever the scores are, and what people
said of them counts however they came to it. Everything else that was labelled is shown apart, without weights.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from collector.review.case import Case, CaseResult
from collector.review.compare import JUDGED, LOCAL, PEOPLE, Columns, Mask, Table
from collector.review.figures import Agreement, Compared, Corrected
from collector.review.labels import LabelKind
from collector.review.people import said
from scorers.scorer import Kind, Tier

PAIRS = ((JUDGED, PEOPLE), (LOCAL, JUDGED), (LOCAL, PEOPLE))
"""What is compared with what is held to be right."""
ALL = "all"
OTHER = "other"
MAX_VALUES = 50
"""Values of a segment that have figures of their own; the rest is `other`."""
PASSED_OVER = 0.05
"""Share of cases before a place in the order that may be unseen when the place counts as reached."""
_SAME = {"passage_relevance": "precision_at_k"}
"""Local metrics whose judged one has another name."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`threshold` is the score from which an answer counts as good, `thresholds` those of single metrics. `by` names
    a segment, or service, service_version, prompt_version, model, cause, judge: figures for each value, beside all."""

    threshold: float = 0.5
    thresholds: Mapping[str, float] = field(default_factory=dict)
    by: str | None = None

    def of(self, metric: str) -> float:
        return self.thresholds.get(metric, self.threshold)


class _Cases:
    """What is kept of each case, a few numbers."""

    def __init__(self) -> None:
        self.weight = array("d")
        self.order = array("d")
        self.picked = array("d")
        self.ended = array("d")
        self.seen = array("b")
        self.skipped = array("b")
        self.in_order = array("b")
        self.labelled_at = array("d")
        self.group = array("q")
        self.segment = array("q")

    def __len__(self) -> int:
        return len(self.weight)


class _Scores:
    """One metric's columns; `case` is the place in `_Cases`."""

    def __init__(self) -> None:
        self.case = array("q")
        self.judged = array("d")
        self.local = array("d")
        self.local_probability = array("d")
        self.low = array("d")
        self.high = array("d")


class Builder:
    """Takes cases one at a time, keeping about a hundred bytes of each, and makes the report."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._cases = _Cases()
        self._scores: dict[str, _Scores] = defaultdict(_Scores)
        self._groups: dict[int, int] = {}
        self._segments: dict[str, int] = {}
        self._instruments: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        self._labelled = 0

    def add(self, case: Case) -> None:
        cases, held = self._cases, case.in_effect
        place = len(cases)
        pick = case.control
        judged = any(one.kind == Kind.JUDGED for one in case.results)
        weight = case.weight if judged else case.local_weight
        known = pick is not None and pick.probability is not None and pick.order is not None
        cases.weight.append(weight / pick.probability if known and pick and pick.probability else math.nan)
        cases.order.append(pick.order if known and pick and pick.order is not None else math.nan)
        cases.picked.append(pick.at_unix if pick is not None else math.nan)
        cases.ended.append(case.ended_unix)
        cases.seen.append(any(one.kind is not LabelKind.GOLDEN for one in case.labels))
        cases.skipped.append(held.skipped)
        in_order = [one.at_unix for one in case.labels if one.in_order]
        cases.in_order.append(bool(in_order))
        cases.labelled_at.append(max(in_order, default=math.nan))
        group = case.origin.session or (case.interaction.question or "").casefold().strip() or case.id
        cases.group.append(self._groups.setdefault(hash(group), len(self._groups)))
        cases.segment.append(self._segment(case))
        self._labelled += bool(held.authors)
        found = _first_tries(case)
        for metric in dict.fromkeys(metric for metric, _ in found):
            own, local = found.get((metric, JUDGED)), found.get((metric, LOCAL))
            view = said(case, metric, threshold=self._settings.of(metric)) if held.authors else None
            column = self._scores[metric]
            column.case.append(place)
            column.judged.append(_score(own))
            column.local.append(_score(local))
            column.local_probability.append(local.probability if local is not None else 1.0)
            column.low.append(view.low if view is not None else math.nan)
            column.high.append(view.high if view is not None else math.nan)
            for kind, one in ((JUDGED, own), (LOCAL, local)):
                if one is not None:
                    self._instruments[metric][kind][one.fingerprint] += 1

    def _segment(self, case: Case) -> int:
        by = self._settings.by
        if by is None:
            return 0
        value = VALUES[by](case) if by in VALUES else case.segments.get(by)
        name = value or "not known"
        if name not in self._segments and len(self._segments) >= MAX_VALUES:
            name = OTHER
        return self._segments.setdefault(name, len(self._segments))

    def report(self, *, quality_only: bool = False) -> Agreement:
        """The report of what was added; `quality_only` leaves out the comparisons, which take longest."""
        weight = np.array(self._cases.weight)
        known = np.isfinite(weight)
        whole, reached, order = self._drawn()
        skipped, ended = np.array(self._cases.skipped, dtype=bool), np.array(self._cases.ended)
        group, segment = (np.array(one, dtype=np.int64) for one in (self._cases.group, self._cases.segment))
        compared: list[Compared] = []
        corrected: list[Corrected] = []
        segments: list[tuple[str, int | None]] = [(ALL, None)]
        if self._settings.by is not None:
            segments += sorted(self._segments.items())
        for metric in sorted(self._scores):
            scores = self._scores[metric]
            case = np.array(scores.case, dtype=np.int64)
            columns = Columns(
                judged=np.array(scores.judged),
                local=np.array(scores.local),
                low=np.array(scores.low),
                high=np.array(scores.high),
                local_probability=np.array(scores.local_probability),
                weight=weight[case],
                known=known[case],
                whole=whole[case],
                reached=reached[case],
                skipped=skipped[case],
                group=group[case],
            )
            for name, code in segments:
                inside = columns if code is None else columns.where(segment[case] == code)
                table = Table(metric, name, self._settings.of(metric), inside)
                compared += [
                    made
                    for first, second in (() if quality_only else PAIRS)
                    for weighted in (True, False)
                    if (made := table.compared(first, second, weighted=weighted)) is not None
                ]
                mended = table.corrected(JUDGED) or table.corrected(LOCAL)
                corrected += [mended] if mended is not None else []
        return Agreement(
            cases=len(self._cases),
            labelled=self._labelled,
            drawn=int(whole.sum()),
            reached_order=order,
            since_unix=float(ended[whole].min()) if whole.any() else None,
            until_unix=float(ended[whole].max()) if whole.any() else None,
            by=self._settings.by,
            compared=tuple(compared),
            corrected=tuple(corrected),
            instruments={
                metric: {kind: dict(prints) for kind, prints in kinds.items()}
                for metric, kinds in sorted(self._instruments.items())
            },
        )

    def _drawn(self) -> tuple[Mask, Mask, float]:
        """Cases that quality is told of, cases whose turn came, and the place that was reached.

        The place is the last case labelled in order before which at most `PASSED_OVER` were not seen by anybody: it
        says how far people came, and nothing of what they found. What was picked after the last label in order had
        no turn yet and is in neither. Quality is told from the oldest unseen case on: a store forgets unseen cases
        sooner, and those that are left of the time before are no random share of it.
        """
        order, picked = np.array(self._cases.order), np.array(self._cases.picked)
        in_order = np.array(self._cases.in_order, dtype=bool)
        seen = np.array(self._cases.seen, dtype=bool)
        whole = ~np.isnan(order) & np.isfinite(np.array(self._cases.weight))
        if not (whole & in_order).any():
            return whole, np.zeros(len(order), dtype=bool), 0.0
        last = np.nanmax(np.where(whole, np.array(self._cases.labelled_at), np.nan))
        whole &= picked <= last
        places = np.flatnonzero(whole)
        places = places[np.argsort(order[places], kind="stable")]
        unseen = np.cumsum(~seen[places])
        fits = in_order[places] & (unseen <= PASSED_OVER * np.arange(1, len(places) + 1))
        reached = np.zeros(len(order), dtype=bool)
        if not fits.any():
            return whole, reached, 0.0
        end = int(np.flatnonzero(fits)[-1])
        reached[places[: end + 1]] = True
        ended = np.array(self._cases.ended)
        if (whole & ~seen).any():
            whole = whole & (ended >= ended[whole & ~seen].min())
        return whole, reached, float(order[places[end]])


VALUES: Mapping[str, Callable[[Case], str | None]] = {
    "service": lambda case: case.origin.service,
    "service_version": lambda case: case.origin.service_version,
    "prompt_version": lambda case: case.origin.prompt_version,
    "model": lambda case: case.origin.model,
    "judge": lambda case: case.judge_model,
    "cause": lambda case: str(case.diagnosis.cause) if case.diagnosis and case.diagnosis.cause else None,
}


def _score(one: CaseResult | None) -> float:
    return one.score if one is not None and one.score is not None else math.nan


def _first_tries(case: Case) -> dict[tuple[str, str], CaseResult]:
    """Scored first tries by metric and kind; of local ones the fast tier's, which every interaction has."""
    found: dict[tuple[str, str], CaseResult] = {}
    for one in case.results:
        if one.score is None or one.attempt or one.kind not in (JUDGED, LOCAL):
            continue
        metric = _SAME.get(one.metric, one.metric) if one.kind == LOCAL else one.metric
        held = found.get((metric, one.kind))
        if held is None or (held.tier == Tier.FULL and one.tier != Tier.FULL):
            found[metric, one.kind] = one
    return found
