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
from collector.otlp.rows import Rows

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


class Flat:
    """All items of some groups of one encoding, in a run and in one piece."""

    __slots__ = ("_ends", "_groups", "encoding", "items", "origins", "rows")

    def __init__(self, encoding: Encoding, groups: Sequence[Group], rows: Rows | None = None) -> None:
        self.encoding = encoding
        self._groups = groups
        self.items: list[bytes] = groups[0].items
        self._ends = ends = [len(self.items)]
        if len(groups) > 1:
            self.items = items = list(self.items)
            for group in groups[1:]:
                items += group.items
                ends.append(len(items))
        self.rows = rows if rows is not None else Rows(self.items)
        self.origins = Origins([(group.resource, group.scope) for group in groups], ends, encoding)

    def ids(self, index: int) -> tuple[bytes, bytes]:
        """The trace id and the span id of an item."""
        number = bisect_right(self._ends, index)
        group = self._groups[number]
        within = index - (self._ends[number - 1] if number else 0)
        return group.trace_ids[within], group.span_ids[within]

    def all_ids(self) -> tuple[list[bytes], list[bytes]]:
        """The trace ids and the span ids of all items."""
        groups = self._groups
        if len(groups) == 1:
            return groups[0].trace_ids, groups[0].span_ids
        return [i for group in groups for i in group.trace_ids], [i for group in groups for i in group.span_ids]

    def without(self, gone: set[int]) -> Flat | None:
        """The rest of the items, without some of them; None where none is left."""
        start = 0
        groups = []
        for group, end in zip(self._groups, self._ends, strict=True):
            left = [index not in gone for index in range(start, end)]
            start = end
            if any(left):
                columns = (
                    list(compress(column, left)) for column in (group.trace_ids, group.span_ids, group.items)
                )
                groups.append(Group(group.resource, group.scope, group.encoding, *columns))
        return Flat(self.encoding, groups) if groups else None

    def raw(self, index: int) -> RawItem:
        return RawItem(self.items[index], *self.origins.at(index), self.encoding)


def flatten(groups: Iterable[Group], rows: Rows | None = None) -> list[Flat]:
    """The items of `groups`, one run for each encoding; groups without items are passed over. `rows` are those of
    all of them, where they are known and have one encoding."""
    by_encoding: dict[Encoding, list[Group]] = {}
    for group in groups:
        if group.items:
            by_encoding.setdefault(group.encoding, []).append(group)
    return [Flat(encoding, some, rows) for encoding, some in by_encoding.items()]
