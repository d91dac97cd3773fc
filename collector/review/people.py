"""What people say of a case, as numbers on the scale of its scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from collector.review.case import Case, CaseResult
from collector.review.labels import Label, LabelKind
from scorers.judged.arithmetic import average_precision
from scorers.scorer import Kind

BY_CLAIMS = "faithfulness"
"""The metric that is a share of supported claims, so that labels of claims give its value."""
BY_PASSAGES = ("precision_at_k", "passage_relevance", "context_precision")
"""Metrics that labels of passages give."""


@dataclass(frozen=True, slots=True)
class Said:
    """What people say the score should be: a number, or, where somebody only disagreed, a range on the other side of
    the threshold. Ends in [0, 1]; they are equal where the number is known."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    def good(self, threshold: float) -> bool:
        """Whether people put it at the threshold or above."""
        return self.middle >= threshold


def shown(case: Case, metric: str) -> CaseResult | None:
    """The result that a person is asked about: the judge's where it scored, else the local one; first tries."""
    scored = [one for one in case.results if one.metric == metric and one.score is not None and not one.attempt]
    return min(scored, key=lambda one: (one.kind != Kind.JUDGED, one.tier == "full"), default=None)


def said(case: Case, metric: str, *, threshold: float, authors: Iterable[str] | None = None) -> Said | None:
    """What people say of a metric, the mean over those who do; None where nobody said what can be a number.

    Of one person, from the first that is there: a score; labels of all claims or passages, where these make the
    metric; agreement (the score that was shown) or disagreement (somewhere on the other side of `threshold`). Where a
    person also agreed or disagreed with a metric, claims without a label are as the judge has them. `authors` leaves
    out all others.
    """
    labels = case.in_effect.labels
    wanted = set(authors) if authors is not None else {one.author for one in labels}
    views = [
        view
        for author in sorted(wanted)
        if (view := _view(case, metric, [one for one in labels if one.author == author], threshold)) is not None
    ]
    if not views:
        return None
    return Said(sum(view.low for view in views) / len(views), sum(view.high for view in views) / len(views))


def _view(case: Case, metric: str, labels: list[Label], threshold: float) -> Said | None:
    own = [one for one in labels if one.metric == metric]
    number: float | None = next(
        (float(one.value) for one in reversed(own) if one.kind is LabelKind.SCORE and one.value is not None), None
    )
    word = next((one.value for one in reversed(own) if one.kind is LabelKind.AGREE), None)
    result = shown(case, metric)
    if number is None and metric == BY_CLAIMS and result is not None:
        number = _by_claims(result, own, complete=word is not None)
    if number is None and metric in BY_PASSAGES:
        number = _by_passages(case, metric, labels)
    if number is not None:
        return Said(number, number)
    if word is None or result is None or result.score is None:
        return None
    if word == "agree":
        return Said(result.score, result.score)
    return Said(0.0, threshold * _BELOW) if result.score >= threshold else Said(threshold, 1.0)


_BELOW = 1 - 1e-9
"""Takes a threshold to just under it."""


def _by_claims(result: CaseResult, labels: list[Label], *, complete: bool) -> float | None:
    given = {one.target: str(one.value) for one in labels if one.kind is LabelKind.CLAIM}
    if not given or not (complete or all(place in given for place in range(len(result.verdicts)))):
        return None
    words = [given.get(place, str(verdict.label)) for place, verdict in enumerate(result.verdicts)]
    known = [word for word in words if word != "unknown"]
    return sum(word == "supported" for word in known) / len(known) if known else None


def _by_passages(case: Case, metric: str, labels: list[Label]) -> float | None:
    given = {one.target: one.value == "relevant" for one in labels if one.kind is LabelKind.PASSAGE}
    count = len(case.interaction.contexts or ())
    if not count or any(rank not in given for rank in range(count)):
        return None
    relevant = [given[rank] for rank in range(count)]
    return average_precision(relevant) if metric == "context_precision" else sum(relevant) / count


def reference_of(case: Case) -> str | None:
    """The right answer: the last that people gave, else what came with the interaction."""
    given = [one for one in case.in_effect.labels if one.kind is LabelKind.REFERENCE]
    return str(given[-1].value) if given else case.interaction.reference
