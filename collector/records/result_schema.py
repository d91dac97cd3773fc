"""The form of the messages of results: what became of one interaction, as JSON.

The results topic and `groundwatch replay` write them; the review store and anybody else reads them. Their JSON Schema
is `results.schema.json` beside this file, made from the classes below: `python -m collector.records.result_schema`.
Within a `schema_version` fields and enum values may be added, none is renamed, removed or changed in meaning.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from collector.records.decision import Fate
from collector.records.diagnosis import Cause
from collector.records.found import Mark
from scorers.interaction import Damage, Field
from scorers.outcome import FailedReason, Label, NotApplicableReason
from scorers.scorer import Kind, Tier

SCHEMA_VERSION: Literal[1] = 1
SCHEMA_FILE = Path(__file__).with_name("results.schema.json")
_REASONS = [*map(str, NotApplicableReason), *map(str, FailedReason)]

Probability = Annotated[float, Meta(ge=0, le=1)]
Whole = Annotated[int, Meta(ge=0)]


class VerdictJson(Struct, frozen=True, kw_only=True):
    """One claim, or sentence of the response, as the judge saw it."""

    claim: str
    label: Label
    reason: str = ""
    passages: Annotated[tuple[int, ...], Meta(description="Ranks of the contexts it rests on, from 0.")] = ()


class UsageJson(Struct, frozen=True, kw_only=True):
    """What a result cost."""

    calls: Whole = 0
    input_tokens: Whole = 0
    output_tokens: Whole = 0
    cost_usd: Annotated[float | None, Meta(description="US dollars; null where the model's price is unknown.")] = (
        None
    )
    estimated: Annotated[
        bool, Meta(description="True where the endpoint reported no tokens and they were counted here.")
    ] = False


class ResultJson(Struct, frozen=True, kw_only=True):
    """One scorer's outcome. (interaction_id, metric, kind, tier, fingerprint, attempt) is the key of a result."""

    metric: str
    kind: Annotated[Kind, Meta(description="local: no network; judged: a language model was asked.")]
    tier: Annotated[Tier | None, Meta(description="Tier of a local scorer; null for judged.")] = None
    fingerprint: Annotated[
        str, Meta(description="The instrument: scorer version with prompt and judge model, or with its table.")
    ]
    attempt: Annotated[Whole, Meta(description="0, except when judging is repeated on purpose.")] = 0
    version: Annotated[str, Meta(description="The scorer's version.")]
    outcome: Literal["scored", "not_applicable", "failed"]
    score: Annotated[Probability | None, Meta(description="In [0, 1]; null unless scored.")] = None
    raw: Annotated[float | None, Meta(description="The value before mapping to [0, 1], where there is one.")] = (
        None
    )
    label: Annotated[str | None, Meta(description="A word, where the scale has words.")] = None
    reason: Annotated[
        str | None,
        Meta(
            description="Why there is no score: the metric is not defined here (not_applicable), or could not be "
            "measured (failed). Null when scored.",
            extra_json_schema={"examples": _REASONS},
        ),
    ] = None
    detail: Annotated[str, Meta(description="More about a failure; no text of the application.")] = ""
    weight: Annotated[
        float | None,
        Meta(
            description="How many interactions this result stands for: 1 / the product of all known inclusion "
            "probabilities. A mean over results is weighted by it. Null where it is not known."
        ),
    ] = None
    probability: Annotated[
        Probability, Meta(description="Below 1 where only a hashed share of the interactions gets this scorer.")
    ] = 1.0
    flags: tuple[str, ...] = ()
    usage: UsageJson | None = None
    evidence: Annotated[
        dict[str, Any], Meta(description="What the score rests on; quotes the application, so only with content.")
    ] = {}
    verdicts: Annotated[tuple[VerdictJson, ...], Meta(description="Only with content.")] = ()


class DecisionJson(Struct, frozen=True, kw_only=True):
    """Whether the interaction was judged, with the probability that makes the answer usable."""

    fate: Annotated[
        Fate,
        Meta(description="queued: was judged, or should have been; sampled_out; shed for load; filtered."),
    ]
    probability: Annotated[Probability, Meta(description="Probability of being judged, fixed when decided.")]
    policy: Annotated[str, Meta(description="The policy that decided.")]
    upstream_weight: Annotated[
        float, Meta(description="Interactions for each received, by samplers before us.")
    ] = 1.0
    conditional: Annotated[
        bool, Meta(description="Upstream sampling is unknown: estimates speak of received traffic only.")
    ] = False
    least_probability: Annotated[
        float,
        Meta(description="Least probability that any interaction could have been given then; 0 = not known."),
    ] = 0.0
    highest_upstream_weight: Annotated[
        float | None, Meta(description="Highest upstream weight likewise; null = not known.")
    ] = None


class DiagnosisJson(Struct, frozen=True, kw_only=True):
    """Where the interaction went wrong."""

    cause: Annotated[Cause | None, Meta(description="The judge's where it could decide, else the local one.")] = (
        None
    )
    kind: Annotated[Kind, Meta(description="Whose scores `cause` comes from.")] = Kind.LOCAL
    judged: Cause | None = None
    local: Cause | None = None


class PassageJson(Struct, frozen=True, kw_only=True):
    """One retrieved context."""

    text: str
    id: str | None = None
    score: Annotated[float | None, Meta(description="The retriever's; higher is nearer.")] = None
    distance: Annotated[float | None, Meta(description="The retriever's; lower is nearer.")] = None
    metadata: dict[str, Any] = {}


class TurnJson(Struct, frozen=True, kw_only=True):
    """One earlier message of the conversation."""

    role: str
    text: str


class TokensJson(Struct, frozen=True, kw_only=True):
    """Tokens of the application's own last model call, as it reports them; null = not reported."""

    input_tokens: int | None = None
    output_tokens: int | None = None


class ContentJson(Struct, frozen=True, kw_only=True):
    """What the application and its user said, after redaction, and what else may be personal. Only with
    `export.content: true`."""

    question: str | None = None
    contexts: Annotated[
        tuple[PassageJson, ...] | None,
        Meta(description="In rank order; [] = retrieval found nothing, null = not known."),
    ] = None
    response: str | None = None
    reference: str | None = None
    history: tuple[TurnJson, ...] = ()
    rewritten_query: str | None = None
    unused_passages: Annotated[
        tuple[PassageJson, ...], Meta(description="Retrieved, and not in the final prompt.")
    ] = ()
    error: str | None = None
    session: str | None = None
    user: str | None = None
    tenant: str | None = None
    attributes: dict[str, Any] = {}
    resource: dict[str, Any] = {}
    trace_state: str = ""
    rules: Annotated[dict[str, str], Meta(description="Which rule of extraction found which part.")] = {}


class InteractionResults(Struct, frozen=True, kw_only=True):
    """All that became of one interaction. Delivered at least once: a later message with the same interaction_id
    replaces an earlier one, results by their key."""

    schema_version: Literal[1] = SCHEMA_VERSION
    interaction_id: Annotated[str, Meta(description="The same at every delivery; also the key of the message.")]
    trace_ids: Annotated[tuple[str, ...], Meta(description="Hex; the response's trace first.")] = ()
    span_id: Annotated[str, Meta(description="Hex; the response's span. Empty for a plain record.")] = ""
    response_id: str | None = None
    replayed: Annotated[bool, Meta(description="Fed again from a recording, not live.")] = False
    service: str = ""
    service_version: str | None = None
    environment: str | None = None
    convention: Annotated[str, Meta(description="The convention that its telemetry follows.")] = ""
    model: Annotated[str | None, Meta(description="The application's model, as it answered.")] = None
    request_model: str | None = None
    tokens: TokensJson | None = None
    language: str | None = None
    ended_unix_nano: Annotated[int, Meta(description="When the response ended; 0 = not known.")] = 0
    settled_unix_nano: Annotated[int, Meta(description="When the last of the results was there.")] = 0
    groundwatch_version: str = ""
    judge_model: str | None = None
    segments: Annotated[dict[str, str], Meta(description="As on /metrics.")] = {}
    marks: tuple[Mark, ...] = ()
    damage: Annotated[dict[Field, Damage], Meta(description="Parts that exist and could not be read whole.")] = {}
    screening_probability: Annotated[Probability, Meta(description="Below 1 where screening shed for load.")] = 1.0
    decision: DecisionJson
    diagnosis: DiagnosisJson | None = None
    results: tuple[ResultJson, ...] = ()
    content: ContentJson | None = None
    content_left_out: Annotated[
        Literal["not_exported", "too_large"] | None, Meta(description="Why content is null.")
    ] = None


def schema() -> dict[str, Any]:
    """JSON Schema of a message."""
    made: dict[str, Any] = msgspec.json.schema(InteractionResults)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "groundwatch: what became of one interaction",
    }
    return head | made


def schema_text() -> str:
    """What `results.schema.json` holds."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
    sys.stdout.write(f"{SCHEMA_FILE.name}: {len(schema()['$defs'])} classes\n")
