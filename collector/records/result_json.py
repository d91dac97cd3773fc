"""A settled interaction to its message of results and back (`result_schema` has the form)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from collector.records.decision import Decision, Fate
from collector.records.diagnosis import Diagnosis
from collector.records.found import Found, Mark, TokenUsage
from collector.records.result_schema import (
    SCHEMA_VERSION,
    ContentJson,
    DecisionJson,
    DiagnosisJson,
    InteractionResults,
    PassageJson,
    ResultJson,
    TokensJson,
    TurnJson,
    UsageJson,
    VerdictJson,
)
from collector.records.settled import Settled
from scorers.interaction import Interaction, Passage, Turn
from scorers.outcome import (
    Failed,
    FailedReason,
    NotApplicable,
    NotApplicableReason,
    Outcome,
    Result,
    Score,
    Usage,
    Verdict,
)
from scorers.scorer import Kind

_MAX_DEPTH = 40
_MAX_INT = 2**63
_LONE = re.compile("[\ud800-\udfff]")


class BadResult(ValueError):
    """Bytes that are no message of a version that is read here; the text says where and why."""


_ENCODER = msgspec.json.Encoder(enc_hook=str)
_DECODER = msgspec.json.Decoder(InteractionResults)


class _Version(msgspec.Struct):
    schema_version: int = 0


def from_settled(
    settled: Settled,
    *,
    content: bool,
    settled_unix_nano: int = 0,
    groundwatch_version: str = "",
    judge_model: str | None = None,
) -> InteractionResults:
    """The message of a settled interaction. `content` says whether the application's texts may be in it."""
    found, decision, item = settled.found, settled.decision, settled.found.interaction
    local_weight = decision.upstream_weight / settled.screening_probability
    judged_weight = local_weight / decision.probability if decision.fate is Fate.QUEUED else math.nan
    return InteractionResults(
        interaction_id=item.id,
        trace_ids=tuple(found.trace_ids),
        span_id=found.span_id,
        response_id=found.response_id,
        replayed=Mark.REPLAYED in found.marks,
        service=found.service,
        service_version=found.service_version,
        environment=found.environment,
        convention=found.convention,
        model=found.model,
        request_model=found.request_model,
        tokens=None if found.usage is None else _convert(found.usage, TokensJson),
        language=item.language,
        ended_unix_nano=found.ended_unix_nano,
        settled_unix_nano=settled_unix_nano,
        groundwatch_version=groundwatch_version,
        judge_model=judge_model,
        segments=dict(settled.segments),
        marks=tuple(sorted(found.marks)),
        damage=dict(item.damage),
        screening_probability=settled.screening_probability,
        decision=DecisionJson(
            fate=decision.fate,
            probability=decision.probability,
            policy=decision.policy,
            upstream_weight=decision.upstream_weight,
            conditional=decision.conditional,
            least_probability=decision.least_probability,
            highest_upstream_weight=_finite(decision.highest_upstream_weight),
        ),
        diagnosis=_diagnosis(settled.diagnosis),
        results=(
            *(_result(one, local_weight, content=content) for one in settled.local),
            *(_result(one, judged_weight, content=content) for one in settled.judged),
        ),
        content=_content(found) if content else None,
        content_left_out=None if content else "not_exported",
    )


def to_settled(message: InteractionResults) -> Settled:
    """The settled interaction again; what was left out of the message is absent. Raises BadResult where results
    contradict themselves."""
    decision, diagnosis, content = message.decision, message.diagnosis, message.content or ContentJson()
    highest = decision.highest_upstream_weight
    results = [_to_result(message.interaction_id, one) for one in message.results]
    return Settled(
        found=Found(
            interaction=Interaction(
                id=message.interaction_id,
                question=content.question,
                contexts=None if content.contexts is None else _passages(content.contexts),
                response=content.response,
                reference=content.reference,
                history=tuple(Turn(turn.role, turn.text) for turn in content.history),
                damage=message.damage,
                language=message.language,
            ),
            trace_ids=message.trace_ids,
            span_id=message.span_id,
            service=message.service,
            service_version=message.service_version,
            environment=message.environment,
            convention=message.convention,
            model=message.model,
            request_model=message.request_model,
            session=content.session,
            user=content.user,
            tenant=content.tenant,
            usage=None if message.tokens is None else _convert(message.tokens, TokenUsage),
            response_id=message.response_id,
            rewritten_query=content.rewritten_query,
            unused_passages=_passages(content.unused_passages),
            error=content.error,
            marks=frozenset(message.marks),
            rules=content.rules,
            resource=content.resource,
            attributes=content.attributes,
            trace_state=content.trace_state,
            ended_unix_nano=message.ended_unix_nano,
        ),
        decision=Decision(
            decision.fate,
            decision.probability,
            decision.policy,
            decision.upstream_weight,
            decision.conditional,
            decision.least_probability,
            math.inf if highest is None else highest,
        ),
        local=tuple(one for one in results if one.kind is Kind.LOCAL),
        judged=tuple(one for one in results if one.kind is Kind.JUDGED),
        segments=tuple(message.segments.items()),
        screening_probability=message.screening_probability,
        diagnosis=None if diagnosis is None else Diagnosis(diagnosis.judged, diagnosis.local),
    )


def without_content(message: InteractionResults, why: Literal["not_exported", "too_large"]) -> InteractionResults:
    """The same without the application's texts."""
    results = tuple(msgspec.structs.replace(one, evidence={}, verdicts=()) for one in message.results)
    return msgspec.structs.replace(message, results=results, content=None, content_left_out=why)


def encode(message: InteractionResults) -> bytes:
    """One JSON object on one line. Half surrogate pairs, which UTF-8 can not hold, become U+FFFD."""
    try:
        return _ENCODER.encode(message)
    except UnicodeEncodeError:
        return _ENCODER.encode(_mended(msgspec.to_builtins(message, enc_hook=str)))


def key_of(message: InteractionResults) -> bytes:
    """The key of the message: the interaction id as UTF-8."""
    return _LONE.sub("\ufffd", message.interaction_id).encode()


def decode(body: bytes | str) -> InteractionResults:
    """Raises BadResult."""
    try:
        version = msgspec.json.decode(body, type=_Version).schema_version
        if version != SCHEMA_VERSION:
            said = f"has schema_version {version}" if version else "has no schema_version"
            raise BadResult(
                f"no message of results that is read here: it {said}, and version {SCHEMA_VERSION} is expected"
            )
        return _DECODER.decode(body)
    except BadResult:
        raise
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise BadResult(f"no message of results: {error}") from error


def _result(result: Result, weight: float, *, content: bool) -> ResultJson:
    outcome = result.outcome
    score = raw = label = reason = None
    detail = ""
    named: Literal["scored", "not_applicable", "failed"]
    if isinstance(outcome, Score) and 0 <= outcome.value <= 1:
        named, score, raw, label = "scored", outcome.value, _finite(outcome.raw), outcome.label
    elif isinstance(outcome, NotApplicable):
        named, reason = "not_applicable", str(outcome.reason)
    elif isinstance(outcome, Failed):
        named, reason, detail = "failed", str(outcome.reason), outcome.detail
    else:  # a score that is no number is a bug of its scorer, here as in the estimates
        named, reason = "failed", str(FailedReason.SCORER_ERROR)
    return ResultJson(
        metric=result.scorer,
        kind=result.kind,
        tier=result.tier,
        fingerprint=result.fingerprint,
        attempt=result.attempt,
        version=result.version,
        outcome=named,
        score=score,
        raw=raw,
        label=label,
        reason=reason,
        detail=detail,
        weight=_finite(weight / result.probability),
        probability=result.probability,
        flags=tuple(result.flags),
        usage=None if result.usage is None else _convert(result.usage, UsageJson),
        evidence=_plain(result.evidence) if content else {},
        verdicts=tuple(_convert(one, VerdictJson) for one in result.verdicts) if content else (),
    )


def _to_result(interaction_id: str, result: ResultJson) -> Result:
    return Result(
        interaction_id=interaction_id,
        scorer=result.metric,
        kind=result.kind,
        outcome=_to_outcome(result),
        version=result.version,
        fingerprint=result.fingerprint,
        tier=result.tier,
        evidence=result.evidence,
        verdicts=tuple(_convert(one, Verdict) for one in result.verdicts),
        flags=result.flags,
        usage=None if result.usage is None else _convert(result.usage, Usage),
        attempt=result.attempt,
        probability=result.probability,
    )


def _to_outcome(result: ResultJson) -> Outcome:
    try:
        if result.outcome == "not_applicable":
            return NotApplicable(NotApplicableReason(result.reason or ""))
        if result.outcome == "failed":
            return Failed(FailedReason(result.reason or ""), result.detail)
    except ValueError as error:
        raise BadResult(f"results: {result.metric}: {result.outcome} for an unknown reason: {error}") from error
    if result.score is None:
        raise BadResult(f"results: {result.metric}: scored, but without a score")
    return Score(result.score, result.raw, result.label)


def _diagnosis(diagnosis: Diagnosis | None) -> DiagnosisJson | None:
    if diagnosis is None:
        return None
    return DiagnosisJson(
        cause=diagnosis.cause, kind=diagnosis.kind, judged=diagnosis.judged, local=diagnosis.local
    )


def _content(found: Found) -> ContentJson:
    item = found.interaction
    return ContentJson(
        question=item.question,
        contexts=None if item.contexts is None else tuple(map(_passage, item.contexts)),
        response=item.response,
        reference=item.reference,
        history=tuple(TurnJson(role=turn.role, text=turn.text) for turn in item.history),
        rewritten_query=found.rewritten_query,
        unused_passages=tuple(map(_passage, found.unused_passages)),
        error=found.error,
        session=found.session,
        user=found.user,
        tenant=found.tenant,
        attributes=_plain(found.attributes),
        resource=_plain(found.resource),
        trace_state=found.trace_state,
        rules=dict(found.rules),
    )


def _passage(passage: Passage) -> PassageJson:
    return PassageJson(
        text=passage.text,
        id=passage.id,
        score=_finite(passage.score),
        distance=_finite(passage.distance),
        metadata=_plain(passage.metadata),
    )


def _passages(passages: tuple[PassageJson, ...]) -> tuple[Passage, ...]:
    return tuple(Passage(one.text, one.id, one.score, one.distance, one.metadata) for one in passages)


def _convert(value: Any, into: Any) -> Any:
    """Between a wire class and the value whose fields have the same names."""
    return msgspec.convert(value, into, from_attributes=True)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _plain(value: Any, depth: int = 0) -> Any:
    """What JSON can hold of a value: keys are texts, numbers are finite, what is deeper than 40 levels is left out."""
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_MAX_INT <= value < _MAX_INT else str(value)
    if isinstance(value, float):
        return _finite(value)
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        return str(value)
    if depth == _MAX_DEPTH:
        return "..."
    if isinstance(value, Mapping):
        return {str(key): _plain(one, depth + 1) for key, one in value.items()}
    return [_plain(one, depth + 1) for one in value]


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_mended(key): _mended(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(one) for one in value]
    return value
