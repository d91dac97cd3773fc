"""What has become of the messages of one partition, and how that is said in a commit. Pure: no I/O, no clock.

A commit is an offset and a text. The offset is the first message that is not settled: all before it are. The text
tells which messages behind it are settled all the same, so that a new owner of the partition passes them over.

The text is `gw1`, a letter, and base 85 of a checksum and a payload. Letter `r`: lengths of runs from the committed
offset on, as varints, in turn unsettled and settled, beginning with unsettled and ending with settled. Letter `b`: one
bit per message from the committed offset on, lowest first, 1 = settled. `R` and `B`: the same, compressed by zlib.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from collector.pipeline.receipt import Receipt

_MAGIC = "gw1"
_MAX_PAYLOAD = 1024 * 1024
"""Bytes that a compressed payload may become."""
_MAX_OWED = 1_000_000
"""Unsettled messages that a text may name: more than any process holds; what claims more is not ours."""
_MAX_SHIFT = 63


class Taken(Enum):
    """What a fetched message is to this process."""

    NEW = "new"
    SETTLED = "settled"  # by a former owner, whose commit said so
    REPEATED = "repeated"  # this process has had it: it waits here, or is settled


class Commit(NamedTuple):
    """`whole`: the text names every message behind `offset` that is settled; else it would not have fitted."""

    offset: int
    text: str
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Held:
    """A message that is not settled: since when (monotonic seconds), and its receipt."""

    since: float
    receipt: Receipt


@dataclass(slots=True)
class Progress:
    """The messages of a partition from `first` on. `settled` are those that a former owner's commit names."""

    first: int
    settled: Iterable[range] = ()
    _next: int = field(init=False)
    _open: dict[int, Held | None] = field(init=False, default_factory=dict)
    _owed: deque[int] = field(init=False, default_factory=deque)

    def __post_init__(self) -> None:
        """Every message up to the last settled one is known; those between are owed: not fetched yet, not settled."""
        self._next = self.first
        for run in self.settled:
            self._owed.extend(range(self._next, run.start))
            self._next = run.stop
        self._open = dict.fromkeys(self._owed)

    @property
    def offset(self) -> int:
        """The first message that is not settled."""
        return next(iter(self._open), self._next)

    @property
    def unsettled(self) -> int:
        """Messages that were fetched and wait for their outcome."""
        return len(self._open) - len(self._owed)

    @property
    def fetch_from(self) -> int:
        """The first message that was not fetched."""
        return self._owed[0] if self._owed else self._next

    def take(self, offset: int) -> Taken:
        """A message was fetched; messages come in the order of their offsets. One that is `NEW` must be held next.

        Messages before it that never came (compacted, deleted, markers of transactions) will not come any more.
        """
        while self._owed and self._owed[0] < offset:
            del self._open[self._owed.popleft()]
        if self._owed and self._owed[0] == offset:
            self._owed.popleft()
            return Taken.NEW
        if offset >= self._next:
            self._next = offset + 1
            return Taken.NEW
        return Taken.REPEATED if offset in self._open else Taken.SETTLED

    def hold(self, offset: int, held: Held) -> None:
        """A new message waits for its outcome."""
        self._open[offset] = held

    def settle(self, offset: int) -> None:
        """It has its outcome."""
        self._open.pop(offset, None)

    def held(self) -> Iterator[Held]:
        """What waits for its outcome, in the order of offsets."""
        return (held for held in self._open.values() if held is not None)

    def oldest(self) -> float | None:
        """Since when the first unsettled message waits; None where none does."""
        return next((held.since for held in self.held()), None)

    def commit(self, room: int) -> Commit:
        """What to commit now. `room` is the most characters that the text may have."""
        runs = list(self._runs())
        offset = self.offset
        if not runs:
            return Commit(offset, "")
        texts = [_text(offset, kind, payload) for kind, payload in _payloads(runs)]
        best = min(texts, key=len)
        if len(best) <= room:
            return Commit(offset, best)
        low, high = 0, len(runs) // 2  # how many pairs of runs still fit, as they are
        while low < high:
            middle = (low + high + 1) // 2
            if len(_text(offset, "r", _varints(runs[: 2 * middle]))) <= room:
                low = middle
            else:
                high = middle - 1
        return Commit(offset, _text(offset, "r", _varints(runs[: 2 * low])) if low else "", whole=False)

    def _runs(self) -> Iterator[int]:
        """Lengths of runs from `offset` on, in turn unsettled and settled; no unsettled run at the end."""
        start = at = self.offset
        for offset in self._open:
            if offset > at:  # settled between the last unsettled one and this
                yield at - start
                yield offset - at
                start = offset
            at = offset + 1
        if self._next > at:
            yield at - start
            yield self._next - at


def settled_in(commit: Commit) -> list[range] | None:
    """The settled messages that a commit names, in order; None where its text is not ours, or is not of this offset."""
    if not commit.text:
        return []
    kind, packed = commit.text[len(_MAGIC) : len(_MAGIC) + 1], commit.text[len(_MAGIC) + 1 :]
    if not commit.text.startswith(_MAGIC) or kind not in tuple("rRbB"):
        return None
    try:
        data = base64.b85decode(packed)
    except ValueError:
        return None
    payload = data[4:]
    if data[:4] != _checksum(commit.offset, kind, payload):
        return None
    if kind.isupper():
        unpack = zlib.decompressobj()
        try:
            payload = unpack.decompress(payload, _MAX_PAYLOAD)
        except zlib.error:
            return None
        if not unpack.eof:
            return None
    return _checked(
        commit.offset, _of_varints(commit.offset, payload) if kind in "rR" else _of_bits(commit.offset, payload)
    )


def _checked(offset: int, runs: Iterable[range]) -> list[range] | None:
    """The runs, if a process of ours can have written them."""
    found: list[range] = []
    at, owed = offset, 0
    for run in runs:
        owed += run.start - at
        at = run.stop
        if run.start >= run.stop or owed > _MAX_OWED:
            return None
        found.append(run)
    return found


def _payloads(runs: list[int]) -> Iterator[tuple[str, bytes]]:
    varints = _varints(runs)
    yield "r", varints
    yield "R", zlib.compress(varints)
    if sum(runs) // 8 <= 4 * len(varints):
        bits, at = 0, 0
        for index, length in enumerate(runs):
            if index % 2:
                bits |= ((1 << length) - 1) << at
            at += length
        packed = bits.to_bytes((at + 7) // 8, "little")
        yield "b", packed
        yield "B", zlib.compress(packed)


def _text(offset: int, kind: str, payload: bytes) -> str:
    return _MAGIC + kind + base64.b85encode(_checksum(offset, kind, payload) + payload).decode()


def _checksum(offset: int, kind: str, payload: bytes) -> bytes:
    return struct.pack(">I", binascii.crc32(payload, binascii.crc32(f"{offset}{kind}".encode())))


def _varints(numbers: Iterable[int]) -> bytes:
    """Seven bits a byte, lowest first, the highest bit set where more follows."""
    out = bytearray()
    for number in numbers:
        rest = number
        while rest > 0x7F:
            out.append(rest & 0x7F | 0x80)
            rest >>= 7
        out.append(rest)
    return bytes(out)


def _of_varints(offset: int, payload: bytes) -> Iterator[range]:
    at, number, shift, settled = offset, 0, 0, False
    for byte in payload:
        number |= (byte & 0x7F) << shift
        shift += 7
        if shift > _MAX_SHIFT:
            yield range(at, at)  # no number of ours
            return
        if byte < 0x80:
            if settled:
                yield range(at, at + number)
            at, number, shift, settled = at + number, 0, 0, not settled


def _of_bits(offset: int, payload: bytes) -> Iterator[range]:
    start = None
    for at, bit in enumerate(f"{int.from_bytes(payload, 'little'):b}"[::-1] + "0"):
        if bit == "1" and start is None:
            start = at
        elif bit == "0" and start is not None:
            yield range(offset + start, offset + at)
            start = None
