"""Traces for the tests of extraction, written as short trees."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from collector.extract.extractor import Extraction, Extractor, hints
from collector.extract.options import Options
from collector.otlp.model import Event, LogRecord, Resource, Span, Status
from collector.records.found import Found

RESOURCE = Resource({"service.name": "shop", "service.version": "7", "deployment.environment.name": "live"})
TRACE = "0af7651916cd43dd8448eb211c80319c"
QUESTION = "Which cheese is made from ewe's milk?"
ANSWER = "Roquefort is made from ewe's milk."
DOCUMENTS = (
    "Roquefort is a blue cheese made from the milk of ewes of the Lacaune breed.",
    "Comté is a hard cheese that ripens for at least four months in the Jura.",
    "Brie is named after the region east of Paris where it was first made.",
)


def j(value: object) -> str:
    """A value as JSON, as exporters write it into an attribute."""
    return json.dumps(value)


@dataclass
class S:
    """One span of a tree; its children run one after the other inside of it."""

    name: str = "span"
    attributes: Mapping[str, Any] = field(default_factory=dict)
    children: Sequence[S] = ()
    events: Sequence[tuple[str, Mapping[str, Any]]] = ()
    error: bool = False
    message: str = ""
    logs: Sequence[LogRecord] = ()
    kind: int = 1
    dropped: int = 0
    parent: str = ""
    flags: int = 0


def tree(*roots: S, trace: str = TRACE, resource: Resource = RESOURCE) -> tuple[list[Span], list[LogRecord]]:
    """The spans of a trace, children first as they end, and the log records that hang on them."""
    spans: list[Span] = []
    logs: list[LogRecord] = []
    clock = [1_000]
    count = [0]

    def add(node: S, parent: str) -> None:
        count[0] += 1
        ident = f"{count[0]:016x}"
        start = clock[0]
        clock[0] += 10
        for child in node.children:
            add(child, ident)
        clock[0] += 10
        spans.append(
            Span(
                trace_id=trace,
                span_id=ident,
                parent_span_id=node.parent or parent,
                name=node.name,
                kind=node.kind,
                start_unix_nano=start,
                end_unix_nano=clock[0],
                attributes=dict(node.attributes),
                events=tuple(Event(name, start + i, dict(values)) for i, (name, values) in enumerate(node.events)),
                status=Status.ERROR if node.error else Status.UNSET,
                status_message=node.message,
                dropped_attributes_count=node.dropped,
                flags=node.flags,
                resource=resource,
            )
        )
        logs.extend(
            replace(log, trace_id=trace, span_id=ident, time_unix_nano=start + i)
            for i, log in enumerate(node.logs)
        )
        clock[0] += 10

    for root in roots:
        add(root, "")
    return spans, logs


def log(event: str, body: Any = None, **attributes: Any) -> LogRecord:
    return LogRecord("", "", event, body, attributes=attributes)


def extract(*roots: S, options: Options | None = None, complete: bool = True) -> Extraction:
    """What is found; checked to be the same when spans and records without a hint are cut, as assembly does."""
    spans, logs = tree(*roots)
    chosen = options or Options()
    result = Extractor(chosen).extract(spans, logs, complete=complete)
    hinted = re.compile(b"|".join(re.escape(hint) for hint in hints(chosen)))
    kept = [span if hinted.search(_bytes(span)) else cut(span) for span in spans]
    kept_logs = [record for record in logs if hinted.search(_bytes(record))]
    assert plain(Extractor(chosen).extract(kept, kept_logs, complete=complete)) == plain(result)
    return result


def plain(extraction: Extraction) -> Extraction:
    """An extraction without the attributes for segments, which come from the spans that assembly kept whole."""
    return replace(extraction, found=tuple(replace(found, attributes={}) for found in extraction.found))


def cut(span: Span) -> Span:
    """A span as assembly keeps it when no hint is in its bytes."""
    return replace(span, attributes={}, events=(), status=Status.UNSET, status_message="", cut=True)


def _bytes(item: Span | LogRecord) -> bytes:
    """The names and texts that the serialized form of a span or record holds."""
    events = [(event.name, event.attributes) for event in item.events] if isinstance(item, Span) else []
    rest = [item.event_name, item.body] if isinstance(item, LogRecord) else []
    return json.dumps([item.attributes, events, rest], default=str, ensure_ascii=False).encode()


def one(*roots: S, options: Options | None = None, complete: bool = True) -> Found:
    """The only interaction of a trace."""
    found = extract(*roots, options=options, complete=complete).found
    assert len(found) == 1, [f.interaction for f in found]
    return found[0]


def texts(found: Found) -> list[str] | None:
    contexts = found.interaction.contexts
    return None if contexts is None else [passage.text for passage in contexts]


def prompt(documents: Sequence[str] = DOCUMENTS, question: str = QUESTION) -> str:
    numbered = "\n\n".join(f"[{i}] {text}" for i, text in enumerate(documents, 1))
    return f"Context:\n{numbered}\n\nQuestion: {question}\nAnswer:"


def oi_llm(user: str, answer: str | None = ANSWER, **more: Any) -> S:
    """A model call as OpenInference writes it."""
    attributes: dict[str, Any] = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m-1",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": user,
    }
    if answer is not None:
        attributes["llm.output_messages.0.message.role"] = "assistant"
        attributes["llm.output_messages.0.message.content"] = answer
    return S("llm", {**attributes, **more})


def oi_retriever(documents: Sequence[str] = DOCUMENTS, query: str = QUESTION, **more: Any) -> S:
    """A retrieval as OpenInference writes it."""
    attributes: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": query}
    for i, text in enumerate(documents):
        attributes[f"retrieval.documents.{i}.document.content"] = text
        attributes[f"retrieval.documents.{i}.document.id"] = (
            f"d{DOCUMENTS.index(text) if text in DOCUMENTS else 90 + i}"
        )
        attributes[f"retrieval.documents.{i}.document.score"] = 0.9 - i / 10
    return S("retriever", {**attributes, **more})


def genai_llm(user: str, answer: str | None = ANSWER, **more: Any) -> S:
    """A model call as the latest OpenTelemetry conventions write it."""
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "m-1",
        "gen_ai.input.messages": j([{"role": "user", "parts": [{"type": "text", "content": user}]}]),
    }
    if answer is not None:
        attributes["gen_ai.output.messages"] = j(
            [{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]
        )
    return S("chat m", {**attributes, **more})


def assert_whole(found: Found, documents: Sequence[str] = DOCUMENTS) -> None:
    """Question, contexts and response are all as they were."""
    assert found.interaction.question == QUESTION
    assert texts(found) == list(documents)
    assert found.interaction.response == ANSWER
