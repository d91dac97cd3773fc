"""Requests of very many parts are refused before they take memory and time."""

from __future__ import annotations

import pytest

from collector.otlp import bounds
from collector.otlp.batch import Signal
from collector.otlp.bounds import MAX_PARTS, TooManyParts, check_json, check_proto
from collector.otlp.model import Encoding
from collector.otlp.request import OverfullRequest, RequestReader

MIB = 1024 * 1024


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def field(tag: bytes, content: bytes) -> bytes:
    return tag + varint(len(content)) + content


def under(depth: int, flood: bytes) -> bytes:
    """A request with `flood` as the content of its outermost level, of a group, or of a scope."""
    for tag in (b"\x0a", b"\x12")[:depth][::-1]:
        flood = field(tag, flood)
    return flood


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("piece", [b"\x0a\x00", b"\x12\x00", b"\x12\x01x", b"\x8a\x00\x00", b"\x7a\x00"])
def test_floods_of_small_fields(depth: int, piece: bytes) -> None:
    body = under(depth, piece * (2 * MIB // len(piece)))
    with pytest.raises(TooManyParts, match=f"more than {MAX_PARTS}"):
        check_proto(body, MAX_PARTS)
    with pytest.raises(OverfullRequest, match="smaller batches"):
        RequestReader().read(body, Signal.TRACES, Encoding.PROTO)


def test_floods_behind_an_overlong_tag_or_over_several_groups() -> None:
    flood = b"\x12\x00" * 150_000
    for body in (field(b"\x8a\x80\x00", field(b"\x92\x00", flood * 4)), field(b"\x0a", field(b"\x12", flood)) * 4):
        with pytest.raises(TooManyParts):
            check_proto(body, MAX_PARTS)


def test_floods_behind_protobuf_groups() -> None:
    with pytest.raises(TooManyParts, match="kind"):
        check_proto(b"\x0b\x0c" + b"\x12\x00" * MIB, MAX_PARTS)


def test_small_bodies_are_counted_after_splitting() -> None:
    reader = RequestReader(max_parts=10)
    for body, encoding in (
        (b"\x0a\x00" * 11, Encoding.PROTO),
        (under(1, b"\x12\x00" * 11), Encoding.PROTO),
        (under(2, b"\x12\x00" * 11), Encoding.PROTO),
        (under(2, b"\x12\x00" * 11) + b"\x0a\x01\x0a", Encoding.PROTO),
        (b'{"resourceSpans":[%b{}]}' % (b"{}," * 10), Encoding.JSON),
        (b'{"resourceSpans":[{"scopeSpans":[%b{}]}]}' % (b"{}," * 10), Encoding.JSON),
        (b'{"resourceSpans":[{"scopeSpans":[{"spans":[%b0]}]}]}' % (b"0," * 10), Encoding.JSON),
        (b'{"resourceSpans":[{"scopeSpans":[{"spans":[%b0]},5]}]}' % (b"0," * 10), Encoding.JSON),
    ):
        with pytest.raises(OverfullRequest, match="more than 10 groups and items"):
            reader.read(body, Signal.TRACES, encoding)


def test_floods_of_json_values() -> None:
    body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[%b0]}]}]}' % (b"0," * MIB)
    with pytest.raises(TooManyParts, match="comma"):
        check_json(body, MAX_PARTS)
    with pytest.raises(OverfullRequest, match="smaller batches"):
        RequestReader().read(body, Signal.TRACES, Encoding.JSON)


def test_large_requests_of_telemetry_pass() -> None:
    span = b"\x0a\x10" + b"t" * 16 + b"\x12\x08" + b"s" * 8 + b"\x2a\x7f" + b"n" * 127
    body = under(2, field(b"\x12", span) * 20_000)
    assert len(body) > 3 * MIB
    assert len(RequestReader().read(body, Signal.TRACES, Encoding.PROTO)) == 20_000
    text = b'{"traceId":"%b","spanId":"%b","name":"%b"}' % (b"ab" * 16, b"cd" * 8, b"0.125, " * 50)
    body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[%b]}]}]}' % b",".join([text] * 5000)
    assert len(RequestReader().read(body, Signal.TRACES, Encoding.JSON)) == 5000


@pytest.mark.parametrize(
    "start", [b"\x07", b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x09", b"\x0d", b"\x08"]
)
def test_other_content_is_left_to_the_decoder(start: bytes) -> None:
    check_proto(start + b"\xff" * (bounds._UNCHECKED_BYTES + 10), MAX_PARTS)
