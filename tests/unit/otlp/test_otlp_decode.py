"""Protobuf items to the decoded model; caches; recorded requests in both encodings."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogMessage
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from collector.otlp import encode
from collector.otlp.batch import Signal
from collector.otlp.decode import Decoder, MalformedItem, log_record, resource, scope, span
from collector.otlp.model import Encoding, Event, Link, RawItem, Status, Value
from collector.otlp.request import RequestReader

DATA = Path(__file__).parents[2] / "data" / "otlp"
TRACE = bytes(range(1, 17))
SPAN = bytes(range(1, 9))


def raw(message: SpanMessage | LogMessage) -> RawItem:
    return RawItem(message.SerializeToString(), b"", b"", Encoding.PROTO)


def value_of(value: AnyValue) -> Value:
    return span(raw(SpanMessage(attributes=[KeyValue(key="k", value=value)]))).attributes["k"]


def test_every_field_of_a_span() -> None:
    message = SpanMessage(
        trace_id=TRACE,
        span_id=SPAN,
        trace_state="ot=th:8",
        parent_span_id=SPAN[::-1],
        name="ask",
        kind=SpanMessage.SPAN_KIND_CLIENT,
        start_time_unix_nano=5,
        end_time_unix_nano=2**63,
        attributes=[KeyValue(key="a", value=AnyValue(string_value="b"))],
        dropped_attributes_count=1,
        dropped_events_count=2,
        flags=0x301,
    )
    message.events.add(name="e", time_unix_nano=6, dropped_attributes_count=3)
    message.links.add(trace_id=TRACE, span_id=SPAN)
    message.status.code = 2
    message.status.message = "failed"
    of_resource = ResourceMessage(attributes=[KeyValue(key="service.name", value=AnyValue(string_value="shop"))])
    of_scope = InstrumentationScope(name="lib", version="1")
    item = RawItem(
        message.SerializeToString(), of_resource.SerializeToString(), of_scope.SerializeToString(), Encoding.PROTO
    )
    found = span(item)
    assert (found.trace_id, found.span_id, found.parent_span_id) == (TRACE.hex(), SPAN.hex(), SPAN[::-1].hex())
    assert (found.name, found.kind, found.start_unix_nano, found.end_unix_nano) == ("ask", 3, 5, 2**63)
    assert found.attributes == {"a": "b"}
    assert found.events == (Event("e", 6, {}, 3),)
    assert found.links == (Link(TRACE.hex(), SPAN.hex(), {}),)
    assert (found.status, found.status_message, found.trace_state) == (Status.ERROR, "failed", "ot=th:8")
    assert (found.flags, found.dropped_attributes_count, found.dropped_events_count) == (0x301, 1, 2)
    assert found.resource.service_name == "shop"
    assert (found.scope.name, found.scope.version) == ("lib", "1")


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 129, 300, 16_383, 16_384, 70_000])
def test_strings_of_every_length(size: int) -> None:
    text = "é" * (size // 2) + "a" * (size % 2)
    assert value_of(AnyValue(string_value=text)) == text


def test_values_of_every_kind() -> None:
    assert value_of(AnyValue()) is None
    assert value_of(AnyValue(bool_value=False)) is False
    assert value_of(AnyValue(int_value=-1)) == -1
    assert value_of(AnyValue(double_value=0.5)) == 0.5
    assert value_of(AnyValue(bytes_value=b"\x00\xff")) == b"\x00\xff"
    nested = AnyValue()
    nested.array_value.values.add().string_value = "x"
    inner = nested.array_value.values.add().kvlist_value.values.add(key="n")
    inner.value.int_value = 3
    assert value_of(nested) == ["x", {"n": 3}]
    # a KeyValue without any value
    assert span(raw(SpanMessage(attributes=[KeyValue(key="k")]))).attributes == {"k": None}


def test_of_a_value_set_twice_the_last_counts() -> None:
    twice = AnyValue(string_value="first").SerializeToString() + AnyValue(int_value=2).SerializeToString()
    pair = b"\x0a\x01k\x12" + bytes([len(twice)]) + twice
    item = RawItem(b"\x4a" + bytes([len(pair)]) + pair, b"", b"", Encoding.PROTO)
    assert span(item).attributes == {"k": 2}


def test_a_repeated_key_keeps_its_last_value() -> None:
    pairs = [KeyValue(key="k", value=AnyValue(int_value=n)) for n in (1, 2)]
    assert span(raw(SpanMessage(attributes=pairs))).attributes == {"k": 2}


def test_strings_that_are_not_utf8_do_not_cost_the_span() -> None:
    good = SpanMessage(name="naXme", attributes=[KeyValue(key="kXy", value=AnyValue(string_value="vXv"))])
    found = span(RawItem(good.SerializeToString().replace(b"X", b"\xff"), b"", b"", Encoding.PROTO))
    assert found.name == "na\ufffdme"
    assert found.attributes == {"k\ufffdy": "v\ufffdv"}


def nested(depth: int, kind: str) -> AnyValue:
    value = AnyValue(int_value=1)
    for _ in range(depth):
        outer = AnyValue()
        if kind == "array":
            outer.array_value.values.add().CopyFrom(value)
        else:
            outer.kvlist_value.values.add(key="k").value.CopyFrom(value)
        value = outer
    return value


@pytest.mark.parametrize("kind", ["array", "kvlist"])
def test_deep_values_are_malformed_and_allowed_ones_are_not(kind: str) -> None:
    value_of(nested(20, kind))
    bomb = b""
    for _ in range(2000):  # made by hand: the library writes no such depth
        inner = bomb
        if kind == "kvlist":
            inner = b"\x12" + _varint(len(inner)) + inner
        inner = b"\x0a" + _varint(len(inner)) + inner
        bomb = (b"\x2a" if kind == "array" else b"\x32") + _varint(len(inner)) + inner
    pair = b"\x0a\x01k\x12" + _varint(len(bomb)) + bomb
    with pytest.raises(MalformedItem, match="span of"):
        span(RawItem(b"\x4a" + _varint(len(pair)) + pair, b"", b"", Encoding.PROTO))
    with pytest.raises(MalformedItem, match="log record of"):
        log_record(RawItem(b"\x2a" + _varint(len(bomb)) + bomb, b"", b"", Encoding.PROTO))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def test_malformed_items_say_what_they_are() -> None:
    bad = RawItem(b"\x0a\x7f", b"", b"", Encoding.PROTO)
    with pytest.raises(MalformedItem, match="span of 2 bytes"):
        span(bad)
    with pytest.raises(MalformedItem, match="log record of 2 bytes"):
        log_record(bad)
    with pytest.raises(MalformedItem, match="resource of 2 bytes"):
        span(RawItem(b"", b"\x0a\x7f", b"", Encoding.PROTO))
    with pytest.raises(MalformedItem, match="scope of 2 bytes"):
        span(RawItem(b"", b"", b"\x0a\x7f", Encoding.PROTO))
    with pytest.raises(MalformedItem):
        resource(b"\x0a\x7f")
    with pytest.raises(MalformedItem):
        scope(b"\x0a\x7f")


def test_ids_of_zeros_are_absent() -> None:
    found = span(raw(SpanMessage(trace_id=TRACE, span_id=SPAN, parent_span_id=bytes(8))))
    assert found.parent_span_id == ""


def test_remote_parents_by_the_flags() -> None:
    for flags, remote in ((0, None), (0x200, None), (0x100, False), (0x300, True)):
        message = SpanMessage(flags=flags)
        assert span(raw(message)).parent_is_remote is remote


def test_log_records() -> None:
    message = LogMessage(trace_id=TRACE, span_id=SPAN, observed_time_unix_nano=4, flags=1, event_name="e")
    message.body.kvlist_value.values.add(key="role").value.string_value = "user"
    found = log_record(raw(message))
    assert (found.trace_id, found.span_id, found.event_name) == (TRACE.hex(), SPAN.hex(), "e")
    assert (found.body, found.time_unix_nano, found.flags) == ({"role": "user"}, 4, 1)
    message = LogMessage(time_unix_nano=3, observed_time_unix_nano=4)
    message.attributes.add(key="event.name").value.string_value = "old"
    assert (log_record(raw(message)).event_name, log_record(raw(message)).time_unix_nano) == ("old", 3)
    message = LogMessage()
    message.attributes.add(key="event.name").value.int_value = 3
    assert log_record(raw(message)).event_name == ""


def test_resources_are_decoded_once_and_the_cache_is_bounded() -> None:
    decoder = Decoder(max_entries=2, max_entry_bytes=100)

    def of(name: str) -> RawItem:
        message = ResourceMessage(attributes=[KeyValue(key="service.name", value=AnyValue(string_value=name))])
        return RawItem(b"", message.SerializeToString(), b"", Encoding.PROTO)

    first = decoder.span(of("a")).resource
    assert decoder.span(of("a")).resource is first
    decoder.span(of("b"))
    decoder.span(of("c"))  # over the bound: emptied
    again = decoder.span(of("a")).resource
    assert again is not first
    assert again == first
    large = of("x" * 200)
    assert decoder.span(large).resource is not decoder.span(large).resource


@pytest.mark.parametrize(
    ("name", "signal"),
    [
        ("sdk.basic", Signal.TRACES),
        ("sdk_json.basic", Signal.TRACES),
        ("openai_v2_legacy.error.2.logs", Signal.LOGS),
    ],
)
def test_recorded_requests_are_the_same_in_both_encodings(name: str, signal: Signal) -> None:
    decoder = Decoder()
    decode = decoder.span if signal is Signal.TRACES else decoder.log_record
    reader = RequestReader()
    found = []
    for encoding, suffix in ((Encoding.PROTO, "pb"), (Encoding.JSON, "json")):
        batch = reader.read((DATA / f"{name}.{suffix}").read_bytes(), signal, encoding)
        assert batch.rejected == 0
        found.append([decode(item) for item in encode.items(batch)])
    assert found[0]
    assert found[0] == found[1]


@pytest.mark.parametrize("suffix", ["pb", "json"])
def test_what_is_written_reads_the_same(suffix: str) -> None:
    encoding = Encoding.PROTO if suffix == "pb" else Encoding.JSON
    reader = RequestReader()
    for name, signal in (("sdk.basic", Signal.TRACES), ("openai_v2_legacy.error.2.logs", Signal.LOGS)):
        batch = reader.read((DATA / f"{name}.{suffix}").read_bytes(), signal, encoding)
        ((written_as, body),) = encode.encode_requests(batch)
        assert written_as is encoding
        assert reader.read(body, signal, encoding) == batch
        assert encode.to_batches(encode.items(batch), signal) == [batch]


def test_items_of_both_encodings_make_a_request_each() -> None:
    items = [
        RawItem(b"\x0a\x10" + TRACE + b"\x12\x08" + SPAN, b"", b"", Encoding.PROTO),
        RawItem(
            b'{"traceId":"%b","spanId":"%b"}' % (TRACE.hex().encode(), SPAN.hex().encode()),
            b"",
            b"",
            Encoding.JSON,
        ),
    ]
    batches = encode.to_batches(items, Signal.TRACES)
    assert [(b.groups[0].encoding, b.groups[0].trace_ids) for b in batches] == [
        (Encoding.PROTO, [TRACE]),
        (Encoding.JSON, [TRACE]),
    ]
    assert encode.encode_items([], Signal.TRACES) == []
