"""The head of a span (ids, parent, times, flags), kept for a whole request at once without decoding a span.

Exporters write the fields of a span in the order of their numbers: everything wanted stands in front of the
attributes, in the first bytes, and the flags, which have the highest number, in the last six. So a request's spans
are cut to their first 128 and last 8 bytes by two array operations, and read only when a hint turns up in their
trace. A span of another shape is walked field by field on arrival and written anew in the usual one.
"""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from collector.assembly.flat import Flat
from collector.otlp.model import Encoding, RawItem
from collector.otlp.rows import WINDOW, Rows

# Bytes of a usual head beside trace state and name: ids 28, parent 10, kind 2, times 18, two tags and lengths 4.
_LONGEST_NAME = WINDOW - 62
_REMOTE = 0x300  # CONTEXT_HAS_IS_REMOTE and CONTEXT_IS_REMOTE
_FLAGS_TAG = 0x0185
# In the last 8 bytes of a span, as a word: the tag of the flags, and both bits of a remote parent.
_REMOTE_TAIL = _FLAGS_TAG << 16 | _REMOTE << 32
_REMOTE_TAIL_MASK = 0xFFFF << 16 | _REMOTE << 32
_NO_SPAN = bytes(8)
_MIX = 0x9E3779B97F4A7C15


class Head(NamedTuple):
    """What is left of a span that is cut. `parent` is b"" where it has none; times in nanoseconds since 1970."""

    span_id: bytes
    parent: bytes
    start: int
    end: int
    flags: int


Clip = tuple[bytes, int]
"""The head of one span, not yet read: its window, and its last 8 bytes as a little-endian word."""


@dataclass(slots=True)
class Heads:
    """The heads of some spans: the first `WINDOW` bytes of each, and the last 8 as a little-endian word."""

    windows: NDArray[np.uint8]
    tails: NDArray[np.uint64]

    def __getitem__(self, index: int) -> Head:
        return head_of((self.windows[index].tobytes(), int(self.tails[index])))

    def trace_ids(self, indices: list[int]) -> list[bytes]:
        joined = self.windows[indices, 2:18].tobytes()
        return [joined[at : at + 16] for at in range(0, len(joined), 16)]

    def of_trace(self, trace_id: bytes) -> list[tuple[int, Clip]]:
        """The heads of the spans of one trace, not yet read, each with its index."""
        half = np.ndarray((len(self.windows),), "<u8", self.windows, 2, (WINDOW,))
        near = np.flatnonzero(half == int.from_bytes(trace_id[:8], "little")).tolist()
        clips = zip(near, self.clips(near), strict=True)
        return [(index, clip) for index, clip in clips if clip[0][10:18] == trace_id[8:]]

    def clips(self, indices: list[int]) -> list[Clip]:
        """The heads of some spans, not yet read."""
        joined = self.windows[indices].tobytes()
        cuts = (joined[at : at + WINDOW] for at in range(0, len(joined), WINDOW))
        return list(zip(cuts, self.tails[indices].tolist(), strict=True))


def split(span_ids: bytes) -> list[bytes]:
    """Span ids that were joined."""
    return [span_ids[at : at + 8] for at in range(0, len(span_ids), 8)]


class ByTrace:
    """Spans sorted by trace. `spans` maps each trace id to its span ids, joined; `repeats` tells whether any span
    id occurs twice (maybe in two traces)."""

    __slots__ = ("_bounds", "_order", "repeats", "spans")

    def __init__(self, heads: Heads, *, mix: int = _MIX) -> None:
        size = len(heads.windows)
        first, second, span_ids = (
            np.ndarray((size,), "<u8", heads.windows, offset, (WINDOW,)).copy() for offset in (2, 10, 20)
        )
        # Any key that is equal for equal trace ids will do: two traces with one key are told apart below.
        order = (first * np.uint64(mix) ^ second).argsort()
        first, second = first[order], second[order]
        new = np.empty(size, np.bool_)
        new[0] = True
        np.not_equal(first[1:], first[:-1], out=new[1:])
        new[1:] |= second[1:] != second[:-1]
        bounds = np.flatnonzero(new)
        pairs = np.empty((len(bounds), 2), "<u8")
        pairs[:, 0], pairs[:, 1] = first[bounds], second[bounds]
        halves = pairs.tobytes()
        names = [halves[at : at + 16] for at in range(0, len(halves), 16)]
        starts: list[int] = (bounds * 8).tolist()
        ends = [*starts[1:], size * 8]
        joined = span_ids[order].tobytes()
        self.spans = {name: joined[at:end] for name, at, end in zip(names, starts, ends, strict=True)}
        self._order = order
        self._bounds = (names, starts, ends)
        if len(self.spans) != len(names):
            # Two traces of one key lay mingled: join the pieces of each.
            self.spans = {}
            for name, at, end in zip(names, starts, ends, strict=True):
                self.spans[name] = self.spans.get(name, b"") + joined[at:end]
        span_ids.sort()
        self.repeats = bool((span_ids[1:] == span_ids[:-1]).any())

    def indices(self, names: Collection[bytes]) -> list[int]:
        """Where the spans of these traces stand in the group, in the order of arrival."""
        found: list[int] = []
        for name, at, end in zip(*self._bounds, strict=True):
            if name in names:
                found += self._order[at // 8 : end // 8].tolist()
        found.sort()
        return found


class Read(NamedTuple):
    """The heads of spans as they arrived, and the indices of those that can not be read."""

    heads: Heads
    malformed: list[int]


def read(flat: Flat) -> Read:
    """Take the heads of all spans."""
    if flat.encoding is Encoding.JSON:
        return _read_json(flat)
    windows, tails = flat.rows.windows, flat.rows.tails()
    odd = _unusual(flat.rows)
    if odd:
        windows = windows.copy()
    malformed = []
    for index in odd:
        trace_id, span_id = flat.ids(index)
        try:
            head = walk_proto(flat.items[index], span_id)
        except ValueError:
            malformed.append(index)
            continue
        data = encode_proto(trace_id, head)
        windows[index, : len(data)] = np.frombuffer(data, np.uint8)
        windows[index, len(data) :] = 0
        tails[index] = _FLAGS_TAG << 16 | head.flags << 32
    return Read(Heads(windows, tails), malformed)


def _read_json(flat: Flat) -> Read:
    """Each span is walked, and its head written as a serialized span of the usual shape."""
    trace_ids, span_ids = flat.all_ids()
    written: list[bytes] = []
    flags: list[int] = []
    malformed = []
    for index, item in enumerate(flat.items):
        try:
            head = walk_json(item, span_ids[index])
        except ValueError:
            malformed.append(index)
            head = Head(span_ids[index], b"", 0, 0, 0)
        written.append(encode_proto(trace_ids[index], head).ljust(WINDOW, b"\0"))
        flags.append(head.flags)
    windows = np.frombuffer(b"".join(written), np.uint8).reshape(len(written), WINDOW)
    tails = np.array(flags, "<u8")
    tails <<= np.uint64(32)
    tails |= np.uint64(_FLAGS_TAG << 16)
    return Read(Heads(windows, tails), malformed)


def _unusual(rows: Rows) -> Sequence[int]:
    """The indices of spans whose head is not known to lie in its window."""
    windows, lengths = rows.windows, rows.lengths
    size = len(windows)

    def pair(offset: int) -> NDArray[np.uint16]:
        return np.ndarray((size,), "<u2", windows, offset, (WINDOW,))

    first = pair(28)
    has_parent = first == 0x0822
    name = np.where(has_parent, pair(38), first)
    usual = (name & 0xFF) == 0x2A
    usual &= name <= (_LONGEST_NAME << 8 | 0xFF)
    if not rows.ids_inside:
        usual &= pair(0) == 0x100A
        usual &= pair(18) == 0x0812
    usual &= lengths >= WINDOW
    if usual.all():
        return ()
    has_state = (first & 0xFF) == 0x1A
    if has_state.any():
        # Behind a trace state the rest is moved by its length, so it has to be looked up for each span.
        row = np.arange(size) * WINDOW
        flat = windows.reshape(-1)
        state = np.where(has_state, np.minimum(first >> 8, _LONGEST_NAME), 0).astype(np.int64)
        at = row + 30 + state
        at += 10 * ((flat[at] == 0x22) & (flat[at + 1] == 0x08))
        fits = (flat[at] == 0x2A) & (flat[at + 1].astype(np.int64) + state + 2 <= _LONGEST_NAME)
        fits &= (first >> 8) <= _LONGEST_NAME
        usual |= has_state & fits & (pair(0) == 0x100A) & (pair(18) == 0x0812) & (lengths >= WINDOW)
    odd: list[int] = np.flatnonzero(~usual).tolist()
    return odd


def span_id_of(clip: Clip) -> bytes:
    return clip[0][20:28]


def local_parent(clip: Clip) -> bytes:
    """The parent span id where it is one of this process; b"" where the span is a local root by what it says
    itself: no parent, or a remote one."""
    window, tail = clip
    at = 30 + window[29] if window[28] == 0x1A else 28
    if window[at : at + 2] != b"\x22\x08" or (tail & _REMOTE_TAIL_MASK) == _REMOTE_TAIL:
        return b""
    parent = window[at + 2 : at + 10]
    return b"" if parent == _NO_SPAN else parent


def head_of(clip: Clip) -> Head:
    """Read a head."""
    data, tail = clip
    at = 28
    if data[at] == 0x1A:
        at += 2 + data[at + 1]
    parent = b""
    if data[at : at + 2] == b"\x22\x08":
        parent = data[at + 2 : at + 10]
        at += 10
    if data[at] == 0x2A:
        at += 2 + data[at + 1]
    if data[at] == 0x30:
        at += 2
    start = end = 0
    if data[at] == 0x39:
        start = int.from_bytes(data[at + 1 : at + 9], "little")
        at += 9
    if data[at] == 0x41:
        end = int.from_bytes(data[at + 1 : at + 9], "little")
    # Text at the end of a span can look like flags; who writes such text could as well have set the flags.
    flags = tail >> 32 if (tail >> 16) & 0xFFFF == _FLAGS_TAG else 0
    return Head(data[20:28], parent if any(parent) else b"", start, end, flags)


def walk_proto(data: bytes, span_id: bytes) -> Head:
    """The head of one serialized span, field by field. Raises ValueError where the bytes are not protobuf."""
    at, size = 0, len(data)
    parent, start, end, flags = b"", 0, 0, 0
    while at < size:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            _, at = _varint(data, at)
            continue
        if wire == 2:
            length, at = _varint(data, at)
        elif wire == 1:
            length = 8
        elif wire == 5:
            length = 4
        else:
            raise ValueError(f"wire type {wire} in a span")
        stop = at + length
        if number == 0 or stop > size:
            raise ValueError("a span is cut off")
        if number == 4 and wire == 2:
            parent = data[at:stop]
        elif number == 7 and wire == 1:
            start = int.from_bytes(data[at:stop], "little")
        elif number == 8 and wire == 1:
            end = int.from_bytes(data[at:stop], "little")
        elif number == 16 and wire == 5:
            flags = int.from_bytes(data[at:stop], "little")
        at = stop
    return Head(span_id, parent if len(parent) == 8 and any(parent) else b"", start, end, flags)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a varint in a span is cut off or too long")


class _JsonHead(msgspec.Struct, gc=False):
    parent: str | None = msgspec.field(default=None, name="parentSpanId")
    parent_2: str | None = msgspec.field(default=None, name="parent_span_id")
    start: int | str | None = msgspec.field(default=None, name="startTimeUnixNano")
    start_2: int | str | None = msgspec.field(default=None, name="start_time_unix_nano")
    end: int | str | None = msgspec.field(default=None, name="endTimeUnixNano")
    end_2: int | str | None = msgspec.field(default=None, name="end_time_unix_nano")
    flags: int | str | None = None


_JSON_HEAD = msgspec.json.Decoder(_JsonHead)
_UINT32, _UINT64 = 2**32 - 1, 2**64 - 1


def walk_json(data: bytes, span_id: bytes) -> Head:
    """The head of one span in OTLP/JSON. Raises ValueError where it is none."""
    try:
        head = _JSON_HEAD.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError("a span is not OTLP/JSON") from error
    parent = unhexlify(head.parent or head.parent_2 or "")
    return Head(
        span_id,
        parent if len(parent) == 8 and parent != _NO_SPAN else b"",
        _unsigned(head.start or head.start_2, _UINT64),
        _unsigned(head.end or head.end_2, _UINT64),
        _unsigned(head.flags, _UINT32),
    )


def _unsigned(value: int | str | None, most: int) -> int:
    number = int(value or 0)
    if not 0 <= number <= most:
        raise ValueError(f"a number in a span is more than {most} or less than 0")
    return number


_BEFORE_PARENT = Struct("<H16sH8s").pack
_BEHIND_PARENT = Struct("<BQBQHI").pack


def encode_proto(trace_id: bytes, head: Head) -> bytes:
    """The head as a serialized span, in the usual shape."""
    parent = b"\x22\x08" + head.parent if head.parent else b""
    return (
        _BEFORE_PARENT(0x100A, trace_id, 0x0812, head.span_id)
        + parent
        + _BEHIND_PARENT(0x39, head.start, 0x41, head.end, _FLAGS_TAG, head.flags)
    )


def cut(trace_id: bytes, clip: Clip, resource: bytes, encoding: Encoding) -> RawItem:
    """The span as an item that the ordinary decoder reads, with all content gone."""
    if encoding is Encoding.PROTO:
        return RawItem(_without_content(trace_id, clip), resource, b"", encoding, cut=True)
    head = head_of(clip)
    text = (
        f'{{"traceId":"{trace_id.hex()}","spanId":"{head.span_id.hex()}","parentSpanId":"{head.parent.hex()}",'
        f'"startTimeUnixNano":"{head.start}","endTimeUnixNano":"{head.end}","flags":{head.flags}}}'
    )
    return RawItem(text.encode(), resource, b"", encoding, cut=True)


def _without_content(trace_id: bytes, clip: Clip) -> bytes:
    """The fields that are kept, copied as they stand where there is no trace state between them."""
    window, tail = clip
    at = 38 if window[28:30] == b"\x22\x08" else 28
    if window[at] == 0x2A:
        times = at + 2 + window[at + 1]
        if window[times] == 0x30:
            times += 2
        if window[times] == 0x39 and window[times + 9] == 0x41:
            kept = window[:at] + window[times : times + 18]
            return kept + tail.to_bytes(8, "little")[2:] if (tail >> 16) & 0xFFFF == _FLAGS_TAG else kept
    return encode_proto(trace_id, head_of(clip))
