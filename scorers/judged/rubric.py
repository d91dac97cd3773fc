"""Rubrics: a user's own question in YAML, answered by a label; and the presets that ship with groundwatch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from scorers import interaction as parts
from scorers.interaction import Interaction
from scorers.judge.question import Answer, Labelled, Labelling, Prompt, Question
from scorers.judged.base import first_asked, flags_of, has_contexts, info, missing, result, unanswered
from scorers.judged.passages import passage_items
from scorers.needs import unmet
from scorers.outcome import NotApplicable, NotApplicableReason, Outcome, Result, Score
from scorers.scorer import Direction

_NAME = r"^[a-z][a-z0-9_]{0,40}$"
_LABEL = re.compile(r"""[^\s|"'\\](?:[^|"'\\]{0,38}[^\s|"'\\])?""")
"""What can stand in the form that the judge is shown, `"label": "one|other"`, and be told apart in its reply."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class YesNo(_Model):
    """yes = 1, no = 0."""

    kind: Literal["yes_no"] = "yes_no"


class Labels(_Model):
    """Own labels, each with its score in [0, 1]; without scores the shares of the labels are the metrics."""

    kind: Literal["labels"] = "labels"
    values: Mapping[str, float | None] = Field(min_length=2, max_length=10, description="Score by label, or null.")

    @model_validator(mode="after")
    def _all_or_none(self) -> Self:
        given = [value for value in self.values.values() if value is not None]
        if given and len(given) < len(self.values):
            raise ValueError("give a value to every label, or to none")
        if any(not 0 <= value <= 1 for value in given):
            raise ValueError("values of labels lie in 0 to 1")
        for label in self.values:
            if not _LABEL.fullmatch(label) or not label.isprintable():
                raise ValueError(
                    f"label {label!r}: take 1 to 40 characters without | and quotes, no blanks around"
                )
            if not given and not re.fullmatch(r"[a-z0-9_]+", label):
                raise ValueError(f"label {label!r} becomes a metric's name: take small letters, digits and _")
        if len({label.casefold() for label in self.values}) < len(self.values):
            raise ValueError(f"labels must differ by more than their case: {', '.join(self.values)}")
        return self


class Scale(_Model):
    """1 to `points`; the score is (x - 1) / (points - 1)."""

    kind: Literal["scale"] = "scale"
    points: int = Field(ge=2, le=10, description="The highest rating; the lowest is 1.")


class RubricOptions(_Model):
    """One question to the judge."""

    type: Literal["rubric"] = "rubric"
    name: str = Field(pattern=_NAME, description="The metric's name.")
    version: str = Field(default="1", min_length=1, description="Raise it when the text changes its meaning.")
    text: str = Field(min_length=10, max_length=8000, description="The question, and what each answer means.")
    needs: tuple[parts.Field, ...] = Field(min_length=1, description="Parts without which it is not asked.")
    optional: tuple[parts.Field, ...] = Field(default=(), description="Parts that are shown where they are known.")
    answer: Annotated[YesNo | Labels | Scale, Field(discriminator="kind")] = Field(
        default=YesNo(), description="What the judge may answer, and its score."
    )
    direction: Direction = Field(default=Direction.HIGHER_IS_BETTER, description="Whether a high score is good.")
    per: Literal["interaction", "passage"] = Field(
        default="interaction", description="passage: asked of each passage; the score is the mean."
    )
    on_refusal: Literal["ask", "unscored"] = Field(default="ask", description="What a refusing response gets.")
    no_contexts: Literal["lowest", "unscored"] = Field(
        default="unscored", description="The result when retrieval is known to have found nothing."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.per == "passage" and parts.Field.CONTEXTS not in self.needs:
            raise ValueError("per: passage needs contexts among its needs")
        if self.per == "passage" and not self.scored:
            raise ValueError("per: passage needs labels with values")
        if self.on_refusal == "unscored" and parts.Field.RESPONSE not in self.needs:
            raise ValueError("on_refusal: unscored needs response among its needs")
        return self

    @property
    def values(self) -> dict[str, float | None]:
        """Score by label, best first."""
        if isinstance(self.answer, Scale):
            points = self.answer.points
            return {str(x): (x - 1) / (points - 1) for x in range(points, 0, -1)}
        values = {"yes": 1.0, "no": 0.0} if isinstance(self.answer, YesNo) else dict(self.answer.values)
        return dict(sorted(values.items(), key=lambda pair: -(pair[1] or 0.0)))

    @property
    def scored(self) -> bool:
        return all(value is not None for value in self.values.values())


class Rubric:
    """Asks the question of `options`; its name is the metric's name.

    Labels without values give one result per label, `NAME_LABEL`, 1 where it was given and else 0, so that
    their means are the labels' shares.
    """

    def __init__(self, options: RubricOptions) -> None:
        self._options = options
        self._values = options.values
        self._prompt = Prompt(options.name, options.version, options.text)
        self._refusal = Prompt.load("noncommittal")
        per_label = () if options.scored else tuple(f"{options.name}_{label}" for label in self._values)
        self.info = info(
            options.name,
            options.version,
            options.needs,
            ", ".join(self._values),
            direction=options.direction,
            metrics=per_label,
            settings=options.model_dump_json(exclude={"type", "name", "version", "text"}),
        )

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._prompt, self._refusal) if self._options.on_refusal == "unscored" else (self._prompt,)

    def questions(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Question]:
        options = self._options
        asked: list[Question] | None = []
        if options.on_refusal == "unscored":
            asked = first_asked(interaction, answers, self._refusal)
        if asked is None:
            return []
        if self._nothing_found(interaction) or self._key in answers:
            return asked
        per_passage = options.per == "passage"
        known = [part for part in options.optional if unmet((part,), interaction) is None]
        question = Labelling(
            self._key,
            self._prompt,
            frozenset((*options.needs, *known)),
            tuple(self._values),
            items=passage_items(interaction) if per_passage else (),
            by_passage=per_passage,
        )
        return [*asked, question]

    def results(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Result]:
        if self._options.on_refusal == "unscored":
            unscored = unanswered(interaction, answers)
            if unscored is not None:
                return self._same(interaction, unscored)
        if self._nothing_found(interaction):
            lowest = self._options.no_contexts == "lowest" and self._options.scored
            nothing = Score(0.0, raw=0.0) if lowest else NotApplicable(NotApplicableReason.NO_CONTEXTS)
            return self._same(interaction, nothing)
        answer = answers.get(self._key)
        labels: Mapping[str, Labelled] = answer.labels if answer is not None else {}
        if answer is None or answer.failure is not None or not labels:
            return self._same(interaction, missing(answer))
        evidence = {
            "labels": [{"id": key, "label": one.label, "reason": one.reason} for key, one in labels.items()]
        }
        given = [one.label for one in labels.values()]
        if not self._options.scored:
            return [
                result(
                    self.info,
                    interaction,
                    Score(float(label == given[0]), raw=float(label == given[0]), label=given[0]),
                    metric=f"{self._options.name}_{label}",
                    evidence=evidence,
                    flags=flags_of(labels),
                )
                for label in self._values
            ]
        values = [value for label in given if (value := self._values[label]) is not None]
        mean = sum(values) / len(values)
        score = Score(mean, raw=self._raw(given, mean), label=given[0] if len(given) == 1 else None)
        return [result(self.info, interaction, score, evidence=evidence, flags=flags_of(labels))]

    @property
    def _key(self) -> str:
        return f"rubric:{self._options.name}"

    def _raw(self, given: list[str], mean: float) -> float:
        if isinstance(self._options.answer, Scale):
            return sum(int(label) for label in given) / len(given)
        return mean

    def _nothing_found(self, interaction: Interaction) -> bool:
        return parts.Field.CONTEXTS in self._options.needs and not has_contexts(interaction)

    def _same(self, interaction: Interaction, outcome: Outcome) -> list[Result]:
        return [result(self.info, interaction, outcome, metric=metric) for metric in self.info.gives]


def presets() -> dict[str, RubricOptions]:
    """The rubrics that ship with groundwatch, by name."""
    raw = resources.files("scorers.judged").joinpath("presets.yaml").read_text(encoding="utf-8")
    return {name: RubricOptions(name=name, **options) for name, options in yaml.safe_load(raw).items()}
