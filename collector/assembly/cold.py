"""Traces that are not wanted so far: held by the request, not by the span.

Nearly all traffic is like this, so no Python object is kept per span. A block holds the heads of one request's
spans as an array, and the span ids by trace; a trace is an entry that names its blocks. What belongs to one trace
is sought out only when a hint turns up in it. A block closes as a whole, and its traces' entries then serve as
their tombstones, without being touched.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from collector.assembly.flat import Origins
from collector.assembly.heads import Clip, Heads
from collector.otlp.rows import WINDOW

# Bytes that a block, a span and a trace in a block take (tests/unit/assembly/test_assembly_bounds.py holds them to
# the growth of the process): a span is its window, tail and id; a trace its id, its places in two dicts, and the
# object that holds its span ids.
BLOCK_COST = 900
SPAN_COST = WINDOW + 8 + 8
TRACE_COST = 200
ORIGIN_COST = 120
ITEM_COST = 130
"""What an item that is kept takes beside its bytes."""

MAX_BLOCKS = 8
"""A trace that is in more blocks than this is held by itself, so that it can not pin blocks without end."""

_SPAN_ID = 8
_NO_HEADS = Heads(np.empty((0, WINDOW), np.uint8), np.empty(0, np.uint64))


class Block:
    """The spans of one request in traces that are not wanted. `spans` holds each trace's span ids, joined; `content`
    the bytes of the spans that would be of use if their trace came to be wanted, by their indices."""

    __slots__ = (
        "alone",
        "arrived",
        "buried",
        "closed",
        "content",
        "cost",
        "heads",
        "live",
        "origins",
        "several",
        "spans",
    )

    def __init__(
        self,
        heads: Heads,
        spans: dict[bytes, bytes],
        content: dict[int, bytes],
        *,
        origins: Origins,
        arrived: float,
    ) -> None:
        self.heads = heads
        self.spans: Mapping[bytes, bytes] | Collection[bytes] = spans
        self.content = content
        self.origins = origins
        self.arrived = arrived
        self.cost = (
            BLOCK_COST
            + len(heads.tails) * SPAN_COST
            + len(spans) * TRACE_COST
            + len(origins) * ORIGIN_COST
            + sum(map(len, content.values()))
            + len(content) * ITEM_COST
        )
        self.live = 0  # open traces with spans here
        self.alone = 0  # those of them with no spans elsewhere
        self.several: list[bytes] = []  # those that were open elsewhere when the block arrived
        self.closed = False
        self.buried = 0  # entries for which this block is the tombstone


class Part(NamedTuple):
    """What one block held of one trace: the spans' heads with their indices, and the bytes of those that kept them;
    `arrived` in monotonic seconds."""

    clips: list[tuple[int, Clip]]
    content: dict[int, bytes]
    origins: Origins
    arrived: float


class Cold:
    """All traces without a hint, and the tombstones of `tombstones` closed ones or more, oldest block first."""

    __slots__ = ("_entries", "_graves", "_queue", "_tombstones", "buried", "bytes", "open")

    def __init__(self, tombstones: int) -> None:
        # A block that is closed stands for a closed trace.
        self._entries: dict[bytes, Block | list[Block]] = {}
        self._queue: deque[Block] = deque()
        self._graves: deque[Block] = deque()
        self._tombstones = tombstones
        self.buried = 0
        self.bytes = 0
        self.open = 0

    def known(self, names: Collection[bytes]) -> list[bytes]:
        """Those of `names` that are open or remembered as closed here."""
        entries = self._entries
        return [name for name in names if name in entries]

    def is_open(self, name: bytes) -> bool:
        entry = self._entries.get(name)
        return entry is not None and not (isinstance(entry, Block) and entry.closed)

    def is_closed(self, name: bytes) -> bool:
        entry = self._entries.get(name)
        return isinstance(entry, Block) and entry.closed

    def opened_at(self, name: bytes) -> float:
        """When an open trace was opened, in monotonic seconds."""
        entry = self._entries[name]
        return (entry if isinstance(entry, Block) else entry[0]).arrived

    def holds(self, name: bytes, span_ids: list[bytes]) -> set[bytes]:
        """Those of `span_ids` that an open trace holds already."""
        entry = self._entries[name]
        held: set[bytes] = set()
        for block in (entry,) if isinstance(entry, Block) else entry:
            assert isinstance(block.spans, Mapping)
            joined = block.spans[name]
            held.update(joined[at : at + _SPAN_ID] for at in range(0, len(joined), _SPAN_ID))
        return held.intersection(span_ids)

    def add(self, block: Block, known: Collection[bytes]) -> list[bytes]:
        """Take a block, of whose traces `known` are open here; those that are now in too many blocks."""
        entries = self._entries
        crowded: list[bytes] = []
        self._queue.append(block)
        self.bytes += block.cost
        block.live = len(block.spans)
        if not known:
            fresh: Collection[bytes] = block.spans
        else:
            for name in known:
                entry = entries[name]
                if isinstance(entry, Block):
                    entry.alone -= 1
                    entries[name] = [entry, block]
                else:
                    entry.append(block)
                    if len(entry) > MAX_BLOCKS:
                        crowded.append(name)
            block.several.extend(known)
            fresh = set(block.spans).difference(known)
        block.alone = len(fresh)
        self.open += len(fresh)
        entries.update(dict.fromkeys(fresh, block))
        return crowded

    def take(self, name: bytes) -> list[Part]:
        """Take one open trace out, without a tombstone; the parts of it, oldest first."""
        entry = self._entries.pop(name)
        blocks = [entry] if isinstance(entry, Block) else entry
        parts = [self._part(block, name) for block in blocks]
        if isinstance(entry, Block):
            entry.alone -= 1
        self.open -= 1
        self._leave(blocks)
        return parts

    def _part(self, block: Block, name: bytes) -> Part:
        clips = block.heads.of_trace(name)
        content = {}
        if block.content:
            content = {index: block.content.pop(index) for index, _ in clips if index in block.content}
            taken = sum(map(len, content.values())) + len(content) * ITEM_COST
            block.cost -= taken
            self.bytes -= taken
        return Part(clips, content, block.origins, block.arrived)

    def _leave(self, blocks: list[Block]) -> None:
        for block in blocks:
            block.live -= 1
            if block.live == 0:
                self._free(block)

    def _free(self, block: Block) -> None:
        self.bytes -= block.cost
        block.spans, block.heads, block.several, block.content = tuple(block.spans), _NO_HEADS, [], {}

    def close_quiet(self, limit: float) -> int:
        """Close the traces of which nothing arrived after `limit` (monotonic seconds); how many."""
        closed = 0
        while self._queue and self._queue[0].arrived <= limit:
            block = self._queue.popleft()
            last_here = [name for name in block.several if _last(self._entries.get(name)) is block]
            closed += self._close(block, last_here)
        return closed

    def close_oldest(self) -> int | None:
        """Close every trace of the oldest block; how many, None where there is no block."""
        if not self._queue:
            return None
        block = self._queue.popleft()
        here: list[bytes] = []
        if block.live > block.alone:
            here = [name for name in block.spans if _is_among(block, self._entries.get(name))]
        return self._close(block, here)

    def _close(self, block: Block, several: list[bytes]) -> int:
        """Close a block's own traces, by closing the block, and `several` that lie in other blocks too."""
        entries = self._entries
        for name in several:
            blocks = entries[name]
            assert isinstance(blocks, list)
            entries[name] = block
            self._leave(blocks)
        closed = block.alone + len(several)
        block.closed = True
        block.buried = closed
        if block.alone:
            block.live -= block.alone
            block.alone = 0
            if block.live == 0:
                self._free(block)
        self.open -= closed
        if closed:
            self.buried += closed
            self._graves.append(block)
        return closed

    def forget(self, before: float) -> None:
        """Forget closed traces: those over the number kept, and those of blocks that arrived `before`."""
        graves, entries = self._graves, self._entries
        while graves and (graves[0].arrived < before or self.buried - graves[0].buried >= self._tombstones):
            block = graves.popleft()
            self.buried -= block.buried
            for name in block.spans:
                if entries.get(name) is block:
                    del entries[name]


def _last(entry: Block | list[Block] | None) -> Block | None:
    return entry[-1] if isinstance(entry, list) else None


def _is_among(block: Block, entry: Block | list[Block] | None) -> bool:
    return isinstance(entry, list) and block in entry
