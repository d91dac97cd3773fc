"""The canary: planted cases in two languages whose outcome is known, to see whether a judge still judges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from scorers.interaction import Interaction, Passage
from scorers.outcome import Failed, NotApplicable, NotApplicableReason, Result, Score

Range = tuple[Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)]]


class CanaryCase(BaseModel):
    """One planted interaction. `expect` gives, by metric, the range of its score (ends included), or `refusal`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    question: str
    contexts: tuple[str, ...]
    response: str
    expect: dict[str, Range | Literal["refusal"]]

    @property
    def interaction(self) -> Interaction:
        passages = tuple(Passage(text) for text in self.contexts)
        return Interaction(f"canary-{self.id}", self.question, passages, self.response)


@dataclass(frozen=True, slots=True)
class CanaryReport:
    """How many expectations were met, of those that the judge answered; `failed` ones count against nobody.

    `wrong` names them as `case metric`.
    """

    right: int
    wrong: tuple[str, ...]
    failed: tuple[str, ...]

    @property
    def accuracy(self) -> float | None:
        """Share of answered expectations that were met, 0 to 1; None when none was answered."""
        answered = self.right + len(self.wrong)
        return self.right / answered if answered else None


def canary_cases() -> list[CanaryCase]:
    """The cases that ship with groundwatch."""
    raw = resources.files("scorers.judge").joinpath("canary.yaml").read_text(encoding="utf-8")
    return TypeAdapter(list[CanaryCase]).validate_python(yaml.safe_load(raw))


async def run_canary(
    score: Callable[[Interaction], Awaitable[list[Result]]], cases: Sequence[CanaryCase]
) -> CanaryReport:
    """Score every case, one after the other, and compare. `score` should pass the cache by, and enter no estimate."""
    right = 0
    wrong: list[str] = []
    failed: list[str] = []
    for case in cases:
        for result in await score(case.interaction):
            expected = case.expect.get(result.scorer)
            if expected is None:
                continue
            name = f"{case.id} {result.scorer}"
            if isinstance(result.outcome, Failed):
                failed.append(name)
            elif _met(result, expected):
                right += 1
            else:
                wrong.append(name)
    return CanaryReport(right, tuple(wrong), tuple(failed))


def _met(result: Result, expected: Range | Literal["refusal"]) -> bool:
    if expected == "refusal":
        return result.outcome == NotApplicable(NotApplicableReason.REFUSAL)
    return isinstance(result.outcome, Score) and expected[0] <= result.outcome.value <= expected[1]
