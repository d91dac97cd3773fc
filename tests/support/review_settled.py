"""Settled interactions as the picker gets them."""

from __future__ import annotations

from collections.abc import Mapping

from collector.records.decision import Decision, Fate
from collector.records.diagnosis import Cause, Diagnosis
from collector.records.found import Found, Mark
from collector.records.settled import Settled
from scorers.interaction import Interaction, Passage
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason, Outcome, Result, Score, Usage
from scorers.scorer import Kind, Tier

NOON_NANO = 1_700_000_000_000_000_000


def a_result(
    interaction_id: str, metric: str, outcome: Outcome | float, *, kind: Kind, attempt: int = 0
) -> Result:
    return Result(
        interaction_id=interaction_id,
        scorer=metric,
        kind=kind,
        outcome=Score(outcome) if isinstance(outcome, int | float) else outcome,
        version="1",
        fingerprint=f"{metric}@1",
        tier=Tier.FAST if kind is Kind.LOCAL else None,
        usage=Usage(calls=1, cost_usd=0.002) if kind is Kind.JUDGED else None,
        attempt=attempt,
    )


def a_settled(
    case_id: str = "interaction-0001",
    *,
    judged: Mapping[str, Outcome | float] | None = None,
    local: Mapping[str, Outcome | float] | None = None,
    fate: Fate | None = None,
    cause: Cause | None = None,
    segments: tuple[tuple[str, str], ...] = (("service", "shop"),),
    trace_ids: tuple[str, ...] = ("0af7651916cd43dd8448eb211c80319c",),
    response_id: str | None = None,
    question: str = "Does the warranty cover water damage?",
    attributes: Mapping[str, object] | None = None,
) -> Settled:
    """Queued for judging where `judged` is given, else sampled out."""
    found = Found(
        interaction=Interaction(
            id=case_id,
            question=question,
            contexts=(Passage("Water damage is not covered.", id="doc-7"),),
            response="No.",
        ),
        trace_ids=trace_ids,
        span_id="b7ad6b7169203331",
        service="shop",
        service_version="1.4",
        convention="openinference",
        request_model="gpt-4o-mini",
        session="session-1",
        user="user-1",
        response_id=response_id,
        marks=frozenset({Mark.STREAMING}),
        attributes=attributes or {},
        ended_unix_nano=NOON_NANO,
    )
    return Settled(
        found=found,
        decision=Decision(fate or (Fate.QUEUED if judged is not None else Fate.SAMPLED_OUT), 0.05, "base"),
        local=tuple(a_result(case_id, name, one, kind=Kind.LOCAL) for name, one in (local or {}).items()),
        judged=tuple(a_result(case_id, name, one, kind=Kind.JUDGED) for name, one in (judged or {}).items()),
        segments=segments,
        screening_probability=0.5,
        diagnosis=Diagnosis(cause, None) if cause is not None else None,
    )


FAILED = Failed(FailedReason.BAD_REPLY, "no JSON")
REFUSED = NotApplicable(NotApplicableReason.REFUSAL)
