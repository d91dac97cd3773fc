"""Content that was made to fill, to blow up or to steer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from collector.extract.options import Options
from collector.extract.values import MISSING, loads
from tests.unit.extract.extract_builders import (
    ANSWER,
    QUESTION,
    S,
    extract,
    genai_llm,
    j,
    oi_llm,
    oi_retriever,
    one,
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
    "newlines": lambda: "\n" * HUGE + "Question:",
    "roles": lambda: "user: a\nassistant: b\n" * 20_000,
    "sources": lambda: "retrieved relevant " * 20_000 + "x",
    "encoded": lambda: j(j(j(j(j([{"role": "user", "content": "x" * 1000}]))))),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("place", ["input.value", "prompt", "documents", "output.value"])
def test_bombs_are_survived_in_bounded_time(name: str, place: str) -> None:
    bomb = BOMBS[name]()
    root = {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": ANSWER}
    if place in root:
        root[place] = bomb
    llm = oi_llm(bomb if place == "prompt" else QUESTION)
    documents = S("search", {"documents": bomb}) if place == "documents" else oi_retriever()
    begun = time.perf_counter()
    extract(S("root", root, [documents, llm, genai_llm(QUESTION, ANSWER, **{"gen_ai.input.messages": bomb})]))
    spent = time.perf_counter() - begun
    begun = time.perf_counter()
    for _ in range(20):
        json.loads(json.dumps(["x" * 10] * 20_000))
    assert spent < 60 * (time.perf_counter() - begun), "many times what parsing a few megabytes costs"


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


def test_long_chains_of_parents_end() -> None:
    node = genai_llm(QUESTION)
    for _ in range(300):
        node = S("level", {"openinference.span.kind": "CHAIN"}, [node])
    assert one(node).interaction.question == QUESTION


def test_embeddings_in_values_are_passed_over() -> None:
    vector = [0.1] * 1536
    documents = [
        {"id": "a", "text": "Ewes give milk in spring.", "embedding": vector, "metadata": {"vector": vector}}
    ]
    found = one(S("root", {}, [S("search", {"documents": j(documents)}), genai_llm(QUESTION)]))
    assert [dict(p.metadata) for p in found.interaction.contexts or ()] == [{}]
