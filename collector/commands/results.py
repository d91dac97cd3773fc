"""A result as the JSON that `groundwatch score` prints."""

from __future__ import annotations

from scorers.outcome import Failed, NotApplicable, Result, Score


def as_json(result: Result) -> dict[str, object]:
    """`outcome` is scored, not_applicable or failed; `score` and `raw` are null unless scored, `reason` unless not."""
    outcome = result.outcome
    line: dict[str, object] = {
        "scorer": result.scorer,
        "kind": str(result.kind),
        "tier": str(result.tier) if result.tier else None,
        "outcome": "scored",
        "score": None,
        "raw": None,
        "reason": None,
        "evidence": dict(result.evidence),
        "version": result.version,
        "fingerprint": result.fingerprint,
    }
    match outcome:
        case Score():
            line["score"] = outcome.value
            line["raw"] = outcome.raw if outcome.raw is not None else outcome.value
            if outcome.label is not None:
                line["label"] = outcome.label
        case NotApplicable():
            line["outcome"] = "not_applicable"
            line["reason"] = str(outcome.reason)
        case Failed():
            line["outcome"] = "failed"
            line["reason"] = str(outcome.reason)
            if outcome.detail:
                line["detail"] = outcome.detail
    if result.verdicts:
        line["verdicts"] = [
            {"claim": v.claim, "label": str(v.label), "reason": v.reason, "passages": list(v.passages)}
            for v in result.verdicts
        ]
    if result.flags:
        line["flags"] = list(result.flags)
    if result.usage is not None:
        usage = result.usage
        line["usage"] = {
            "calls": usage.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost_usd": usage.cost_usd,
            "estimated": usage.estimated,
        }
    return line
