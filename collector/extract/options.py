"""Options of extraction, the section `extract:` of groundwatch.yaml."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from collector.extract.redaction_options import RedactionOptions


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
    return text


Key = Annotated[str, Field(min_length=1, max_length=200)]
Keys = tuple[Key, ...]


class PromptPattern(BaseModel):
    """How one application lays out its prompts, for services whose documents stand in the prompt alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    service: str = Field(default="*", description="Name of the service (`service.name`); `*` is every service.")
    context: str | None = Field(
        default=None,
        description="Regular expression with a group `text` (and optionally `id`), once per passage of a prompt.",
    )
    question: str | None = Field(
        default=None,
        description="Regular expression with a group `text` that holds the user's question in the prompt.",
    )

    @field_validator("context", "question")
    @classmethod
    def _groups(cls, value: str | None) -> str | None:
        if value is not None and "text" not in re.compile(_pattern(value)).groupindex:
            raise ValueError(f"{value!r} needs a group named 'text', as in (?P<text>.+)")
        return value


class RecordPaths(BaseModel):
    """Where a plain JSON record holds its fields, as dotted paths (`payload.answer`, `hits.0.text`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Key = Field(default="id", description="Path of the record's id.")
    question: Key = Field(default="question", description="Path of the question.")
    contexts: Key = Field(default="contexts", description="Path of the list of contexts: strings or objects.")
    response: Key = Field(default="response", description="Path of the response.")
    reference: Key = Field(default="reference", description="Path of the reference answer.")
    history: Key = Field(default="history", description="Path of earlier messages, `[{role, content}]`.")
    model: Key = Field(default="model", description="Path of the model's name.")
    session: Key = Field(default="session", description="Path of the session id.")
    user: Key = Field(default="user", description="Path of the user id.")
    tenant: Key = Field(default="tenant", description="Path of the tenant.")
    service: Key = Field(default="service", description="Path of the service's name.")
    environment: Key = Field(default="environment", description="Path of the deployment environment's name.")
    attributes: Key = Field(
        default="attributes", description="Path of an object of further values, for filters and segments."
    )
    time: Key = Field(
        default="time",
        description="Path of the time of the answer: ISO 8601, or a number since 1970 in seconds, milliseconds, "
        "microseconds or nanoseconds, told by its size.",
    )


class Options(BaseModel):
    """What extraction reads beside the conventions it knows, and the bounds it keeps.

    A key is an attribute's name, or a name and a path into the JSON it holds: `http.body:hits.*._source.text`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    question_keys: Keys = Field(default=(), description="Own span attributes that hold the user's question.")
    response_keys: Keys = Field(default=(), description="Own span attributes that hold the final answer.")
    documents_keys: Keys = Field(
        default=(),
        description="Own span attributes or span event attributes that hold the retrieved documents as JSON.",
    )
    context_ids_keys: Keys = Field(
        default=(),
        description="Own attributes that hold the documents' ids, in their order, beside `documents_keys`.",
    )
    context_scores_keys: Keys = Field(
        default=(), description="Own attributes that hold the documents' scores, in their order; higher is nearer."
    )
    query_keys: Keys = Field(default=(), description="Own span attributes that hold the retriever's query.")
    model_keys: Keys = Field(default=(), description="Own span attributes that hold the name of the model.")
    input_tokens_keys: Keys = Field(default=(), description="Own span attributes that hold the prompt's tokens.")
    output_tokens_keys: Keys = Field(default=(), description="Own span attributes that hold the answer's tokens.")
    session_keys: Keys = Field(default=(), description="Own attributes that hold the session id; tried first.")
    user_keys: Keys = Field(default=(), description="Own attributes that hold the user id; tried first.")
    tenant_keys: Keys = Field(default=(), description="Own attributes that hold the tenant; tried first.")
    reference_keys: Keys = Field(
        default=("reference", "reference_answer", "ground_truth", "expected_answer"),
        description="Keys, on spans or in their metadata, that hold a reference answer.",
    )
    prompt_patterns: tuple[PromptPattern, ...] = Field(
        default=(), description="Layouts of prompts, for services whose documents stand in the prompt alone."
    )
    split_prompts: bool = Field(
        default=True,
        description="Take passages out of a prompt where the division is sure (numbered, tagged, JSON); "
        "else they are marked `unsplit`.",
    )
    join_traces: bool = Field(
        default=False,
        description="Join a retrieval and a model call that are in two traces, when the retrieved documents stand in "
        "the prompt and their sessions do not differ. Works where both traces are given together "
        "(`groundwatch inspect`).",
    )
    record: RecordPaths = Field(
        default_factory=RecordPaths, description="Where plain JSON records hold their fields."
    )
    redaction: RedactionOptions = Field(
        default_factory=RedactionOptions, description="Placeholders in the place of personal values and secrets."
    )
    max_passages: int = Field(
        default=200, ge=1, le=10_000, description="Passages kept per interaction; more is `truncated`."
    )
    max_context_chars: int = Field(
        default=100_000,
        ge=100,
        description="Characters kept of one passage; a longer one is cut and marked `truncated`.",
    )
    max_text_chars: int = Field(
        default=200_000,
        ge=100,
        description="Characters kept of a question or response; a longer one is `truncated`.",
    )
    max_json_bytes: int = Field(
        default=4_194_304,
        ge=1_000,
        description="Characters of one JSON value that are parsed; a longer one is not read.",
    )
    max_spans: int = Field(
        default=20_000, ge=1, description="Spans of one trace that are read; the rest is left out."
    )
    max_history_turns: int = Field(
        default=50, ge=0, description="Earlier messages kept per interaction, the newest first."
    )
    max_attributes: int = Field(
        default=64, ge=0, description="Scalar span attributes kept per interaction for filters and segments."
    )
    max_attribute_chars: int = Field(
        default=256, ge=8, description="Characters of one kept attribute; longer ones are cut."
    )
