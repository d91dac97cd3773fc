"""One cause for each interaction: every row of the table, and what is said where a score is missing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.estimates.diagnosis import Diagnoser, diagnose
from collector.estimates.options import DiagnosisOptions, Thresholds
from collector.records.decision import Decision, Fate
from collector.records.diagnosis import Cause, Diagnosis
from collector.records.found import Found
from collector.records.settled import Settled
from scorers.interaction import Damage, Field, Interaction
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason, Outcome, Result, Score
from scorers.scorer import Kind, Tier

HIGH, LOW = 0.95, 0.05
FAILED = Failed(FailedReason.BAD_REPLY)
REFUSED = NotApplicable(NotApplicableReason.REFUSAL)


def results(outcomes: Mapping[str, float | Outcome], kind: Kind = Kind.JUDGED) -> tuple[Result, ...]:
    return tuple(
        Result(
            "i",
            name,
            kind,
            Score(given) if isinstance(given, int | float) else given,
            "1",
            "f",
            tier=Tier.FAST if kind is Kind.LOCAL else None,
        )
        for name, given in outcomes.items()
    )


def cause(**outcomes: float | Outcome) -> Cause:
    return diagnose(results(outcomes), Thresholds(), nothing_retrieved=False)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ({"context_relevance": LOW, "noncommittal": 1}, Cause.KNOWLEDGE_GAP),
        ({"context_relevance": HIGH, "noncommittal": 1}, Cause.NEEDLESS_REFUSAL),
        ({"context_relevance": LOW, "faithfulness": LOW}, Cause.RETRIEVAL_MISS),
        ({"context_relevance": LOW, "faithfulness": HIGH}, Cause.WRONG_DOCUMENTS),
        ({"context_relevance": HIGH, "faithfulness": LOW}, Cause.UNSUPPORTED),
        ({"context_relevance": HIGH, "faithfulness": HIGH, "response_relevancy": LOW}, Cause.BESIDE_THE_QUESTION),
        ({"context_relevance": HIGH, "faithfulness": HIGH, "response_relevancy": HIGH}, Cause.FINE),
        ({"context_relevance": HIGH, "faithfulness": HIGH}, Cause.FINE),
    ],
)
def test_rows_of_the_table(outcomes: dict[str, float], expected: Cause) -> None:
    assert cause(**outcomes) is expected
    assert cause(**{"noncommittal": 0.0, **outcomes}) is expected
    first = diagnose(results(outcomes), Thresholds(), nothing_retrieved=True)
    assert first is Cause.NOTHING_RETRIEVED, "the first row comes first"


@pytest.mark.parametrize(
    ("order", "share", "expected"),
    [
        (LOW, HIGH, Cause.RANKING),
        (0.4, 0.4, Cause.RANKING),
        (0.4, 0.3, Cause.FINE),
        (HIGH, LOW, Cause.TOO_MANY_CONTEXTS),
        (HIGH, HIGH, Cause.FINE),
    ],
)
def test_rows_of_fine_answers_with_ranks(order: float, share: float, expected: Cause) -> None:
    fine = {"context_relevance": HIGH, "faithfulness": HIGH, "response_relevancy": HIGH}
    assert cause(**fine, context_precision=order, precision_at_k=share) is expected
    assert cause(**fine, context_precision=order, passage_relevance=share) is expected
    assert cause(**fine, context_precision=order) is Cause.FINE


@pytest.mark.parametrize(
    "outcomes",
    [
        {},
        {"faithfulness": LOW},
        {"context_relevance": FAILED, "faithfulness": LOW},
        {"context_relevance": HIGH},
        {"context_relevance": HIGH, "faithfulness": FAILED},
        {"context_relevance": HIGH, "faithfulness": HIGH, "response_relevancy": FAILED},
    ],
)
def test_a_missing_score_that_would_decide_is_said_so(outcomes: dict[str, float]) -> None:
    assert cause(**outcomes) is Cause.UNDETERMINED


def test_a_refusal_is_also_told_by_what_was_not_applicable_for_it() -> None:
    assert cause(context_relevance=LOW, faithfulness=REFUSED) is Cause.KNOWLEDGE_GAP
    said_not = cause(context_relevance=HIGH, faithfulness=REFUSED, noncommittal=0.0)
    assert said_not is Cause.UNDETERMINED, "the metric itself is believed first"


def test_thresholds_are_the_configured_ones() -> None:
    strict = Thresholds(faithfulness=0.99)
    given = results({"context_relevance": HIGH, "faithfulness": HIGH})
    assert diagnose(given, strict, nothing_retrieved=False) is Cause.UNSUPPORTED


outcome = st.one_of(st.floats(0, 1).map(Score), st.just(FAILED), st.just(REFUSED))
NAMES = ("context_relevance", "faithfulness", "response_relevancy", "noncommittal", "context_precision")


@given(st.dictionaries(st.sampled_from(NAMES), outcome), st.permutations(NAMES), st.booleans())
def test_any_scores_have_one_cause_whatever_their_order(
    outcomes: dict[str, Outcome], order: list[str], nothing: bool
) -> None:
    one = diagnose(results(outcomes), Thresholds(), nothing_retrieved=nothing)
    other = results({name: outcomes[name] for name in order if name in outcomes})
    assert diagnose(other, Thresholds(), nothing_retrieved=nothing) is one
    assert (one is Cause.NOTHING_RETRIEVED) == nothing


def settled(
    judged: tuple[Result, ...] = (), local: tuple[Result, ...] = (), *, interaction: Interaction | None = None
) -> Settled:
    fate = Fate.QUEUED if judged else Fate.SAMPLED_OUT
    return Settled(Found(interaction or Interaction("i")), Decision(fate, 0.5, "rate"), local, judged)


def test_the_judge_comes_first_and_local_scores_where_it_can_not_tell() -> None:
    tell = Diagnoser(DiagnosisOptions())
    bad, good = {"context_relevance": HIGH, "faithfulness": LOW}, {"context_relevance": HIGH, "faithfulness": HIGH}
    both = tell(settled(results(bad), results(good, Kind.LOCAL)))
    assert both == Diagnosis(judged=Cause.UNSUPPORTED, local=Cause.FINE)
    assert (both.cause, both.kind) == (Cause.UNSUPPORTED, Kind.JUDGED)
    failing = tell(settled(results({"context_relevance": FAILED}), results(good, Kind.LOCAL)))
    assert (failing.judged, failing.cause, failing.kind) == (Cause.UNDETERMINED, Cause.FINE, Kind.LOCAL)
    unjudged = tell(settled((), results(good, Kind.LOCAL)))
    assert (unjudged.judged, unjudged.cause, unjudged.kind) == (None, Cause.FINE, Kind.LOCAL)
    assert tell(settled()) == Diagnosis(None, None)


def test_nothing_retrieved_is_known_from_the_interaction_and_not_from_damage() -> None:
    tell = Diagnoser(DiagnosisOptions())
    local = results({"context_relevance": LOW, "faithfulness": LOW}, Kind.LOCAL)
    empty = tell(settled(local=local, interaction=Interaction("i", contexts=())))
    assert empty.local is Cause.NOTHING_RETRIEVED
    damaged = Interaction("i", contexts=(), damage={Field.CONTEXTS: Damage.NO_TEXT})
    assert tell(settled(local=local, interaction=damaged)).local is Cause.RETRIEVAL_MISS
    assert tell(settled(local=local, interaction=Interaction("i"))).local is Cause.RETRIEVAL_MISS
