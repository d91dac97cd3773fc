"""Shapes that applications give their telemetry: what stands beside the answer, in it, or in the place of text."""

from __future__ import annotations

import pytest

from collector.records.found import Mark
from scorers.interaction import Damage, Field
from tests.unit.extract.extract_builders import (
    ANSWER,
    DOCUMENTS,
    QUESTION,
    S,
    assert_whole,
    genai_llm,
    j,
    oi_llm,
    oi_retriever,
    one,
    prompt,
    texts,
)

TITLE = oi_llm(f"Write a title for this chat: {QUESTION}", "Cheese of ewes")
TAGS = oi_llm(f"Three tags for: {QUESTION}", "cheese, milk, ewes")


def request(*children: S) -> S:
    """An HTTP request around calls, of which no span tells the application's own question and answer."""
    return S("POST /chat", {"http.route": "/chat"}, children)


@pytest.mark.parametrize("after", [(TITLE,), (TITLE, TAGS)])
def test_what_is_asked_for_beside_the_answer_is_not_the_answer(after: tuple[S, ...]) -> None:
    assert_whole(one(request(oi_retriever(), oi_llm(prompt()), *after)))


def test_the_last_call_answers_where_it_was_given_what_was_said_before() -> None:
    polite = "Well, dear guest, it is Roquefort that is made from ewe's milk."
    found = one(request(oi_retriever(), oi_llm(prompt()), oi_llm(f"Say it politely: {ANSWER}", polite)))
    assert found.interaction.response == polite
    assert found.interaction.question == QUESTION
    assert texts(found) == list(DOCUMENTS)


def test_the_last_call_answers_where_the_one_before_led_on_to_something() -> None:
    """A query was written by the schema that was retrieved, and run."""
    table = "CREATE TABLE cheeses (name TEXT, milk TEXT, region TEXT)"
    query = oi_llm(prompt([table]), "SELECT name FROM cheeses WHERE milk = 'ewe'")
    rows = oi_llm(f"Rows: Roquefort. {QUESTION}")
    found = one(request(oi_retriever([table]), query, S("SELECT", {"db.system": "postgresql"}), rows))
    assert found.interaction.response == ANSWER


@pytest.mark.parametrize("verdict", ["no", j({"relevant": False, "reason": "it is of another cheese"})])
def test_the_last_call_answers_where_the_one_before_graded(verdict: str) -> None:
    found = one(
        request(oi_retriever(), oi_llm(f"Grade.\n{prompt()}", verdict), oi_llm(QUESTION, "I can not say."))
    )
    assert found.interaction.response == "I can not say."


@pytest.mark.parametrize("thoughts", ["<think>\nWhich one?\n</think>\n\n", "Which one?\n</think>\n"])
@pytest.mark.parametrize("told_above", [False, True])
def test_written_thoughts_are_no_part_of_the_answer(thoughts: str, told_above: bool) -> None:
    """Of reasoning models, by servers that do not set them apart; the first mark may stand in the chat template."""
    said = thoughts + ANSWER
    above = {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": said}
    found = one(S("ask", above if told_above else {}, [oi_retriever(), oi_llm(prompt(), said)]))
    assert_whole(found)
    assert found.rules["response"] == "answer_of_thoughts"


def test_thoughts_without_an_answer_stay() -> None:
    found = one(request(oi_retriever(), oi_llm(prompt(), "<think>Which one?</think>")))
    assert found.interaction.response == "<think>Which one?</think>"


@pytest.mark.parametrize("kind", ["blob", "binary", "image", "input_image", "input_audio", "video"])
def test_pictures_and_sounds_are_no_words_of_the_question(kind: str) -> None:
    parts = [{"type": kind, "content": "iVBORw0KGgo" * 1_000}, {"type": "text", "content": QUESTION}]
    found = one(genai_llm("", **{"gen_ai.input.messages": j([{"role": "user", "parts": parts}])}))
    assert found.interaction.question == QUESTION


def test_a_document_may_call_its_text_as_it_likes() -> None:
    """The Vercel AI SDK's own RAG template gives `name` and `similarity`."""
    rows = [{"name": text, "similarity": 0.9 - n / 10} for n, text in enumerate(DOCUMENTS)]
    result = {"type": "tool-result", "toolName": "getInformation", "output": {"type": "json", "value": rows}}
    conversation = [{"role": "user", "content": QUESTION}, {"role": "tool", "content": [result]}]
    call = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "getInformation", "ai.toolCall.result": j(rows)}
    model = {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.messages": j(conversation),
        "ai.response.text": ANSWER,
    }
    outer = {"ai.operationId": "ai.generateText", "ai.prompt": j({"prompt": QUESTION}), "ai.response.text": ANSWER}
    found = one(S("ai.generateText", outer, [S("ai.toolCall", call), S("ai.generateText.doGenerate", model)]))
    assert_whole(found)
    assert [passage.score for passage in found.interaction.contexts or ()] == [0.9, 0.8, 0.7]


def test_two_texts_beside_a_score_are_not_guessed_at() -> None:
    rows = j([{"left": DOCUMENTS[0], "right": DOCUMENTS[1], "similarity": 0.9}])
    tool = S("compare", {"openinference.span.kind": "TOOL", "output.value": rows})
    found = one(request(tool, oi_llm(QUESTION)))
    assert texts(found) in (None, [])
    assert Mark.NOT_RAG in found.marks


def test_an_input_that_names_a_text_is_what_was_asked() -> None:
    """As the Responses API takes it, where the messages are not told apart."""
    given = {
        "openinference.span.kind": "LLM",
        "input.value": j({"input": QUESTION, "tools": []}),
        "output.value": ANSWER,
    }
    assert one(S("llm", given)).interaction.question == QUESTION


def test_an_answer_whose_stream_broke_off_is_not_judged() -> None:
    part = ANSWER[:12]
    above = {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": part}
    broken = S("llm", oi_llm(prompt(), part).attributes, error=True, message="ReadTimeout")
    found = one(S("ask", above, [oi_retriever(), broken], error=True, message="ReadTimeout"))
    assert found.interaction.response == part
    assert found.interaction.damage == {Field.RESPONSE: Damage.TRUNCATED}
    assert Mark.APPLICATION_ERROR in found.marks
