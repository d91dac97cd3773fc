"""A settled interaction as a case."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from collector.records.found import Found
from collector.records.settled import Settled
from collector.review.case import Case, CaseDecision, CaseResult, Feedback, Origin, OutcomeKind, Pick
from scorers.outcome import Failed, NotApplicable, Result, Score


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes cases.

    `lower_is_better` names the metrics of which less is better, `descriptive` those that are neither good nor bad
    (a count, another judge's opinion beside the judge's); `prompt_versions` the attributes that hold a prompt's
    version, the first that is there wins; `judge_model` is the judge's.
    """

    lower_is_better: Collection[str] = ()
    descriptive: Collection[str] = ()
    prompt_versions: Sequence[str] = ()
    judge_model: str | None = None

    def case(
        self,
        settled: Settled,
        picks: Sequence[Pick],
        *,
        again: Sequence[Result] = (),
        feedback: Sequence[Feedback] = (),
    ) -> Case:
        """`again` are results of a second judging."""
        found, decision = settled.found, settled.decision
        return Case(
            id=found.interaction.id,
            interaction=found.interaction,
            picks=tuple(picks),
            ended_unix=found.ended_unix_nano / 1e9,
            results=tuple(self.result(one) for one in (*settled.local, *settled.judged, *again)),
            decision=CaseDecision(
                fate=decision.fate,
                probability=decision.probability,
                policy=decision.policy,
                upstream_weight=decision.upstream_weight,
                conditional=decision.conditional,
            ),
            screening_probability=settled.screening_probability,
            diagnosis=settled.diagnosis,
            marks=tuple(sorted(found.marks)),
            segments=dict(settled.segments),
            origin=self._origin(found),
            judge_model=self.judge_model if settled.judged else None,
            feedback=tuple(feedback),
        )

    def result(self, result: Result) -> CaseResult:
        outcome = result.outcome
        kind, score, raw, label, reason, detail = OutcomeKind.SCORED, None, None, None, None, ""
        match outcome:
            case Score():
                score, raw, label = outcome.value, outcome.raw, outcome.label
            case NotApplicable():
                kind, reason = OutcomeKind.NOT_APPLICABLE, outcome.reason.value
            case Failed():
                kind, reason, detail = OutcomeKind.FAILED, outcome.reason.value, outcome.detail
        return CaseResult(
            metric=result.scorer,
            kind=result.kind.value,
            outcome=kind,
            tier=result.tier.value if result.tier is not None else None,
            score=score,
            raw=raw,
            label=label,
            reason=reason,
            detail=detail,
            version=result.version,
            fingerprint=result.fingerprint,
            evidence=result.evidence,
            verdicts=tuple(result.verdicts),
            flags=result.flags,
            usage=result.usage,
            attempt=result.attempt,
            probability=result.probability,
            lower_is_better=result.scorer in self.lower_is_better,
            quality=result.scorer not in self.descriptive,
        )

    def tells_quality(self, metric: str) -> bool:
        """True where a low score is a bad one."""
        return metric not in self.lower_is_better and metric not in self.descriptive

    def _origin(self, found: Found) -> Origin:
        attributes = found.attributes
        prompt = next((attributes[name] for name in self.prompt_versions if name in attributes), None)
        return Origin(
            service=found.service,
            service_version=found.service_version,
            prompt_version=str(prompt) if prompt is not None else None,
            environment=found.environment,
            model=found.model or found.request_model,
            convention=found.convention,
            trace_ids=found.trace_ids,
            span_id=found.span_id,
            response_id=found.response_id,
            session=found.session,
            user=found.user,
            tenant=found.tenant,
            error=found.error,
            attributes=attributes,
        )
