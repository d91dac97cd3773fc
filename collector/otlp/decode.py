"""Raw items to decoded spans and log records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogMessage
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from collector.otlp.model import Event, Link, LogRecord, RawItem, Resource, Scope, Span, Status, Value


def any_value(value: Any) -> Value:
    """One AnyValue message as plain Python."""
    which = value.WhichOneof("value")
    if which is None:
        return None
    if which == "array_value":
        return [any_value(v) for v in value.array_value.values]
    if which == "kvlist_value":
        return attributes(value.kvlist_value.values)
    plain: Value = getattr(value, which)
    return plain


def attributes(pairs: Iterable[Any]) -> dict[str, Value]:
    """KeyValue messages as a dict; a repeated key keeps its last value."""
    return {pair.key: any_value(pair.value) for pair in pairs}


def resource(data: bytes) -> Resource:
    message = ResourceMessage.FromString(data)
    return Resource(attributes(message.attributes), message.dropped_attributes_count)


def scope(data: bytes) -> Scope:
    message = InstrumentationScope.FromString(data)
    return Scope(message.name, message.version, attributes(message.attributes))


def span(item: RawItem) -> Span:
    """Decode one span whole. Raises google.protobuf.message.DecodeError on malformed bytes."""
    m = SpanMessage.FromString(item.data)
    return Span(
        trace_id=m.trace_id.hex(),
        span_id=m.span_id.hex(),
        parent_span_id=m.parent_span_id.hex(),
        name=m.name,
        kind=m.kind,
        start_unix_nano=m.start_time_unix_nano,
        end_unix_nano=m.end_time_unix_nano,
        attributes=attributes(m.attributes),
        events=tuple(
            Event(e.name, e.time_unix_nano, attributes(e.attributes), e.dropped_attributes_count) for e in m.events
        ),
        links=tuple(Link(k.trace_id.hex(), k.span_id.hex(), attributes(k.attributes)) for k in m.links),
        status=Status(m.status.code) if m.status.code in (0, 1, 2) else Status.UNSET,
        status_message=m.status.message,
        trace_state=m.trace_state,
        flags=m.flags,
        dropped_attributes_count=m.dropped_attributes_count,
        dropped_events_count=m.dropped_events_count,
        resource=resource(item.resource),
        scope=scope(item.scope),
    )


def log_record(item: RawItem) -> LogRecord:
    """Decode one log record whole. Raises google.protobuf.message.DecodeError on malformed bytes."""
    m = LogMessage.FromString(item.data)
    values = attributes(m.attributes)
    name = getattr(m, "event_name", "") or values.get("event.name") or ""
    return LogRecord(
        trace_id=m.trace_id.hex(),
        span_id=m.span_id.hex(),
        event_name=name if isinstance(name, str) else "",
        body=any_value(m.body),
        time_unix_nano=m.time_unix_nano or m.observed_time_unix_nano,
        attributes=values,
        dropped_attributes_count=m.dropped_attributes_count,
        flags=m.flags,
        resource=resource(item.resource),
        scope=scope(item.scope),
    )
