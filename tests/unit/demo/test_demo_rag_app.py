"""The demo's application: its retriever, its questions, and that it owes groundwatch nothing."""

from __future__ import annotations

import ast
import random
import sys
from pathlib import Path

import pytest

from collector import demo

pytest.importorskip("openinference.instrumentation.openai", reason="extra [demo] is not installed")

from collector.demo import rag_app  # after the check for its packages

SCRIPTS = Path(demo.__file__).parent


@pytest.mark.parametrize("script", ["rag_app.py", "stub_llm.py", "leash.py"])
def test_scripts_import_nothing_of_groundwatch(script: str) -> None:
    tree = ast.parse((SCRIPTS / script).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "." * node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    tops = {name.split(".")[0] for name in imported}
    assert not tops & {"collector", "scorers", "dashboards", ""}
    if script != "rag_app.py":
        assert tops <= sys.stdlib_module_names


def test_the_retriever_finds_each_questions_own_document_nearly_always() -> None:
    corpus, documents = rag_app.load_corpus()
    retriever = rag_app.Retriever(documents)
    asked = [(str(ask), str(e["id"])) for e in corpus["documents"] for ask in rag_app._list(e["ask"])]
    first = sum(retriever.search(ask, 3)[0].document.id == wanted for ask, wanted in asked)
    among = sum(wanted in {hit.document.id for hit in retriever.search(ask, 3)} for ask, wanted in asked)
    assert first / len(asked) >= 0.9
    assert among == len(asked)


def test_hits_come_best_first_and_ties_in_corpus_order() -> None:
    documents = [
        rag_app.Document(str(n), "t", text) for n, text in enumerate(["red bike", "blue bike", "red bike"])
    ]
    hits = rag_app.Retriever(documents).search("a red bike", 3)
    assert [hit.document.id for hit in hits] == ["0", "2", "1"]
    assert hits[0].score == hits[1].score > hits[2].score > 0


def test_bm25_by_hand() -> None:
    documents = [rag_app.Document("a", "t", "oil chain"), rag_app.Document("b", "t", "tyre")]
    (best, other) = rag_app.Retriever(documents).search("oil", 2)
    # idf = ln(1 + (2 - 1 + .5) / (1 + .5)); tf = 1, length 2, mean length 1.5.
    assert best.score == pytest.approx(0.693147 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 1.5)), abs=1e-5)
    assert other.score == 0


def test_the_same_seed_asks_the_same_varied_questions_in_sessions() -> None:
    corpus, _ = rag_app.load_corpus()

    def ask(seed: int) -> list[tuple[str, rag_app.Rider]]:
        questions = rag_app.Questions(corpus, dice=random.Random(seed), label="s")
        return [questions.next() for _ in range(200)]

    first = ask(1)
    assert first == ask(1)
    assert first != ask(2)
    assert len({question for question, _ in first}) > 100
    sessions = {rider.session for _, rider in first}
    assert 50 <= len(sessions) <= 200
    assert len({rider.user for _, rider in first}) > 10
    for session in sessions:
        assert len({rider for _, rider in first if rider.session == session}) == 1


@pytest.mark.parametrize("rate", ["0", "-1", "51", "nan"])
def test_rates_out_of_bounds_are_refused(rate: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        rag_app.parse(["--llm", "http://127.0.0.1:1/v1", "--model", "m", "--rate", rate])
    assert "--rate" in capsys.readouterr().err


def test_an_unknown_protocol_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    with pytest.raises(SystemExit, match="http/json"):
        rag_app.exporter()
