"""Items back to export requests: for replay, for the spool, for tests."""

from __future__ import annotations

from collections.abc import Iterable

from collector.otlp import schema
from collector.otlp.batch import Batch, Group, Signal
from collector.otlp.model import Encoding, RawItem
from collector.otlp.request import Interner, RequestReader


def items(batch: Batch) -> list[RawItem]:
    """The items of a batch, each with its resource and scope."""
    return [
        RawItem(item, group.resource, group.scope, group.encoding)
        for group in batch.groups
        for item in group.items
    ]


def encode_requests(batch: Batch) -> list[tuple[Encoding, bytes]]:
    """Request bodies that hold the batch's items unchanged: one for each encoding that occurs in it.

    Groups that follow one another with one resource are written under it once. Rejected items are gone.
    """
    bodies: list[tuple[Encoding, bytes]] = []
    for encoding in Encoding:
        groups = [group for group in batch.groups if group.encoding is encoding and group.items]
        if groups:
            write = _proto if encoding is Encoding.PROTO else _json
            bodies.append((encoding, write(groups, batch.signal)))
    return bodies


def encode_items(raw_items: Iterable[RawItem], signal: Signal) -> list[tuple[Encoding, bytes]]:
    """Request bodies of loose items; see `encode_requests`."""
    groups: dict[tuple[bytes, bytes, Encoding], Group] = {}
    for item in raw_items:
        key = (item.resource, item.scope, item.encoding)
        group = groups.get(key)
        if group is None:
            group = groups[key] = Group(item.resource, item.scope, item.encoding)
        group.items.append(item.data)
    in_order = sorted(groups.values(), key=lambda group: group.resource)
    return encode_requests(Batch(signal, in_order))


def to_batches(raw_items: Iterable[RawItem], signal: Signal) -> list[Batch]:
    """Loose items as batches with their ids read again, one for each encoding that occurs."""
    reader = RequestReader(max_item_bytes=2**31, max_parts=2**63, intern=Interner())
    return [reader.read(body, signal, encoding) for encoding, body in encode_items(raw_items, signal)]


def _runs(groups: list[Group]) -> list[tuple[bytes, list[Group]]]:
    runs: list[tuple[bytes, list[Group]]] = []
    for group in groups:
        if runs and runs[-1][0] == group.resource:
            runs[-1][1].append(group)
        else:
            runs.append((group.resource, [group]))
    return runs


def _proto(groups: list[Group], _signal: Signal) -> bytes:
    request = schema.Request()
    for resource, of_resource in _runs(groups):
        added = request.groups.add()
        if resource:
            added.resource.append(resource)
        for group in of_resource:
            scope = added.scopes.add(items=group.items)
            if group.scope:
                scope.scope.append(group.scope)
    return bytes(request.SerializeToString())


def _json(groups: list[Group], signal: Signal) -> bytes:
    of_resources, of_scopes, name = (
        (b"resourceSpans", b"scopeSpans", b"spans")
        if signal is Signal.TRACES
        else (b"resourceLogs", b"scopeLogs", b"logRecords")
    )
    written = []
    for resource, of_resource in _runs(groups):
        scopes = [
            b'{"scope":%b,"%b":[%b]}' % (group.scope or b"{}", name, b",".join(group.items))
            for group in of_resource
        ]
        written.append(b'{"resource":%b,"%b":[%b]}' % (resource or b"{}", of_scopes, b",".join(scopes)))
    return b'{"%b":[%b]}' % (of_resources, b",".join(written))
