"""Noncommittal: whether the response evades; its mean is the refusal rate."""

from __future__ import annotations

from collections.abc import Mapping

from scorers.interaction import Field, Interaction
from scorers.judge.question import Answer, Prompt, Question
from scorers.judged.base import by_rule, info, missing, refusal_question, refuses, result
from scorers.outcome import Failed, Result, Score
from scorers.scorer import Direction


class Noncommittal:
    """1 for a response that refuses, evades or does not know, else 0. The rules decide; the judge where unsure."""

    info = info(
        "noncommittal", "1", (Field.RESPONSE,), "1 noncommittal, 0 an answer", direction=Direction.LOWER_IS_BETTER
    )

    def __init__(self) -> None:
        self._refusal = Prompt.load("noncommittal")

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._refusal,)

    def questions(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Question]:
        return [refusal_question(self._refusal)] if refuses(interaction, answers) is None else []

    def results(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Result]:
        refusing = refuses(interaction, answers)
        if refusing is None or isinstance(refusing, Failed):
            return [result(self.info, interaction, refusing or missing(None))]
        rule = by_rule(interaction, answers)
        by = "judge" if rule.label == "unsure" else "rule"
        value = 1.0 if refusing == "yes" else 0.0
        evidence = {"by": by, "rule": rule.reason}
        return [result(self.info, interaction, Score(value, raw=value, label=refusing), evidence=evidence)]
