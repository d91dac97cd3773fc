"""Heads that are gathered from bytes are the same as those of decoded spans."""

from __future__ import annotations

import json
import random

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.assembly import heads
from collector.assembly.flat import Flat, flatten
from collector.otlp.batch import Group
from collector.otlp.model import Encoding
from tests.unit.assembly.assembly_builders import span_id, trace_id


def random_span(rng: random.Random, number: int) -> Span:
    message = Span(trace_id=trace_id(rng.randrange(1, 4)), span_id=span_id(number))
    if rng.random() < 0.3:
        message.trace_state = "ot=th:" + "8" * rng.choice((1, 14, 70, 140))
    if rng.random() < 0.7:
        message.parent_span_id = rng.choice((span_id(rng.randrange(1, 9)), bytes(8), b"short"))
    if rng.random() < 0.9:
        message.name = "é" * rng.choice((0, 1, 5, 30, 33, 34, 63, 64, 200))
    if rng.random() < 0.9:
        message.kind = rng.randrange(6)
    if rng.random() < 0.9:
        message.start_time_unix_nano = rng.getrandbits(64)
        message.end_time_unix_nano = rng.getrandbits(64)
    if rng.random() < 0.8:
        pair = message.attributes.add(key="k" * rng.randrange(200))
        pair.value.string_value = "v" * rng.randrange(300)
    if rng.random() < 0.6:
        message.flags = rng.getrandbits(32)
    return message


def expected(message: Span) -> heads.Head:
    parent = message.parent_span_id
    return heads.Head(
        message.span_id,
        parent if len(parent) == 8 and any(parent) else b"",
        message.start_time_unix_nano,
        message.end_time_unix_nano,
        message.flags,
    )


def flat_of(messages: list[Span], items: list[bytes], encoding: Encoding) -> Flat:
    group = Group(
        b"", b"", encoding, [message.trace_id for message in messages], [m.span_id for m in messages], items
    )
    return flatten([group])[0]


@pytest.mark.parametrize("seed", range(5))
def test_proto(seed: int) -> None:
    rng = random.Random(seed)
    messages = [random_span(rng, number) for number in range(1, 200)]
    read = heads.read(flat_of(messages, [m.SerializeToString() for m in messages], Encoding.PROTO))
    assert read.malformed == []
    assert [read.heads[index] for index in range(len(messages))] == [expected(message) for message in messages]
    for number in (1, 2, 3):
        name = trace_id(number)
        assert [heads.head_of(clip) for _, clip in read.heads.of_trace(name)] == [
            expected(m) for m in messages if m.trace_id == name
        ]


def test_local_parents() -> None:
    rng = random.Random(8)
    messages = [random_span(rng, number) for number in range(1, 200)]
    read = heads.read(flat_of(messages, [m.SerializeToString() for m in messages], Encoding.PROTO))
    for message, clip in zip(messages, read.heads.clips(list(range(len(messages)))), strict=True):
        remote = message.flags & 0x300 == 0x300
        assert heads.span_id_of(clip) == message.span_id
        assert heads.local_parent(clip) == (b"" if remote else expected(message).parent)


def test_fields_in_another_order() -> None:
    rng = random.Random(5)
    messages = [random_span(rng, number) for number in range(1, 60)]
    turned = []
    for message in messages:
        first, second = Span(), Span()
        first.CopyFrom(message)
        for name in ("trace_id", "span_id", "start_time_unix_nano"):
            setattr(second, name, getattr(message, name))
            first.ClearField(name)
        turned.append(first.SerializeToString() + second.SerializeToString())
    read = heads.read(flat_of(messages, turned, Encoding.PROTO))
    assert [read.heads[index] for index in range(len(messages))] == [expected(message) for message in messages]


def test_json() -> None:
    rng = random.Random(6)
    messages = [random_span(rng, number) for number in range(1, 60)]
    items = []
    for message in messages:
        values = MessageToDict(message)
        values |= {"traceId": message.trace_id.hex(), "spanId": message.span_id.hex()}
        values["parentSpanId"] = message.parent_span_id.hex()
        items.append(json.dumps(values).encode())
    read = heads.read(flat_of(messages, items, Encoding.JSON))
    assert [read.heads[index] for index in range(len(messages))] == [expected(message) for message in messages]


@pytest.mark.parametrize(
    "data",
    [b'{"flags": "x"}', b'{"flags": -1}', b'{"parentSpanId": "zz"}', b"[", b"[" * 100_000, b'{"flags":1e99}'],
)
def test_json_that_is_no_span(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        heads.walk_json(data, span_id(1))


@pytest.mark.parametrize("cut", range(1, 100, 7))
def test_bytes_that_are_no_span_are_told(cut: int) -> None:
    data = random_span(random.Random(2), 3).SerializeToString()
    try:
        head = heads.walk_proto(data[:cut], span_id(3))
    except ValueError:
        return
    assert head.span_id == span_id(3)


def test_random_bytes_never_crash() -> None:
    rng = random.Random(9)
    items = [rng.randbytes(rng.randrange(400)) for _ in range(500)]
    ids = [trace_id(1)] * 500
    read = heads.read(
        flatten([Group(b"", b"", Encoding.PROTO, ids, [span_id(n + 1) for n in range(500)], items)])[0]
    )
    assert len(read.malformed) > 300


@pytest.mark.parametrize("encoding", list(Encoding))
def test_a_cut_span_says_what_its_head_says(encoding: Encoding) -> None:
    rng = random.Random(10)
    messages = [random_span(rng, number) for number in range(1, 200)]
    read = heads.read(flat_of(messages, [m.SerializeToString() for m in messages], Encoding.PROTO))
    walk = heads.walk_proto if encoding is Encoding.PROTO else heads.walk_json
    for message, clip in zip(messages, read.heads.clips(list(range(len(messages)))), strict=True):
        item = heads.cut(message.trace_id, clip, b"", encoding)
        assert item.cut
        assert walk(item.data, message.span_id) == expected(message)
        if encoding is Encoding.PROTO:
            left = Span.FromString(item.data)
            assert (left.trace_id, left.span_id, left.name) == (message.trace_id, message.span_id, "")
            assert not left.attributes and not left.trace_state


def test_traces_are_told_apart_whatever_their_ids() -> None:
    rng = random.Random(4)
    names = [rng.choice((trace_id(1), trace_id(2), trace_id(1 << 64), trace_id(1 << 120))) for _ in range(300)]
    span_ids = [span_id(number) for number in range(1, 301)]
    items = [heads.encode_proto(n, heads.Head(s, b"", 1, 2, 0)) for n, s in zip(names, span_ids, strict=True)]
    group = Group(b"", b"", Encoding.PROTO, names, span_ids, items)
    by_trace = heads.ByTrace(heads.read(flatten([group])[0]).heads)
    for name in set(names):
        mine = [span for span, owner in zip(span_ids, names, strict=True) if owner == name]
        joined = by_trace.spans[name]
        assert sorted(joined[at : at + 8] for at in range(0, len(joined), 8)) == mine
        assert [span_ids[index] for index in by_trace.indices({name})] == mine
    assert not by_trace.repeats


def test_traces_of_one_sorting_key_are_told_apart() -> None:
    names = [trace_id(1 << 64 | 5), trace_id(2 << 64 | 5)] * 40
    span_ids = [span_id(number) for number in range(1, 81)]
    items = [heads.encode_proto(n, heads.Head(s, b"", 1, 2, 0)) for n, s in zip(names, span_ids, strict=True)]
    read = heads.read(flatten([Group(b"", b"", Encoding.PROTO, names, span_ids, items)])[0]).heads
    by_trace = heads.ByTrace(read, mix=0)  # every trace with the same second half has one key
    assert {name: len(joined) // 8 for name, joined in by_trace.spans.items()} == dict.fromkeys(names, 40)
    assert by_trace.indices({names[1]}) == list(range(1, 80, 2))
