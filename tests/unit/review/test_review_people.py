"""Labels as numbers on the scale of the scores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collector.review.case import Case
from collector.review.labels import Label, LabelKind
from collector.review.people import Said, reference_of, said
from scorers.interaction import Passage
from scorers.outcome import Label as Word
from scorers.outcome import Verdict
from tests.support.review_cases import a_case, scored


def labelled(case: Case, *labels: tuple[object, ...]) -> Case:
    """Labels as (kind, value, metric, target, author), the last three optional; each a revision of its own."""
    made = []
    for number, (kind, value, *rest) in enumerate(labels, start=1):
        metric, target, author = (*rest, *("", None, "anna")[len(rest) :])
        made.append(Label(kind, author, float(number), number, value, metric, target))  # type: ignore[arg-type]  # terse
    return replace(case, labels=tuple(made))


def of(case: Case, metric: str = "faithfulness", threshold: float = 0.5) -> Said | None:
    return said(case, metric, threshold=threshold)


CASE = a_case(scores={"faithfulness": 0.8}, local={"faithfulness": 0.1, "groundedness": 0.3})
CLAIMS = replace(
    CASE,
    results=(
        replace(
            scored("faithfulness", 0.75),
            verdicts=tuple(
                Verdict(f"claim {n}", Word.UNSUPPORTED if n == 3 else Word.SUPPORTED) for n in range(4)
            ),
        ),
    ),
)
AGREE, SCORE, CLAIM, PASSAGE = LabelKind.AGREE, LabelKind.SCORE, LabelKind.CLAIM, LabelKind.PASSAGE


def test_agreement_is_the_score_that_was_shown() -> None:
    assert of(labelled(CASE, (AGREE, "agree", "faithfulness"))) == Said(0.8, 0.8)
    assert of(labelled(CASE, (AGREE, "agree", "groundedness")), "groundedness") == Said(0.3, 0.3)
    assert of(labelled(CASE, (LabelKind.COMMENT, "hm"))) is None
    assert of(CASE) is None


def test_disagreement_is_the_other_side_of_the_threshold() -> None:
    no = labelled(CASE, (AGREE, "disagree", "faithfulness"))
    view = of(no)
    assert view is not None
    assert (view.low, view.high) == (0.0, pytest.approx(0.5))
    assert view.high < 0.5
    assert not view.good(0.5)
    low = of(no, threshold=0.9)
    assert low == Said(0.9, 1.0)
    assert low.good(0.9)


def test_a_score_says_more_than_a_word_and_the_last_holds() -> None:
    case = labelled(CASE, (SCORE, 0.2, "faithfulness"), (AGREE, "disagree", "faithfulness"))
    assert of(case) == Said(0.2, 0.2)
    assert of(labelled(CASE, (SCORE, 0.2, "faithfulness"), (SCORE, 0.6, "faithfulness"))) == Said(0.6, 0.6)
    undone = labelled(CASE, (SCORE, 0.2, "faithfulness"), (LabelKind.UNDO, None, "", 1))
    assert of(undone) is None


def test_several_people_count_alike() -> None:
    case = labelled(
        CASE, (SCORE, 0.2, "faithfulness", None, "anna"), (AGREE, "agree", "faithfulness", None, "ben")
    )
    assert of(case) == Said(0.5, 0.5)
    assert said(case, "faithfulness", threshold=0.5, authors=["ben"]) == Said(0.8, 0.8)


def test_claims_give_a_share_when_all_are_labelled_or_the_rest_was_looked_at() -> None:
    every = [(CLAIM, "supported" if n else "contradicted", "faithfulness", n) for n in range(4)]
    assert of(labelled(CLAIMS, *every)) == Said(0.75, 0.75)
    assert of(labelled(CLAIMS, *every[:2])) is None
    # the other three stand as the judge has them: two supported, one not
    assert of(labelled(CLAIMS, every[0], (AGREE, "disagree", "faithfulness"))) == Said(0.5, 0.5)
    unknown = [(CLAIM, "unknown", "faithfulness", 0), *every[1:]]
    assert of(labelled(CLAIMS, *unknown)) == Said(1.0, 1.0), "what nobody can tell is no claim"


def test_passages_give_precision_and_its_average() -> None:
    case = replace(
        CASE,
        interaction=replace(CASE.interaction, contexts=(Passage("a"), Passage("b"))),
        results=tuple(scored(metric, 0.9) for metric in ("precision_at_k", "context_precision", "faithfulness")),
    )
    both = labelled(case, (PASSAGE, "irrelevant", "", 0), (PASSAGE, "relevant", "", 1))
    assert of(both, "precision_at_k") == Said(0.5, 0.5)
    assert of(both, "context_precision") == Said(0.5, 0.5)
    assert of(both, "faithfulness") is None
    assert of(labelled(case, (PASSAGE, "relevant", "", 1)), "precision_at_k") is None


def test_the_reference_is_the_last_that_people_gave() -> None:
    case = replace(CASE, interaction=replace(CASE.interaction, reference="shipped"))
    assert reference_of(case) == "shipped"
    assert reference_of(labelled(case, (LabelKind.REFERENCE, "one"), (LabelKind.REFERENCE, "two"))) == "two"
