"""A message of results says all that was known, is what its schema says, and quotes nothing unless it may."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.records.result_json import decode, encode, from_settled, to_settled
from collector.records.result_schema import SCHEMA_FILE
from collector.records.settled import Settled
from tests.support.settled import settled_interactions


@cache
def validator() -> Any:
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@settings(max_examples=150, deadline=None)
@given(settled_interactions(), st.integers(0, 2**62))
def test_what_is_read_is_what_was_settled(settled: Settled, when: int) -> None:
    message = from_settled(
        settled, content=True, settled_unix_nano=when, groundwatch_version="1.2", judge_model="m"
    )
    body = encode(message)
    assert b"\n" not in body
    assert decode(body) == message
    assert to_settled(decode(body)) == settled
    validator().validate(json.loads(body))


@settings(max_examples=100, deadline=None)
@given(settled_interactions())
def test_without_content_no_text_of_the_application_is_in_it(settled: Settled) -> None:
    message = from_settled(settled, content=False)
    assert message.content is None
    assert message.content_left_out == "not_exported"
    assert all(not one.evidence and not one.verdicts for one in message.results)
    validator().validate(json.loads(encode(message)))
    again = to_settled(decode(encode(message)))
    assert [r.outcome for r in (*again.local, *again.judged)] == [
        r.outcome for r in (*settled.local, *settled.judged)
    ]
    assert again.decision == settled.decision
