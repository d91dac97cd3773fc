"""What every local scorer does alike: check its needs, make results, say where a text was cut."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from scorers.interaction import Field, Interaction
from scorers.local.engine import Engine
from scorers.local.reading import Exchange
from scorers.needs import unmet
from scorers.outcome import Outcome, Result, Verdict
from scorers.scorer import Direction, Kind, ScorerInfo, Tier

EVIDENCE_SENTENCES = 20
EVIDENCE_CHARACTERS = 400
"""Bounds of what evidence quotes."""


def shown(text: str) -> str:
    """Text as evidence quotes it."""
    return text if len(text) <= EVIDENCE_CHARACTERS else text[: EVIDENCE_CHARACTERS - 1] + "…"


class Rated:
    """An outcome with its evidence, before it becomes a `Result`."""

    __slots__ = ("evidence", "flags", "outcome", "verdicts")

    def __init__(
        self,
        outcome: Outcome,
        evidence: Mapping[str, object] | None = None,
        verdicts: Sequence[Verdict] = (),
        flags: tuple[str, ...] = (),
    ) -> None:
        self.outcome = outcome
        self.evidence = evidence or {}
        self.verdicts = verdicts
        self.flags = flags


class LocalBase(ABC):
    """A local scorer of one metric over a shared `Engine`."""

    name: str
    version: str
    needs: frozenset[Field]
    direction: Direction = Direction.HIGHER_IS_BETTER
    scale: str
    modelled: bool = True
    """Whether the value comes from the tier's models; rules are of the fast tier always."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._info = self.describe(engine.tier)
        self._fingerprint = self.fingerprint(engine.tier, engine.version)

    @classmethod
    def describe(cls, tier: Tier) -> ScorerInfo:
        """What the scorer says of itself in a tier, without building it."""
        own = tier if cls.modelled else Tier.FAST
        return ScorerInfo(cls.name, cls.version, Kind.LOCAL, cls.needs, cls.direction, cls.scale, own)

    @classmethod
    def fingerprint(cls, tier: Tier, engine: str) -> str:
        """What names the instrument in results: the scorer's name, version and tier, and the version of the engine
        (`engine_version`) where values come from its models."""
        parts = [cls.name, cls.version, str(cls.describe(tier).tier)]
        return "local:" + "/".join([*parts, engine] if cls.modelled else parts)

    @property
    def info(self) -> ScorerInfo:
        return self._info

    def score(self, batch: Sequence[Interaction]) -> list[list[Result]]:
        """One result per interaction, in order; unscored ones included."""
        return [[self._result(e)] for e in self._engine.exchanges(batch)]

    def _result(self, exchange: Exchange) -> Result:
        outcome = unmet(self.needs, exchange.interaction)
        rated = Rated(outcome) if outcome is not None else self._rate(exchange)
        return Result(
            exchange.interaction.id,
            self.name,
            Kind.LOCAL,
            rated.outcome,
            self.version,
            self._fingerprint,
            tier=self._info.tier,
            evidence=rated.evidence,
            verdicts=rated.verdicts,
            flags=(*rated.flags, *self._warnings(exchange)),
        )

    def _warnings(self, exchange: Exchange) -> list[str]:
        """`cut`: a text was over the bound; `lexical`: the full tier without its encoder, for the language."""
        found = ["cut"] if exchange.cut and self._reads_texts() else []
        if self.modelled and self._engine.tier is Tier.FULL and not self._engine.encodes(exchange):
            found.append("lexical")
        return found

    def _reads_texts(self) -> bool:
        return True

    @abstractmethod
    def _rate(self, exchange: Exchange) -> Rated:
        """The outcome of an interaction whose needs hold."""
