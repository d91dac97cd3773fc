"""An interaction as extraction found it in a trace (or a record), with where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from scorers.interaction import Interaction, Passage


class Mark(StrEnum):
    """What is special about an interaction; bounded, so it may be a metric label."""

    HIDDEN = "hidden"  # content switched off in the instrumentation
    SCRUBBED = "scrubbed"
    TRUNCATED = "truncated"
    ATTRIBUTES_DROPPED = "attributes_dropped"
    UNSPLIT = "unsplit"
    NO_CONTEXT_TEXT = "no_context_text"
    UNVERIFIED_CONTEXTS = "unverified_contexts"
    INCOMPLETE_TRACE = "incomplete_trace"
    MALFORMED_SPAN = "malformed_span"
    APPLICATION_ERROR = "application_error"
    STREAMING = "streaming"
    NOT_RAG = "not_rag"  # no retrieval took place; RAG metrics are left out
    NO_QUESTION = "no_question"
    NO_RESPONSE = "no_response"
    OWN_EVALUATION = "own_evaluation"  # carries groundwatch's marker; never scored
    REPLAYED = "replayed"  # fed again from a recording, not live


REPLAYED_ATTRIBUTE = "groundwatch.replayed"
"""On the resource of what is sent to a running groundwatch again; gives the mark."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of the final model call, as the application's telemetry reports them; None = not reported."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """One interaction with its origin.

    `rules` says which rule found which field (for `inspect` and `why`). `span_id` is the response span's; the
    evaluation event is emitted in its context. `trace_state` is the response span's, for upstream sampling.
    `resource` holds the resource attributes of the response span's process; `attributes` the attributes of the
    interaction's spans that filters and segments are configured on. `trace_ids` holds every trace the
    interaction was found in, the response's first.
    """

    interaction: Interaction
    trace_ids: tuple[str, ...] = ()
    span_id: str = ""
    service: str = ""
    service_version: str | None = None
    environment: str | None = None
    convention: str = ""
    model: str | None = None
    request_model: str | None = None
    session: str | None = None
    user: str | None = None
    tenant: str | None = None
    usage: TokenUsage | None = None
    response_id: str | None = None
    rewritten_query: str | None = None
    unused_passages: tuple[Passage, ...] = ()
    error: str | None = None
    marks: frozenset[Mark] = frozenset()
    rules: Mapping[str, str] = field(default_factory=dict)
    resource: Mapping[str, object] = field(default_factory=dict)
    attributes: Mapping[str, object] = field(default_factory=dict)
    trace_state: str = ""
    ended_unix_nano: int = 0

    @property
    def is_rag(self) -> bool:
        return Mark.NOT_RAG not in self.marks
