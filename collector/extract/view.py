"""The neutral view of one span: what each convention makes of its attributes, events and log records."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Protocol

from collector.extract.documents import Document
from collector.extract.messages import Message
from collector.extract.values import (
    MISSING,
    Json,
    as_count,
    as_text,
    is_redacted,
    loads,
    looks_encoded,
)
from collector.otlp.model import Attributes, LogRecord, Span

_OPEN_STRING = re.compile(r'"(?:[^"\\]|\\.)*\\?', re.DOTALL)


class Role(StrEnum):
    """What a span does in a RAG application."""

    RETRIEVER = "retriever"
    RERANKER = "reranker"
    LLM = "llm"
    EMBEDDING = "embedding"
    TOOL = "tool"
    AGENT = "agent"
    CHAIN = "chain"
    PROMPT = "prompt"
    GUARD = "guard"  # guardrails and evaluators: what a model says inside is no answer
    OTHER = "other"


class Payload:
    """An input or output, parsed when it is first looked at.

    `quoted` says that a plain string is emitted as a JSON string, quotes included.
    """

    def __init__(self, raw: Json, max_chars: int, *, quoted: bool = False) -> None:
        self.raw = raw
        self._max_chars = max_chars
        self._quoted = quoted

    @cached_property
    def value(self) -> Json:
        """The value with its layers of encoding taken off; the raw text where it is plain."""
        raw = self.raw
        for _ in range(3):
            if not isinstance(raw, str) or not looks_encoded(raw):
                return raw
            if raw.lstrip()[:1] in "\"'" and not self._quoted:
                return raw
            inner = loads(raw, self._max_chars)
            if inner is MISSING:
                return raw
            raw = inner
        return raw

    @property
    def broken(self) -> bool:
        """Whether it begins like JSON of a container or a string, is long, and does not end: something cut it."""
        raw = self.raw
        if not isinstance(raw, str) or len(raw) < 32:
            return False
        if self._quoted and raw[0] == '"':
            return _OPEN_STRING.fullmatch(raw) is not None
        if raw[:2].strip()[:1] not in ("{", "["):
            return False
        if len(raw) > self._max_chars:
            return True
        return loads(raw, self._max_chars) is MISSING and raw.rstrip()[-1:] not in ("}", "]")

    @property
    def hidden(self) -> bool:
        return isinstance(self.raw, str) and is_redacted(self.raw)


@dataclass(slots=True)
class View:
    """One span as extraction sees it. None means that the convention says nothing of it.

    `documents` are those the span gave out (`()` = it is known to have found none), `variables` those of its
    prompt template, `messages` the model's input, `replies` its output, `query` a retriever's own query.
    `content_off` tells that the library left content out on purpose; `exclusive` that conventions of lower
    precedence must not read content from the same attributes.
    """

    convention: str
    role: Role | None = None
    input: Payload | None = None
    output: Payload | None = None
    query: str | None = None
    documents: tuple[Document, ...] | None = None
    messages: tuple[Message, ...] | None = None
    replies: tuple[Message, ...] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    request_model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    response_id: str | None = None
    content_off: bool = False
    streaming: bool = False
    exclusive: bool = False
    partial: bool = False
    """The span tells fewer documents than were asked for, and its library is known to leave some out."""
    collection: bool = False
    """The span is a vector store's own client call, inside of what the application calls its retrieval."""


class Source:
    """One span with its events and log records, as conventions read it."""

    __slots__ = ("attributes", "logs", "max_chars", "roots", "span")

    def __init__(self, span: Span, logs: Sequence[LogRecord], max_chars: int) -> None:
        self.span = span
        self.attributes = _decoded(span.attributes)
        self.logs = logs
        self.max_chars = max_chars
        self.roots = {key.partition(".")[0] for key in span.attributes}

    def text(self, *keys: str) -> str | None:
        """The first of the keys that holds a non-empty string."""
        for key in keys:
            if (found := as_text(self.attributes.get(key))) is not None:
                return found
        return None

    def count(self, *keys: str) -> int | None:
        """The first of the keys that holds a whole number >= 0."""
        for key in keys:
            if (found := as_count(self.attributes.get(key))) is not None:
                return found
        return None

    def payload(self, *keys: str, quoted: bool = False) -> Payload | None:
        """The first of the keys that is present and not empty, as a lazy value."""
        for key in keys:
            raw = self.attributes.get(key)
            if raw is not None and raw != "":
                return Payload(raw, self.max_chars, quoted=quoted)
        return None

    def parsed(self, key: str) -> Json:
        """The value of a key with all layers of JSON taken off, also around strings; None where absent."""
        raw = self.attributes.get(key)
        return Payload(raw, self.max_chars, quoted=True).value if raw is not None else None


def _decoded(attributes: Attributes) -> Attributes:
    """The attributes with values that are bytes as text, which some exporters make of JSON; no text stays as it is."""
    if not any(isinstance(value, bytes) for value in attributes.values()):
        return attributes
    return {key: _text(value) if isinstance(value, bytes) else value for key, value in attributes.items()}


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


class Convention(Protocol):
    """How one family of libraries writes its spans.

    `name` is a stable word for `inspect` and metrics. `hints` are the substrings, at least one of which stands
    among the attribute keys, event names or log event names of every span and record that `read` gets anything
    from: assembly keeps only spans in whose bytes one of them occurs.
    `content_switch` tells a user how that library is made to emit content.
    `read` never raises on any attribute value, and gives None for a span that is none of its own.
    """

    @property
    def name(self) -> str: ...

    @property
    def hints(self) -> tuple[str, ...]: ...

    @property
    def content_switch(self) -> str: ...

    def read(self, source: Source) -> View | None: ...


def merge(views: Sequence[View]) -> View:
    """One view of several of one span; the first that says something of a field wins.

    The first view's role decides where it gives one. After an `exclusive` view only names, counts and ids are taken.
    """
    first = views[0]
    closed = first.exclusive
    for other in views[1:]:
        if first.role is None:
            first.role = other.role
        for name in ("model", "request_model", "input_tokens", "output_tokens", "response_id"):
            if getattr(first, name) is None:
                setattr(first, name, getattr(other, name))
        first.streaming |= other.streaming
        if closed:
            continue
        first.partial |= other.partial and first.documents is None
        for name in ("input", "output", "query", "documents", "messages", "replies"):
            if getattr(first, name) is None:
                setattr(first, name, getattr(other, name))
        if not first.variables:
            first.variables = other.variables
        first.content_off |= other.content_off
        first.collection |= other.collection
        closed = closed or other.exclusive
    return first
