"""Items of very many values are malformed before they take memory and time; items of many bytes are not."""

from __future__ import annotations

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp import decode
from collector.otlp.bounds import MAX_VALUES, Item, TooManyParts, check_values
from collector.otlp.decode import MalformedItem
from collector.otlp.model import Encoding, RawItem
from tests.unit.otlp.test_otlp_bounds import field

FLOOD = MAX_VALUES + 1


def raw(data: bytes, encoding: Encoding = Encoding.PROTO) -> RawItem:
    return RawItem(data, b"", b"", encoding)


def array(count: int) -> bytes:
    """An attribute whose value is a list of `count` empty values."""
    return field(b"\x12", field(b"\x2a", b"\x0a\x00" * count))


@pytest.mark.parametrize(
    "data",
    [
        b"\x4a\x00" * FLOOD,
        b"\xca\x00\x00" * FLOOD,  # the same tag, written longer than it need be
        b"\x5a\x00" * FLOOD,
        b"\x6a\x00" * FLOOD,
        field(b"\x4a", array(FLOOD)),
        field(b"\x5a", field(b"\x1a", array(FLOOD))),
        field(b"\x6a", b"\x22\x00" * FLOOD),
        field(b"\x4a", field(b"\x12", field(b"\x32", b"\x0a\x00" * FLOOD))),
        field(b"\x4a", array(FLOOD // 2)) * 3,
    ],
)
def test_spans(data: bytes) -> None:
    with pytest.raises(MalformedItem, match=f"more than {MAX_VALUES} values|kind"):
        decode.span(raw(data))


def test_log_records_resources_and_scopes() -> None:
    with pytest.raises(MalformedItem, match=r"log record of .* more than"):
        decode.log_record(raw(field(b"\x2a", field(b"\x2a", b"\x0a\x00" * FLOOD))))
    with pytest.raises(MalformedItem, match=r"log record of .* more than"):
        decode.log_record(raw(b"\x32\x00" * FLOOD))
    with pytest.raises(MalformedItem, match=r"resource of .* more than"):
        decode.resource(b"\x0a\x00" * FLOOD)
    with pytest.raises(MalformedItem, match=r"scope of .* more than"):
        decode.scope(b"\x1a\x00" * FLOOD)


@pytest.mark.parametrize(
    "text",
    [b'{"attributes":[' + b"{}," * FLOOD + b"{}]}", b'{"events":[' + b'{"attributes":[]},' * FLOOD + b"{}]}"],
)
def test_json(text: bytes) -> None:
    with pytest.raises(MalformedItem, match="more than"):
        decode.span(raw(text, Encoding.JSON))


def test_a_long_text_and_many_numbers_are_no_flood() -> None:
    vectors = AnyValue()
    for _ in range(100):
        vectors.array_value.values.add().array_value.values.extend([AnyValue(double_value=0.5)] * 1536)
    span = Span(
        attributes=[
            KeyValue(key="text", value=AnyValue(string_value="\x4a\x00" * 1_000_000)),
            KeyValue(key="vectors", value=vectors),
        ]
    )
    found = decode.span(raw(span.SerializeToString())).attributes
    texts, numbers = found["text"], found["vectors"]
    assert isinstance(texts, str) and len(texts) == 2_000_000
    assert isinstance(numbers, list) and len(numbers) == 100


def test_what_is_nested_deeper_than_any_decoder_goes_is_left_to_it() -> None:
    data = b""
    for _ in range(3_000):
        data = field(b"\x2a", field(b"\x0a", data))
    check_values(field(b"\x4a", field(b"\x12", data)), Item.SPAN, Encoding.PROTO, 300)
    with pytest.raises(MalformedItem):
        decode.span(raw(field(b"\x4a", field(b"\x12", data))))


@pytest.mark.parametrize(
    "data", [b"\x4b" * 900, b"\x4a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" * 90, b"\xff" * 900]
)
def test_what_is_no_protobuf_ends(data: bytes) -> None:
    with pytest.raises(TooManyParts):
        check_values(data, Item.SPAN, Encoding.PROTO, 10)
