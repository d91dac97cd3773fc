"""The policy of errors and other marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, field_validator

from collector.records.found import Found, Mark
from collector.sampling.matching import Strict
from scorers.outcome import Result

FILTERED = frozenset({Mark.NOT_RAG, Mark.OWN_EVALUATION})
"""Interactions with one of these never come to a policy."""

Probability = Annotated[float, Field(ge=0, le=1)]


class MarksOptions(Strict):
    """Probabilities for interactions that bear a mark: errors, cut or hidden content, streaming."""

    type: Literal["marks"] = Field("marks", description="This policy.")
    name: str = Field("marks", description="Its name in decisions, and the key of its hash.")
    errors: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="For interactions in whose trace a call failed, whether or not there is an answer.",
    )
    marks: Mapping[Mark, Probability] = Field(
        default_factory=dict, description="By mark (see `groundwatch inspect`); the highest that applies counts."
    )

    @field_validator("marks")
    @classmethod
    def _can_occur(cls, value: Mapping[Mark, float]) -> Mapping[Mark, float]:
        for mark in value:
            if mark in FILTERED:
                raise ValueError(
                    f"interactions marked {mark.value} are filtered out before any policy: leave it out here"
                )
        return value


class Marks:
    """Judges by the marks and the error of an interaction; with neither the probability is 0."""

    def __init__(self, options: MarksOptions) -> None:
        self.name = options.name
        self._by_mark = dict(options.marks)
        self._errors = options.errors

    def probability(self, found: Found, results: Sequence[Result]) -> float:
        highest = self._errors if found.error is not None or Mark.APPLICATION_ERROR in found.marks else 0.0
        for mark in found.marks:
            highest = max(highest, self._by_mark.get(mark, 0.0))
        return highest
