"""The body of an export request to a `Batch`: split into items, ids read, nothing else decoded.

What is unusable costs itself only: a span with a bad id, an item over the size limit, a ScopeSpans that cannot
be read are counted in `Batch.rejected`, and the rest is kept. A body whose outermost level cannot be read is
`UnreadableRequest`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from collector.otlp import schema
from collector.otlp.batch import Batch, Group, Signal
from collector.otlp.bounds import MAX_PARTS, TooManyParts, check_json, check_proto
from collector.otlp.json_request import JsonIds, UnreadableJson, split_json
from collector.otlp.model import Encoding
from collector.otlp.rows import Rows

_NO_TRACE = bytes(16)
_NO_SPAN = bytes(8)
_FEW = 8
"""As many spans are looked at one by one."""

DEFAULT_MAX_ITEM_BYTES = 4 * 1024 * 1024


class UnreadableRequest(ValueError):
    """A request body that is not what its content type and path say. The message is fit for the sender."""


class OverfullRequest(UnreadableRequest):
    """A request of more parts than one may have; see `bounds`."""


class Interner:
    """Gives equal resource and scope bytes one identity over requests, so that a thousand open traces of one
    process hold one copy. Bounded by `max_bytes` of content; emptied when full (identity is an economy, not a
    meaning)."""

    __slots__ = ("_known", "_room", "max_bytes")

    def __init__(self, max_bytes: int = 1024 * 1024) -> None:
        self.max_bytes = max_bytes
        self._room = max_bytes
        self._known: dict[bytes, bytes] = {}

    def __call__(self, value: bytes) -> bytes:
        known = self._known.get(value)
        if known is not None:
            return known
        if len(value) > self._room:
            if len(value) > self.max_bytes:
                return value
            self._known.clear()
            self._room = self.max_bytes
        self._room -= len(value)
        self._known[value] = value
        return value


class _Tally:
    """What was rejected of a request, and how many parts it may still have."""

    __slots__ = ("_limit", "_room", "count", "reasons")

    def __init__(self, max_parts: int) -> None:
        self._limit = self._room = max_parts
        self.count = 0
        self.reasons: dict[str, int] = {}

    def spend(self, parts: int) -> None:
        """Raises `TooManyParts`."""
        self._room -= parts
        if self._room < 0:
            raise TooManyParts(f"more than {self._limit} groups and items")

    def add(self, reason: str) -> None:
        self.count += 1
        self.reasons[reason] = self.reasons.get(reason, 0) + 1

    def text(self) -> str:
        return "; ".join(f"{count} x {reason}" for reason, count in self.reasons.items())


class RequestReader:
    """Reads request bodies.

    `max_item_bytes` is the size over which one span or log record is rejected, `max_parts` the number of groups
    and items over which a request is (see `bounds`).
    """

    def __init__(
        self,
        *,
        max_item_bytes: int = DEFAULT_MAX_ITEM_BYTES,
        max_parts: int = MAX_PARTS,
        intern: Interner | None = None,
    ) -> None:
        self._max_item_bytes = max_item_bytes
        self._max_parts = max_parts
        self._intern = intern if intern is not None else Interner()

    def read(self, body: bytes, signal: Signal, encoding: Encoding) -> Batch:
        """Raises `UnreadableRequest`."""
        tally = _Tally(self._max_parts)
        rows = None
        try:
            if encoding is Encoding.JSON:
                groups = self._json(body, signal, tally)
            else:
                groups = self._proto(body, signal, tally)
                if signal is Signal.LOGS:
                    groups = self._with_ids(self._small(groups, tally), self._proto_log_ids, tally)
                elif groups:
                    groups, rows = self._spans(groups, tally)
        except TooManyParts as error:
            raise OverfullRequest(f"the request of {len(body)} bytes has {error}; send smaller batches") from error
        return Batch(signal, groups, tally.count, tally.text(), rows)

    # --- protobuf

    def _proto(self, body: bytes, signal: Signal, tally: _Tally) -> list[Group]:
        """The groups, of which the ids have not been looked at."""
        groups: list[Group] = []
        check_proto(body, self._max_parts)
        try:
            of_resources = schema.Request.FromString(body).groups
            tally.spend(len(of_resources))
            for of_resource in of_resources:
                resource = self._intern(b"".join(of_resource.resource))
                tally.spend(len(of_resource.scopes))
                for of_scope in of_resource.scopes:
                    self._proto_scope(of_scope, resource, groups, tally)
        except DecodeError:
            groups.clear()
            self._proto_by_parts(body, signal, groups, tally)
        return groups

    def _proto_by_parts(self, body: bytes, signal: Signal, groups: list[Group], tally: _Tally) -> None:
        """The slow way, level by level, for a body that is broken somewhere."""
        try:
            of_resources = list(schema.RequestParts.FromString(body).parts)
        except DecodeError as error:
            raise UnreadableRequest(
                f"the body of {len(body)} bytes is not a protobuf {_request_name(signal)}; "
                "check that it is complete and that Content-Type names its encoding"
            ) from error
        tally.spend(len(of_resources))
        for part in of_resources:
            try:
                of_resource = schema.ResourceParts.FromString(part)
            except DecodeError:
                tally.add("unreadable group of one resource")
                continue
            resource = self._intern(b"".join(of_resource.resource))
            tally.spend(len(of_resource.parts))
            for scope_part in of_resource.parts:
                try:
                    of_scope = schema.ScopeItems.FromString(scope_part)
                except DecodeError:
                    tally.add("unreadable group of one scope")
                    continue
                self._proto_scope(of_scope, resource, groups, tally)

    def _proto_scope(self, of_scope: Any, resource: bytes, groups: list[Group], tally: _Tally) -> None:
        tally.spend(len(of_scope.items))
        items: list[bytes] = of_scope.items[:]
        if items:
            groups.append(Group.with_ids_inside(resource, self._intern(b"".join(of_scope.scope)), items))

    def _small(self, groups: list[Group], tally: _Tally) -> list[Group]:
        """The groups without items over the size limit."""
        limit = self._max_item_bytes
        if all(len(item) <= limit for group in groups for item in group.items):
            return groups
        small = [
            Group.with_ids_inside(group.resource, group.scope, self._within_size(group.items, tally))
            for group in groups
        ]
        return [group for group in small if group.items]

    def _spans(self, groups: list[Group], tally: _Tally) -> tuple[list[Group], Rows | None]:
        """The groups without unusable spans; and their rows, where all ids stand at the start, and there are enough of
        them that looking at all at once is worth its start."""
        items = [item for group in groups for item in group.items]
        if len(items) <= _FEW:
            limit = self._max_item_bytes
            if all(len(item) <= limit and _has_ids(item) for item in items):
                return groups, None
            groups = self._small(groups, tally)
            return [
                one
                for group in groups
                for one in (
                    [group]
                    if all(map(_has_ids, group.items))
                    else self._with_ids([group], self._proto_span_ids, tally)
                )
            ], None
        rows = _rows(groups)
        if rows.lengths.max() > self._max_item_bytes:
            groups = self._small(groups, tally)
            rows = _rows(groups)
        if rows.all_have_ids():
            return groups, rows
        mended = self._mended(groups, rows.have_ids(), tally)
        rows = _rows(mended) if mended else rows
        return mended, rows if mended and rows.all_have_ids() else None

    def _with_ids(
        self, groups: list[Group], read: Callable[[Iterable[bytes], Group, _Tally], None], tally: _Tally
    ) -> list[Group]:
        """The groups with their ids read item by item, without the items whose ids are bad."""
        checked = []
        for group in groups:
            kept = Group(group.resource, group.scope, Encoding.PROTO)
            read(group.items, kept, tally)
            if kept.items:
                checked.append(kept)
        return checked

    def _mended(self, groups: list[Group], good: NDArray[np.bool_], tally: _Tally) -> list[Group]:
        """The groups of spans, of which those that hold items that are not `good` have their ids read one by one."""
        mended: list[Group] = []
        start = 0
        for group in groups:
            end = start + len(group.items)
            mended += [group] if good[start:end].all() else self._with_ids([group], self._proto_span_ids, tally)
            start = end
        return mended

    def _proto_span_ids(self, items: Iterable[bytes], group: Group, tally: _Tally) -> None:
        """Spans are written anew with their fields in the order of their numbers: the Collector's exporters write them
        the other way round, and everything behind this looks for ids, times and parent at the start."""
        for item in items:
            try:
                span = schema.SpanInOrder.FromString(item)
            except DecodeError:
                tally.add("unreadable span")
                continue
            trace_id, span_id = span.trace_id, span.span_id
            if len(trace_id) != 16 or trace_id == _NO_TRACE:
                tally.add("span whose trace id is missing, all zero or not 16 bytes long")
            elif len(span_id) != 8 or span_id == _NO_SPAN:
                tally.add("span whose span id is missing, all zero or not 8 bytes long")
            else:
                group.trace_ids.append(trace_id)
                group.span_ids.append(span_id)
                group.items.append(span.SerializeToString())

    def _proto_log_ids(self, items: Iterable[bytes], group: Group, tally: _Tally) -> None:
        parse = schema.LogIds.FromString
        for item in items:
            try:
                ids = parse(item)
            except DecodeError:
                tally.add("unreadable log record")
                continue
            trace_id, span_id = ids.trace_id, ids.span_id
            # The specification lets a record be in no trace: invalid ids mean that, and are no error.
            group.trace_ids.append(trace_id if len(trace_id) == 16 and trace_id != _NO_TRACE else b"")
            group.span_ids.append(span_id if len(span_id) == 8 and span_id != _NO_SPAN else b"")
            group.items.append(item)

    # --- JSON

    def _json(self, body: bytes, signal: Signal, tally: _Tally) -> list[Group]:
        groups: list[Group] = []
        check_json(body, self._max_parts)
        try:
            parts = split_json(body, signal, tally.add, tally.spend)
        except UnreadableJson as error:
            raise UnreadableRequest(
                f"the body of {len(body)} bytes is not an OTLP/JSON {_request_name(signal)}: {error}"
            ) from error
        ids = JsonIds(signal)
        for resource, scope, items in parts:
            if not items:
                continue
            kept = self._within_size(items, tally)
            at_fixed_place = ids.read_all(kept)
            if at_fixed_place is not None:
                group = Group(self._intern(resource), self._intern(scope), Encoding.JSON, *at_fixed_place, kept)
            else:
                group = Group(self._intern(resource), self._intern(scope), Encoding.JSON)
                for item in kept:
                    found = ids.read(item)
                    if isinstance(found, str):
                        tally.add(found)
                        continue
                    group.trace_ids.append(found[0])
                    group.span_ids.append(found[1])
                    group.items.append(item)
            if group.items:
                groups.append(group)
        return groups

    def _within_size(self, items: list[bytes], tally: _Tally) -> list[bytes]:
        if max(map(len, items)) <= self._max_item_bytes:
            return items
        kept = []
        for item in items:
            if len(item) > self._max_item_bytes:
                tally.add(f"item over the limit of {self._max_item_bytes} bytes for one span or log record")
            else:
                kept.append(item)
        return kept


def decode_request(body: bytes, signal: Signal, encoding: Encoding = Encoding.PROTO) -> Batch:
    """One body with default limits. Raises `UnreadableRequest`."""
    return RequestReader().read(body, signal, encoding)


def _has_ids(item: bytes) -> bool:
    """As `Rows.have_ids`, for one."""
    return (
        len(item) >= 28
        and item[:2] == b"\x0a\x10"
        and item[18:20] == b"\x12\x08"
        and item[2:18] != _NO_TRACE
        and item[20:28] != _NO_SPAN
    )


def _rows(groups: list[Group]) -> Rows:
    if len(groups) == 1:
        return Rows(groups[0].items)
    return Rows([item for group in groups for item in group.items])


def _request_name(signal: Signal) -> str:
    return "ExportTraceServiceRequest" if signal is Signal.TRACES else "ExportLogsServiceRequest"
