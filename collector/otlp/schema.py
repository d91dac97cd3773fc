"""A cut-down protobuf schema for the wire format of OTLP.

OTLP's field numbers (opentelemetry-proto 1.x, trace/logs/common/resource) with two differences that leave the
wire format as it is:

* In `Request`, spans and log records, resources and scopes are `bytes`, so that a request is split without
  decoding what is in it. Trace and log requests have the same numbers on these levels, so one schema serves both.
  A singular message field may occur several times on the wire and then means the concatenation of its bytes;
  therefore `resource` and `scope` are `repeated bytes` here, to be joined.
* Strings are `bytes`: the protobuf library refuses a whole message for one string that is not UTF-8, which
  would cost a span for one cut character.

The descriptors live in a pool of their own, so nothing here meets `opentelemetry.proto`.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "groundwatch.otlp"

_SCALARS = {
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "double": descriptor_pb2.FieldDescriptorProto.TYPE_DOUBLE,
    "fixed32": descriptor_pb2.FieldDescriptorProto.TYPE_FIXED32,
    "fixed64": descriptor_pb2.FieldDescriptorProto.TYPE_FIXED64,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "uint32": descriptor_pb2.FieldDescriptorProto.TYPE_UINT32,
}

# message -> (number, name, type); a type that is no scalar is a message; `*` = repeated, `|` = in the oneof.
_MESSAGES: dict[str, tuple[tuple[int, str, str], ...]] = {
    # --- splitting a request
    "Request": ((1, "groups", "ResourceItems*"),),
    "ResourceItems": ((1, "resource", "bytes*"), (2, "scopes", "ScopeItems*")),
    "ScopeItems": ((1, "scope", "bytes*"), (2, "items", "bytes*")),
    "RequestParts": ((1, "parts", "bytes*"),),
    "ResourceParts": ((1, "resource", "bytes*"), (2, "parts", "bytes*")),
    # --- reading little of an item
    "SpanIds": ((1, "trace_id", "bytes"), (2, "span_id", "bytes")),
    # All fields of a span, none looked into: serialized again they stand in the order of their numbers.
    "SpanInOrder": (
        (1, "trace_id", "bytes"),
        (2, "span_id", "bytes"),
        (3, "trace_state", "bytes"),
        (4, "parent_span_id", "bytes"),
        (5, "name", "bytes"),
        (6, "kind", "int32"),
        (7, "start_time_unix_nano", "fixed64"),
        (8, "end_time_unix_nano", "fixed64"),
        (9, "attributes", "bytes*"),
        (10, "dropped_attributes_count", "uint32"),
        (11, "events", "bytes*"),
        (12, "dropped_events_count", "uint32"),
        (13, "links", "bytes*"),
        (14, "dropped_links_count", "uint32"),
        (15, "status", "bytes*"),
        (16, "flags", "fixed32"),
    ),
    "LogIds": ((9, "trace_id", "bytes"), (10, "span_id", "bytes")),
    # --- reading an item whole
    "AnyValue": (
        (1, "string_value", "bytes|"),
        (2, "bool_value", "bool|"),
        (3, "int_value", "int64|"),
        (4, "double_value", "double|"),
        (5, "array_value", "ArrayValue|"),
        (6, "kvlist_value", "KeyValueList|"),
        (7, "bytes_value", "bytes|"),
    ),
    "ArrayValue": ((1, "values", "AnyValue*"),),
    "KeyValueList": ((1, "values", "KeyValue*"),),
    # The value as bytes: most are short strings, which are read from them without making a message.
    "KeyValue": ((1, "key", "bytes"), (2, "value", "bytes")),
    "Resource": ((1, "attributes", "KeyValue*"), (2, "dropped_attributes_count", "uint32")),
    "Scope": ((1, "name", "bytes"), (2, "version", "bytes"), (3, "attributes", "KeyValue*")),
    "Span": (
        (1, "trace_id", "bytes"),
        (2, "span_id", "bytes"),
        (3, "trace_state", "bytes"),
        (4, "parent_span_id", "bytes"),
        (5, "name", "bytes"),
        (6, "kind", "int32"),
        (7, "start_time_unix_nano", "fixed64"),
        (8, "end_time_unix_nano", "fixed64"),
        (9, "attributes", "KeyValue*"),
        (10, "dropped_attributes_count", "uint32"),
        (11, "events", "Event*"),
        (12, "dropped_events_count", "uint32"),
        (13, "links", "Link*"),
        (15, "status", "SpanStatus"),
        (16, "flags", "fixed32"),
    ),
    "Event": (
        (1, "time_unix_nano", "fixed64"),
        (2, "name", "bytes"),
        (3, "attributes", "KeyValue*"),
        (4, "dropped_attributes_count", "uint32"),
    ),
    "Link": ((1, "trace_id", "bytes"), (2, "span_id", "bytes"), (4, "attributes", "KeyValue*")),
    "SpanStatus": ((2, "message", "bytes"), (3, "code", "int32")),
    "LogRecord": (
        (1, "time_unix_nano", "fixed64"),
        (5, "body", "AnyValue"),
        (6, "attributes", "KeyValue*"),
        (7, "dropped_attributes_count", "uint32"),
        (8, "flags", "fixed32"),
        (9, "trace_id", "bytes"),
        (10, "span_id", "bytes"),
        (11, "observed_time_unix_nano", "fixed64"),
        (12, "event_name", "bytes"),
    ),
    # --- answering
    "Response": ((1, "partial_success", "PartialSuccess"),),
    "PartialSuccess": ((1, "rejected", "int64"), (2, "error_message", "bytes")),
    # google.rpc.Status, google.protobuf.Any, google.rpc.RetryInfo, google.protobuf.Duration
    "Status": ((1, "code", "int32"), (2, "message", "bytes"), (3, "details", "Detail*")),
    "Detail": ((1, "type_url", "bytes"), (2, "value", "bytes")),
    "RetryInfo": ((1, "retry_delay", "Duration"),),
    "Duration": ((1, "seconds", "int64"), (2, "nanos", "int32")),
}


def _build() -> dict[str, Any]:
    field_proto = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="groundwatch/otlp.proto", package=_PACKAGE, syntax="proto3")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for number, name, declared in fields:
            kind = declared.rstrip("*|")
            added = message.field.add(
                name=name,
                number=number,
                label=field_proto.LABEL_REPEATED if declared.endswith("*") else field_proto.LABEL_OPTIONAL,
            )
            if kind in _SCALARS:
                added.type = _SCALARS[kind]
            else:
                added.type = field_proto.TYPE_MESSAGE
                added.type_name = f".{_PACKAGE}.{kind}"
            if declared.endswith("|"):
                if not message.oneof_decl:
                    message.oneof_decl.add(name="value")
                added.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_CLASSES = _build()

Request: Any = _CLASSES["Request"]
ResourceItems: Any = _CLASSES["ResourceItems"]
ScopeItems: Any = _CLASSES["ScopeItems"]
RequestParts: Any = _CLASSES["RequestParts"]
ResourceParts: Any = _CLASSES["ResourceParts"]
SpanIds: Any = _CLASSES["SpanIds"]
SpanInOrder: Any = _CLASSES["SpanInOrder"]
LogIds: Any = _CLASSES["LogIds"]
AnyValue: Any = _CLASSES["AnyValue"]
Resource: Any = _CLASSES["Resource"]
Scope: Any = _CLASSES["Scope"]
Span: Any = _CLASSES["Span"]
LogRecord: Any = _CLASSES["LogRecord"]
Response: Any = _CLASSES["Response"]
Status: Any = _CLASSES["Status"]
RetryInfo: Any = _CLASSES["RetryInfo"]
