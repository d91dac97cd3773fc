"""Shapes that libraries emit, by their public documentation, beyond the recordings in tests/data."""

from __future__ import annotations

from typing import Any

import pytest

from collector.extract.options import Options
from collector.records.found import TokenUsage
from tests.unit.extract.extract_builders import (
    ANSWER,
    DOCUMENTS,
    QUESTION,
    S,
    assert_whole,
    genai_llm,
    j,
    one,
    prompt,
)

# --- others ---


@pytest.mark.parametrize(
    "given",
    [{"ai.prompt": j({"prompt": prompt()})}, {"ai.prompt.messages": j([{"role": "user", "content": prompt()}])}],
)
def test_vercel_version_3_keys(given: dict[str, str]) -> None:
    found = one(
        S(
            "ai.generateText",
            {"ai.operationId": "ai.generateText", "ai.prompt": j({"prompt": prompt()}), "ai.result.text": ANSWER},
            [
                S(
                    "ai.generateText.doGenerate",
                    {
                        "ai.operationId": "ai.generateText.doGenerate",
                        "ai.model.id": "m",
                        "ai.result.text": ANSWER,
                        "ai.usage.promptTokens": 9,
                        "ai.usage.completionTokens": 2,
                        "ai.telemetry.metadata.userId": "u",
                        **given,
                    },
                )
            ],
        )
    )
    assert_whole(found)
    assert found.usage == TokenUsage(9, 2)
    assert (found.model, found.user) == ("m", "u")


def test_logfire_request_and_response_data() -> None:
    found = one(
        S(
            "answer",
            {},
            [
                S("search", {"query": QUESTION, "documents": j([{"content": t} for t in DOCUMENTS])}),
                S(
                    "Chat Completion",
                    {
                        "request_data": j({"model": "m", "messages": [{"role": "user", "content": prompt()}]}),
                        "response_data": j(
                            {
                                "message": {"role": "assistant", "content": ANSWER},
                                "usage": {"prompt_tokens": 3, "completion_tokens": 1},
                            }
                        ),
                    },
                ),
            ],
        )
    )
    assert_whole(found)
    assert found.usage == TokenUsage(3, 1)


def test_pydantic_ai_first_version_events() -> None:
    events = [
        {"event.name": "gen_ai.user.message", "content": prompt(), "role": "user", "gen_ai.message.index": 0},
        {"event.name": "gen_ai.choice", "message": {"role": "assistant", "content": ANSWER}, "index": 0},
    ]
    found = one(
        S(
            "agent run",
            {"all_messages_events": j(events), "final_result": ANSWER, "agent_name": "a"},
            [
                S(
                    "chat m",
                    {
                        "gen_ai.operation.name": "chat",
                        "gen_ai.request.model": "m",
                        "model_request_parameters": "{}",
                        "events": j(events),
                    },
                )
            ],
        )
    )
    assert_whole(found)


def test_langfuse_without_types() -> None:
    found = one(
        S(
            "answer",
            {
                "langfuse.observation.input": j({"question": QUESTION}),
                "langfuse.observation.output": ANSWER,
                "langfuse.user.id": "u",
            },
            [
                S(
                    "search",
                    {"langfuse.observation.type": "retriever", "langfuse.observation.output": j(list(DOCUMENTS))},
                ),
                S(
                    "gen",
                    {
                        "langfuse.observation.model.name": "m",
                        "langfuse.observation.input": j([{"role": "user", "content": prompt()}]),
                        "langfuse.observation.output": j({"role": "assistant", "content": ANSWER}),
                        "langfuse.observation.usage_details": j({"input": 5, "output": 2, "total": 7}),
                    },
                ),
            ],
        )
    )
    assert_whole(found)
    assert (found.user, found.usage) == ("u", TokenUsage(5, 2))


def test_trulens_spans() -> None:
    found = one(
        S(
            "root",
            {
                "ai.observability.span_type": "record_root",
                "ai.observability.record_root.input": QUESTION,
                "ai.observability.record_root.output": ANSWER,
            },
            [
                S(
                    "retrieve",
                    {
                        "ai.observability.span_type": "retrieval",
                        "ai.observability.retrieval.query_text": QUESTION,
                        "ai.observability.retrieval.retrieved_contexts": list(DOCUMENTS),
                    },
                ),
                S(
                    "generate",
                    {"ai.observability.span_type": "generation", "ai.observability.call.return": ANSWER},
                ),
            ],
        )
    )
    assert_whole(found)


def test_own_attributes_by_configuration() -> None:
    options = Options(
        question_keys=("app.ask",),
        response_keys=("app.say",),
        documents_keys=("app.found",),
        tenant_keys=("app.customer",),
    )
    found = one(
        S(
            "POST /ask",
            {"app.ask": QUESTION, "app.say": ANSWER, "app.customer": "c-1"},
            [S("lookup", {"app.found": j([{"id": "x", "body": t, "similarity": 0.3} for t in DOCUMENTS])})],
        ),
        options=options,
    )
    assert_whole(found)
    assert found.tenant == "c-1"
    assert [p.score for p in found.interaction.contexts or ()] == [0.3, 0.3, 0.3]


@pytest.mark.parametrize(
    "key", ["text", "content", "page_content", "body", "chunk", "passage", "snippet", "chunk_text"]
)
def test_document_text_goes_by_many_names(key: str) -> None:
    found = one(
        S(
            "r",
            {},
            [
                S("search", {"rag.documents": j([{key: t, "id": i} for i, t in enumerate(DOCUMENTS)])}),
                genai_llm(prompt()),
            ],
        )
    )
    assert_whole(found)
    assert [p.id for p in found.interaction.contexts or ()] == ["0", "1", "2"]


PRINTED = ", ".join(
    f"Document(id='d{i}', metadata={{'score': 0.5}}, page_content={text!r})" for i, text in enumerate(DOCUMENTS)
)


@pytest.mark.parametrize(
    "documents",
    [
        [
            [{"page_content": t, "metadata": {"doc_id": f"d{i}"}, "type": "Document"}, 0.5]
            for i, t in enumerate(DOCUMENTS)
        ],
        [{"node": {"id_": f"d{i}", "text": t, "metadata": {}}, "score": 0.5} for i, t in enumerate(DOCUMENTS)],
        [j({"node": {"id_": f"d{i}", "text": t}, "score": 0.5}) for i, t in enumerate(DOCUMENTS)],
        [{"id": f"d{i}", "score": 0.5, "payload": {"text": t}} for i, t in enumerate(DOCUMENTS)],
        [{"_id": f"d{i}", "_score": 0.5, "_source": {"content": t}} for i, t in enumerate(DOCUMENTS)],
        [
            {"content": {"text": t}, "score": 0.5, "metadata": {"chunk_id": f"d{i}"}}
            for i, t in enumerate(DOCUMENTS)
        ],
        {"ids": [["d0", "d1", "d2"]], "documents": [list(DOCUMENTS)], "scores": [[0.5, 0.5, 0.5]]},
        {"matches": [{"id": f"d{i}", "score": 0.5, "metadata": {"text": t}} for i, t in enumerate(DOCUMENTS)]},
        [
            {
                "lc": 1,
                "id": ["langchain", "Document"],
                "kwargs": {"page_content": t, "metadata": {"id": f"d{i}", "score": 0.5}},
            }
            for i, t in enumerate(DOCUMENTS)
        ],
        f"[{PRINTED}]",
    ],
    ids=[
        "pairs",
        "nodes",
        "json_nodes",
        "qdrant",
        "elastic",
        "bedrock",
        "columns",
        "pinecone",
        "serialised",
        "printed",
    ],
)
def test_documents_in_many_shapes(documents: Any) -> None:
    output = documents if isinstance(documents, str) else j(documents)
    found = one(
        S(
            "r",
            {},
            [S("search", {"mlflow.spanType": '"RETRIEVER"', "mlflow.spanOutputs": output}), genai_llm(prompt())],
        )
    )
    assert_whole(found)
    assert [p.id for p in found.interaction.contexts or ()] == ["d0", "d1", "d2"]
    assert [p.score for p in found.interaction.contexts or ()] == [0.5, 0.5, 0.5]
