"""Response relevancy: how near the questions that the response would answer are to the one that was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from scorers.interaction import Field, Interaction
from scorers.judge.question import Answer, Embedding, Listing, Prompt, Question
from scorers.judged.arithmetic import cosine
from scorers.judged.base import REFUSAL, first_asked, info, missing, result, unanswered
from scorers.outcome import Failed, FailedReason, Result, Score

_VECTORS = "relevancy_vectors"


class ResponseRelevancy:
    """Score = mean cosine of `strictness` generated questions with the question, clamped to [0, 1]; raw kept.

    The questions are written from the response alone. A noncommittal response is not applicable, or 0 with
    `noncommittal="zero"`; the flag itself is the metric `noncommittal`. Needs an embeddings endpoint.
    """

    def __init__(self, *, strictness: int = 3, noncommittal: Literal["unscored", "zero"] = "unscored") -> None:
        loaded = Prompt.load("answered_questions")
        text = loaded.text.replace("{count}", str(strictness))
        self._prompt = Prompt(loaded.name, loaded.version, text)
        self._refusal = Prompt.load("noncommittal")
        self._strictness = strictness
        self._zero = noncommittal == "zero"
        self.info = info(
            "response_relevancy",
            "1",
            (Field.QUESTION, Field.RESPONSE),
            "mean cosine similarity of questions, -1 to 1",
            settings=f"noncommittal {noncommittal}",
        )
        self._asked = Listing(
            "answered_questions",
            self._prompt,
            frozenset({Field.RESPONSE}),
            limit=strictness,
            exact=True,
        )

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._prompt, self._refusal)

    def questions(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Question]:
        asked = first_asked(interaction, answers, self._refusal)
        if asked is None:
            return []
        written = answers.get(self._asked.key)
        if written is None:
            asked.append(self._asked)
        elif written.entries and _VECTORS not in answers:
            asked.append(Embedding(_VECTORS, (interaction.question or "", *written.entries)))
        return asked

    def results(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Result]:
        unscored = unanswered(interaction, answers)
        if unscored == REFUSAL:
            outcome = Score(0.0, raw=0.0, label="noncommittal") if self._zero else REFUSAL
            return [result(self.info, interaction, outcome, flags=("noncommittal",))]
        if unscored is not None:
            return [result(self.info, interaction, unscored)]
        written, embedded = answers.get(self._asked.key), answers.get(_VECTORS)
        if written is None or written.failure is not None:
            return [result(self.info, interaction, missing(written))]
        if not written.entries:
            nothing = Failed(FailedReason.BAD_REPLY, "the judge wrote no question for the response")
            return [result(self.info, interaction, nothing)]
        evidence: dict[str, object] = {"questions": list(written.entries)}
        if embedded is None or not embedded.vectors:
            return [result(self.info, interaction, missing(embedded), evidence=evidence)]
        asked, *generated = embedded.vectors
        cosines = [cosine(asked, vector) for vector in generated]
        known = [value for value in cosines if value is not None]
        if len(known) < len(cosines):
            nowhere = Failed(FailedReason.BAD_REPLY, "an embedding is the zero vector")
            return [result(self.info, interaction, nowhere, evidence=evidence)]
        mean = sum(known) / len(known)
        flags = ("fewer_questions",) if len(known) < self._strictness else ()
        score = Score(min(1.0, max(0.0, mean)), raw=mean)
        return [result(self.info, interaction, score, evidence={**evidence, "cosines": known}, flags=flags)]
