"""Records as they arrive: bounds, times, attributes, and what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from collector.extract.conventions.record import UnreadableRecord
from collector.extract.options import Options, RecordPaths
from collector.extract.record import found_in
from collector.records.found import Found, Mark
from scorers.interaction import Damage, Field

WHOLE = {"question": "q?", "contexts": ["one"], "response": "r"}
NAME = "topic/3/17"


def read(record: Any, options: Options | None = None) -> Found:
    text = record if isinstance(record, bytes) else json.dumps(record).encode()
    found = found_in(text, options or Options(), name=NAME)
    assert found is not None
    return found


def test_the_id_is_the_records_own_else_its_place() -> None:
    assert read({**WHOLE, "id": "mine"}).interaction.id == "mine"
    assert read({**WHOLE, "id": 5}).interaction.id == "5"
    assert read(WHOLE).interaction.id == NAME
    assert read({**WHOLE, "id": "x" * 201}).interaction.id == NAME


def test_every_field_by_its_path() -> None:
    names = ("question", "contexts", "response", "reference", "service", "session", "user", "tenant", "model")
    paths = RecordPaths(**{name: f"a.{name}" for name in (*names, "id", "time", "attributes", "environment")})
    values = {name: name for name in names if name != "contexts"}
    more = {"contexts": ["c"], "id": "i", "time": 1_700_000_000, "attributes": {"x": 1}, "environment": "staging"}
    found = read({"a": {**values, **more}}, Options(record=paths))
    item = found.interaction
    assert (item.id, item.question, item.response, item.reference) == ("i", "question", "response", "reference")
    assert [passage.text for passage in item.contexts or ()] == ["c"]
    told = (found.service, found.session, found.user, found.tenant, found.model, found.environment)
    assert told == ("service", "session", "user", "tenant", "model", "staging")
    assert found.attributes == {"x": 1}
    assert found.ended_unix_nano == 1_700_000_000 * 10**9


@pytest.mark.parametrize(
    ("time", "nanoseconds"),
    [
        ("2026-01-02T03:04:05Z", 1_767_323_045 * 10**9),
        ("2026-01-02T03:04:05", 1_767_323_045 * 10**9),
        ("2026-01-02T04:04:05+01:00", 1_767_323_045 * 10**9),
        (1_767_323_045, 1_767_323_045 * 10**9),
        (1_767_323_045_000, 1_767_323_045 * 10**9),
        (1_767_323_045_000_000, 1_767_323_045 * 10**9),
        (1_767_323_045_000_000_000, 1_767_323_045 * 10**9),
        ("yesterday", 0),
        (-1, 0),
        (True, 0),
        (1e300, 0),
        ([], 0),
        (None, 0),
    ],
)
def test_times(time: Any, nanoseconds: int) -> None:
    assert read({**WHOLE, "time": time}).ended_unix_nano == nanoseconds


def test_what_is_too_long_is_cut_and_marked() -> None:
    options = Options(max_text_chars=100, max_context_chars=100, max_passages=2)
    record = {"question": "q" * 101, "contexts": ["c" * 101, "d", "e"], "response": "r"}
    found = read(record, options)
    assert found.interaction.damage == {Field.QUESTION: Damage.TRUNCATED, Field.CONTEXTS: Damage.TRUNCATED}
    assert Mark.TRUNCATED in found.marks
    assert [len(passage.text) for passage in found.interaction.contexts or ()] == [100, 1]
    assert len(found.interaction.question or "") == 100
    whole = read(WHOLE, options)
    assert not whole.interaction.damage
    assert Mark.TRUNCATED not in whole.marks


def test_attributes_are_scalars_within_bounds() -> None:
    given = {"a": "x" * 300, "b": 1, "c": [1], "d": None, "e": True, "f" * 201: 1, "g": 2, "h": 3}
    found = read({**WHOLE, "attributes": given}, Options(max_attributes=4))
    assert found.attributes == {"a": "x" * 256, "b": 1, "e": True, "g": 2}
    assert read({**WHOLE, "attributes": [1]}).attributes == {}


def test_what_json_writers_emit_beyond_json_is_read() -> None:
    assert read(b'{"question": "q \\ud83d", "response": "r\n", "score": NaN}').interaction.response == "r\n"
    assert read(b"\xef\xbb\xbf" + json.dumps(WHOLE).encode()).interaction.question == "q?"


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b'"text"', b'{"question": 5}', b'{"contexts": "no list"}', b"\xff\xfe", b"[" * 100_000],
)
def test_what_is_no_record_is_refused_without_crashing(text: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        found_in(text, Options(), name=NAME)


def test_our_own_results_are_not_evaluated() -> None:
    ours = {**WHOLE, "schema_version": 1, "interaction_id": "x", "groundwatch_version": "0"}
    assert found_in(json.dumps(ours).encode(), Options(), name=NAME) is None
