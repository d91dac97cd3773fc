"""What a message is, by what a real Collector wrote (tests/data/kafka) and by what others may write."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from collector.otlp.batch import Signal
from collector.otlp.model import Encoding
from collector.otlp.request import decode_request
from collector.receivers.kafka_keys import KeyWatch
from collector.receivers.kafka_message import Content, Kind, kind_of
from collector.receivers.kafka_options import TopicEncoding, TopicOptions, TopicSignal

RECORDED = Path(__file__).parents[2] / "data" / "kafka" / "collector.jsonl"
AUTO = TopicOptions(name="t")


def recorded() -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    return [{**line, "value": base64.b64decode(line["value"])} for line in lines]


def headers(line: dict[str, Any]) -> list[tuple[str, bytes]]:
    return [(name, value.encode()) for name, value in line["headers"].items()]


def truth(line: dict[str, Any]) -> Kind:
    signal = line["headers"].get("otelcol.signal") or line["topic"].partition("_")[2]
    encoding = Encoding.JSON if line["topic"].startswith("json") else Encoding.PROTO
    return Kind(Content.REQUEST, Signal(signal), encoding)


@pytest.mark.parametrize("line", recorded(), ids=lambda line: f"{line['topic']}-{line['key']}")
def test_what_a_collector_writes_is_told_without_configuration(line: dict[str, Any]) -> None:
    kind = truth(line)
    assert kind_of(line["value"], headers(line), AUTO) == kind
    assert kind_of(line["value"], (), AUTO) == kind
    configured = TopicOptions(
        name="t",
        encoding=TopicEncoding.OTLP_JSON if kind.encoding is Encoding.JSON else TopicEncoding.OTLP_PROTO,
        signal=TopicSignal(kind.signal),
    )
    assert kind_of(line["value"], (), configured) == kind


def test_every_recorded_message_is_read_whole_and_keyed_by_its_trace() -> None:
    watch = KeyWatch()
    counts = {Signal.TRACES: 0, Signal.LOGS: 0}
    for line in recorded():
        kind = truth(line)
        batch = decode_request(line["value"], kind.signal, kind.encoding)
        assert not batch.rejected
        counts[kind.signal] += len(batch)
        if line["topic"] != "shared":
            ids = {one for group in batch.groups for one in group.trace_ids if one}
            key = line["key"].encode() if line["key"] else None
            assert (key is None) == (not ids)
            watch.saw(line["topic"], 0, kind.signal, key=key, trace_ids=ids)
    assert counts == {Signal.TRACES: 3 * 6, Signal.LOGS: 3 * 3}
    assert watch.problem({"proto_traces": 4, "json_logs": 4}, mine=3) is None


RECORD = json.dumps({"question": "q", "contexts": [], "response": "r"}).encode()


@pytest.mark.parametrize(
    ("value", "given", "topic", "content"),
    [
        (None, (), AUTO, Content.UNWANTED),
        (b"", (), AUTO, Content.UNWANTED),
        (RECORD, (), AUTO, Content.RECORD),
        (b"\xef\xbb\xbf \n" + RECORD, (), AUTO, Content.RECORD),
        (RECORD[:-1], (), AUTO, Content.UNREADABLE),
        (RECORD, (), TopicOptions(name="t", encoding=TopicEncoding.RECORDS), Content.RECORD),
        (b"[1]", (), TopicOptions(name="t", encoding=TopicEncoding.RECORDS), Content.UNREADABLE),
        (RECORD, (), TopicOptions(name="t", encoding=TopicEncoding.OTLP_JSON), Content.UNREADABLE),
        (b'{"resourceMetrics": [{}]}', (), AUTO, Content.UNWANTED),
        (b'{"resourceProfiles": [{}]}', (), AUTO, Content.UNWANTED),
        (b"\x0a\x00", (("otelcol.signal", b"metrics"),), AUTO, Content.UNWANTED),
        (b"\x0a\x00", (("otelcol.signal", None),), AUTO, Content.UNWANTED),
        (b"hello", (), AUTO, Content.UNREADABLE),
        (b"\x0a\xff\xff\xff", (), AUTO, Content.UNREADABLE),
        (b'{"a":' * 100_000, (), AUTO, Content.UNREADABLE),
        (b"\xff" * 1000, (), AUTO, Content.UNREADABLE),
    ],
)
def test_other_content(
    value: bytes | None, given: tuple[tuple[str, bytes | None], ...], topic: TopicOptions, content: Content
) -> None:
    assert kind_of(value, given, topic).content is content


def test_the_header_tells_the_signal_of_what_content_can_not() -> None:
    """An empty group of resources looks the same in both signals."""
    kind = kind_of(b"\x0a\x00", (("otelcol.signal", b"logs"),), AUTO)
    assert kind == Kind(Content.REQUEST, Signal.LOGS, Encoding.PROTO)


# --- keys

ID, OTHER_ID = bytes(range(16)), bytes(range(1, 17))
COUNTS = {"spans": 4, "logs": 4}


def watch(
    *, spans: int = 0, logs: int | None = None, key: bytes | None = None, ids: tuple[bytes, ...] = (ID,)
) -> KeyWatch:
    found = KeyWatch()
    found.saw("spans", spans, Signal.TRACES, key=ID.hex().encode(), trace_ids=(ID,))
    if logs is not None:
        found.saw("logs", logs, Signal.LOGS, key=key or b"".join(ids[:1]).hex().encode(), trace_ids=ids)
    return found


def test_one_replica_needs_no_keys() -> None:
    found = KeyWatch()
    found.saw("spans", 0, Signal.TRACES, key=None, trace_ids=(ID, OTHER_ID))
    assert found.problem(COUNTS, mine=8) is None
    assert found.problem(COUNTS, mine=0) is None
    assert "partition_traces_by_id" in (found.problem(COUNTS, mine=7) or "")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (watch(), None),
        (watch(logs=0), None),
        (watch(logs=0, key=OTHER_ID.hex().encode()), "partition_logs_by_trace_id"),
        (watch(logs=0, ids=(ID, OTHER_ID)), "partition_logs_by_trace_id"),
        (watch(logs=1), "partitions of different numbers"),
        (watch(logs=1, ids=()), None),
    ],
)
def test_messages_that_tear_traces_apart(found: KeyWatch, said: str | None) -> None:
    problem = found.problem(COUNTS, mine=4)
    assert problem is None if said is None else said in (problem or "")
    assert problem is None or "keys_checked" in problem


def test_topics_of_traces_and_logs_need_as_many_partitions() -> None:
    problem = watch(logs=0).problem({"spans": 4, "logs": 3}, mine=4)
    assert problem is not None
    assert "logs has 3, spans has 4" in problem
    assert watch().problem({"spans": 4, "logs": 3}, mine=4) is None


def test_a_partitioner_that_ignores_keys_is_noticed_and_forgiven_when_it_is_mended() -> None:
    found = watch()
    found.saw("spans", 3, Signal.TRACES, key=ID.hex().encode(), trace_ids=(ID,))
    assert "record_partitioner" in (found.problem(COUNTS, mine=4) or "")
    for number in range(100):
        name = number.to_bytes(16, "big")
        found.saw("spans", 1, Signal.TRACES, key=name.hex().encode(), trace_ids=(name,))
    assert found.problem(COUNTS, mine=4) is None


def test_the_first_messages_and_then_a_sample_are_looked_at() -> None:
    found = KeyWatch()
    asked = [found.wants("spans") for _ in range(1000)]
    assert all(asked[:50])
    assert sum(asked[50:]) == 19
