"""Context relevance and groundedness: two independent ratings 0, 1 or 2, each halved, then averaged."""

from __future__ import annotations

from collections.abc import Mapping

from scorers.interaction import Field, Interaction
from scorers.judge.question import Answer, Labelled, Labelling, Prompt, Question
from scorers.judged.base import first_asked, flags_of, has_contexts, info, missing, result, unanswered
from scorers.outcome import Result, Score
from scorers.scorer import ScorerInfo

_LABELS = ("2", "1", "0")
"""In order of precedence over windows: the best window counts, so a windowed rating is a lower bound."""


class _TwoRatings:
    """Asks the same in two wordings, in two calls that do not see each other."""

    def __init__(self, name: str, needs: frozenset[Field]) -> None:
        self.prompts = (Prompt.load(f"{name}_a"), Prompt.load(f"{name}_b"))
        self._questions = tuple(
            Labelling(f"{name}_{index}", prompt, needs, _LABELS, sitting=index)
            for index, prompt in enumerate(self.prompts)
        )

    def questions(self, answers: Mapping[str, Answer]) -> list[Question]:
        return [question for question in self._questions if question.key not in answers]

    def result(self, scorer: ScorerInfo, interaction: Interaction, answers: Mapping[str, Answer]) -> Result:
        given: dict[str, Labelled] = {}
        for question in self._questions:
            answer = answers.get(question.key)
            if answer is not None and answer.label is not None:
                given[question.key] = answer.label
        evidence = {
            "ratings": [
                {"rating": int(one.label), "reason": one.reason, "question": key} for key, one in given.items()
            ]
        }
        if not given:
            failures = [missing(answers.get(question.key)) for question in self._questions]
            return result(scorer, interaction, failures[0])
        mean = sum(int(one.label) / 2 for one in given.values()) / len(given)
        flags = (*flags_of(given), *(("one_rating",) if len(given) < len(self._questions) else ()))
        return result(scorer, interaction, Score(mean, raw=mean * 2), evidence=evidence, flags=flags)


class ContextRelevance:
    """Whether the contexts hold what is needed to answer.

    One rating lost: the other stands, flagged `one_rating`. Contexts that are empty, or that only repeat a part
    of the question: 0, decided here.
    """

    info = info("context_relevance", "1", (Field.QUESTION, Field.CONTEXTS), "mean of two ratings, 0 to 2")

    def __init__(self) -> None:
        self._ratings = _TwoRatings("context_relevance", frozenset({Field.QUESTION, Field.CONTEXTS}))

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return self._ratings.prompts

    def questions(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Question]:
        return [] if _decided(interaction) else self._ratings.questions(answers)

    def results(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Result]:
        if flag := _decided(interaction):
            return [result(self.info, interaction, Score(0.0, raw=0.0), flags=(flag,))]
        return [self._ratings.result(self.info, interaction, answers)]


def _decided(interaction: Interaction) -> str:
    if not has_contexts(interaction):
        return "no_contexts_found"
    joined = "\n".join(passage.text for passage in interaction.contexts or ()).strip()
    return "contexts_in_question" if joined in (interaction.question or "") else ""


class Groundedness:
    """How far the contexts support the response as a whole.

    No contexts under a response that is not a refusal: 0, decided here, never by the judge. A refusal is not
    applicable. One rating lost: the other stands, flagged `one_rating`.
    """

    info = info("groundedness", "1", (Field.RESPONSE, Field.CONTEXTS), "mean of two ratings, 0 to 2")

    def __init__(self) -> None:
        self._ratings = _TwoRatings("groundedness", frozenset({Field.RESPONSE, Field.CONTEXTS}))
        self._refusal = Prompt.load("noncommittal")

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (*self._ratings.prompts, self._refusal)

    def questions(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Question]:
        asked = first_asked(interaction, answers, self._refusal)
        if asked is None:
            return []
        return asked + (self._ratings.questions(answers) if has_contexts(interaction) else [])

    def results(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Result]:
        unscored = unanswered(interaction, answers)
        if unscored is not None:
            return [result(self.info, interaction, unscored)]
        if not has_contexts(interaction):
            return [result(self.info, interaction, Score(0.0, raw=0.0), flags=("no_contexts_found",))]
        return [self._ratings.result(self.info, interaction, answers)]
