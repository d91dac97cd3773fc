"""Shapes that libraries emit, by their public documentation, beyond the recordings in tests/data."""

from __future__ import annotations

from collector.records.found import Mark
from tests.unit.extract.extract_builders import (
    ANSWER,
    DOCUMENTS,
    QUESTION,
    S,
    assert_whole,
    extract,
    j,
    oi_llm,
    oi_retriever,
    one,
    prompt,
    texts,
)

# --- OpenInference ---


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


# --- recorded by hand from small pipelines ---


def test_printed_fields_of_a_message_and_tool_json() -> None:
    printed = (
        f"id='19b9' source='user' models_usage=None metadata={{}} created_at=datetime.datetime(2026, 1, 2)"
        f" content={QUESTION!r} type='TextMessage'"
    )
    found = one(
        S(
            "helper.on_messages_stream",
            {
                "openinference.span.kind": "AGENT",
                "input.value": j({"messages": [printed], "token": "<x.Token object at 0x7f>"}),
            },
            [
                S(
                    "helper.search",
                    {
                        "openinference.span.kind": "TOOL",
                        "output.value": j([{"id": f"d{i}", "content": t} for i, t in enumerate(DOCUMENTS)]),
                        "output.mime_type": "application/json",
                    },
                ),
                oi_llm(QUESTION),
            ],
        )
    )
    assert_whole(found)


def test_contexts_in_the_input_of_a_step() -> None:
    given = {"context": list(DOCUMENTS), "question": QUESTION}
    step = {
        "openinference.span.kind": "CHAIN",
        "input.value": j(given),
        "output.value": j({"reasoning": "x", "answer": ANSWER}),
    }
    user = "[[ ## context ## ]]\n" + "\n".join(f"[{i}] «{t}»" for i, t in enumerate(DOCUMENTS, 1))
    root = {**step, "input.value": j({"question": QUESTION})}
    found = one(
        S("RAG.forward", root, [S("Predict.forward", step, [oi_llm(user, f"[[ ## answer ## ]]\n{ANSWER}")])])
    )
    assert_whole(found)


def test_documents_that_only_a_step_between_was_given() -> None:
    documents = [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["x", "Document"],
            "kwargs": {"page_content": t, "metadata": {"source": "s"}},
        }
        for t in DOCUMENTS
    ]
    joined = "\n\n".join(DOCUMENTS)
    found = one(
        S(
            "chain.workflow",
            {
                "traceloop.span.kind": "workflow",
                "traceloop.entity.input": j({"inputs": QUESTION, "tags": []}),
                "traceloop.entity.output": j({"outputs": ANSWER, "kwargs": {}}),
            },
            [
                S(
                    "RunnableLambda.task",
                    {
                        "traceloop.span.kind": "task",
                        "traceloop.entity.input": j({"inputs": documents}),
                        "traceloop.entity.output": j({"outputs": joined}),
                    },
                ),
                S(
                    "chat",
                    {
                        "llm.request.type": "chat",
                        "gen_ai.prompt.0.role": "user",
                        "gen_ai.prompt.0.content": f"Use the following context:\n{joined}\n\nQuestion: {QUESTION}",
                        "gen_ai.completion.0.content": ANSWER,
                    },
                ),
            ],
        )
    )
    assert_whole(found)


def test_agents_whose_model_calls_were_not_recorded() -> None:
    found = one(
        S(
            "Crew.kickoff",
            {
                "openinference.span.kind": "CHAIN",
                "input.value": j({"question": QUESTION}),
                "output.value": j({"raw": ANSWER, "pydantic": None, "tasks_output": []}),
            },
            [
                S(
                    "search.run",
                    {
                        "openinference.span.kind": "TOOL",
                        "output.value": j(
                            [{"id": f"d{i}", "text": t, "score": 0.5} for i, t in enumerate(DOCUMENTS)]
                        ),
                    },
                )
            ],
        )
    )
    assert_whole(found)


def test_a_search_service_alone_is_no_interaction() -> None:
    output = {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": "\n\n".join(DOCUMENTS)}
    assert extract(S("search", output, [oi_retriever()])).found == ()


def test_haystack_printed_replies() -> None:
    reply = (
        f"ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[TextContent(text={ANSWER!r})], _name=None,"
        " _meta={'model': 'm-1', 'usage': {'prompt_tokens': 4, 'completion_tokens': 2}})"
    )
    found = one(
        S(
            "Pipeline.run",
            {
                "openinference.span.kind": "CHAIN",
                "input.value": j({"data": {"retriever": {"query": QUESTION}, "prompt": {"question": QUESTION}}}),
                "output.value": j({"llm": {"replies": [reply]}}),
            },
            [oi_retriever(), oi_llm(prompt())],
        )
    )
    assert_whole(found)
