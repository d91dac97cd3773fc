"""The canary: planted cases in two languages whose outcome is known, to see whether a judge still judges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from scorers.interaction import Interaction, Passage
from scorers.outcome import Failed, NotApplicable, NotApplicableReason, Result, Score

Range = tuple[Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)]]


class CanaryCase(BaseModel):
    """One planted interaction. `expect` gives, by metric, the range of its score (ends included), or `refusal`.

    `language` and `kind` (supported, contradicted, ...) say in which metric's series its outcome is counted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    language: str = Field(default="other", pattern=r"^[a-z]{2,8}$")
    kind: str = Field(default="other", pattern=r"^[a-z_]{1,30}$")
    question: str
    contexts: tuple[str, ...]
    response: str
    expect: dict[str, Range | Literal["refusal"]]

    @property
    def interaction(self) -> Interaction:
        passages = tuple(Passage(text) for text in self.contexts)
        return Interaction(f"canary-{self.id}", self.question, passages, self.response)


class Verdict(StrEnum):
    """How one expectation came out."""

    RIGHT = "right"
    WRONG = "wrong"
    FAILED = "failed"  # the judge gave no answer, or none that could be used: it counts against nobody


@dataclass(frozen=True, slots=True)
class Expectation:
    """One metric of one case, and how it came out."""

    case: CanaryCase
    metric: str
    verdict: Verdict

    @property
    def name(self) -> str:
        return f"{self.case.id} {self.metric}"


@dataclass(frozen=True, slots=True)
class CanaryReport:
    """How each expectation came out, in the order of the cases."""

    expectations: tuple[Expectation, ...]

    @property
    def wrong(self) -> tuple[str, ...]:
        """The expectations that were not met, as `case metric`."""
        return tuple(one.name for one in self.expectations if one.verdict is Verdict.WRONG)

    @property
    def failed(self) -> tuple[str, ...]:
        """The expectations that were not answered, as `case metric`."""
        return tuple(one.name for one in self.expectations if one.verdict is Verdict.FAILED)

    @property
    def accuracy(self) -> float | None:
        """Share of answered expectations that were met, 0 to 1; None when none was answered."""
        return _accuracy(self.expectations)

    def by_series(self) -> dict[tuple[str, str], float | None]:
        """Accuracy by (kind, language); None where no expectation was answered."""
        parts: dict[tuple[str, str], list[Expectation]] = {}
        for one in self.expectations:
            parts.setdefault((one.case.kind, one.case.language), []).append(one)
        return {series: _accuracy(part) for series, part in parts.items()}


def _accuracy(expectations: Sequence[Expectation]) -> float | None:
    answered = [one.verdict is Verdict.RIGHT for one in expectations if one.verdict is not Verdict.FAILED]
    return sum(answered) / len(answered) if answered else None


def canary_cases() -> list[CanaryCase]:
    """The cases that ship with groundwatch."""
    raw = resources.files("scorers.judge").joinpath("canary.yaml").read_text(encoding="utf-8")
    return TypeAdapter(list[CanaryCase]).validate_python(yaml.safe_load(raw))


async def run_canary(
    score: Callable[[Interaction], Awaitable[list[Result]]], cases: Sequence[CanaryCase]
) -> CanaryReport:
    """Score every case, one after the other, and compare what the judge decided. `score` should pass the cache by, and
    enter no estimate."""
    found: list[Expectation] = []
    for case in cases:
        for result in await score(case.interaction):
            expected = case.expect.get(result.scorer)
            if expected is None or result.evidence.get("by") == "rule":  # a rule tells nothing of the judge
                continue
            if isinstance(result.outcome, Failed):
                verdict = Verdict.FAILED
            else:
                verdict = Verdict.RIGHT if _met(result, expected) else Verdict.WRONG
            found.append(Expectation(case, result.scorer, verdict))
    return CanaryReport(tuple(found))


def _met(result: Result, expected: Range | Literal["refusal"]) -> bool:
    if expected == "refusal":
        return result.outcome == NotApplicable(NotApplicableReason.REFUSAL)
    return isinstance(result.outcome, Score) and expected[0] <= result.outcome.value <= expected[1]
