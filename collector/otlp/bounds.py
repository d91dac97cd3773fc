"""How many parts a request may have, and how many values an item, checked before they are split and decoded.

Two bytes of protobuf or JSON can be an item of a list, for which a decoder takes 16 to 60 bytes of memory and up to
some microseconds: a request within the size limit could take twenty times its size, and stop everything else
for half a minute. A span with its ids is 30 bytes or more.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from collector.otlp.model import Encoding

MAX_PARTS = 262_144
"""Groups and items of one request. 16 MiB of spans of 64 bytes."""

MAX_VALUES = 262_144
"""Attributes, events, links and values within values of one span, log record, resource or scope: 170 embeddings of
1,536 numbers."""

_UNCHECKED_BYTES = 1024 * 1024  # below it, memory is no matter, and parts are counted after splitting
_BYTES_PER_COMMA = 6
_DEEPEST = 200  # levels of messages; protobuf's decoder refuses to go deeper than 100

_Shape = dict[int, Any]
_ANY: _Shape = {}
_PAIR: _Shape = {0x12: _ANY}
_ANY.update({0x2A: {0x0A: _ANY}, 0x32: {0x0A: _PAIR}})


class TooManyParts(ValueError):
    """More parts than a request, or values than an item, may have."""


def check_proto(body: bytes, limit: int) -> None:
    """Raises `TooManyParts` for a large body of more than `limit` groups and items on its outer three levels.

    What is no protobuf is left to the decoder to say.
    """
    if len(body) > _UNCHECKED_BYTES:
        _Walk(body, limit).level(0, len(body), (0x0A, 0x12))


class _Walk:
    """Counts the fields of a request on its outer levels."""

    def __init__(self, body: bytes, limit: int) -> None:
        self._body = body
        self._limit = limit
        self._room = limit

    def level(self, position: int, end: int, down: tuple[int, ...]) -> None:
        """`down` holds the tags to go down at, for this level and those below."""
        body = self._body
        while position < end:
            tag = body[position]
            if tag < 0x80:
                position += 1
            else:
                tag, position = _varint(body, position, end)
            wire_type = tag & 7
            if wire_type == 2:
                self._room -= 1
                if self._room < 0:
                    raise TooManyParts(f"more than {self._limit} groups and items")
                if position < end and (size := body[position]) < 0x80:
                    position += 1
                else:
                    size, position = _varint(body, position, end)
                if size and down and tag == down[0]:
                    self.level(position, min(end, position + size), down[1:])
                position += size
            elif wire_type == 0:
                _, position = _varint(body, position, end)
            elif wire_type == 1:
                position += 8
            elif wire_type == 5:
                position += 4
            elif wire_type in (3, 4):  # protobuf's groups: what is behind them can not be counted
                raise TooManyParts("a field of a kind that OTLP does not have")
            else:  # no protobuf: the decoder gets no further either
                return


def _varint(body: bytes, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value, position


def check_json(body: bytes, limit: int) -> None:
    """Raises `TooManyParts` for a large body that has more commas than telemetry has.

    A list has no more items than the body has commas and one. Telemetry has one in 15 bytes or so; lists of
    numbers in its texts, one in 8.
    """
    if len(body) > _UNCHECKED_BYTES and body.count(b",") > max(limit, len(body) // _BYTES_PER_COMMA):
        raise TooManyParts(f"more than one comma in {_BYTES_PER_COMMA} bytes of JSON")


class Item(Enum):
    """What may hold values. Its value: which fields hold messages again, by tag (number << 3 | 2), to any depth."""

    SPAN = {0x4A: _PAIR, 0x5A: {0x1A: _PAIR}, 0x6A: {0x22: _PAIR}}  # noqa: RUF012  # an enum's value, not shared state
    LOG_RECORD = {0x2A: _ANY, 0x32: _PAIR}  # noqa: RUF012  # the same
    RESOURCE = {0x0A: _PAIR}  # noqa: RUF012  # the same
    SCOPE = {0x1A: _PAIR}  # noqa: RUF012  # the same


def check_values(data: bytes, item: Item, encoding: Encoding, limit: int = MAX_VALUES) -> None:
    """Raises `TooManyParts` for an item of more than `limit` attributes, events, links and values within values.

    Two bytes can be an attribute, for which a decoder takes some 40 bytes and a microsecond. An item too short
    for so many is not looked at.
    """
    if len(data) <= 2 * limit:
        return
    if encoding is Encoding.JSON:
        if data.count(b"{") > limit:
            raise TooManyParts(f"more than {limit} values")
    else:
        _Values(data, limit).level(0, len(data), item.value, 0)


class _Values:
    """Counts the fields that hold messages, on all levels of an item."""

    def __init__(self, data: bytes, limit: int) -> None:
        self._data = data
        self._limit = limit
        self._room = limit

    def level(self, position: int, end: int, shape: _Shape, depth: int) -> None:
        data = self._data
        while position < end:
            tag, position = _varint(data, position, end)
            wire_type = tag & 7
            if wire_type == 2:
                size, position = _varint(data, position, end)
                inner = shape.get(tag)
                if inner is not None:
                    self._room -= 1
                    if self._room < 0:
                        raise TooManyParts(f"more than {self._limit} values")
                    if size and depth < _DEEPEST:
                        self.level(position, min(end, position + size), inner, depth + 1)
                position += size
            elif wire_type == 0:
                _, position = _varint(data, position, end)
            elif wire_type == 1:
                position += 8
            elif wire_type == 5:
                position += 4
            else:  # groups, or no protobuf: OTLP has no such field
                raise TooManyParts("a field of a kind that OTLP does not have")
