"""The two protocols that every scorer follows, and what a scorer says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from scorers.interaction import Field, Interaction
    from scorers.judge.question import Answer, Prompt, Question
    from scorers.outcome import Result


class Kind(StrEnum):
    """How a score is made: without network, or by asking an LLM judge."""

    LOCAL = "local"
    JUDGED = "judged"


class Tier(StrEnum):
    """How much a local scorer spends: `fast` needs no model file, `full` uses the encoder."""

    FAST = "fast"
    FULL = "full"


class Direction(StrEnum):
    HIGHER_IS_BETTER = "higher"
    LOWER_IS_BETTER = "lower"


@dataclass(frozen=True, slots=True)
class ScorerInfo:
    """What a scorer says of itself.

    `needs` are the parts of an interaction without which it is not applicable (unknown) or failed (damaged).
    `scale` describes the raw value for people, e.g. "share of claims, 0 to 1". `metrics` are the names that its
    results carry, where they are not just `name`. `settings` says, as text, what was set beside the prompts that
    changes the number (a mode, the values of labels): another setting is another instrument.
    """

    name: str
    version: str
    kind: Kind
    needs: frozenset[Field]
    direction: Direction
    scale: str
    tier: Tier | None = None
    metrics: tuple[str, ...] = ()
    settings: str = ""

    @property
    def gives(self) -> tuple[str, ...]:
        """The names of its results: an interaction gets one result for each."""
        return self.metrics or (self.name,)


@runtime_checkable
class LocalScorer(Protocol):
    """Scores a batch without network.

    `score` returns one list of results per interaction, in order; every interaction whose `needs` hold gets at
    least one result. It must not raise for odd text. It may be called from several processes, never from two
    threads at once.
    """

    @property
    def info(self) -> ScorerInfo: ...

    def score(self, batch: Sequence[Interaction]) -> list[list[Result]]: ...


@runtime_checkable
class JudgedScorer(Protocol):
    """Two pure functions. A judged scorer never calls a judge: the planner asks, caches and re-asks.

    `questions` may be called again with the answers so far, to ask what depends on them (verdicts on claims
    depend on the claims); it returns only questions not yet answered, and an empty list when it has all it
    wants. `results` turns the answers into results, one for each of `info.gives`, missing answers included.
    Questions with equal keys must be equal, over all scorers. `prompts` are all that it may use: they are part
    of the fingerprint, which the runner fills in.
    """

    @property
    def info(self) -> ScorerInfo: ...

    @property
    def prompts(self) -> tuple[Prompt, ...]: ...

    def questions(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Question]: ...

    def results(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Result]: ...
