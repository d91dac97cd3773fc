"""The policy of rules on attributes and segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from collector.records.found import Found
from collector.sampling.matching import Match, Strict, Texts, compiled
from scorers.outcome import Result

SegmentsOf = Callable[[Found], Sequence[tuple[str, str]]]
"""An interaction's value in every segment, as (segment, value)."""


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, dict | Match) else value


class Rule(Strict):
    """A probability for the interactions that fit every one of its conditions."""

    match: Annotated[tuple[Match, ...], BeforeValidator(_one_or_more)] = Field(
        default=(), description="Conditions on attributes, as for include; all of them must hold."
    )
    segments: dict[str, Texts] = Field(
        default_factory=dict,
        description="Conditions on segments: by a segment's name, the value or values meant (other and unset too).",
    )
    probability: float = Field(ge=0, le=1, description="Probability of being judged, where all conditions hold.")

    @model_validator(mode="after")
    def _some_condition(self) -> Self:
        if not self.match and not self.segments:
            raise ValueError(
                "a rule needs match or segments: for all interactions use otherwise, or a rate policy"
            )
        return self


class RulesOptions(Strict):
    """Probabilities by attributes and segments; the first rule that fits decides."""

    type: Literal["rules"] = Field("rules", description="This policy.")
    name: str = Field("rules", description="Its name in decisions, and the key of its hash.")
    rules: tuple[Rule, ...] = Field(min_length=1, max_length=100, description="Tried in this order.")
    otherwise: float = Field(
        default=0.0, ge=0, le=1, description="Where no rule fits; at 0 other policies and the floor decide there."
    )

    def segment_values(self) -> list[tuple[str, tuple[str, ...]]]:
        """The segments named, with the values asked for."""
        return [pair for rule in self.rules for pair in rule.segments.items()]


class Rules:
    """Judges by the first rule that fits."""

    def __init__(self, options: RulesOptions, *, segments: SegmentsOf) -> None:
        self.name = options.name
        self._otherwise = options.otherwise
        self._segments = segments
        self._rules = [
            (
                [compiled(match) for match in rule.match],
                {name: frozenset(values) for name, values in rule.segments.items()},
                rule.probability,
            )
            for rule in options.rules
        ]
        self._by_segment = any(rule.segments for rule in options.rules)

    def probability(self, found: Found, results: Sequence[Result]) -> float:
        values: Mapping[str, str] = dict(self._segments(found)) if self._by_segment else {}
        for matches, wanted, probability in self._rules:
            if all(values.get(name) in some for name, some in wanted.items()) and all(
                match(found) for match in matches
            ):
                return probability
        return self._otherwise
