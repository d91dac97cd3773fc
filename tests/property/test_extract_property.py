"""Whatever the order, division and repetition of spans, and whatever stands in them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.extract.extractor import Extraction, Extractor, hints
from collector.extract.options import Options
from collector.otlp.batch import Signal
from collector.otlp.decode import Decoder
from collector.otlp.model import Event, LogRecord, Resource, Span
from tests.golden.extract_measure import load, raw_items, rows, unpack
from tests.unit.extract.extract_builders import cut, plain

CASES = [
    "openinference/langchain.multi_turn_graph_rewrite",
    "openinference/langchain.two_at_once",
    "openllmetry/openai_vectordb.tool_agent",
    "otel_genai/openai_v2_legacy.multi_turn",
    "otel_genai/openai_genai_both.split",
    "logfire/pydantic_ai_openai.stream",
    "haystack/native.rerank",
    "vercel_ai/sdk_json.tool_agent",
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("recordings"))


@pytest.fixture(scope="module")
def recorded(base: Path) -> dict[str, tuple[list[Span], list[LogRecord], Extraction]]:
    found = {}
    for row in rows():
        name = f"{row['convention']}/{row['library']}.{row['case']}"
        if name in CASES:
            spans, logs = load(base, row["files"])
            found[name] = (spans, logs, Extractor(Options()).extract(spans, logs, complete=True))
    assert len(found) == len(CASES)
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_order_and_repetition_gives_the_same(
    recorded: dict[str, tuple[list[Span], list[LogRecord], Extraction]], data: st.DataObject
) -> None:
    spans, logs, result = recorded[data.draw(st.sampled_from(CASES))]
    repeated = data.draw(st.lists(st.sampled_from(spans), max_size=5))
    shuffled = data.draw(st.permutations([*spans, *repeated]))
    mixed = (
        data.draw(st.permutations([*logs, *logs[:2]]))
        if len({r.time_unix_nano for r in logs}) == len(logs)
        else logs
    )
    assert Extractor(Options()).extract(shuffled, mixed, complete=True) == result


def test_spans_without_hints_tell_nothing(base: Path) -> None:
    options = Options()
    pattern = re.compile(b"|".join(re.escape(hint) for hint in hints(options)))
    extractor, decoder = Extractor(options), Decoder()
    cuts = 0
    for files in {tuple(row["files"]) for row in rows()}:
        whole: tuple[list[Span], list[LogRecord]] = ([], [])
        kept: tuple[list[Span], list[LogRecord]] = ([], [])
        for raw, signal in raw_items(base, files):
            hinted = pattern.search(raw.data) is not None
            if signal is Signal.TRACES:
                span = decoder.span(raw)
                whole[0].append(span)
                kept[0].append(span if hinted else cut(span))
                cuts += not hinted
            else:
                record = decoder.log_record(raw)
                whole[1].append(record)
                if hinted:
                    kept[1].append(record)
        assert plain(extractor.extract(*kept, complete=True)) == plain(extractor.extract(*whole, complete=True)), (
            files
        )
    assert cuts > 0


def test_hints_are_few_and_short() -> None:
    found = hints(Options(documents_keys=("app.found",), session_keys=("app.caller",)))
    assert {b"gen_ai.", b"openinference.", b"app.found", b"app.caller"} <= set(found)
    assert len(found) < 100
    assert all(0 < len(hint) <= 40 for hint in found)
    assert not any(one != other and one in other for one in found for other in found)


KEYS = [
    "openinference.span.kind",
    "input.value",
    "output.value",
    "llm.input_messages.0.message.role",
    "llm.input_messages.0.message.content",
    "llm.output_messages.0.message.content",
    "llm.token_count.prompt",
    "retrieval.documents.0.document.content",
    "retrieval.documents.0.document.metadata",
    "retrieval.documents.x",
    "gen_ai.operation.name",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.prompt",
    "gen_ai.completion",
    "gen_ai.prompt.0.content",
    "gen_ai.prompt.99999999999.content",
    "gen_ai.retrieval.documents",
    "gen_ai.tool.call.result",
    "traceloop.span.kind",
    "traceloop.entity.input",
    "traceloop.entity.output",
    "llm.request.type",
    "langfuse.observation.type",
    "langfuse.observation.input",
    "langfuse.observation.output",
    "langfuse.observation.usage_details",
    "langsmith.span.kind",
    "mlflow.spanType",
    "mlflow.spanInputs",
    "mlflow.spanOutputs",
    "haystack.component.type",
    "haystack.component.input",
    "haystack.component.output",
    "haystack.pipeline.input_data",
    "ai.operationId",
    "ai.prompt",
    "ai.prompt.messages",
    "ai.response.text",
    "ai.toolCall.result",
    "request_data",
    "response_data",
    "events",
    "documents",
    "question",
    "answer",
    "metadata",
    "session.id",
    "tenant",
    "db.system",
    "db.operation",
    "pydantic_ai.all_messages",
    "final_result",
    "tool_response",
    "gcp.vertex.agent.llm_request",
    "ai.observability.span_type",
    "ai.observability.retrieval.retrieved_contexts",
]
WORDS = [
    "CHAIN",
    "LLM",
    "RETRIEVER",
    "TOOL",
    "AGENT",
    "chat",
    "retrieval",
    "execute_tool",
    "invoke_agent",
    "workflow",
    "task",
    '"RETRIEVER"',
    "generation",
    "retriever",
    "chain",
    "OpenAIChatGenerator",
    "KBRetriever",
    "ai.generateText.doGenerate",
    "None",
    "__REDACTED__",
    "[Scrubbed due to 'x']",
    "Context:\n[1] a\n[2] b\n\nQuestion: c\nAnswer:",
    "NaN",
    "{",
    "[[[",
    "\ud800",
    "ChatMessage(role=<Role.USER: 'user'>, content='x')",
    "Document(",
    "<document>a</document>",
    "record_root",
]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(WORDS),
    st.binary(max_size=4),
)
NAMES = st.sampled_from(
    [
        "role",
        "content",
        "parts",
        "type",
        "text",
        "messages",
        "message",
        "documents",
        "node",
        "id",
        "score",
        "metadata",
        "kwargs",
        "data",
        "choices",
        "generations",
        "replies",
        "output",
        "question",
        "args",
        "results",
        "tool_calls",
        "usage",
    ]
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)


def _encoded(value: Any) -> Any:
    return json.dumps(value, default=str)


VALUES = st.one_of(LEAVES, TREES, TREES.map(_encoded), TREES.map(_encoded).map(_encoded), TREES.map(repr))
ATTRIBUTES = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8)


@st.composite
def spans(draw: st.DrawFn) -> list[Span]:
    count = draw(st.integers(1, 5))
    ids = [f"{i:016x}" for i in range(count)]
    return [
        Span(
            trace_id="a" * 32,
            span_id=ids[i],
            parent_span_id=draw(st.sampled_from(["", "f" * 16, *ids])),
            name=draw(st.sampled_from(["", "chat", "embed", "search"])),
            start_unix_nano=draw(st.integers(0, 100)),
            end_unix_nano=draw(st.integers(0, 100)),
            attributes=draw(ATTRIBUTES),
            events=tuple(
                Event(
                    draw(
                        st.sampled_from(["exception", "gen_ai.choice", "gen_ai.user.message", "db.query.result"])
                    ),
                    0,
                    draw(ATTRIBUTES),
                )
                for _ in range(draw(st.integers(0, 2)))
            ),
            resource=Resource({"service.name": "s"}),
            flags=draw(st.sampled_from([0, 0x100, 0x300])),
        )
        for i in range(count)
    ]


RECORDS = st.builds(
    LogRecord,
    trace_id=st.just("a" * 32),
    span_id=st.sampled_from([f"{i:016x}" for i in range(5)]),
    event_name=st.sampled_from(
        ["gen_ai.choice", "gen_ai.user.message", "gen_ai.client.inference.operation.details", "x"]
    ),
    body=TREES,
    attributes=ATTRIBUTES,
)


@settings(max_examples=100, deadline=None)
@given(spans=spans(), logs=st.lists(RECORDS, max_size=3))
def test_no_value_makes_it_raise(spans: list[Span], logs: list[LogRecord]) -> None:
    result = Extractor(Options()).extract(spans, logs, complete=True)
    for found in result.found:
        json.dumps(
            [found.interaction.question, found.interaction.response, found.session], ensure_ascii=False
        ).encode()
        for passage in found.interaction.contexts or ():
            passage.text.encode()
