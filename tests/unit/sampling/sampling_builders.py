"""Interactions and a sampler with everything observable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collector.pipeline.clock import ManualClock
from collector.records.decision import Fate
from collector.records.found import Found, Mark
from collector.sampling.options import Options
from collector.sampling.policy import Policy
from collector.sampling.sampler import Sampler
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction
from scorers.outcome import Outcome, Result, Score
from scorers.scorer import Kind, Tier


def found(
    number: int | str = 1,
    *,
    service: str = "shop",
    state: str = "",
    trace_id: str = "0af7651916cd43dd8448eb211c80319c",
    marks: frozenset[Mark] = frozenset(),
    resource: dict[str, object] | None = None,
    attributes: dict[str, object] | None = None,
    error: str | None = None,
) -> Found:
    return Found(
        Interaction(f"interaction-{number}"),
        trace_ids=(trace_id,),
        service=service,
        trace_state=state,
        marks=marks,
        resource=resource or {},
        attributes=attributes or {},
        error=error,
    )


def screened(
    outcome: float | Outcome,
    *,
    metric: str = "faithfulness",
    kind: Kind = Kind.LOCAL,
    tier: Tier | None = Tier.FAST,
) -> Result:
    """A result of screening; a number is a score."""
    made = Score(outcome) if isinstance(outcome, float) else outcome
    return Result("id", metric, kind, made, "1", "f", tier=tier)


@dataclass
class Books:
    """A judge's books, as the ledger shows them."""

    day: int = 0
    calls: int = 0
    cost_usd: float = 0.0
    interactions: int = 0


class Bench:
    """`policies` are handed to the sampler, `configured` ones are options."""

    def __init__(
        self,
        *,
        policies: list[Policy] | None = None,
        configured: Sequence[dict[str, object]] = (),
        judge: bool = True,
        **options: object,
    ) -> None:
        self.clock = ManualClock(start_unix_nano=1_700_006_400_000_000_000)  # midnight UTC
        self.telemetry = Telemetry()
        self.keep = 1.0
        self.books = Books(day=self.clock.unix_nano() // (86_400 * 10**9))
        self.sampler = Sampler(
            Options.model_validate({**options, "policies": configured}),
            seed="a seed",
            clock=self.clock,
            telemetry=self.telemetry,
            policies=policies,
        )
        if judge:
            self.sampler.connect(pressure=lambda: self.keep, spent=lambda: self.books)

    def value(self, name: str, **labels: str) -> float:
        value = self.telemetry.registry.get_sample_value(name, labels)
        assert value is not None
        return value

    def fates(self) -> dict[Fate, int]:
        registry = self.telemetry.registry.restricted_registry([metrics.INTERACTIONS.name])
        counted = {
            sample.labels["fate"]: sample.value for family in registry.collect() for sample in family.samples
        }
        return {fate: int(counted[fate]) for fate in Fate}
