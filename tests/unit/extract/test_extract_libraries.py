"""Shapes that libraries emit, by their public documentation, beyond the recordings in tests/data."""

from __future__ import annotations

from typing import Any

import pytest

from collector.extract.options import Options
from collector.records.found import Mark, TokenUsage
from tests.unit.extract.extract_builders import (
    ANSWER,
    DOCUMENTS,
    QUESTION,
    S,
    genai_llm,
    j,
    log,
    oi_llm,
    oi_retriever,
    one,
    prompt,
    texts,
)


def assert_whole(found: Any, documents: Any = DOCUMENTS) -> None:
    assert found.interaction.question == QUESTION
    assert texts(found) == list(documents)
    assert found.interaction.response == ANSWER


# --- OpenInference --------------------------------------------------------------------------------------


def test_dspy_program_with_template_markers_in_prompt() -> None:
    numbered = "\n".join(f"[{i}] «{text}»" for i, text in enumerate(DOCUMENTS, 1))
    user = f"[[ ## context ## ]]\n{numbered}\n\n[[ ## question ## ]]\n{QUESTION}\n\nRespond with ..."
    found = one(
        S(
            "ChainOfThought.forward",
            {
                "openinference.span.kind": "CHAIN",
                "input.value": j({"question": QUESTION, "context": list(DOCUMENTS)}),
                "input.mime_type": "application/json",
                "output.value": j({"reasoning": "Ewes give it.", "answer": ANSWER}),
                "output.mime_type": "application/json",
            },
            [oi_retriever(), oi_llm(user, f"[[ ## reasoning ## ]]\nEwes.\n\n[[ ## answer ## ]]\n{ANSWER}")],
        )
    )
    assert_whole(found)


def test_smolagents_task_and_search_tool_text() -> None:
    found = one(
        S(
            "CodeAgent.run",
            {
                "openinference.span.kind": "AGENT",
                "input.value": j({"task": QUESTION, "stream": False, "max_steps": None}),
                "output.value": ANSWER,
            },
            [
                oi_llm(QUESTION, "Thought: search\nresults = retriever(...)"),
                S(
                    "RetrieverTool",
                    {
                        "openinference.span.kind": "TOOL",
                        "tool.name": "retriever",
                        "output.value": "\nRetrieved documents:\n" + "\n".join(DOCUMENTS),
                    },
                ),
                oi_llm(QUESTION, f"final_answer({ANSWER!r})"),
            ],
        )
    )
    assert found.interaction.question == QUESTION
    assert found.interaction.response == ANSWER
    assert Mark.UNSPLIT in found.marks


def test_agno_knowledge_search_tool_gives_json() -> None:
    documents = [{"content": text, "meta_data": {"page": i}, "name": "cheese"} for i, text in enumerate(DOCUMENTS)]
    found = one(
        S(
            "Agent.run",
            {"openinference.span.kind": "AGENT", "input.value": QUESTION, "output.value": ANSWER},
            [
                oi_llm(
                    QUESTION,
                    None,
                    **{"llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "search"},
                ),
                S(
                    "search_knowledge_base",
                    {
                        "openinference.span.kind": "TOOL",
                        "tool.name": "search_knowledge_base",
                        "input.value": j({"query": "ewe"}),
                        "output.value": j(documents),
                    },
                ),
                oi_llm(QUESTION),
            ],
        )
    )
    assert_whole(found)


def test_bedrock_retrieve_and_generate_is_one_span() -> None:
    found = one(
        S(
            "bedrock.retrieve_and_generate",
            {
                **oi_retriever().attributes,
                "output.value": ANSWER,
            },
        )
    )
    assert_whole(found)


def test_bedrock_converse_content_blocks() -> None:
    found = one(
        S(
            "chain",
            {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": ANSWER},
            [
                oi_retriever(),
                S(
                    "bedrock.converse",
                    {
                        "openinference.span.kind": "LLM",
                        "input.value": j({"messages": [{"role": "user", "content": [{"text": prompt()}]}]}),
                        "output.value": j(
                            {"output": {"message": {"role": "assistant", "content": [{"text": ANSWER}]}}}
                        ),
                        "llm.model_name": "m-1",
                    },
                ),
            ],
        )
    )
    assert_whole(found)
    assert Mark.UNVERIFIED_CONTEXTS not in found.marks


def test_anthropic_message_contents_and_tool_result() -> None:
    base = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "c-1",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.0.message.contents.0.message_content.text": QUESTION,
    }
    second = {
        **base,
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "search_docs",
        "llm.input_messages.2.message.role": "user",
        "llm.input_messages.2.message.tool_call_id": "t1",
        "llm.input_messages.2.message.content": j(
            [{"id": f"d{i}", "text": t, "score": 0.5} for i, t in enumerate(DOCUMENTS)]
        ),
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.contents.0.message_content.type": "text",
        "llm.output_messages.0.message.contents.0.message_content.text": ANSWER,
    }
    found = one(S("request", {}, [S("messages", base), S("messages", second)]))
    assert_whole(found)


def test_autogen_messages_with_a_source() -> None:
    found = one(
        S(
            "AssistantAgent.run",
            {
                "openinference.span.kind": "AGENT",
                "input.value": j({"task": QUESTION}),
                "output.value": j(
                    {
                        "messages": [
                            {"source": "user", "content": QUESTION, "type": "TextMessage"},
                            {"source": "helper", "content": ANSWER, "type": "TextMessage"},
                        ],
                        "stop_reason": None,
                    }
                ),
            },
            [oi_retriever(), oi_llm(prompt())],
        )
    )
    assert_whole(found)


def test_responses_api_message_contents() -> None:
    found = one(
        S(
            "root",
            {"openinference.span.kind": "CHAIN", "input.value": QUESTION},
            [
                oi_retriever(),
                oi_llm(
                    prompt(),
                    None,
                    **{
                        "llm.output_messages.0.message.role": "assistant",
                        "llm.output_messages.0.message.contents.0.message_content.type": "reasoning",
                        "llm.output_messages.0.message.contents.0.message_content.text": "thinking",
                        "llm.output_messages.1.message.role": "assistant",
                        "llm.output_messages.1.message.contents.0.message_content.type": "text",
                        "llm.output_messages.1.message.contents.0.message_content.text": ANSWER,
                    },
                ),
            ],
        )
    )
    assert found.interaction.response == ANSWER


def test_reranker_spans_replace_the_retrieval() -> None:
    reranker = S(
        "rerank",
        {
            "openinference.span.kind": "RERANKER",
            "reranker.query": QUESTION,
            "reranker.output_documents.0.document.id": "d1",
            "reranker.output_documents.0.document.content": DOCUMENTS[1],
            "reranker.output_documents.0.document.score": 0.99,
            "reranker.output_documents.1.document.id": "d0",
            "reranker.output_documents.1.document.content": DOCUMENTS[0],
            "reranker.output_documents.1.document.score": 0.7,
        },
    )
    found = one(
        S(
            "chain",
            {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": ANSWER},
            [oi_retriever(), reranker, oi_llm(prompt([DOCUMENTS[1], DOCUMENTS[0]]))],
        )
    )
    assert texts(found) == [DOCUMENTS[1], DOCUMENTS[0]]
    assert [p.score for p in found.interaction.contexts or ()] == [0.99, 0.7]
    assert [p.id for p in found.unused_passages] == ["d2"]


def test_guardrail_and_title_models_are_not_the_answer() -> None:
    guard = S("guard", {"openinference.span.kind": "GUARDRAIL"}, [oi_llm("Is this safe?", "safe")])
    found = one(
        S(
            "chain",
            {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": ANSWER},
            [oi_retriever(), oi_llm(prompt()), oi_llm("Write a title", "Ewes and cheese"), guard],
        )
    )
    assert_whole(found)
    assert found.rules["response"] == "model_reply"


def test_multi_query_retriever_is_one_retrieval() -> None:
    outer = oi_retriever()
    outer.children = [
        oi_llm("Write two queries", "ewe cheese\nsheep cheese"),
        oi_retriever([DOCUMENTS[0]], "ewe cheese"),
        oi_retriever([DOCUMENTS[1], DOCUMENTS[2]], "sheep cheese"),
    ]
    found = one(
        S(
            "chain",
            {"openinference.span.kind": "CHAIN", "input.value": j({"input": QUESTION}), "output.value": ANSWER},
            [outer, oi_llm(prompt())],
        )
    )
    assert_whole(found)


def test_hyde_query_is_not_the_question() -> None:
    guess = "Ewe cheese is often blue and comes from France."
    found = one(
        S(
            "POST",
            {},
            [
                oi_llm(f"Write a passage that answers: {QUESTION}", guess),
                oi_retriever(query=guess),
                oi_llm(prompt()),
            ],
        )
    )
    assert_whole(found)
    assert found.rewritten_query == guess


# --- OpenTelemetry GenAI ---------------------------------------------------------------------------------


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


# --- OpenLLMetry -----------------------------------------------------------------------------------------


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


# --- others ----------------------------------------------------------------------------------------------


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
