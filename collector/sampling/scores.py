"""The policy of screening scores: what looks bad, or doubtful, is judged more often."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from collector.records.found import Found
from collector.sampling.matching import Strict
from scorers.local import describe
from scorers.outcome import Result, Score
from scorers.scorer import Kind, Tier

MAX_RATIO = 10.0
"""Highest probability over lowest. Rarely judged answers carry their weight, the inverse of the probability, into the
variance: variance x cost against a uniform rate is 1.08 at 1 / 0.4 / 0.1 by score and 3.3 at 1 / 0.4 / 0.02
(simulated with three quarters of the scores exactly 1, mean 0.88, sd 0.23)."""


class Step(Strict):
    """A probability for scores below a bound."""

    below: float = Field(gt=0, le=1, description="Scores under this, and not under an earlier step's.")
    probability: float = Field(gt=0, le=1, description="Probability of being judged.")


class ScoresOptions(Strict):
    """Probabilities by a fast local score."""

    type: Literal["scores"] = Field("scores", description="This policy.")
    name: str = Field("scores", description="Its name in decisions, and the key of its hash.")
    metric: str = Field("faithfulness", description="The local metric of the fast tier that is looked at.")
    steps: tuple[Step, ...] = Field(min_length=1, max_length=20, description="By rising bounds.")
    otherwise: float = Field(gt=0, le=1, description="From the last step's bound on.")
    unscored: float | None = Field(
        default=None, gt=0, le=1, description="Where there is no such score; null = as otherwise."
    )

    @field_validator("metric")
    @classmethod
    def _known(cls, value: str) -> str:
        known = fast_metrics()
        if value not in known:
            raise ValueError(f"no local scorer of the fast tier gives {value!r}; there are: {', '.join(known)}")
        return value

    @model_validator(mode="after")
    def _even(self) -> Self:
        bounds = [step.below for step in self.steps]
        if any(low >= high for low, high in pairwise(bounds)):
            raise ValueError(f"steps need rising bounds, these are {', '.join(f'{bound:g}' for bound in bounds)}")
        probabilities = [step.probability for step in self.steps] + [self.otherwise, self.without_score]
        lowest, highest = min(probabilities), max(probabilities)
        if highest > lowest * MAX_RATIO * (1 + 1e-9):
            raise ValueError(
                f"probabilities of {highest:g} and {lowest:g} are {highest / lowest:.3g} times apart, at most "
                f"{MAX_RATIO:g} are allowed: the rarely judged answers would carry most of the variance (variance x "
                "cost against a uniform rate: 1 / 0.4 / 0.1 by score 1.08, 1 / 0.4 / 0.02 by score 3.3); raise "
                f"{lowest:g} to {highest / MAX_RATIO:g} or lower {highest:g} to {lowest * MAX_RATIO:g}"
            )
        return self

    @property
    def without_score(self) -> float:
        """The probability where there is no score."""
        return self.otherwise if self.unscored is None else self.unscored


def fast_metrics() -> tuple[str, ...]:
    """The metrics that fast local scorers can give."""
    return tuple(metric for info in describe(tier=Tier.FAST) for metric in info.gives)


class Scores:
    """Judges by the step into which the fast local score of one metric falls."""

    def __init__(self, options: ScoresOptions) -> None:
        self.name = options.name
        self._metric = options.metric
        self._steps = [(step.below, step.probability) for step in options.steps]
        self._otherwise = options.otherwise
        self._unscored = options.without_score

    def probability(self, found: Found, results: Sequence[Result]) -> float:
        for result in results:
            # The full tier's scores exist for a hashed share only; the fast one's for every interaction.
            if result.scorer == self._metric and result.kind is Kind.LOCAL and result.tier is Tier.FAST:
                if not isinstance(result.outcome, Score):
                    return self._unscored
                for below, probability in self._steps:
                    if result.outcome.value < below:
                        return probability
                return self._otherwise
        return self._unscored
