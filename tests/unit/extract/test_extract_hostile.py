"""Content that was made to fill, to blow up or to steer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from collector.extract.extractor import Extractor
from collector.extract.options import Options
from collector.extract.record import found_in
from collector.extract.values import MISSING, loads
from collector.otlp.model import LogRecord, Span
from tests.unit.extract.extract_builders import (
    ANSWER,
    QUESTION,
    TRACE,
    S,
    extract,
    genai_llm,
    j,
    oi_llm,
    oi_retriever,
    one,
    tree,
)

HUGE = 200_000

BOMBS: dict[str, Callable[[], str]] = {
    "brackets": lambda: "[" * HUGE,
    "closed_brackets": lambda: "[" * HUGE + "]" * HUGE,
    "objects": lambda: '{"a":' * HUGE + "1" + "}" * HUGE,
    "parentheses": lambda: "(" * HUGE + ")" * HUGE,
    "constructors": lambda: "A(b=" * 5_000 + "1" + ")" * 5_000,
    "power": lambda: "A(b=9**9**9**9)",
    "import": lambda: "A(b=__import__('os').system('true'))",
    "quotes": lambda: '"' + '\\"' * HUGE + '"',
    "angles": lambda: "A(b=" + "<" * HUGE + ")",
    "open_strings": lambda: "A(b='" + "\\'" * HUGE + ")",
    "minus": lambda: "A(b=" + "-" * 5_000 + "1)",
    "numbers": lambda: "[" + "1," * HUGE + "1]",
    "labels": lambda: "Context:\n" * 20_000 + "Question: " * 20_000,
    "numbered": lambda: "\n".join(f"[{i % 3 + 1}] x" for i in range(40_000)),
    "tags": lambda: "<document>" * 40_000,
    "tag_attributes": lambda: "<document " + 'id="' * 40_000,
    "spaces": lambda: "context" + " " * HUGE + ":",
    "table": lambda: "Information" + " " * 20_000 + "Data\n",
    "table_of_questions": lambda: ("Question" + " " * 20_000 + "Answer" + " " * 190 + "x\n") * 3,
    "heading": lambda: "## Question" + " " * HUGE + "x",
    "numbered_table": lambda: "Document 1" + " " * HUGE + "x",
    "label_of_a_message": lambda: "Source" + " " * 20_000 + "x",
    "open_elements": lambda: "<document>" + "<text>" * 50_000 + "</document>",
    "open_strings_in_a_list": lambda: "['" + "\\'" * 120_000 + "]",
    "open_strings_in_fields": lambda: "a='x' b='" + "\\'" * 120_000 + "]",
    "newlines": lambda: "\n" * HUGE + "Question:",
    "roles": lambda: "user: a\nassistant: b\n" * 20_000,
    "sources": lambda: "retrieved relevant " * 20_000 + "x",
    "encoded": lambda: j(j(j(j(j([{"role": "user", "content": "x" * 1000}]))))),
}


@pytest.fixture(scope="module")
def parsing() -> float:
    """Seconds that reading and writing a few megabytes of JSON takes here."""
    begun = time.perf_counter()
    for _ in range(20):
        json.loads(json.dumps(["x" * 10] * 20_000))
    return time.perf_counter() - begun


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("place", ["input.value", "prompt", "message", "documents", "output.value"])
def test_bombs_are_survived_in_bounded_time(name: str, place: str, parsing: float) -> None:
    bomb = BOMBS[name]()
    root = {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": ANSWER}
    if place in root:
        root[place] = bomb
    llm = oi_llm(bomb if place == "prompt" else QUESTION)
    documents = S("search", {"documents": bomb}) if place == "documents" else oi_retriever()
    if place == "message":
        documents = S("step")  # so that contexts are looked for in the messages
        asked = {"role": "user", "content": QUESTION}
        llm = oi_llm(bomb, **{f"llm.input_messages.1.message.{name}": value for name, value in asked.items()})
    begun = time.perf_counter()
    extract(S("root", root, [documents, llm, genai_llm(QUESTION, ANSWER, **{"gen_ai.input.messages": bomb})]))
    spent = time.perf_counter() - begun
    assert spent < 60 * parsing, "many times what parsing a few megabytes costs"


def test_nothing_is_evaluated() -> None:
    assert loads("A(b=__import__('os').getcwd())", 10_000) in (MISSING, {"b": []})
    assert loads("A(b=[c for c in (1,)])", 10_000) is MISSING
    assert loads("A(b=lambda: 1)", 10_000) is MISSING


def test_many_documents_are_bounded() -> None:
    documents = j([{"id": str(i), "text": f"text number {i}"} for i in range(5_000)])
    found = one(S("root", {}, [S("search", {"documents": documents}), genai_llm(QUESTION)]))
    assert len(found.interaction.contexts or ()) <= Options().max_passages


def test_attributes_for_segments_are_bounded() -> None:
    many = {f"app.k{i}": "v" * 1_000 for i in range(1_000)}
    found = one(S("root", many, [genai_llm(QUESTION)]))
    assert len(found.attributes) <= Options().max_attributes
    assert all(len(str(value)) <= Options().max_attribute_chars for value in found.attributes.values())


def test_no_half_of_a_surrogate_pair_is_in_what_may_become_a_label() -> None:
    """JSON in an attribute can spell one; a label with it could be neither shown nor written to the books."""
    metadata = '{"plan": "cut \\ud83d", "cut \\ud83d": "gold", "session_id": "s \\ud83d", "tenant": "t \\ud83d"}'
    found = one(S("root", {"metadata": metadata}, [oi_retriever(), oi_llm(QUESTION)]))
    told = (*found.attributes, *found.attributes.values(), found.session, found.tenant, *found.rules.values())
    assert found.attributes["metadata.plan"] == "cut \ufffd"
    for text in told:
        str(text).encode()
    record = (
        '{"question": "q", "response": "r", "attributes": {"cut \\ud83d": "x \\ud83d"}, "service": "s \\ud83d"}'
    )
    plain = found_in(record.encode(), Options(), name="n")
    assert plain is not None
    assert dict(plain.attributes) == {"cut \ufffd": "x \ufffd"}
    assert plain.service == "s \ufffd"


def test_long_chains_of_parents_end() -> None:
    node = genai_llm(QUESTION)
    for _ in range(300):
        node = S("level", {"openinference.span.kind": "CHAIN"}, [node])
    assert one(node).interaction.question == QUESTION


def deep(levels: int, *, branching: bool) -> list[Span]:
    """A chain of spans, or one in which every span has a second child beside the next."""
    spans: list[Span] = []
    for level in range(levels):
        above = f"{level - 1:016x}" if level else ""
        own = oi_llm(QUESTION).attributes if level == levels - 1 else {"openinference.span.kind": "CHAIN"}
        spans.append(
            Span(
                trace_id=TRACE,
                span_id=f"{level:016x}",
                parent_span_id=above,
                start_unix_nano=level,
                end_unix_nano=10**9 - level,
                attributes=own,
            )
        )
        if branching:
            spans.append(Span(TRACE, f"{level + 2**40:016x}", f"{level:016x}", start_unix_nano=level))
    return spans


@pytest.mark.parametrize("branching", [False, True])
def test_a_deep_trace_is_read(branching: bool) -> None:
    """As agents that call themselves make them: no level takes a level of Python's stack."""
    found = Extractor(Options()).extract(deep(1_500, branching=branching), (), complete=True).found
    assert [(one.interaction.question, one.interaction.response) for one in found] == [(QUESTION, ANSWER)]


def test_log_records_are_not_compared_each_with_each() -> None:
    """Eight times as many take some eight times as long; what is quadratic takes sixty-four times. The least of three,
    since a collection of the whole session's garbage may fall into one."""

    def seconds(count: int) -> float:
        logs = [
            LogRecord(TRACE, f"{0:016x}", event_name="gen_ai.user.message", body={"content": f"line {i}"})
            for i in range(count)
        ]
        begun = time.process_time()
        Extractor(Options()).extract(deep(1, branching=False), logs, complete=True)
        return time.process_time() - begun

    assert min(seconds(4_000) for _ in range(3)) < 30 * min(seconds(500) for _ in range(3))


def test_a_reranked_list_is_not_compared_each_with_each() -> None:
    """Documents without ids, as LangChain's are, are told apart by their texts, each read once."""

    def seconds(count: int) -> float:
        texts = [f"passage {i} " * 200 for i in range(count)]
        given = {f"retrieval.documents.{i}.document.content": text for i, text in enumerate(texts)}
        gave = {f"reranker.output_documents.{i}.document.content": text for i, text in enumerate(reversed(texts))}
        root = S(
            "root",
            {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": ANSWER},
            [
                S("search", {"openinference.span.kind": "RETRIEVER", **given}),
                S("rerank", {"openinference.span.kind": "RERANKER", **gave}),
                oi_llm(QUESTION),
            ],
        )
        spans, logs = tree(root)
        begun = time.process_time()
        found = Extractor(Options()).extract(spans, logs, complete=True).found
        spent = time.process_time() - begun
        assert len(found[0].interaction.contexts or ()) == count
        return spent

    assert min(seconds(160) for _ in range(3)) < 24 * min(seconds(20) for _ in range(3))


def test_embeddings_in_values_are_passed_over() -> None:
    vector = [0.1] * 1536
    documents = [
        {"id": "a", "text": "Ewes give milk in spring.", "embedding": vector, "metadata": {"vector": vector}}
    ]
    found = one(S("root", {}, [S("search", {"documents": j(documents)}), genai_llm(QUESTION)]))
    assert [dict(p.metadata) for p in found.interaction.contexts or ()] == [{}]
