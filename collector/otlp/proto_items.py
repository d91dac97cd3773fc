"""Protobuf messages of the cut-down schema to the decoded model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from collector.otlp import schema
from collector.otlp.model import Event, Link, LogRecord, Resource, Scope, Span, Status, Value

MAX_DEPTH = 50
"""How deep values may be nested in values."""

_STATUSES = {0: Status.UNSET, 1: Status.OK, 2: Status.ERROR}


def text(value: bytes) -> str:
    """A string field; what is not UTF-8 in it becomes U+FFFD."""
    return value.decode("utf-8", "replace")


def id_hex(value: bytes) -> str:
    """An id; "" where absent or all zero (which the specification calls invalid)."""
    return value.hex() if value.strip(b"\0") else ""


def any_value(message: Any, depth: int = 0) -> Value:
    """One AnyValue message as plain Python. Raises ValueError when nested more than MAX_DEPTH deep."""
    if depth > MAX_DEPTH:
        raise ValueError(f"a value is nested more than {MAX_DEPTH} deep")
    which = message.WhichOneof("value")
    if which is None:
        return None
    if which == "string_value":
        return text(message.string_value)
    if which == "array_value":
        return [any_value(value, depth + 1) for value in message.array_value.values]
    if which == "kvlist_value":
        return attributes(message.kvlist_value.values, depth + 1)
    plain: Value = getattr(message, which)
    return plain


def attributes(pairs: Iterable[Any], depth: int = 0) -> dict[str, Value]:
    """KeyValue messages as a dict; a repeated key keeps its last value.

    Most values are one string and nothing else (tag 0x0A, length, text), which is read in place.
    """
    values: dict[str, Value] = {}
    for pair in pairs:
        key = pair.key.decode("utf-8", "replace")
        data: bytes = pair.value
        size = len(data)
        if size > 2 and data[0] == 0x0A:
            length = data[1]
            if length < 0x80:
                if size == length + 2:
                    values[key] = data[2:].decode("utf-8", "replace")
                    continue
            elif data[2] < 0x80 and size == (length & 0x7F | data[2] << 7) + 3:
                values[key] = data[3:].decode("utf-8", "replace")
                continue
        values[key] = any_value(schema.AnyValue.FromString(data), depth)
    return values


def resource(data: bytes) -> Resource:
    message = schema.Resource.FromString(data)
    return Resource(attributes(message.attributes), message.dropped_attributes_count)


def scope(data: bytes) -> Scope:
    message = schema.Scope.FromString(data)
    return Scope(text(message.name), text(message.version), attributes(message.attributes))


def span(data: bytes, of_resource: Resource, of_scope: Scope, *, cut: bool = False) -> Span:
    message = schema.Span.FromString(data)
    return Span(
        trace_id=id_hex(message.trace_id),
        span_id=id_hex(message.span_id),
        parent_span_id=id_hex(message.parent_span_id),
        name=text(message.name),
        kind=message.kind,
        start_unix_nano=message.start_time_unix_nano,
        end_unix_nano=message.end_time_unix_nano,
        attributes=attributes(message.attributes),
        events=()
        if not message.events
        else tuple(
            Event(
                name=text(event.name),
                time_unix_nano=event.time_unix_nano,
                attributes=attributes(event.attributes),
                dropped_attributes_count=event.dropped_attributes_count,
            )
            for event in message.events
        ),
        links=()
        if not message.links
        else tuple(
            Link(id_hex(link.trace_id), id_hex(link.span_id), attributes(link.attributes))
            for link in message.links
        ),
        status=_STATUSES.get(message.status.code, Status.UNSET),
        status_message=text(message.status.message),
        trace_state=text(message.trace_state),
        flags=message.flags,
        dropped_attributes_count=message.dropped_attributes_count,
        dropped_events_count=message.dropped_events_count,
        resource=of_resource,
        scope=of_scope,
        cut=cut,
    )


def log_record(data: bytes, of_resource: Resource, of_scope: Scope) -> LogRecord:
    message = schema.LogRecord.FromString(data)
    values = attributes(message.attributes)
    return LogRecord(
        trace_id=id_hex(message.trace_id),
        span_id=id_hex(message.span_id),
        event_name=text(message.event_name) or event_name(values),
        body=any_value(message.body),
        time_unix_nano=message.time_unix_nano or message.observed_time_unix_nano,
        attributes=values,
        dropped_attributes_count=message.dropped_attributes_count,
        flags=message.flags,
        resource=of_resource,
        scope=of_scope,
    )


def event_name(values: dict[str, Value]) -> str:
    """The name of a log event in the form that was used before the field existed."""
    name = values.get("event.name")
    return name if isinstance(name, str) else ""
