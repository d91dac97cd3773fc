"""What a user may set about each judged scorer: one model per scorer, told apart by `type`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from scorers.judged.rubric import RubricOptions


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlainOptions(_Model):
    """A judged scorer, or a preset, without settings."""

    type: Literal[
        "faithfulness",
        "context_relevance",
        "groundedness",
        "noncommittal",
        "passage_relevance",
        "context_precision_reference",
        "context_recall",
        "noise_sensitivity",
        "support",
        "usefulness",
        "retrieval_need",
        "retrieval_grade",
        "hallucination_grade",
        "answer_grade",
    ] = Field(description="The scorer.")


class ResponseRelevancyOptions(_Model):
    """Response relevancy; needs judge.embeddings."""

    type: Literal["response_relevancy"] = "response_relevancy"
    strictness: int = Field(default=3, ge=1, le=10, description="Questions written for each response.")
    noncommittal: Literal["unscored", "zero"] = Field(
        default="unscored", description="What a noncommittal response gets; zero is Ragas' rule."
    )


class FactualCorrectnessOptions(_Model):
    """Factual correctness against a reference."""

    type: Literal["factual_correctness"] = "factual_correctness"
    mode: Literal["precision", "recall", "f1"] = Field(default="f1", description="Which number is the score.")
    beta: float = Field(
        default=1.0, gt=0, le=10, description="Weight of recall in f1; above 1 recall counts more."
    )
    atomicity: Literal["low", "high"] = Field(default="low", description="How small the claims are made.")
    coverage: Literal["low", "high"] = Field(default="low", description="Whether minor statements count too.")


class CustomOptions(_Model):
    """A user's own judged scorer, found by entry point (group `groundwatch.scorers`)."""

    type: Literal["custom"] = "custom"
    name: str = Field(min_length=1, description="The entry point's name.")
    options: Mapping[str, object] = Field(default_factory=dict, description="Keyword arguments for it.")


ScorerOptions = Annotated[
    PlainOptions | ResponseRelevancyOptions | FactualCorrectnessOptions | RubricOptions | CustomOptions,
    Field(discriminator="type"),
]
