"""The messages of results: what may be in them, odd values, versions."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from collector.records.decision import Decision, Fate
from collector.records.found import Found, Mark
from collector.records.result_json import (
    BadResult,
    decode,
    encode,
    from_settled,
    key_of,
    to_settled,
    without_content,
)
from collector.records.result_schema import SCHEMA_FILE, schema_text
from collector.records.settled import Settled
from scorers.interaction import Interaction, Passage
from scorers.outcome import Failed, FailedReason, Label, Result, Score, Verdict
from scorers.scorer import Kind, Tier

SECRET = "the-secret"
SETTLED = Settled(
    found=Found(
        Interaction(
            "one", f"q {SECRET}", (Passage(f"c {SECRET}", metadata={"m": SECRET}),), f"r {SECRET}", f"ref {SECRET}"
        ),
        trace_ids=("ab" * 16,),
        span_id="cd" * 8,
        service="shop",
        session=f"s {SECRET}",
        user=f"u {SECRET}",
        tenant=f"t {SECRET}",
        rewritten_query=SECRET,
        unused_passages=(Passage(SECRET),),
        error=SECRET,
        attributes={"a": SECRET},
        resource={"b": SECRET},
        rules={"question": SECRET},
        trace_state=SECRET,
    ),
    decision=Decision(Fate.QUEUED, 0.25, "floor", upstream_weight=2.0),
    local=(
        Result("one", "groundedness", Kind.LOCAL, Score(0.5), "1", "f", Tier.FULL, {"s": SECRET}, probability=0.5),
    ),
    judged=(
        Result(
            "one",
            "faithfulness",
            Kind.JUDGED,
            Score(1.0),
            "1",
            "g",
            verdicts=(Verdict(SECRET, Label.SUPPORTED, SECRET),),
        ),
        Result("one", "relevancy", Kind.JUDGED, Failed(FailedReason.DEADLINE), "1", "g"),
    ),
    segments=(("service", "shop"),),
    screening_probability=0.5,
)


def test_texts_of_the_application_are_in_it_only_where_content_is_exported() -> None:
    assert SECRET.encode() in encode(from_settled(SETTLED, content=True))
    assert SECRET.encode() not in encode(from_settled(SETTLED, content=False))


def test_a_message_that_is_too_large_loses_its_texts_and_says_so() -> None:
    small = without_content(from_settled(SETTLED, content=True), "too_large")
    assert SECRET.encode() not in encode(small)
    assert small.content_left_out == "too_large"
    assert [one.score for one in small.results] == [0.5, 1.0, None]


def test_weights_are_one_over_the_product_of_the_probabilities() -> None:
    local, judged, failed = from_settled(SETTLED, content=False).results
    assert local.weight == 2.0 / 0.5 / 0.5
    assert judged.weight == failed.weight == 2.0 / 0.5 / 0.25


def test_what_was_not_judged_has_no_judged_weight() -> None:
    shed = replace(SETTLED, decision=Decision(Fate.SHED, 0.25, "shed"))
    assert [one.weight for one in from_settled(shed, content=False).results] == [4.0, None, None]


def test_a_replayed_interaction_says_so() -> None:
    assert not from_settled(SETTLED, content=False).replayed
    replayed = replace(SETTLED, found=replace(SETTLED.found, marks=frozenset({Mark.REPLAYED})))
    assert from_settled(replayed, content=False).replayed


def test_a_score_that_is_no_number_is_a_failure_of_its_scorer() -> None:
    bad = replace(SETTLED.judged[0], outcome=Score(math.nan))
    message = decode(encode(from_settled(replace(SETTLED, judged=(bad,)), content=False)))
    assert (message.results[1].outcome, message.results[1].reason) == ("failed", "scorer_error")
    assert to_settled(message).judged[0].outcome == Failed(FailedReason.SCORER_ERROR)


def test_values_that_json_can_not_hold_become_what_it_can() -> None:
    deep: list[object] = []
    for _ in range(2_000):
        deep = [deep]
    odd = {"nan": math.nan, "big": 2**70, "bytes": b"x", 3: {"set": {1}}, "half \ud800": "\udfff", "deep": deep}
    found = replace(SETTLED.found, interaction=Interaction("id \ud800"), attributes=odd)
    message = from_settled(replace(SETTLED, found=found), content=True)
    body = json.loads(encode(message))
    assert body["interaction_id"] == "id \ufffd"
    assert key_of(message) == "id \ufffd".encode()
    attributes = body["content"]["attributes"]
    assert attributes.pop("deep")
    assert attributes == {
        "nan": None,
        "big": str(2**70),
        "bytes": "b'x'",
        "3": {"set": [1]},
        "half \ufffd": "\ufffd",
    }


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "no message of results"),
        (b"{", "no message of results"),
        (b"[]", "no message of results"),
        (b'{"interaction_id": "x"}', "has no schema_version"),
        (b'{"schema_version": 99}', "has schema_version 99, and version 1 is expected"),
        (b'{"schema_version": 1}', "missing required field"),
        (b"[" * 100_000, "no message of results"),
    ],
)
def test_bytes_that_are_no_message_say_what_is_wrong(body: bytes, says: str) -> None:
    with pytest.raises(BadResult, match=says):
        decode(body)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"outcome": "scored", "score": None}, "scored, but without a score"),
        ({"outcome": "failed", "reason": "weather"}, "failed for an unknown reason"),
    ],
)
def test_results_that_contradict_themselves_are_refused(change: dict[str, object], says: str) -> None:
    body = json.loads(encode(from_settled(SETTLED, content=False)))
    body["results"][1].update(change)
    with pytest.raises(BadResult, match=says):
        to_settled(decode(json.dumps(body)))


def test_a_later_field_is_passed_over() -> None:
    body = json.loads(encode(from_settled(SETTLED, content=False))) | {"tomorrow": [1]}
    assert decode(json.dumps(body)) == from_settled(SETTLED, content=False)


def test_the_schema_in_the_repository_is_that_of_the_classes() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), (
        "make it again: python -m collector.records.result_schema"
    )
