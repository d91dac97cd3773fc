"""Parity with Ragas 0.4: equal replies give equal numbers, and the differences that we chose are shown.

Runs where the `ragas` package is installed (extra `parity`); it is heavy and of no use to users.
"""

from __future__ import annotations

import asyncio
import math
import os
import warnings
from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorers.judge.question import WHOLE, Answer, Labelled
from scorers.judged.faithfulness import CLAIMS, VERDICTS, Faithfulness
from scorers.judged.passages import ContextPrecisionReference, PassageRelevance
from scorers.judged.ratings import ContextRelevance, Groundedness
from scorers.judged.reference import ContextRecall, FactualCorrectness, NoiseSensitivity
from scorers.judged.response_relevancy import ResponseRelevancy
from scorers.outcome import Failed, FailedReason, NotApplicable, Outcome, Score
from scorers.scorer import JudgedScorer
from scorers.testing import interaction

os.environ["RAGAS_DO_NOT_TRACK"] = "true"  # it would post telemetry on each call
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("ragas", reason="ragas is not installed (extra parity)")
    from ragas.embeddings.base import BaseRagasEmbedding
    from ragas.llms.base import InstructorBaseRagasLLM
    from ragas.metrics import collections as theirs

pytestmark = pytest.mark.filterwarnings("ignore")
BOOLS = st.lists(st.booleans(), min_size=1, max_size=6)
RATINGS = st.sampled_from((0, 1, 2))
TEXTS = {
    "question": "What is the limit?",
    "response": "The limit is 90 euros.",
    "reference": "The limit is 120 euros.",
}


class Scripted(InstructorBaseRagasLLM):  # type: ignore[misc]  # ragas is untyped where it is not installed
    """Gives the scripted replies in order, whatever is asked."""

    def __init__(self, *replies: dict[str, Any] | Exception) -> None:
        self._replies = deque(replies)

    def generate(self, prompt: str, response_model: Any) -> Any:
        raise NotImplementedError

    async def agenerate(self, prompt: str, response_model: Any) -> Any:
        reply = self._replies.popleft()
        if isinstance(reply, Exception):
            raise reply
        return response_model(**reply)


class Vectors(BaseRagasEmbedding):  # type: ignore[misc]  # likewise
    """Gives the scripted vectors in order."""

    def __init__(self, vectors: Sequence[Sequence[float]]) -> None:
        self._vectors = deque(vectors)

    def embed_text(self, text: str, **kwargs: Any) -> list[float]:
        return list(self._vectors.popleft())

    async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
        return self.embed_text(text)


def ragas(metric: Any, **texts: Any) -> float:
    return float(asyncio.run(metric.ascore(**texts)).value)


def ours(
    scorer: JudgedScorer, answers: dict[str, Answer], contexts: Sequence[str] = ("passage",)
) -> list[Outcome]:
    exchange = interaction(TEXTS["question"], contexts, TEXTS["response"], reference=TEXTS["reference"])
    return [one.outcome for one in scorer.results(exchange, answers)]


def value(outcome: Outcome) -> float:
    assert isinstance(outcome, Score), outcome
    return outcome.value


def names(count: int, prefix: str = "s") -> tuple[str, ...]:
    return tuple(f"{prefix}{number}" for number in range(count))


def labels(truths: Sequence[bool], yes: str = "yes", no: str = "no") -> Answer:
    return Answer(labels={str(i): Labelled(yes if truth else no) for i, truth in enumerate(truths, start=1)})


def statements(truths: Sequence[bool]) -> dict[str, Any]:
    return {
        "statements": [
            {"statement": f"s{i}", "reason": "r", "verdict": int(truth)} for i, truth in enumerate(truths)
        ]
    }


@settings(deadline=None)
@given(BOOLS)
def test_faithfulness(truths: list[bool]) -> None:
    metric = theirs.Faithfulness(llm=Scripted({"statements": list(names(len(truths)))}, statements(truths)))
    expected = ragas(metric, user_input="q", response="r", retrieved_contexts=["c"])
    answers = {CLAIMS: Answer(entries=names(len(truths))), VERDICTS: labels(truths, "supported", "unsupported")}
    assert value(*ours(Faithfulness(), answers)) == pytest.approx(expected, abs=1e-9)


@settings(deadline=None)
@given(st.integers(1, 5), st.data())
def test_response_relevancy(strictness: int, data: st.DataObject) -> None:
    vector = st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda v: math.hypot(*v) > 0.01)
    vectors = data.draw(st.lists(vector, min_size=strictness + 1, max_size=strictness + 1))
    replies = [{"question": name, "noncommittal": 0} for name in names(strictness)]
    metric = theirs.AnswerRelevancy(llm=Scripted(*replies), embeddings=Vectors(vectors), strictness=strictness)
    expected = ragas(metric, user_input="q", response="r")
    answers = {
        "answered_questions": Answer(entries=names(strictness)),
        "relevancy_vectors": Answer(vectors=tuple(map(tuple, vectors))),
    }
    (outcome,) = ours(ResponseRelevancy(strictness=strictness), answers)
    assert isinstance(outcome, Score)
    assert outcome.raw == pytest.approx(expected, abs=1e-9)
    assert outcome.value == pytest.approx(min(1.0, max(0.0, expected)), abs=1e-9)


@settings(deadline=None)
@given(RATINGS, RATINGS)
def test_two_ratings(first: int, second: int) -> None:
    for metric, scorer, name, texts in (
        (theirs.ContextRelevance, ContextRelevance(), "context_relevance", {"user_input": "q"}),
        (theirs.ResponseGroundedness, Groundedness(), "groundedness", {"response": "r"}),
    ):
        made = metric(llm=Scripted({"rating": first}, {"rating": second}))
        expected = ragas(made, retrieved_contexts=["c"], **texts)
        answers = {f"{name}_{i}": Answer(labels={WHOLE: Labelled(str(x))}) for i, x in enumerate((first, second))}
        assert value(*ours(scorer, answers)) == pytest.approx(expected, abs=1e-9)


def test_one_lost_rating_and_contexts_inside_the_question() -> None:
    lost = theirs.ContextRelevance(llm=Scripted({"rating": 1}, *[ValueError()] * 5))
    answers = {"context_relevance_0": Answer(labels={WHOLE: Labelled("1")})}
    assert value(*ours(ContextRelevance(), answers)) == ragas(lost, user_input="q", retrieved_contexts=["c"])
    inside = theirs.ContextRelevance(llm=Scripted())
    texts = {"user_input": TEXTS["question"], "retrieved_contexts": ["the limit"]}
    assert value(*ours(ContextRelevance(), {}, ["the limit"])) == ragas(inside, **texts)


@settings(deadline=None)
@given(BOOLS)
def test_context_precision(truths: list[bool]) -> None:
    replies = [{"reason": "r", "verdict": int(truth)} for truth in truths]
    contexts = list(names(len(truths)))
    with_reference = theirs.ContextPrecisionWithReference(llm=Scripted(*replies))
    expected = ragas(with_reference, user_input="q", reference="r", retrieved_contexts=contexts)
    answers = {"passage_useful_reference": labels(truths)}
    assert value(*ours(ContextPrecisionReference(), answers, contexts)) == pytest.approx(expected, abs=1e-9)
    without = theirs.ContextPrecisionWithoutReference(llm=Scripted(*replies))
    expected = ragas(without, user_input="q", response="r", retrieved_contexts=contexts)
    outcome = ours(PassageRelevance(), {"passage_useful_response": labels(truths)}, contexts)[2]
    assert value(outcome) == pytest.approx(expected, abs=1e-9)


@settings(deadline=None)
@given(BOOLS)
def test_context_recall(truths: list[bool]) -> None:
    rows = [{"statement": f"s{i}", "reason": "r", "attributed": int(truth)} for i, truth in enumerate(truths)]
    metric = theirs.ContextRecall(llm=Scripted({"classifications": rows}))
    expected = ragas(metric, user_input="q", retrieved_contexts=["c"], reference="r")
    answers = {"reference_statements:high:high": Answer(entries=names(len(truths))), "attributed": labels(truths)}
    assert value(*ours(ContextRecall(), answers)) == pytest.approx(expected, abs=1e-9)


@settings(deadline=None)
@given(BOOLS, BOOLS, st.sampled_from(("precision", "recall", "f1")), st.sampled_from((0.5, 1.0, 2.0)))
def test_factual_correctness(forward: list[bool], backward: list[bool], mode: Any, beta: float) -> None:
    replies = [{"claims": list(names(len(forward)))}, statements(forward)]
    replies += [{"claims": list(names(len(backward)))}, statements(backward)]
    metric = theirs.FactualCorrectness(llm=Scripted(*replies), mode=mode, beta=beta)
    expected = ragas(metric, response="r", reference="x")
    answers = {
        "response_statements:low:low": Answer(entries=names(len(forward))),
        "response_statements:low:low:by_reference": labels(forward),
        "reference_statements:low:low": Answer(entries=names(len(backward))),
        "reference_statements:low:low:by_response": labels(backward),
    }
    mine = value(*ours(FactualCorrectness(mode=mode, beta=beta), answers))
    assert mine == pytest.approx(expected, abs=0.005 + 1e-7)  # Ragas rounds to two digits


@settings(deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(1, 3), st.integers(1, 4))
def test_noise_sensitivity(data: st.DataObject, claims: int, facts: int, passages: int) -> None:
    def row(width: int) -> list[bool]:
        return data.draw(st.lists(st.booleans(), min_size=width, max_size=width))

    pairs = [(row(facts), row(claims)) for _ in range(passages)]
    right = row(claims)
    replies = [{"statements": list(names(facts, "f"))}, {"statements": list(names(claims))}]
    replies += [statements(truths) for pair in pairs for truths in pair]
    replies.append(statements(right))
    contexts = list(names(passages, "c"))
    expected = [
        ragas(
            theirs.NoiseSensitivity(llm=Scripted(*replies), mode=mode),
            user_input="q",
            response="r",
            reference="x",
            retrieved_contexts=contexts,
        )
        for mode in ("relevant", "irrelevant")
    ]
    answers = {
        CLAIMS: Answer(entries=names(claims)),
        "reference_statements:high:high": Answer(entries=names(facts, "f")),
        "claims_by_reference": labels(right),
    }
    for rank, (of_reference, of_response) in enumerate(pairs, start=1):
        answers[f"reference_by_passage:{rank}"] = labels(of_reference)
        answers[f"response_by_passage:{rank}"] = labels(of_response)
    mine = [value(outcome) for outcome in ours(NoiseSensitivity(), answers, contexts)]
    assert mine == pytest.approx(expected, abs=1e-9)


# --- where we differ on purpose ------------------------------------------------------------------------------
def test_a_forgotten_verdict_changes_their_score_and_not_ours() -> None:
    metric = theirs.Faithfulness(llm=Scripted({"statements": ["a", "b"]}, statements([True])))
    assert ragas(metric, user_input="q", response="r", retrieved_contexts=["c"]) == 1.0
    part = Answer(labels=labels([True], "supported").labels, failure=Failed(FailedReason.BAD_REPLY))
    (outcome,) = ours(Faithfulness(), {CLAIMS: Answer(entries=("a", "b")), VERDICTS: part})
    assert isinstance(outcome, Failed)


def test_no_claims_is_nan_there_and_a_reason_here() -> None:
    metric = theirs.Faithfulness(llm=Scripted({"statements": []}))
    assert math.isnan(ragas(metric, user_input="q", response="r", retrieved_contexts=["c"]))
    assert isinstance(ours(Faithfulness(), {CLAIMS: Answer()})[0], NotApplicable)


def test_no_passages_is_an_error_there_and_zero_here() -> None:
    with pytest.raises(ValueError, match="retrieved_contexts"):
        ragas(theirs.Faithfulness(llm=Scripted()), user_input="q", response="r", retrieved_contexts=[])
    assert value(*ours(Faithfulness(), {}, [])) == 0.0


def test_a_noncommittal_response_is_zero_there_and_a_choice_here() -> None:
    replies = [{"question": "a", "noncommittal": 1}]
    metric = theirs.AnswerRelevancy(llm=Scripted(*replies), embeddings=Vectors([[1.0], [1.0]]), strictness=1)
    assert ragas(metric, user_input="q", response="I do not know.") == 0.0
    refusing = interaction(response="I do not know.")
    assert isinstance(ResponseRelevancy().results(refusing, {})[0].outcome, NotApplicable)
    assert value(ResponseRelevancy(noncommittal="zero").results(refusing, {})[0].outcome) == 0.0


def test_no_question_is_zero_there_and_failed_here() -> None:
    metric = theirs.AnswerRelevancy(
        llm=Scripted({"question": "", "noncommittal": 0}), embeddings=Vectors([]), strictness=1
    )
    assert ragas(metric, user_input="q", response="r") == 0.0
    assert isinstance(ours(ResponseRelevancy(), {"answered_questions": Answer()})[0], Failed)


def test_no_rating_is_nan_there_and_failed_here() -> None:
    metric = theirs.ContextRelevance(llm=Scripted(*[ValueError()] * 10))
    assert math.isnan(ragas(metric, user_input="q", retrieved_contexts=["c"]))
    assert isinstance(ours(ContextRelevance(), {})[0], Failed)


def test_no_claims_of_a_reference_is_zero_there_and_a_reason_here() -> None:
    replies = [{"claims": ["a"]}, statements([False]), {"claims": []}]
    assert ragas(theirs.FactualCorrectness(llm=Scripted(*replies)), response="r", reference="x") == 0.0
    answers = {
        "response_statements:low:low": Answer(entries=("a",)),
        "response_statements:low:low:by_reference": labels([False]),
        "reference_statements:low:low": Answer(),
    }
    assert isinstance(ours(FactualCorrectness(), answers)[0], NotApplicable)
