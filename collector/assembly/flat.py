"""The items of one request as one run of lists, whatever resources and scopes they came under.

A gateway's requests hold many small groups; work is done on all their items at once, and the group of an item is
looked up only for the few that need it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import compress

from collector.otlp.batch import Group
from collector.otlp.model import Encoding, RawItem

Origin = tuple[bytes, Encoding]
"""The resource of a span that is cut, and its encoding."""


class Origins:
    """Which group each item came from: `ends` are the groups' ends among the items."""

    __slots__ = ("_cut", "_ends", "_groups", "encoding")

    def __init__(self, groups: Sequence[tuple[bytes, bytes]], ends: Sequence[int], encoding: Encoding) -> None:
        self.encoding = encoding
        self._groups = groups
        self._ends = ends
        self._cut: list[Origin] = [(resource, encoding) for resource, _ in groups]

    def __len__(self) -> int:
        return len(self._groups)

    def at(self, index: int) -> tuple[bytes, bytes]:
        """The resource and the scope of an item."""
        return self._groups[bisect_right(self._ends, index)]

    def cut_at(self, index: int) -> Origin:
        """The origin of an item that is cut; one object for all of a group."""
        return self._cut[bisect_right(self._ends, index)]

    def where(self, left: bytearray) -> Origins:
        """The origins of those items for which `left` is 1, when the others are taken away."""
        ends, start, count = [], 0, 0
        for end in self._ends:
            count += sum(left[start:end])
            ends.append(count)
            start = end
        return Origins(self._groups, ends, self.encoding)


class Flat:
    """All items of some groups of one encoding, as parallel lists."""

    __slots__ = ("encoding", "items", "origins", "span_ids", "trace_ids")

    def __init__(
        self,
        encoding: Encoding,
        trace_ids: list[bytes],
        span_ids: list[bytes],
        items: list[bytes],
        origins: Origins,
    ) -> None:
        self.encoding = encoding
        self.trace_ids = trace_ids
        self.span_ids = span_ids
        self.items = items
        self.origins = origins

    def without(self, left: bytearray) -> Flat:
        """Only the items for which `left` is 1."""
        lists = [list(compress(column, left)) for column in (self.trace_ids, self.span_ids, self.items)]
        return Flat(self.encoding, lists[0], lists[1], lists[2], self.origins.where(left))

    def raw(self, index: int) -> RawItem:
        return RawItem(self.items[index], *self.origins.at(index), self.encoding)


def flatten(groups: Iterable[Group]) -> list[Flat]:
    """The items of `groups`, one run for each encoding; groups without items are passed over."""
    by_encoding: dict[Encoding, list[Group]] = {}
    for group in groups:
        if group.items:
            by_encoding.setdefault(group.encoding, []).append(group)
    flats = []
    for encoding, some in by_encoding.items():
        first = some[0]
        trace_ids, span_ids, items = first.trace_ids, first.span_ids, first.items
        ends = [len(items)]
        if len(some) > 1:
            trace_ids, span_ids, items = list(trace_ids), list(span_ids), list(items)
            for group in some[1:]:
                trace_ids += group.trace_ids
                span_ids += group.span_ids
                items += group.items
                ends.append(len(items))
        origins = Origins([(group.resource, group.scope) for group in some], ends, encoding)
        flats.append(Flat(encoding, trace_ids, span_ids, items, origins))
    return flats
