"""OTLP/JSON text to the decoded model: the proto3 JSON mapping with hex ids.

(protobuf.dev, "ProtoJSON Format"; opentelemetry.io, "JSON Protobuf Encoding".) Names in lowerCamelCase or as in
the .proto file; null and absent mean the default; unknown names are passed over; 64-bit integers as strings or
numbers; enums as numbers or names, unknown names as the default; doubles also as "NaN", "Infinity", "-Infinity".
A value of the wrong kind raises `WrongShape`, with the field's name.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import msgspec

from collector.otlp.model import Event, Link, LogRecord, Resource, Scope, Span, Status, Value
from collector.otlp.proto_items import MAX_DEPTH, event_name
from collector.otlp.surrogates import mend_surrogates

Object = dict[str, Any]


class WrongShape(ValueError):
    """Not what the mapping says; names the field and what was found."""


_KINDS = {
    "SPAN_KIND_INTERNAL": 1,
    "SPAN_KIND_SERVER": 2,
    "SPAN_KIND_CLIENT": 3,
    "SPAN_KIND_PRODUCER": 4,
    "SPAN_KIND_CONSUMER": 5,
}
_STATUS_CODES = {"STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
_STATUSES = {0: Status.UNSET, 1: Status.OK, 2: Status.ERROR}
_INT64 = (-(2**63), 2**63 - 1)
_UINT32 = (0, 2**32 - 1)
_UINT64 = (0, 2**64 - 1)


def load(data: bytes) -> Object:
    """JSON text as an object. Bytes that are not UTF-8 and halves of surrogate pairs become U+FFFD."""
    try:
        try:
            value = msgspec.json.decode(data)
        except msgspec.DecodeError:
            value = msgspec.json.decode(mend_surrogates(data.decode("utf-8", "replace").encode()))
    except RecursionError as error:
        raise WrongShape("nested too deeply") from error
    if not isinstance(value, dict):
        raise WrongShape(f"expected an object, found {type(value).__name__}")
    return value


def _get(obj: Object, camel: str, snake: str) -> Any:
    value = obj.get(camel)
    return obj.get(snake) if value is None else value


def _text(value: Any, field: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise WrongShape(f"{field}: expected a string, found {type(value).__name__}")
    return value


def _number_text(value: str, limit: int, field: str) -> str:
    """A string that may hold a number. Python also takes blanks, underscores and all scripts' digits."""
    if len(value) > limit or not value.isascii() or value != value.strip() or "_" in value:
        raise WrongShape(f"{field}: {value[:40]!r} is no number")
    return value


def integer(value: Any, field: str, bounds: tuple[int, int]) -> int:
    """An integer as the mapping allows it: a number, or a string that holds one; 1.0 and 1e3 are integers too."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise WrongShape(f"{field}: expected an integer, found {type(value).__name__}")
    if isinstance(value, str):
        text = _number_text(value, 40, field)
        try:
            value = int(text)
        except ValueError:
            value = float(text)  # raises ValueError itself
    if isinstance(value, float):
        if not value.is_integer():
            raise WrongShape(f"{field}: {value} is no integer")
        value = int(value)
    number: int = value
    if not bounds[0] <= number <= bounds[1]:
        raise WrongShape(f"{field}: {str(number)[:40]} is out of range")
    return number


def _double(value: Any) -> float:
    if isinstance(value, str):
        if value in ("NaN", "Infinity", "-Infinity"):
            return float(value.replace("Infinity", "inf"))
        number = float(_number_text(value, 400, "doubleValue"))
        if not math.isfinite(number):  # "nan", "inf", "1e999": not of the mapping
            raise WrongShape(f"doubleValue: {value[:40]!r} is no number")
        return number
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise WrongShape(f"doubleValue: expected a number, found {type(value).__name__}")
    try:
        return float(value)
    except OverflowError as error:
        raise WrongShape("doubleValue: out of range") from error


def _enum(value: Any, names: dict[str, int], field: str) -> int:
    if isinstance(value, str) and not value.lstrip("-").isdigit():
        return names.get(value, 0)
    return integer(value, field, (-(2**31), 2**31 - 1))


def id_hex(value: Any, field: str) -> str:
    """An id in lower case; "" where absent or all zero."""
    given = _text(value, field)
    try:
        binascii.unhexlify(given)
    except ValueError as error:
        raise WrongShape(f"{field}: {given[:40]!r} is not hex") from error
    return given.lower() if given.strip("0") else ""


def _array(value: Any, field: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise WrongShape(f"{field}: expected an array, found {type(value).__name__}")
    return value


def _object(value: Any, field: str) -> Object:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise WrongShape(f"{field}: expected an object, found {type(value).__name__}")
    return value


def any_value(value: Any, depth: int = 0) -> Value:
    if depth > MAX_DEPTH:
        raise WrongShape(f"a value is nested more than {MAX_DEPTH} deep")
    for name, given in _object(value, "value").items():
        if given is None:
            continue
        match name:
            case "stringValue" | "string_value":
                return _text(given, name)
            case "boolValue" | "bool_value":
                if not isinstance(given, bool):
                    raise WrongShape(f"{name}: expected true or false, found {type(given).__name__}")
                return given
            case "intValue" | "int_value":
                return integer(given, name, _INT64)
            case "doubleValue" | "double_value":
                return _double(given)
            case "arrayValue" | "array_value":
                return [any_value(v, depth + 1) for v in _array(_object(given, name).get("values"), "values")]
            case "kvlistValue" | "kvlist_value":
                return attributes(_object(given, name).get("values"), depth + 1)
            case "bytesValue" | "bytes_value":
                return _base64(given)
    return None


def _base64(value: Any) -> bytes:
    """Standard or URL-safe alphabet, padded or not."""
    given = _text(value, "bytesValue").rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(given + "=" * (-len(given) % 4), validate=True)
    except ValueError as error:
        raise WrongShape("bytesValue: not base64") from error


def attributes(pairs: Any, depth: int = 0) -> dict[str, Value]:
    """A list of KeyValue objects as a dict; a repeated key keeps its last value."""
    values: dict[str, Value] = {}
    for pair in _array(pairs, "attributes"):
        fields = _object(pair, "attributes")
        values[_text(fields.get("key"), "key")] = any_value(fields.get("value"), depth)
    return values


def _dropped(obj: Object, camel: str = "droppedAttributesCount", snake: str = "dropped_attributes_count") -> int:
    return integer(_get(obj, camel, snake), camel, _UINT32)


def _time(obj: Object, camel: str, snake: str) -> int:
    return integer(_get(obj, camel, snake), camel, _UINT64)


def resource(data: bytes) -> Resource:
    obj = load(data) if data else {}
    return Resource(attributes(obj.get("attributes")), _dropped(obj))


def scope(data: bytes) -> Scope:
    obj = load(data) if data else {}
    return Scope(
        _text(obj.get("name"), "name"), _text(obj.get("version"), "version"), attributes(obj.get("attributes"))
    )


def span(data: bytes, of_resource: Resource, of_scope: Scope, *, cut: bool = False) -> Span:
    obj = load(data)
    status = _object(obj.get("status"), "status")
    return Span(
        trace_id=id_hex(_get(obj, "traceId", "trace_id"), "traceId"),
        span_id=id_hex(_get(obj, "spanId", "span_id"), "spanId"),
        parent_span_id=id_hex(_get(obj, "parentSpanId", "parent_span_id"), "parentSpanId"),
        name=_text(obj.get("name"), "name"),
        kind=_enum(obj.get("kind"), _KINDS, "kind"),
        start_unix_nano=_time(obj, "startTimeUnixNano", "start_time_unix_nano"),
        end_unix_nano=_time(obj, "endTimeUnixNano", "end_time_unix_nano"),
        attributes=attributes(obj.get("attributes")),
        events=tuple(_event(_object(event, "events")) for event in _array(obj.get("events"), "events")),
        links=tuple(_link(_object(link, "links")) for link in _array(obj.get("links"), "links")),
        status=_STATUSES.get(_enum(status.get("code"), _STATUS_CODES, "status.code"), Status.UNSET),
        status_message=_text(status.get("message"), "status.message"),
        trace_state=_text(_get(obj, "traceState", "trace_state"), "traceState"),
        flags=integer(obj.get("flags"), "flags", _UINT32),
        dropped_attributes_count=_dropped(obj),
        dropped_events_count=_dropped(obj, "droppedEventsCount", "dropped_events_count"),
        resource=of_resource,
        scope=of_scope,
        cut=cut,
    )


def _event(obj: Object) -> Event:
    return Event(
        name=_text(obj.get("name"), "events.name"),
        time_unix_nano=_time(obj, "timeUnixNano", "time_unix_nano"),
        attributes=attributes(obj.get("attributes")),
        dropped_attributes_count=_dropped(obj),
    )


def _link(obj: Object) -> Link:
    return Link(
        trace_id=id_hex(_get(obj, "traceId", "trace_id"), "links.traceId"),
        span_id=id_hex(_get(obj, "spanId", "span_id"), "links.spanId"),
        attributes=attributes(obj.get("attributes")),
    )


def log_record(data: bytes, of_resource: Resource, of_scope: Scope) -> LogRecord:
    obj = load(data)
    values = attributes(obj.get("attributes"))
    return LogRecord(
        trace_id=id_hex(_get(obj, "traceId", "trace_id"), "traceId"),
        span_id=id_hex(_get(obj, "spanId", "span_id"), "spanId"),
        event_name=_text(_get(obj, "eventName", "event_name"), "eventName") or event_name(values),
        body=any_value(obj.get("body")),
        time_unix_nano=_time(obj, "timeUnixNano", "time_unix_nano")
        or _time(obj, "observedTimeUnixNano", "observed_time_unix_nano"),
        attributes=values,
        dropped_attributes_count=_dropped(obj),
        flags=integer(obj.get("flags"), "flags", _UINT32),
        resource=of_resource,
        scope=of_scope,
    )
