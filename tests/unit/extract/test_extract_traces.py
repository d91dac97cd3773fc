"""What a trace as a whole decides: turns, roots, retrievals, damage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from collector.extract.extractor import OWN_MARKER, Extractor, Seen, interaction_id
from collector.extract.options import Options, PromptPattern
from collector.otlp.model import Resource
from collector.records.found import Mark
from scorers.interaction import Damage, Field
from tests.unit.extract.extract_builders import (
    ANSWER,
    DOCUMENTS,
    QUESTION,
    TRACE,
    S,
    extract,
    genai_llm,
    j,
    oi_llm,
    oi_retriever,
    one,
    prompt,
    texts,
    tree,
)

SECOND = "And how long does Comté ripen?"
SECOND_ANSWER = "At least four months."


def chain(*children: S, question: str | None = QUESTION, answer: str | None = ANSWER, **more: Any) -> S:
    attributes: dict[str, Any] = {"openinference.span.kind": "CHAIN", **more}
    if question is not None:
        attributes["input.value"] = question
    if answer is not None:
        attributes["output.value"] = answer
    return S("ask", attributes, children)


# --- turns -----------------------------------------------------------------------------------------------


def two_turns() -> list[S]:
    return [
        chain(oi_retriever(), oi_llm(prompt())),
        chain(
            oi_retriever([DOCUMENTS[1]], SECOND),
            oi_llm(prompt([DOCUMENTS[1]], SECOND), SECOND_ANSWER),
            question=SECOND,
            answer=SECOND_ANSWER,
        ),
    ]


def test_two_turns_below_a_span_without_content() -> None:
    found = extract(S("session", {"session.id": "s"}, two_turns())).found
    assert [f.interaction.question for f in found] == [QUESTION, SECOND]
    assert [f.interaction.response for f in found] == [ANSWER, SECOND_ANSWER]
    assert [texts(f) for f in found] == [list(DOCUMENTS), [DOCUMENTS[1]]]
    assert [f.session for f in found] == ["s", "s"]
    assert len({f.interaction.id for f in found}) == 2


def test_two_turns_whose_parent_is_elsewhere() -> None:
    roots = [replace(root, parent="00000000000000ff", flags=0x300) for root in two_turns()]
    assert [f.interaction.question for f in extract(*roots).found] == [QUESTION, SECOND]


def test_turns_without_spans_of_their_own_by_their_history() -> None:
    second = oi_llm(
        QUESTION,
        SECOND_ANSWER,
        **{
            "llm.input_messages.1.message.role": "assistant",
            "llm.input_messages.1.message.content": ANSWER,
            "llm.input_messages.2.message.role": "user",
            "llm.input_messages.2.message.content": SECOND,
        },
    )
    found = extract(
        S("ws", {}, [oi_retriever(), oi_llm(QUESTION), oi_retriever([DOCUMENTS[1]], SECOND), second])
    ).found
    assert [f.interaction.question for f in found] == [QUESTION, SECOND]
    assert [texts(f) for f in found] == [list(DOCUMENTS), [DOCUMENTS[1]]]
    assert [t.text for t in found[1].interaction.history] == [QUESTION, ANSWER]


def test_steps_that_look_like_turns_are_one_interaction() -> None:
    rewrite = chain(oi_llm("Rewrite " + QUESTION, "ewe cheese"), answer="ewe cheese")
    generate = chain(oi_llm(prompt()))
    found = one(S("POST", {}, [rewrite, oi_retriever(query="ewe cheese"), generate]))
    assert found.interaction.response == ANSWER
    assert found.interaction.question == QUESTION
    assert texts(found) == list(DOCUMENTS)
    assert found.rewritten_query == "ewe cheese"


def test_agents_inside_of_an_agent_are_one_interaction() -> None:
    inner = S(
        "researcher",
        {"openinference.span.kind": "AGENT", "input.value": "find ewe cheese", "output.value": "It is Roquefort."},
        [oi_retriever(), oi_llm(prompt(), "It is Roquefort.")],
    )
    found = one(chain(S("handoff", {"openinference.span.kind": "TOOL"}, [inner]), oi_llm(QUESTION)))
    assert found.interaction.question == QUESTION
    assert found.interaction.response == ANSWER


def test_fan_out_retrievals_come_in_start_order() -> None:
    spans, _ = tree(chain(oi_retriever([DOCUMENTS[0]]), oi_retriever([DOCUMENTS[1]]), oi_llm("no contexts here")))
    late = [replace(s, end_unix_nano=5_000) if s.name == "retriever" else s for s in spans]
    found = Extractor(Options()).extract(late, (), complete=True).found
    assert texts(found[0]) == [DOCUMENTS[0], DOCUMENTS[1]]
    assert Mark.UNVERIFIED_CONTEXTS in found[0].marks


def test_two_searches_keep_their_duplicates() -> None:
    call = oi_llm(QUESTION, None, **{"llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "s"})
    results = {
        "llm.input_messages.1.message.role": "tool",
        "llm.input_messages.1.message.content": DOCUMENTS[0] + "\n\n" + DOCUMENTS[1],
        "llm.input_messages.2.message.role": "tool",
        "llm.input_messages.2.message.content": DOCUMENTS[1] + "\n\n" + DOCUMENTS[2],
    }
    tools = [
        S("t", {"openinference.span.kind": "TOOL", "output.value": "x"}, [oi_retriever(list(pair), "q")])
        for pair in (DOCUMENTS[:2], DOCUMENTS[1:])
    ]
    found = one(chain(call, *tools, oi_llm(QUESTION, **results)))
    assert texts(found) == [DOCUMENTS[0], DOCUMENTS[1], DOCUMENTS[1], DOCUMENTS[2]]


# --- roots -----------------------------------------------------------------------------------------------


def test_missing_root() -> None:
    roots = [replace(s, parent="00000000000000ff") for s in (oi_retriever(), oi_llm(prompt()))]
    found = one(*roots)
    assert (found.interaction.question, texts(found), found.interaction.response) == (
        QUESTION,
        list(DOCUMENTS),
        ANSWER,
    )


def test_retrieval_alone_is_no_interaction() -> None:
    assert extract(oi_retriever()).seen is Seen.RETRIEVAL_ONLY


def test_retrieval_whose_answer_was_lost_is_one_without_response() -> None:
    found = one(replace(oi_retriever(), parent="00000000000000ff", flags=0x100))
    assert found.interaction.question == QUESTION
    assert {Mark.NO_RESPONSE} <= found.marks


def test_unrelated_spans_give_nothing() -> None:
    assert extract(S("GET /", {"http.route": "/"}), S("SELECT", {"db.system": "postgresql"})).seen is Seen.NOTHING


def test_chat_is_not_rag() -> None:
    found = one(genai_llm("Hello, who are you?", "A helper."))
    assert Mark.NOT_RAG in found.marks
    assert found.interaction.contexts is None
    assert not found.interaction.damage


def test_empty_retrieval_is_known_to_be_empty() -> None:
    empty = S(
        "r",
        {"openinference.span.kind": "RETRIEVER", "input.value": QUESTION, "output.value": j({"documents": []})},
    )
    found = one(chain(empty, oi_llm(QUESTION)))
    assert found.interaction.contexts == ()
    assert found.is_rag


def test_circle_of_parents_ends() -> None:
    spans, _ = tree(chain(oi_retriever(), oi_llm(prompt())))
    ids = [s.span_id for s in spans]
    circle = [replace(s, parent_span_id=ids[(i + 1) % len(ids)]) for i, s in enumerate(spans)]
    assert Extractor(Options()).extract(circle, (), complete=True).found


def test_traces_are_joined_only_when_asked() -> None:
    first, _ = tree(
        replace(oi_retriever(), attributes={**oi_retriever().attributes, "session.id": "s"}), trace="a" * 32
    )
    second, _ = tree(
        replace(oi_llm(prompt()), attributes={**oi_llm(prompt()).attributes, "session.id": "s"}), trace="b" * 32
    )
    second = [
        replace(s, start_unix_nano=s.start_unix_nano + 5_000, end_unix_nano=s.end_unix_nano + 5_000)
        for s in second
    ]
    apart = Extractor(Options()).extract([*first, *second], (), complete=True).found
    assert [f.trace_ids for f in apart] == [("b" * 32,)]
    joined = Extractor(Options(join_traces=True)).extract([*first, *second], (), complete=True).found
    assert [f.trace_ids for f in joined] == [("b" * 32, "a" * 32)]
    assert [p.id for p in joined[0].interaction.contexts or ()] == ["d0", "d1", "d2"]


# --- response and question -------------------------------------------------------------------------------


def test_post_processed_answer_wins() -> None:
    found = one(chain(oi_retriever(), oi_llm(prompt()), answer=ANSWER + "\n\nSource: d0"))
    assert found.interaction.response == ANSWER + "\n\nSource: d0"
    assert found.rules["response"] == "top_output"


def test_retry_after_a_failed_call() -> None:
    failed = replace(oi_llm(prompt(), None), error=True)
    found = one(chain(oi_retriever(), failed, oi_llm(prompt())))
    assert found.interaction.response == ANSWER


def test_failed_call_has_no_response() -> None:
    failed = replace(
        oi_llm(prompt(), None),
        error=True,
        events=[("exception", {"exception.type": "Timeout", "exception.message": "too slow\nat line 3"})],
    )
    found = one(replace(chain(oi_retriever(), oi_llm("rewrite", "ewe"), failed, answer=None), error=True))
    assert found.interaction.response is None
    assert found.error == "Timeout: too slow"
    assert Mark.APPLICATION_ERROR in found.marks
    assert Field.RESPONSE not in found.interaction.damage


def test_question_in_a_prompt_may_hold_the_label_itself() -> None:
    question = "What is meant?\nQuestion: is it ewe?"
    found = one(S("r", {}, [oi_retriever(query="ewes"), oi_llm(prompt(question=question))]))
    assert found.interaction.question == question


def test_stale_contexts_of_earlier_turns_are_left_out() -> None:
    more = {
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.content": ANSWER,
        "llm.input_messages.2.message.role": "user",
        "llm.input_messages.2.message.content": prompt([DOCUMENTS[1]], SECOND),
    }
    found = one(genai_wrap(oi_llm(prompt(), SECOND_ANSWER, **more)))
    assert found.interaction.question == SECOND
    assert texts(found) == [DOCUMENTS[1]]
    assert [(t.role, t.text) for t in found.interaction.history] == [("user", QUESTION), ("assistant", ANSWER)]


def genai_wrap(*children: S) -> S:
    return S("POST /ask", {"http.request.method": "POST"}, children)


def test_tool_result_in_a_user_message_is_not_the_question() -> None:
    given = [
        {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "name": "s", "arguments": {}}]},
        {
            "role": "user",
            "parts": [{"type": "tool_call_response", "response": [{"id": "a", "text": DOCUMENTS[0]}]}],
        },
    ]
    found = one(genai_llm("", ANSWER, **{"gen_ai.input.messages": j(given)}))
    assert found.interaction.question == QUESTION
    assert texts(found) == [DOCUMENTS[0]]


def test_own_prompt_layout_by_configuration() -> None:
    user = f"FACTS>> a1 = {DOCUMENTS[0]} || b2 = {DOCUMENTS[1]} ASK>> {QUESTION}"
    pattern = PromptPattern(
        service="shop", context=r"(?P<id>\w\d) = (?P<text>.+?)(?= \|\| | ASK>>)", question=r"ASK>> (?P<text>.+)"
    )
    found = one(genai_llm(user), options=Options(prompt_patterns=(pattern,)))
    assert texts(found) == [DOCUMENTS[0], DOCUMENTS[1]]
    assert [p.id for p in found.interaction.contexts or ()] == ["a1", "b2"]
    assert found.interaction.question == QUESTION


def _lines(form: str, first: int = 1) -> str:
    return "\n".join(form.format(n=n, text=text) for n, text in enumerate(DOCUMENTS, first))


LAYOUTS = {
    "xml": "<documents>\n"
    + _lines("<document index='{n}'>\n{text}\n</document>")
    + f"\n</documents>\n\n{QUESTION}",
    "sources": "Use these.\n\n" + _lines("Source {n}: {text}") + f"\n\nUser question: {QUESTION}",
    "numbered": "Context information is below.\n" + _lines("{n}. {text}") + f"\nQuery: {QUESTION}\nAnswer: ",
    "korean": "검색 결과:\n" + _lines("[{n}] {text}") + f"\n\n질문: {QUESTION}\n답변:",
    "headings": _lines("### Document {n}\n{text}\n") + f"\n### Question\n{QUESTION}",
    "from_zero": "Passages:\n"
    + _lines("[{n}] {text}", first=0)
    + f"\n\nAnswer with a number.\n\nQuestion: {QUESTION}",
}


@pytest.mark.parametrize("user", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_prompts_that_divide_surely(user: str) -> None:
    found = one(genai_llm(user))
    assert texts(found) == list(DOCUMENTS)
    assert Mark.UNSPLIT not in found.marks


def test_prompt_that_does_not_divide_is_one_marked_block() -> None:
    user = "Context:\n" + "\n\n".join(DOCUMENTS) + f"\n\nQuestion: {QUESTION}"
    found = one(genai_llm(user))
    assert found.interaction.question == QUESTION
    assert found.interaction.damage == {Field.CONTEXTS: Damage.UNSPLIT}
    assert len(found.interaction.contexts or ()) == 1


# --- damage ----------------------------------------------------------------------------------------------


def test_hidden_content_is_never_a_value() -> None:
    hidden = "__REDACTED__"
    found = one(
        S(
            "ask",
            {"openinference.span.kind": "CHAIN", "input.value": hidden, "output.value": hidden},
            [oi_retriever([hidden], hidden), oi_llm(hidden, hidden)],
        )
    )
    item = found.interaction
    assert (item.question, item.response) == (None, None)
    assert item.damage == dict.fromkeys((Field.QUESTION, Field.CONTEXTS, Field.RESPONSE), Damage.HIDDEN)


def test_scrubbed_document_is_marked() -> None:
    documents = [DOCUMENTS[0], "[Scrubbed due to 'API key']"]
    found = one(
        S(
            "r",
            {},
            [
                S("search", {"documents": j([{"id": str(i), "text": t} for i, t in enumerate(documents)])}),
                genai_llm("hi"),
            ],
        )
    )
    assert found.interaction.damage[Field.CONTEXTS] is Damage.SCRUBBED
    assert Mark.SCRUBBED in found.marks


def test_scrubbed_session_is_absent() -> None:
    found = one(S("r", {"session.id": "[Scrubbed due to 'session']", "user.id": "u"}, [genai_llm("hi")]))
    assert (found.session, found.user) == (None, "u")


def test_length_limit_cuts_texts() -> None:
    limit = 64
    long = "Roquefort ripens in the caves of Combalou for three months and longer, as the law demands."
    long_answer = "It ripens in the caves of Combalou for at least three months, and often for longer than this."
    root = chain(
        oi_retriever([long[:limit]]),
        oi_llm(prompt([long])[:limit], long_answer[:limit]),
        answer=long_answer[:limit],
    )
    found = one(root)
    assert found.interaction.response is None
    assert found.interaction.damage[Field.RESPONSE] is Damage.TRUNCATED
    assert found.interaction.damage[Field.CONTEXTS] is Damage.TRUNCATED


def test_dropped_attributes_damage_the_contexts() -> None:
    found = one(chain(replace(oi_retriever(), dropped=3), oi_llm(prompt())))
    assert found.interaction.damage == {Field.CONTEXTS: Damage.DROPPED}
    assert Mark.ATTRIBUTES_DROPPED in found.marks


def test_incomplete_trace_damages_all() -> None:
    found = one(chain(oi_retriever(), oi_llm(prompt())), complete=False)
    assert set(found.interaction.damage.values()) == {Damage.TRACE_INCOMPLETE}
    assert Mark.INCOMPLETE_TRACE in found.marks


def test_bounds_cut_and_mark() -> None:
    options = Options(max_passages=2, max_context_chars=100, max_text_chars=100)
    found = one(chain(oi_retriever(), oi_llm(prompt()), answer="x" * 200), options=options)
    assert len(found.interaction.contexts or ()) == 2
    assert found.interaction.damage[Field.CONTEXTS] is Damage.TRUNCATED
    assert len(found.interaction.response or "") == 100
    assert found.interaction.damage[Field.RESPONSE] is Damage.TRUNCATED


def test_own_evaluations_are_refused() -> None:
    result = extract(S("judge", {OWN_MARKER: True}, [genai_llm("Is this faithful?")]))
    assert result.seen is Seen.OWN_EVALUATION
    assert {Mark.OWN_EVALUATION} <= result.found[0].marks


# --- origin ----------------------------------------------------------------------------------------------


def test_origin_of_an_interaction() -> None:
    spans, logs = tree(
        chain(oi_retriever(), oi_llm(prompt()), metadata=j({"tenant": "t", "plan": "gold"}), retries=2)
    )
    spans = [replace(s, trace_state="ot=th:8") if s.name == "llm" else s for s in spans]
    found = Extractor(Options()).extract(spans, logs, complete=True).found[0]
    llm = next(s for s in spans if s.name == "llm")
    assert found.interaction.id == interaction_id(TRACE, llm.span_id)
    assert (found.span_id, found.trace_state) == (llm.span_id, "ot=th:8")
    assert (found.service, found.service_version, found.environment) == ("shop", "7", "live")
    assert found.ended_unix_nano == max(s.end_unix_nano for s in spans)
    assert found.tenant == "t"
    assert found.attributes["metadata.plan"] == "gold"
    assert found.attributes["retries"] == 2
    assert not any(ANSWER in str(value) for value in found.attributes.values())


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("session.id", "x", "session"),
        ("app.session_id", "x", "session"),
        ("ai.telemetry.metadata.sessionId", "x", "session"),
        ("gen_ai.conversation.id", "x", "session"),
        ("traceloop.association.properties.thread_id", "x", "session"),
        ("enduser.id", "x", "user"),
        ("langsmith.metadata.user_id", "x", "user"),
        ("mlflow.trace.user", '"x"', "user"),
        ("tenant.id", "x", "tenant"),
        ("app.tenant", "x", "tenant"),
        ("langfuse.trace.metadata.tenant", '"x"', "tenant"),
        ("metadata", j({"tenant_id": "x"}), "tenant"),
        ("metadata", j({"reference": "x"}), "reference"),
    ],
)  # fmt: skip
def test_identities(key: str, value: str, field: str) -> None:
    found = one(S("root", {key: value}, [genai_llm("hi")]))
    got = found.interaction.reference if field == "reference" else getattr(found, field)
    assert got == "x"


@pytest.mark.parametrize("key", ["thread.id", "process.session_id", "langsmith.trace.session_id", "http.user_id"])
def test_what_is_no_identity(key: str) -> None:
    found = one(S("root", {key: "x"}, [genai_llm("hi")]))
    assert (found.session, found.user, found.tenant) == (None, None, None)


def test_resource_is_the_last_place_for_an_identity() -> None:
    spans, _ = tree(genai_llm("hi"), resource=Resource({"service.name": "s", "tenant.id": "t"}))
    assert Extractor(Options()).extract(spans, (), complete=True).found[0].tenant == "t"
