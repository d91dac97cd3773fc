"""Cases as tests want them: small, with everything that can be set by a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from collector.records.decision import Fate
from collector.records.diagnosis import Cause, Diagnosis
from collector.review.case import Case, CaseDecision, CaseResult, Feedback, Origin, OutcomeKind, Pick, Reason
from scorers.interaction import Interaction, Passage, Turn
from scorers.outcome import Label, Usage, Verdict

NOON = 1_700_000_000.0
"""The start of ManualClock, in Unix seconds."""


def scored(metric: str, value: float, kind: str = "judged", **more: object) -> CaseResult:
    return CaseResult(
        metric=metric,
        kind=kind,
        outcome=OutcomeKind.SCORED,
        score=value,
        version="1",
        fingerprint=f"{metric}-{kind}",
        verdicts=(Verdict("water is wet", Label.SUPPORTED, "passage 1 says so", (0,)),),
        evidence={"claims": ["water is wet"], "depth": {"n": 1}},
        usage=Usage(calls=1, input_tokens=100, output_tokens=10, cost_usd=0.001) if kind == "judged" else None,
        **more,  # type: ignore[arg-type]  # fields of CaseResult
    )


def a_case(
    case_id: str = "case-0000000000000001",
    *,
    question: str | None = "Does the warranty cover water damage?",
    response: str | None = "No, water damage is not covered.",
    scores: Mapping[str, float] | None = None,
    local: Mapping[str, float] | None = None,
    cause: Cause | None = None,
    reasons: Sequence[Reason] = (Reason.LOW_SCORE,),
    probability: float | None = None,
    order: float | None = None,
    service: str = "shop",
    service_version: str | None = "1.4",
    prompt_version: str | None = None,
    model: str | None = "gpt-4o-mini",
    session: str | None = "session-1",
    user: str | None = "user-1",
    trace_ids: tuple[str, ...] = ("0af7651916cd43dd8448eb211c80319c",),
    segments: Mapping[str, str] | None = None,
    marks: tuple[str, ...] = (),
    ended_unix: float = NOON,
    feedback: tuple[Feedback, ...] = (),
) -> Case:
    results = [scored(metric, value) for metric, value in (scores or {}).items()]
    results += [scored(metric, value, "local") for metric, value in (local or {}).items()]
    picks = [Pick(reason, NOON) for reason in reasons if reason is not Reason.CONTROL]
    if Reason.CONTROL in reasons:
        picks.append(Pick(Reason.CONTROL, NOON, probability or 0.1, 0.5 if order is None else order))
    return Case(
        id=case_id,
        interaction=Interaction(
            id=case_id,
            question=question,
            contexts=(Passage("Water damage is not covered.", id="doc-7", score=0.9, metadata={"page": 3}),),
            response=response,
            history=(Turn("user", "Hello"), Turn("assistant", "Hi")),
        ),
        picks=tuple(picks),
        ended_unix=ended_unix,
        results=tuple(results),
        decision=CaseDecision(Fate.QUEUED, 0.05, "base"),
        diagnosis=Diagnosis(cause, None) if cause is not None else None,
        marks=marks,
        segments=segments or {},
        origin=Origin(
            service=service,
            service_version=service_version,
            prompt_version=prompt_version,
            model=model,
            convention="openinference",
            trace_ids=trace_ids,
            span_id="b7ad6b7169203331",
            session=session,
            user=user,
        ),
        judge_model="judge-1",
        feedback=feedback,
    )
