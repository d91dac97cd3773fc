"""Plain JSON records."""

from __future__ import annotations

from typing import Any

import pytest

from collector.extract.conventions.record import UnreadableRecord, read_record
from collector.extract.options import Options, RecordPaths
from collector.records.found import Mark
from scorers.interaction import Turn

WHOLE = {
    "id": 7,
    "question": "q?",
    "contexts": ["one", {"id": "b", "page_content": "two", "score": 0.5}],
    "response": "r",
}


def test_whole_record() -> None:
    found = read_record({**WHOLE, "reference": "ref", "tenant": "t"}, Options())
    item = found.interaction
    assert (item.id, item.question, item.response, item.reference, found.tenant) == ("7", "q?", "r", "ref", "t")
    assert [(p.id, p.text, p.score) for p in item.contexts or ()] == [(None, "one", None), ("b", "two", 0.5)]
    assert found.is_rag


def test_paths_of_the_configuration() -> None:
    paths = RecordPaths(question="in.ask", contexts="hits", response="out.0.text", history="in.before")
    record = {
        "in": {"ask": "q?", "before": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
        "hits": [{"text": "c"}],
        "out": [{"text": "r"}],
    }
    found = read_record(record, Options(record=paths))
    assert (found.interaction.question, found.interaction.response) == ("q?", "r")
    assert found.interaction.history == (Turn("user", "a"), Turn("assistant", "b"))


def test_id_falls_back_to_the_place_and_to_the_content() -> None:
    record = {"question": "q"}
    assert read_record(record, Options(), fallback_id="t/0/1").interaction.id == "t/0/1"
    first, second = (read_record(record, Options()).interaction.id for _ in range(2))
    assert first == second
    assert first != read_record({"question": "p"}, Options()).interaction.id


def test_absent_parts_are_unknown() -> None:
    found = read_record({"id": "x"}, Options())
    assert {Mark.NO_QUESTION, Mark.NO_RESPONSE, Mark.NOT_RAG} <= found.marks
    assert read_record({"contexts": []}, Options()).interaction.contexts == ()


@pytest.mark.parametrize(
    ("record", "place"),
    [
        ([], "record"),
        ({"question": 1}, "question"),
        ({"contexts": "text"}, "contexts"),
        ({"contexts": [{"id": 1}]}, "contexts"),
    ],
)
def test_unreadable_records_name_the_place(record: Any, place: str) -> None:
    with pytest.raises(UnreadableRecord, match=f"^{place}: expected"):
        read_record(record, Options())


def test_a_context_of_one_word_is_a_text_and_no_id() -> None:
    record: Any = {"question": "Is it open?", "contexts": ["Closed.", "Open"], "response": "No."}
    found = read_record(record, Options())
    assert [one.text for one in found.interaction.contexts or ()] == ["Closed.", "Open"]
    with pytest.raises(UnreadableRecord, match="contexts"):
        read_record({**record, "contexts": ["Closed.", " "]}, Options())
