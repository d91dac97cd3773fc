"""RAG traces made of the public protobuf classes, in the OpenInference conventions."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

Value = str | int | float
FACT = "The hotel limit is 120 euros per night."
QUESTION = "What is the hotel limit per night?"


def pairs(attributes: Mapping[str, Value]) -> list[KeyValue]:
    def value(plain: Value) -> AnyValue:
        if isinstance(plain, str):
            return AnyValue(string_value=plain)
        return AnyValue(int_value=plain) if isinstance(plain, int) else AnyValue(double_value=plain)

    return [KeyValue(key=key, value=value(plain)) for key, plain in attributes.items()]


def span(
    trace_id: bytes, span_id: bytes, parent: bytes, name: str, attributes: Mapping[str, Value], *, end: int = 0
) -> Span:
    end = end or time.time_ns()
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=parent,
        name=name,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=end - 50_000_000,
        end_time_unix_nano=end,
        attributes=pairs(attributes),
    )


def rag_trace(
    dice: random.Random,
    *,
    question: str = QUESTION,
    contexts: Iterable[str] | None = (FACT,),
    response: str = FACT,
    trace_id: bytes | None = None,
    session: str = "",
) -> list[Span]:
    """Root, retriever and model call of one exchange, the root last as exporters send it; without `contexts` a
    plain chat."""
    trace_id = trace_id or dice.randbytes(16)
    root, retriever, model = (dice.randbytes(8) for _ in range(3))
    spans = []
    if contexts is not None:
        documents: dict[str, Value] = {"openinference.span.kind": "RETRIEVER", "input.value": question}
        for rank, text in enumerate(contexts):
            documents[f"retrieval.documents.{rank}.document.id"] = f"d{rank}"
            documents[f"retrieval.documents.{rank}.document.content"] = text
            documents[f"retrieval.documents.{rank}.document.score"] = 1.0 / (rank + 1)
        spans.append(span(trace_id, retriever, root, "search", documents))
    call: dict[str, Value] = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "fable-mini-1",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": question,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": response,
    }
    spans.append(span(trace_id, model, root, "ChatCompletion", call))
    chain: dict[str, Value] = {
        "openinference.span.kind": "CHAIN",
        "input.value": question,
        "output.value": response,
    }
    if session:
        chain["session.id"] = session
    spans.append(span(trace_id, root, b"", "answer", chain))
    return spans


def group(spans: Iterable[Span], *, service: str = "rides", environment: str = "production") -> ResourceSpans:
    """Spans of one process."""
    resource_spans = ResourceSpans()
    resource_spans.resource.attributes.extend(
        pairs({"service.name": service, "deployment.environment.name": environment})
    )
    scope = resource_spans.scope_spans.add()
    scope.scope.name = "openinference.instrumentation.openai"
    scope.spans.extend(spans)
    return resource_spans


def request(*groups: ResourceSpans) -> bytes:
    """The body of one export request."""
    return ExportTraceServiceRequest(resource_spans=groups).SerializeToString()


def body(spans: Iterable[Span], *, service: str = "rides", environment: str = "production") -> bytes:
    """The body of one export request of one process."""
    return request(group(spans, service=service, environment=environment))
