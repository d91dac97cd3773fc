"""Shapes that other libraries and flows showed: several searches, refined answers, own attributes, odd values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from collector.extract.extractor import Extractor
from collector.extract.options import Options
from collector.extract.paths import pick
from collector.records.found import Found, Mark, TokenUsage
from scorers.interaction import Damage, Field
from tests.unit.extract.extract_builders import (
    ANSWER,
    DOCUMENTS,
    QUESTION,
    S,
    assert_whole,
    extract,
    genai_llm,
    j,
    log,
    oi_llm,
    oi_retriever,
    one,
    prompt,
    texts,
    tree,
)


def chain(*children: S, question: object = QUESTION, answer: object = ANSWER, **more: Any) -> S:
    attributes: dict[str, Any] = {"openinference.span.kind": "CHAIN", **more}
    if question is not None:
        attributes["input.value"] = question
    if answer is not None:
        attributes["output.value"] = answer
    return S("ask", attributes, children, error=bool(more.get("error.type")))


def ids(found: Found) -> list[str | None]:
    return [passage.id for passage in found.interaction.contexts or ()]


# --- contexts --------------------------------------------------------------------------------------------


def test_a_document_of_two_searches_counts_as_often_as_the_prompt_holds_it() -> None:
    searches = (oi_retriever(DOCUMENTS[:2]), oi_retriever(DOCUMENTS[1:]))
    assert texts(one(chain(*searches, oi_llm(prompt())))) == list(DOCUMENTS)
    twice = [*DOCUMENTS[:2], *DOCUMENTS[1:]]
    assert texts(one(chain(*searches, oi_llm(prompt(twice))))) == twice


def test_documents_of_several_steps_are_put_together_where_the_prompt_holds_them() -> None:
    def step(*given: str) -> S:
        value = j([{"id": f"d{DOCUMENTS.index(t)}", "text": t, "score": 0.5} for t in given])
        return S("step", {"traceloop.span.kind": "task", "traceloop.entity.output": value})

    answer = {"gen_ai.prompt.0.role": "user", "gen_ai.completion.0.content": ANSWER, "llm.request.type": "chat"}
    call = S("call", {**answer, "gen_ai.prompt.0.content": prompt()})
    top = {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.input": j({"args": [QUESTION]}),
        "traceloop.entity.output": j(ANSWER),
    }
    found = one(S("top", top, [step(DOCUMENTS[0]), step(*DOCUMENTS[1:]), call]))
    assert_whole(found)
    narrowed = one(
        S("top", top, [step(*DOCUMENTS), step(DOCUMENTS[2]), replace_prompt(call, prompt(DOCUMENTS[2:]))])
    )
    assert texts(narrowed) == [DOCUMENTS[2]]


def replace_prompt(call: S, text: str) -> S:
    return replace(call, attributes={**call.attributes, "gen_ai.prompt.0.content": text})


def test_what_an_answer_was_refined_from_is_a_context_too() -> None:
    draft = "A first answer, which was made from the first document alone."
    first = oi_llm(prompt(DOCUMENTS[:1]), draft)
    last = oi_llm(f"Refine this answer: {draft}\n{prompt(DOCUMENTS[1:])}")
    assert texts(one(chain(oi_retriever(), first, last))) == list(DOCUMENTS)
    apart = oi_llm(f"Another task.\n{prompt(DOCUMENTS[1:])}")
    assert texts(one(chain(oi_retriever(), first, apart))) == list(DOCUMENTS[1:])


@pytest.mark.parametrize("marker", ["(none)", "No relevant documents were found.", "N/A", "없음"])
def test_a_context_block_that_says_nothing_was_found_is_no_document(marker: str) -> None:
    found = one(chain(oi_llm(f"Documents:\n{marker}\n\nQuestion: {QUESTION}")))
    assert found.interaction.contexts == ()
    assert Mark.NOT_RAG not in found.marks


def test_a_search_tool_that_gives_an_empty_list_found_nothing() -> None:
    tool = S("t", {"openinference.span.kind": "TOOL", "tool.name": "search_docs", "output.value": "[]"})
    found = one(chain(tool, oi_llm(QUESTION)))
    assert found.interaction.contexts == ()
    assert Field.CONTEXTS not in found.interaction.damage


def test_a_tools_result_that_was_hidden_is_not_a_document() -> None:
    tool = S("t", {"openinference.span.kind": "TOOL", "tool.name": "search_docs", "output.value": "__REDACTED__"})
    found = one(chain(tool, oi_llm(QUESTION, "__REDACTED__"), answer="__REDACTED__"))
    assert texts(found) is None
    assert found.interaction.damage[Field.CONTEXTS] is Damage.HIDDEN


def test_passages_behind_ids_in_brackets() -> None:
    block = "\n".join(f"[note-{i}] {text}" for i, text in enumerate(DOCUMENTS))
    found = one(chain(oi_llm(f"Documents:\n{block}\n\nQuestion: {QUESTION}")))
    assert_whole(found)
    assert ids(found) == ["note-0", "note-1", "note-2"]


def test_a_second_list_of_passages_leaves_the_first_in_doubt() -> None:
    lists = "\n".join(f"[{n}] {text}" for n, text in ((1, "one"), (2, "two"), (1, "three"), (2, "four")))
    found = one(chain(oi_llm(f"Documents:\n{lists}\n\nQuestion: {QUESTION}")))
    assert found.interaction.damage[Field.CONTEXTS] is Damage.UNSPLIT


def test_a_distance_that_falls_with_the_rank_is_a_score() -> None:
    def store(*numbers: float) -> S:
        hits = [
            (
                "db.search.result",
                {"db.search.result.id": str(i), "db.search.result.distance": str(n), "text": text},
            )
            for i, (n, text) in enumerate(zip(numbers, DOCUMENTS, strict=True))
        ]
        return S("search", {"db.system": "milvus", "db.operation": "search"}, events=hits)

    def numbers(found: Found) -> list[tuple[float | None, float | None]]:
        return [(p.score, p.distance) for p in found.interaction.contexts or ()]

    assert numbers(one(chain(store(0.9, 0.5, 0.1), oi_llm(prompt())))) == [(0.9, None), (0.5, None), (0.1, None)]
    assert numbers(one(chain(store(0.1, 0.5, 0.9), oi_llm(prompt())))) == [(None, 0.1), (None, 0.5), (None, 0.9)]


# --- question and answer ---------------------------------------------------------------------------------


def test_a_question_that_looks_like_a_prompt_is_one_where_the_documents_stand_elsewhere() -> None:
    odd = "Context: I read about cheese.\nQuestion: which one is from ewes?"
    assert one(chain(oi_retriever(), oi_llm(prompt(question=odd)), question=odd)).interaction.question == odd
    bare = f"<context>{' '.join(DOCUMENTS)}</context>\n\n{odd}"
    alone = one(oi_retriever(DOCUMENTS[:1], "one"), oi_retriever(DOCUMENTS[1:], "other"), oi_llm(bare))
    assert alone.interaction.question is None  # where it begins can not be told


def test_the_query_that_a_cut_input_holds_whole_is_the_question() -> None:
    given = (j({"args": [QUESTION, [{"role": "user", "content": "x" * 400}]]}))[:200]
    found = one(chain(oi_retriever(), oi_llm(("y" * 300)[:200]), question=given))
    assert found.interaction.question == QUESTION


def test_a_failure_written_into_the_output_is_no_answer() -> None:
    failed = S("llm", {"openinference.span.kind": "LLM", "llm.model_name": "m"}, error=True, message="refused")
    top = chain(oi_retriever(), failed, answer="refused", **{"error.type": "E"})
    found = one(top)
    assert found.interaction.response is None
    assert found.error is not None


def test_a_stream_that_was_not_read_is_no_answer() -> None:
    assert_whole(one(chain(oi_retriever(), oi_llm(prompt()), answer="<generator object>")))


def test_thoughts_before_the_answer_and_observations_are_left_out() -> None:
    steps = {
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.content": "Thought: look\nAction: search",
        "llm.input_messages.2.message.role": "user",
        "llm.input_messages.2.message.content": f"Observation: {DOCUMENTS[0]}",
    }
    found = one(oi_retriever(DOCUMENTS[:1]), oi_llm(QUESTION, f"Thought: I know.\nAnswer: {ANSWER}", **steps))
    assert_whole(found, DOCUMENTS[:1])


def test_turns_of_a_batch_do_not_take_the_batchs_own_input() -> None:
    turns = [chain(oi_retriever(), oi_llm(prompt(question=q), a), question=q, answer=a) for q, a in PAIRS]
    batch = chain(*turns, question=j({"args": [["a", "b"]]}), answer=j([a for _, a in PAIRS]))
    found = extract(batch).found
    assert [(f.interaction.question, f.interaction.response) for f in found] == PAIRS


PAIRS = [(QUESTION, ANSWER), ("How long does Comté ripen?", "For four months at least.")]


def test_pieces_of_a_stream_told_as_choices_are_one_answer() -> None:
    words = ANSWER.split(" ")
    last = len(words) - 1
    pieces = [
        log(
            "gen_ai.choice",
            {"index": i, "content": {"parts": [{"text": w + " " * (i < last), "function_call": None}]}}
            | ({"finish_reason": "STOP"} if i == last else {}),
        )
        for i, w in enumerate(words)
    ]
    asked = log("gen_ai.user.message", {"content": {"parts": [{"text": QUESTION, "function_call": None}]}})
    call = S(
        "generate",
        {"gen_ai.operation.name": "generate_content", "gen_ai.request.model": "m"},
        logs=[asked, *pieces],
    )
    assert one(oi_retriever(), call).interaction.response == ANSWER


# --- conventions and attributes --------------------------------------------------------------------------


def test_genkit() -> None:
    def action(kind: str, given: object, gave: object, *children: S) -> S:
        return S(
            kind,
            {
                "genkit:type": "action",
                "genkit:metadata:subtype": kind,
                "genkit:input": j(given),
                "genkit:output": j(gave),
            },
            children,
        )

    found = {
        "documents": [{"content": [{"text": t}], "metadata": {"id": f"d{i}"}} for i, t in enumerate(DOCUMENTS)]
    }
    reply = {
        "message": {"role": "model", "content": [{"text": ANSWER}]},
        "usage": {"inputTokens": 5, "outputTokens": 2},
    }
    asked = {"messages": [{"role": "user", "content": [{"text": prompt()}]}]}
    item = one(
        action(
            "flow",
            {"question": QUESTION, "sessionId": "s", "userId": "u", "tenant": "t"},
            ANSWER,
            action("retriever", {"query": {"content": [{"text": QUESTION}]}}, found),
            action("model", asked, reply),
        )
    )
    assert_whole(item)
    assert (item.session, item.user, item.tenant) == ("s", "u", "t")
    assert item.usage == TokenUsage(5, 2)
    assert item.convention == "genkit"


def test_laminar() -> None:
    def span(given: object, gave: object, *children: S) -> S:
        attributes = {"lmnr.span.type": "DEFAULT", "lmnr.span.input": j(given), "lmnr.span.output": j(gave)}
        return S("f", attributes, children)

    hits = [{"id": f"d{i}", "content": t, "score": 0.5 - i / 10} for i, t in enumerate(DOCUMENTS)]
    call = genai_llm(prompt(), **{"lmnr.span.type": "LLM"})
    assert_whole(one(span({"question": QUESTION}, ANSWER, span({"query": QUESTION}, hits), call)))


def test_bytes_are_read_as_text() -> None:
    def run(kind: str, given: object, gave: object, *children: S) -> S:
        attributes = {"langsmith.span.kind": kind, "gen_ai.prompt": j(given), "gen_ai.completion": j(gave)}
        return S(kind, attributes, children)

    hits = [{"page_content": t, "metadata": {"id": f"d{i}"}, "type": "Document"} for i, t in enumerate(DOCUMENTS)]
    messages = {"messages": [{"role": "user", "content": prompt()}]}
    choice = {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}
    spans, logs = tree(
        run(
            "chain",
            {"question": QUESTION},
            {"output": ANSWER},
            run("retriever", {"query": QUESTION}, {"output": hits}),
            run("llm", messages, choice),
        )
    )
    raw = [
        replace(
            s, attributes={k: str(v).encode() if k.startswith("gen_ai") else v for k, v in s.attributes.items()}
        )
        for s in spans
    ]
    (found,) = Extractor(Options()).extract(raw, logs, complete=True).found
    assert_whole(found)


def test_lists_of_ids_and_scores_beside_the_documents() -> None:
    own = {
        "app.question": QUESTION,
        "app.answer": ANSWER,
        "app.contexts": list(DOCUMENTS),
        "app.context_ids": ["a", "b", "c"],
        "app.context_scores": [0.3, 0.2, 0.1],
    }
    found = one(S("rag", own))
    assert ids(found) == ["a", "b", "c"]
    assert [p.score for p in found.interaction.contexts or ()] == [0.3, 0.2, 0.1]
    short = one(S("rag", {**own, "app.context_ids": ["a", "b"]}))
    assert ids(short) == [None, None, None]


def test_configured_keys_reach_into_json() -> None:
    hits = {
        "hits": {
            "hits": [{"_id": f"d{i}", "_source": {"body": t}, "_score": 2.0} for i, t in enumerate(DOCUMENTS)]
        }
    }
    options = Options(
        question_keys=("request.body:$.payload.text",),
        response_keys=("response.body:data.answer",),
        documents_keys=("db.body:hits.hits[*]._source.body",),
        context_ids_keys=("db.body:hits.hits[*]._id",),
        context_scores_keys=("db.body:hits.hits[*]._score",),
        session_keys=("request.body:$.conversation.id",),
        model_keys=("own.model",),
        input_tokens_keys=("own.tokens",),
    )
    top = {
        "request.body": j({"payload": {"text": QUESTION}, "conversation": {"id": "s-1"}}),
        "response.body": j({"data": {"answer": ANSWER}}),
        "own.model": "m-9",
        "own.tokens": 7,
    }
    found = one(S("handler", top, [S("search", {"db.body": j(hits)})]), options=options)
    assert_whole(found)
    assert ids(found) == ["d0", "d1", "d2"]
    assert [p.score for p in found.interaction.contexts or ()] == [2.0, 2.0, 2.0]
    assert (found.session, found.model, found.usage) == ("s-1", "m-9", TokenUsage(7, None))


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("a", '{"b": [1, {"c": 2}]}'),
        ("a:b", [1, {"c": 2}]),
        ("a:b[0]", 1),
        ("a:$.b.1.c", 2),
        ("a:b[9]", None),
        ("a:b.x", None),
        ("z:b", None),
        ("with:colon", "whole"),
        ("a:b[*]", [1, {"c": 2}]),
    ],
)
def test_paths(key: str, wanted: object) -> None:
    assert pick({"a": '{"b": [1, {"c": 2}]}', "with:colon": "whole"}, key, 1_000) == wanted


def test_an_agent_without_model_spans_that_failed_is_an_interaction() -> None:
    agent = S("agent", {"openinference.span.kind": "AGENT"}, error=True, message="refused")
    top = S(
        "crew", {"openinference.span.kind": "CHAIN", "input.value": j({"question": QUESTION})}, [agent], error=True
    )
    found = one(top)
    assert found.interaction.question == QUESTION
    assert found.interaction.response is None
    assert found.error is not None
