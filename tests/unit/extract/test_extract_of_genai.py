"""Shapes that libraries emit, by their public documentation, beyond the recordings in tests/data."""

from __future__ import annotations

from collector.records.found import Mark, TokenUsage
from tests.unit.extract.extract_builders import (
    ANSWER,
    DOCUMENTS,
    QUESTION,
    S,
    assert_whole,
    genai_llm,
    j,
    log,
    one,
    prompt,
    texts,
)

# --- OpenTelemetry GenAI ---


def test_strands_events_on_agent_and_model_spans() -> None:
    content = j([{"text": QUESTION}])
    documents = [{"id": f"d{i}", "text": text, "score": 0.4} for i, text in enumerate(DOCUMENTS)]
    result = j([{"text": j(documents)}])
    found = one(
        S(
            "invoke_agent Helper",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.system": "strands-agents", "session.id": "s-1"},
            [
                S(
                    "execute_event_loop_cycle",
                    {"gen_ai.system": "strands-agents"},
                    [
                        S(
                            "chat",
                            {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
                            events=[
                                ("gen_ai.user.message", {"content": content}),
                                (
                                    "gen_ai.choice",
                                    {"finish_reason": "tool_use", "message": j([{"toolUse": {"name": "search"}}])},
                                ),
                            ],
                        ),
                        S(
                            "execute_tool search",
                            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"},
                            events=[
                                ("gen_ai.tool.message", {"role": "tool", "content": j({"q": "ewe"}), "id": "1"}),
                                ("gen_ai.choice", {"message": result, "id": "1"}),
                            ],
                        ),
                    ],
                ),
                S(
                    "chat",
                    {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 5},
                    events=[
                        ("gen_ai.user.message", {"content": content}),
                        ("gen_ai.assistant.message", {"content": j([{"toolUse": {"name": "search"}}])}),
                        (
                            "gen_ai.tool.message",
                            {"content": j([{"toolResult": {"content": [{"text": j(documents)}]}}])},
                        ),
                        ("gen_ai.choice", {"finish_reason": "end_turn", "message": j([{"text": ANSWER}])}),
                    ],
                ),
            ],
            events=[
                ("gen_ai.user.message", {"content": content}),
                ("gen_ai.choice", {"message": ANSWER, "finish_reason": "end_turn"}),
            ],
        )
    )
    assert_whole(found)
    assert found.session == "s-1"


def test_azure_event_content_is_json() -> None:
    found = one(
        S(
            "request",
            {},
            [
                S(
                    "retrieval kb",
                    {
                        "gen_ai.operation.name": "retrieval",
                        "gen_ai.retrieval.query.text": QUESTION,
                        "gen_ai.retrieval.documents": j([{"id": "a", "content": t} for t in DOCUMENTS]),
                    },
                ),
                S(
                    "chat gpt",
                    {
                        "gen_ai.operation.name": "chat",
                        "gen_ai.request.model": "m",
                        "gen_ai.system": "az.ai.inference",
                    },
                    events=[
                        (
                            "gen_ai.user.message",
                            {"gen_ai.event.content": j({"role": "user", "content": prompt()})},
                        ),
                        (
                            "gen_ai.choice",
                            {"gen_ai.event.content": j({"message": {"content": ANSWER}, "index": 0})},
                        ),
                    ],
                ),
            ],
        )
    )
    assert_whole(found)


def test_semantic_kernel_content_events() -> None:
    found = one(
        S(
            "request",
            {},
            [
                S(
                    "chat.completions gpt",
                    {
                        "gen_ai.operation.name": "chat.completions",
                        "gen_ai.system": "openai",
                        "gen_ai.request.model": "m",
                    },
                    events=[
                        ("gen_ai.content.prompt", {"gen_ai.prompt": j([{"role": "user", "content": prompt()}])}),
                        (
                            "gen_ai.content.completion",
                            {
                                "gen_ai.completion": j(
                                    [
                                        {
                                            "message": {"role": "assistant", "content": ANSWER},
                                            "finish_reason": "stop",
                                        }
                                    ]
                                )
                            },
                        ),
                    ],
                ),
            ],
        )
    )
    assert_whole(found)


def test_spring_ai_vector_store_response_documents() -> None:
    found = one(
        S(
            "http post /ask",
            {},
            [
                S(
                    "vector_store query",
                    {
                        "db.system": "pg_vector",
                        "db.operation.name": "query",
                        "db.vector.query.content": QUESTION,
                        "db.vector.query.response.documents": j(list(DOCUMENTS)),
                    },
                ),
                genai_llm(prompt()),
            ],
        )
    )
    assert_whole(found)


def test_documents_without_ids_or_scores() -> None:
    found = one(
        S(
            "request",
            {},
            [
                S(
                    "retrieval",
                    {
                        "gen_ai.operation.name": "retrieval",
                        "gen_ai.retrieval.documents": j([{"content": t} for t in DOCUMENTS]),
                    },
                ),
                genai_llm(prompt()),
            ],
        )
    )
    assert_whole(found)
    assert [p.id for p in found.interaction.contexts or ()] == [None, None, None]


def test_ids_only_and_a_prompt_that_can_not_be_split() -> None:
    found = one(
        S(
            "request",
            {},
            [
                S(
                    "retrieval",
                    {
                        "gen_ai.operation.name": "retrieval",
                        "gen_ai.retrieval.query.text": QUESTION,
                        "gen_ai.retrieval.documents": j([{"id": "a", "score": 0.5}, {"id": "b", "score": 0.4}]),
                    },
                ),
                genai_llm("### Context\n\none\n\ntwo\n\nthree\n\n### Question\n\n" + QUESTION),
            ],
        )
    )
    assert [(p.id, p.text) for p in found.interaction.contexts or ()] == [("a", ""), ("b", "")]
    assert Mark.UNSPLIT in found.marks
    assert found.interaction.question == QUESTION


def test_responses_api_items_with_file_search() -> None:
    hits = [{"file_id": f"f{i}", "filename": "a.md", "score": 0.5, "text": t} for i, t in enumerate(DOCUMENTS)]
    found = one(
        S(
            "responses m",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "m",
                "gen_ai.input.messages": j([{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]),
                "gen_ai.output.messages": j(
                    [
                        {
                            "role": "assistant",
                            "parts": [
                                {"type": "server_tool_call", "name": "file_search", "results": hits},
                                {"type": "text", "content": ANSWER},
                            ],
                        }
                    ]
                ),
            },
        )
    )
    assert found.interaction.response == ANSWER
    assert texts(found) == list(DOCUMENTS)


def test_log_events_with_string_bodies() -> None:
    found = one(
        S(
            "request",
            {},
            [
                S(
                    "chat m",
                    {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
                    logs=[
                        log("gen_ai.user.message", j({"content": prompt()})),
                        log("gen_ai.choice", j({"index": 0, "message": {"role": "assistant", "content": ANSWER}})),
                    ],
                )
            ],
        )
    )
    assert_whole(found)


def test_gemini_parts_of_the_development_kit() -> None:
    found = one(
        S(
            "invocation",
            {},
            [
                S(
                    "call_llm",
                    {
                        "gen_ai.system": "gcp.vertex.agent",
                        "gen_ai.request.model": "g",
                        "gcp.vertex.agent.session_id": "s-9",
                        "gcp.vertex.agent.llm_request": j(
                            {
                                "model": "g",
                                "contents": [
                                    {"role": "user", "parts": [{"text": QUESTION}]},
                                    {"role": "model", "parts": [{"function_call": {"name": "search"}}]},
                                    {
                                        "role": "user",
                                        "parts": [
                                            {
                                                "function_response": {
                                                    "name": "search",
                                                    "response": {
                                                        "result": [{"id": "a", "content": t} for t in DOCUMENTS]
                                                    },
                                                }
                                            }
                                        ],
                                    },
                                ],
                            }
                        ),
                        "gcp.vertex.agent.llm_response": j(
                            {
                                "content": {"role": "model", "parts": [{"text": ANSWER}]},
                                "usage_metadata": {"prompt_token_count": 7, "candidates_token_count": 3},
                            }
                        ),
                    },
                )
            ],
        )
    )
    assert_whole(found)
    assert found.session == "s-9"
    assert found.usage == TokenUsage(7, 3)


# --- OpenLLMetry ---


def test_old_flat_prompt_with_anthropic_blocks() -> None:
    found = one(
        S(
            "ask.workflow",
            {
                "traceloop.span.kind": "workflow",
                "traceloop.entity.input": j({"args": ["<__main__.App object at 0x7f00>", QUESTION], "kwargs": {}}),
                "traceloop.entity.output": j(ANSWER),
                "traceloop.association.properties.user_id": "u-1",
            },
            [
                S(
                    "pinecone.query",
                    {"db.system": "Pinecone"},
                    events=[
                        (
                            "db.query.result",
                            {
                                "db.query.result.id": f"p{i}",
                                "db.query.result.score": 0.5,
                                "db.query.result.metadata": j({"text": t}),
                            },
                        )
                        for i, t in enumerate(DOCUMENTS)
                    ],
                ),
                S(
                    "anthropic.chat",
                    {
                        "llm.request.type": "chat",
                        "gen_ai.system": "Anthropic",
                        "gen_ai.request.model": "c",
                        "gen_ai.prompt.0.role": "user",
                        "gen_ai.prompt.0.content": j([{"type": "text", "text": prompt()}]),
                        "gen_ai.completion.0.role": "assistant",
                        "gen_ai.completion.0.content": ANSWER,
                        "gen_ai.usage.prompt_tokens": 11,
                        "gen_ai.usage.completion_tokens": 4,
                    },
                ),
            ],
        )
    )
    assert_whole(found)
    assert [p.id for p in found.interaction.contexts or ()] == ["p0", "p1", "p2"]
    assert found.user == "u-1"
    assert found.usage == TokenUsage(11, 4)


def test_milvus_search_result_entities() -> None:
    hits = [
        (
            "db.search.result",
            {
                "db.search.result.id": i,
                "db.search.result.distance": "0.2",
                "db.search.result.entity": j({"text": t}),
            },
        )
        for i, t in enumerate(DOCUMENTS)
    ]
    found = one(S("r", {}, [S("milvus.search", {"db.system": "milvus"}, events=hits), genai_llm(prompt())]))
    assert_whole(found)
    assert [p.distance for p in found.interaction.contexts or ()] == [0.2, 0.2, 0.2]
