"""The metrics' arithmetic and rules, on given answers: the worked examples, and every way to be unscored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from scorers import catalog
from scorers.interaction import Damage, Field, Interaction
from scorers.judge.question import WHOLE, Answer, Labelled, Labelling
from scorers.judged.arithmetic import average_precision, cosine, f_beta, noise_sensitivity
from scorers.judged.faithfulness import CLAIMS, VERDICTS, Faithfulness
from scorers.judged.noncommittal import Noncommittal
from scorers.judged.passages import ContextPrecisionReference, PassageRelevance
from scorers.judged.ratings import ContextRelevance, Groundedness
from scorers.judged.reference import ContextRecall, FactualCorrectness, NoiseSensitivity
from scorers.judged.response_relevancy import ResponseRelevancy
from scorers.judged.rubric import Labels, Rubric, RubricOptions, presets
from scorers.needs import unmet
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason, Outcome, Score
from scorers.scorer import JudgedScorer
from scorers.testing import interaction

BROKEN = Answer(failure=Failed(FailedReason.BAD_REPLY, "x"))
MIXED = "I do not know the exact limit, but hotels in Munich cost about 150 euros per night."


def labels(*given: str) -> Answer:
    return Answer(labels={str(number): Labelled(label) for number, label in enumerate(given, start=1)})


def whole(label: str) -> Answer:
    return Answer(labels={WHOLE: Labelled(label)})


def value(outcome: Outcome) -> float:
    assert isinstance(outcome, Score)
    return outcome.value


def outcomes(scorer: JudgedScorer, given: Interaction, answers: Mapping[str, Answer]) -> list[Outcome]:
    return [one.outcome for one in scorer.results(given, answers)]


# --- worked examples: a Korean travel-expense assistant ------------------------------------------------------
KOREAN = interaction(
    "출장 숙박비 한도는 얼마인가요?",
    ["구내식당은 11시 30분에 엽니다.", "숙박비 한도는 1박당 15만 원입니다."],
    "숙박비 한도는 1박당 15만 원입니다. 조식이 포함됩니다.",
    reference="숙박비 한도는 1박당 15만 원입니다. 조식은 제외됩니다.",
)


@pytest.mark.parametrize(("given", "precision"), [(("no", "yes"), 0.5), (("yes", "no"), 1.0), (("no", "no"), 0.0)])
def test_context_precision(given: tuple[str, ...], precision: float) -> None:
    (outcome,) = outcomes(ContextPrecisionReference(), KOREAN, {"passage_useful_reference": labels(*given)})
    assert value(outcome) == precision


def test_passage_relevance_gives_three_metrics() -> None:
    answers = {
        "passage_relevance": labels("irrelevant", "relevant"),
        "passage_useful_response": labels("no", "yes"),
    }
    results = PassageRelevance().results(KOREAN, answers)
    assert {one.scorer: value(one.outcome) for one in results} == {
        "passage_relevance": 0.5,
        "precision_at_k": 0.5,
        "context_precision": 0.5,
    }


def test_context_recall() -> None:
    answers = {"reference_statements:high:high": Answer(entries=("a", "b")), "attributed": labels("yes", "no")}
    assert value(*outcomes(ContextRecall(), KOREAN, answers)) == 0.5


def test_faithfulness() -> None:
    answers = {CLAIMS: Answer(entries=("a", "b")), VERDICTS: labels("supported", "unsupported")}
    (result,) = Faithfulness().results(KOREAN, answers)
    assert value(result.outcome) == 0.5
    assert [verdict.label for verdict in result.verdicts] == ["supported", "unsupported"]


def test_response_relevancy_of_three_cosines() -> None:
    vectors = [(1.0, 0.0), *((c, (1 - c * c) ** 0.5) for c in (0.95, 0.90, 0.85))]
    answers = {
        "answered_questions": Answer(entries=("a", "b", "c")),
        "relevancy_vectors": Answer(vectors=tuple(vectors)),
    }
    assert value(*outcomes(ResponseRelevancy(), KOREAN, answers)) == pytest.approx(0.90, abs=1e-12)


def test_factual_correctness() -> None:
    answers = {
        "response_statements:low:low": Answer(entries=("a", "b")),
        "response_statements:low:low:by_reference": labels("yes", "no"),
        "reference_statements:low:low": Answer(entries=("a", "c")),
        "reference_statements:low:low:by_response": labels("yes", "no"),
    }
    assert value(*outcomes(FactualCorrectness(), KOREAN, answers)) == 0.5
    assert value(*outcomes(FactualCorrectness(mode="precision"), KOREAN, answers)) == 0.5
    assert value(*outcomes(FactualCorrectness(mode="recall"), KOREAN, answers)) == 0.5


def test_noise_sensitivity() -> None:
    answers = {
        CLAIMS: Answer(entries=("right", "copied from the irrelevant passage")),
        "reference_statements:high:high": Answer(entries=("right",)),
        "claims_by_reference": labels("yes", "no"),
        "response_by_passage:1": labels("no", "yes"),
        "response_by_passage:2": labels("yes", "no"),
        "reference_by_passage:1": labels("no"),
        "reference_by_passage:2": labels("yes"),
    }
    results = NoiseSensitivity().results(KOREAN, answers)
    assert {one.scorer: value(one.outcome) for one in results} == {
        "noise_sensitivity_relevant": 0.0,
        "noise_sensitivity_irrelevant": 0.5,
    }


def test_noise_sensitivity_asks_at_most_2n_plus_3_questions() -> None:
    passages = [f"passage number {number}" for number in range(7)]
    given = interaction(contexts=passages, reference="r")
    scorer = NoiseSensitivity()
    first = scorer.questions(given, {})
    listed = {question.key: Answer(entries=("a", "b")) for question in first}
    assert len(first) + len(scorer.questions(given, listed)) == 2 * 7 + 3


# --- pure functions ------------------------------------------------------------------------------------------
def test_arithmetic_edges() -> None:
    assert average_precision([]) == 0.0
    assert average_precision([True, False, True]) == pytest.approx((1 + 2 / 3) / 2)
    assert cosine((0.0, 0.0), (1.0, 0.0)) is None
    assert cosine((1.0, 0.0), (-2.0, 0.0)) == -1.0
    assert cosine((1e200, 1e200), (1e-200, 0.0)) == pytest.approx(0.5**0.5)  # squares of these have no number
    assert cosine((1e200,), (1e200,)) is None
    assert f_beta(precision=0.0, recall=0.0, beta=1.0) == 0.0
    assert f_beta(precision=0.5, recall=1.0, beta=2.0) == pytest.approx(5 * 0.5 / 3)
    both = noise_sensitivity(
        wrong=[True], supports_response=[[True], [True]], supports_reference=[[True], [False]]
    )
    assert both == (1.0, 0.0)


# --- refusals, nothing found, no claims ----------------------------------------------------------------------
REFUSING = interaction(response="Sorry, I could not find any information about that.")
EMPTY = interaction(contexts=[])


@pytest.mark.parametrize("scorer", [Faithfulness(), Groundedness(), ResponseRelevancy()])
def test_a_refusal_is_not_applicable_and_costs_nothing(scorer: JudgedScorer) -> None:
    assert scorer.questions(REFUSING, {}) == []
    assert outcomes(scorer, REFUSING, {}) == [NotApplicable(NotApplicableReason.REFUSAL)]


def test_ragas_rule_for_refusals_can_be_chosen() -> None:
    assert value(*outcomes(ResponseRelevancy(noncommittal="zero"), REFUSING, {})) == 0.0


@pytest.mark.parametrize("scorer", [Faithfulness(), Groundedness(), ContextRelevance(), ContextRecall()])
def test_nothing_found_is_zero_and_decided_without_a_judge(scorer: JudgedScorer) -> None:
    given = interaction(contexts=["  "], reference="r")
    for nothing in (EMPTY, given):
        assert scorer.questions(nothing, {}) == []
        assert value(*outcomes(scorer, nothing, {})) == 0.0


def test_nothing_found_and_a_doubtful_refusal_asks_only_that() -> None:
    given = interaction(contexts=[], response=MIXED)
    for scorer in (Faithfulness(), Groundedness()):
        assert [question.key for question in scorer.questions(given, {})] == ["noncommittal"]
        assert value(*outcomes(scorer, given, {"noncommittal": whole("no")})) == 0.0
        assert outcomes(scorer, given, {"noncommittal": whole("yes")}) == [
            NotApplicable(NotApplicableReason.REFUSAL)
        ]


def test_no_claims_is_not_one() -> None:
    answers = {CLAIMS: Answer(entries=())}
    assert outcomes(Faithfulness(), interaction(), answers) == [NotApplicable(NotApplicableReason.NO_CLAIMS)]


def test_a_missing_verdict_is_unscored_and_keeps_its_evidence() -> None:
    broken = Answer(labels=labels("supported").labels, failure=BROKEN.failure)
    (result,) = Faithfulness().results(interaction(), {CLAIMS: Answer(entries=("a", "b")), VERDICTS: broken})
    assert isinstance(result.outcome, Failed)
    assert [verdict.claim for verdict in result.verdicts] == ["a"]


def test_passages_that_do_not_exist_are_not_cited() -> None:
    cited = Answer(labels={"1": Labelled("supported", passages=(0, 1, 9))})
    (result,) = Faithfulness().results(interaction(), {CLAIMS: Answer(entries=("a",)), VERDICTS: cited})
    assert result.verdicts[0].passages == (1,)


def test_contexts_that_repeat_the_question_are_irrelevant() -> None:
    given = interaction("What is the hotel limit?", ["hotel limit"])
    assert ContextRelevance().questions(given, {}) == []
    assert value(*outcomes(ContextRelevance(), given, {})) == 0.0


def test_one_lost_rating_leaves_the_other_and_is_flagged() -> None:
    answers = {"context_relevance_0": whole("1"), "context_relevance_1": BROKEN}
    (result,) = ContextRelevance().results(interaction(), answers)
    assert value(result.outcome) == 0.5
    assert result.flags == ("one_rating",)
    both = {"context_relevance_0": BROKEN, "context_relevance_1": BROKEN}
    assert outcomes(ContextRelevance(), interaction(), both) == [BROKEN.failure]


def test_ratings_are_averaged_and_never_share_a_call() -> None:
    answers = {"groundedness_0": whole("2"), "groundedness_1": whole("1")}
    assert value(*outcomes(Groundedness(), interaction(), answers)) == 0.75
    sittings = [q.sitting for q in Groundedness().questions(interaction(), {}) if isinstance(q, Labelling)]
    assert sittings == [0, 1]


def test_noncommittal_by_rule_and_by_judge() -> None:
    (ruled,) = Noncommittal().results(REFUSING, {})
    assert value(ruled.outcome) == 1.0
    assert ruled.evidence["by"] == "rule"
    given = interaction(response=MIXED)
    assert [question.key for question in Noncommittal().questions(given, {})] == ["noncommittal"]
    (judged,) = Noncommittal().results(given, {"noncommittal": whole("no")})
    assert value(judged.outcome) == 0.0
    assert judged.evidence["by"] == "judge"
    assert outcomes(Noncommittal(), given, {"noncommittal": BROKEN}) == [BROKEN.failure]


def test_response_relevancy_edges() -> None:
    scorer = ResponseRelevancy()
    asked = {"answered_questions": Answer(entries=("a", "b"))}
    negative = {**asked, "relevancy_vectors": Answer(vectors=((1.0, 0.0), (-1.0, 0.0), (-1.0, 0.0)))}
    (result,) = scorer.results(interaction(), negative)
    assert result.outcome == Score(0.0, raw=-1.0)
    assert result.flags == ("fewer_questions",)
    zero = {**asked, "relevancy_vectors": Answer(vectors=((1.0, 0.0), (0.0, 0.0), (1.0, 0.0)))}
    for answers in (zero, asked, {}, {"answered_questions": Answer()}, {"answered_questions": BROKEN}):
        (outcome,) = outcomes(scorer, interaction(), answers)
        assert isinstance(outcome, Failed)


def test_no_common_claims_is_zero_and_no_claims_is_not() -> None:
    answers = {
        "response_statements:low:low": Answer(entries=("a",)),
        "response_statements:low:low:by_reference": labels("no"),
        "reference_statements:low:low": Answer(entries=("b",)),
        "reference_statements:low:low:by_response": labels("no"),
    }
    assert value(*outcomes(FactualCorrectness(), KOREAN, answers)) == 0.0
    nothing = {**answers, "reference_statements:low:low": Answer(entries=())}
    assert outcomes(FactualCorrectness(), KOREAN, nothing) == [NotApplicable(NotApplicableReason.NO_CLAIMS)]


def test_context_precision_needs_a_response_and_passage_relevance_does_not() -> None:
    given = interaction(response=None)
    answers = {"passage_relevance": labels("relevant")}
    by_name = {one.scorer: one.outcome for one in PassageRelevance().results(given, answers)}
    assert by_name["precision_at_k"] == Score(1.0, raw=1.0)
    assert by_name["context_precision"] == NotApplicable(NotApplicableReason.NO_RESPONSE)


# --- rubrics -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "label", "score"),
    [
        ("support", "fully", 1.0),
        ("support", "partially", 0.5),
        ("support", "no", 0.0),
        ("usefulness", "5", 1.0),
        ("usefulness", "2", 0.25),
        ("usefulness", "1", 0.0),
        ("hallucination_grade", "yes", 1.0),
        ("answer_grade", "no", 0.0),
    ],
)
def test_presets(name: str, label: str, score: float) -> None:
    scorer = Rubric(presets()[name])
    assert value(*outcomes(scorer, interaction(), {f"rubric:{name}": whole(label)})) == score


def test_usefulness_keeps_the_raw_rating() -> None:
    (outcome,) = outcomes(Rubric(presets()["usefulness"]), interaction(), {"rubric:usefulness": whole("4")})
    assert outcome == Score(0.75, raw=4.0, label="4")


def test_retrieval_grade_is_the_share_of_passages() -> None:
    scorer = Rubric(presets()["retrieval_grade"])
    assert value(*outcomes(scorer, KOREAN, {"rubric:retrieval_grade": labels("no", "yes")})) == 0.5


def test_retrieval_need_gives_shares_of_labels_and_no_score() -> None:
    results = Rubric(presets()["retrieval_need"]).results(interaction(), {"rubric:retrieval_need": whole("no")})
    assert {one.scorer: value(one.outcome) for one in results} == {
        "retrieval_need_yes": 0.0,
        "retrieval_need_no": 1.0,
        "retrieval_need_continue": 0.0,
    }


def test_grounding_presets_decide_nothing_found_and_refusals_themselves() -> None:
    for name in ("support", "hallucination_grade"):
        scorer = Rubric(presets()[name])
        assert scorer.questions(EMPTY, {}) == []
        assert value(*outcomes(scorer, EMPTY, {})) == 0.0
        assert outcomes(scorer, REFUSING, {}) == [NotApplicable(NotApplicableReason.REFUSAL)]


def test_a_rubric_says_what_is_wrong_with_it() -> None:
    def options(**changes: object) -> RubricOptions:
        text = "Is the tone of the response polite?"
        return RubricOptions.model_validate({"name": "tone", "text": text, "needs": ["response"], **changes})

    assert options(answer={"kind": "scale", "points": 3}).values == {"3": 1.0, "2": 0.5, "1": 0.0}
    assert isinstance(options(answer={"kind": "labels", "values": {"아주 좋음": 1, "b-2": 0}}).answer, Labels)
    for wrong in (
        {"answer": {"kind": "labels", "values": {"a": 1, "b": None}}},
        {"answer": {"kind": "labels", "values": {"a": 2, "b": 0}}},
        {"answer": {"kind": "labels", "values": {"good": 1, "Good": 0}}},
        {"answer": {"kind": "labels", "values": {"a|b": 1, "c": 0}}},
        {"answer": {"kind": "labels", "values": {'"a"': 1, "c": 0}}},
        {"answer": {"kind": "labels", "values": {"": 1, "c": 0}}},
        {"answer": {"kind": "labels", "values": {"a\n": 1, "c": 0}}},
        {"answer": {"kind": "labels", "values": {"very good": None, "bad": None}}},
        {"per": "passage"},
        {"needs": ["question"], "on_refusal": "unscored"},
        {"name": "Bad Name"},
    ):
        with pytest.raises(ValueError, match=r"rubric|Rubric|validation error"):
            options(**wrong)


def test_an_optional_part_is_shown_only_where_it_is_known_and_whole() -> None:
    rubric = Rubric(
        RubricOptions(
            name="tone", text="Is the response polite?", needs=(Field.RESPONSE,), optional=(Field.CONTEXTS,)
        )
    )
    given = interaction()
    for one, shown in (
        (given, True),
        (replace(given, contexts=()), True),
        (replace(given, contexts=None), False),
        (replace(given, damage={Field.CONTEXTS: Damage.TRUNCATED}), False),
    ):
        (question,) = rubric.questions(one, {})
        assert isinstance(question, Labelling)
        assert (Field.CONTEXTS in question.needs) == shown


# --- what a scorer needs -------------------------------------------------------------------------------------
def test_unknown_is_not_applicable_and_damaged_is_failed() -> None:
    needs = Faithfulness().info.needs
    assert unmet(needs, interaction()) is None
    assert unmet(needs, interaction(contexts=None)) == NotApplicable(NotApplicableReason.NO_CONTEXTS)
    assert unmet(needs, interaction(" ")) == NotApplicable(NotApplicableReason.NO_QUESTION)
    assert unmet(needs, interaction(response=None)) == NotApplicable(NotApplicableReason.NO_RESPONSE)
    assert unmet(needs, interaction(contexts=[])) is None
    hidden = Interaction("i", "q", None, "r", damage={Field.CONTEXTS: Damage.HIDDEN})
    assert isinstance(reason := unmet(needs, hidden), Failed)
    assert reason.reason is FailedReason.INCOMPLETE
    assert unmet({Field.QUESTION, Field.RESPONSE}, hidden) is None


@pytest.mark.parametrize("name", catalog.judged_names())
def test_every_scorer_answers_for_all_its_metrics_whatever_is_missing(name: str) -> None:
    (scorer,) = catalog.judged([name])
    full = interaction(reference="The limit is 120 euros.")
    asked = scorer.questions(full, {})
    nothing = {question.key: BROKEN for question in asked}
    assert scorer.questions(full, nothing) == []
    for answers in ({}, nothing):
        results = scorer.results(full, answers)
        assert [one.scorer for one in results] == list(scorer.info.gives)
        if asked:
            assert all(isinstance(one.outcome, Failed) for one in results)
