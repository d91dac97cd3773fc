"""The outer levels of an OTLP/JSON request: items stay the bytes that were sent.

OTLP/JSON is the proto3 JSON mapping but for ids, which are hex (opentelemetry.io, "JSON Protobuf Encoding").
As that mapping asks of a reader, names are taken in lowerCamelCase and as in the .proto file, null means the
default, and unknown names are passed over.
"""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

import msgspec

from collector.otlp.batch import Signal
from collector.otlp.surrogates import mend_surrogates

Parts = list[tuple[bytes, bytes, list[bytes]]]
"""(resource, scope, items) as JSON text; b"" where the request leaves resource or scope out."""


class UnreadableJson(ValueError):
    """Not JSON, or not of the shape of an export request."""


class _SpanScope(msgspec.Struct):
    scope: msgspec.Raw = msgspec.Raw()
    items: list[msgspec.Raw] | None = msgspec.field(default=None, name="spans")
    items_2: ClassVar[None] = None


class _LogScope(msgspec.Struct):
    scope: msgspec.Raw = msgspec.Raw()
    items: list[msgspec.Raw] | None = msgspec.field(default=None, name="logRecords")
    items_2: list[msgspec.Raw] | None = msgspec.field(default=None, name="log_records")


class _SpanResource(msgspec.Struct):
    resource: msgspec.Raw = msgspec.Raw()
    parts: list[_SpanScope] | None = msgspec.field(default=None, name="scopeSpans")
    parts_2: list[_SpanScope] | None = msgspec.field(default=None, name="scope_spans")


class _LogResource(msgspec.Struct):
    resource: msgspec.Raw = msgspec.Raw()
    parts: list[_LogScope] | None = msgspec.field(default=None, name="scopeLogs")
    parts_2: list[_LogScope] | None = msgspec.field(default=None, name="scope_logs")


class _SpanResourceParts(msgspec.Struct):
    resource: msgspec.Raw = msgspec.Raw()
    parts: list[msgspec.Raw] | None = msgspec.field(default=None, name="scopeSpans")
    parts_2: list[msgspec.Raw] | None = msgspec.field(default=None, name="scope_spans")


class _LogResourceParts(msgspec.Struct):
    resource: msgspec.Raw = msgspec.Raw()
    parts: list[msgspec.Raw] | None = msgspec.field(default=None, name="scopeLogs")
    parts_2: list[msgspec.Raw] | None = msgspec.field(default=None, name="scope_logs")


class _SpanRequest(msgspec.Struct):
    parts: list[_SpanResource] | None = msgspec.field(default=None, name="resourceSpans")
    parts_2: list[_SpanResource] | None = msgspec.field(default=None, name="resource_spans")


class _LogRequest(msgspec.Struct):
    parts: list[_LogResource] | None = msgspec.field(default=None, name="resourceLogs")
    parts_2: list[_LogResource] | None = msgspec.field(default=None, name="resource_logs")


class _SpanRequestParts(msgspec.Struct):
    parts: list[msgspec.Raw] | None = msgspec.field(default=None, name="resourceSpans")
    parts_2: list[msgspec.Raw] | None = msgspec.field(default=None, name="resource_spans")


class _LogRequestParts(msgspec.Struct):
    parts: list[msgspec.Raw] | None = msgspec.field(default=None, name="resourceLogs")
    parts_2: list[msgspec.Raw] | None = msgspec.field(default=None, name="resource_logs")


_SPAN_REQUEST = msgspec.json.Decoder(_SpanRequest)
_LOG_REQUEST = msgspec.json.Decoder(_LogRequest)


def split_json(body: bytes, signal: Signal, reject: Callable[[str], None], spend: Callable[[int], None]) -> Parts:
    """Split a request. What cannot be read below the outermost level is told to `reject`, one call each;
    `spend` is told of groups and items before they are looked at, and may raise.

    Raises `UnreadableJson`.
    """
    body = body.removeprefix(b"\xef\xbb\xbf")
    decoder = _SPAN_REQUEST if signal is Signal.TRACES else _LOG_REQUEST
    try:
        try:
            request = decoder.decode(body)
        except msgspec.ValidationError:
            return _by_parts(body, signal, reject, spend)
        except msgspec.DecodeError:
            mended = mend_surrogates(body)
            if mended is body:
                raise
            return split_json(mended, signal, reject, spend)
    except RecursionError as error:
        raise UnreadableJson("it is nested too deeply") from error
    except msgspec.DecodeError as error:
        raise UnreadableJson(str(error)) from error
    parts: Parts = []
    of_resources: list[_SpanResource | _LogResource] = _both(request.parts, request.parts_2, spend)
    for of_resource in of_resources:
        resource = _text(of_resource.resource)
        of_scopes: list[_SpanScope | _LogScope] = _both(of_resource.parts, of_resource.parts_2, spend)
        for of_scope in of_scopes:
            parts.append(_scope_part(resource, of_scope, spend))
    return parts


def _by_parts(body: bytes, signal: Signal, reject: Callable[[str], None], spend: Callable[[int], None]) -> Parts:
    """The slow way, level by level, for a body of which some part has the wrong shape."""
    traces = signal is Signal.TRACES
    request = msgspec.json.decode(body, type=_SpanRequestParts if traces else _LogRequestParts)
    parts: Parts = []
    for part in _both(request.parts, request.parts_2, spend):
        try:
            of_resource = msgspec.json.decode(part, type=_SpanResourceParts if traces else _LogResourceParts)
        except msgspec.DecodeError:
            reject("unreadable group of one resource")
            continue
        resource = _text(of_resource.resource)
        for scope_part in _both(of_resource.parts, of_resource.parts_2, spend):
            try:
                of_scope: _SpanScope | _LogScope = msgspec.json.decode(
                    scope_part, type=_SpanScope if traces else _LogScope
                )
            except msgspec.DecodeError:
                reject("unreadable group of one scope")
                continue
            parts.append(_scope_part(resource, of_scope, spend))
    return parts


_Part = TypeVar("_Part")


def _both(
    camel: Sequence[_Part] | None, snake: Sequence[_Part] | None, spend: Callable[[int], None]
) -> list[_Part]:
    """A list under either of its names."""
    spend(len(camel or ()) + len(snake or ()))
    return [*(camel or ()), *(snake or ())]


def _scope_part(
    resource: bytes, of_scope: _SpanScope | _LogScope, spend: Callable[[int], None]
) -> tuple[bytes, bytes, list[bytes]]:
    # A Raw is a view that keeps the whole body alive; bytes() cuts it loose.
    return resource, _text(of_scope.scope), list(map(bytes, _both(of_scope.items, of_scope.items_2, spend)))


def _text(raw: msgspec.Raw) -> bytes:
    text = bytes(raw)
    return b"" if text == b"null" else text


class _Ids(msgspec.Struct):
    trace: str | None = msgspec.field(default=None, name="traceId")
    trace_2: str | None = msgspec.field(default=None, name="trace_id")
    span: str | None = msgspec.field(default=None, name="spanId")
    span_2: str | None = msgspec.field(default=None, name="span_id")


_IDS = msgspec.json.Decoder(_Ids)
_IDS_AT_FIXED_PLACE = re.compile(
    rb'\{\s*"traceId"\s*:\s*"([0-9a-fA-F]{32})"\s*,\s*"spanId"\s*:\s*"([0-9a-fA-F]{16})"\s*[,}]'
).match
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}").fullmatch
_NO_TRACE = bytes(16)
_NO_SPAN = bytes(8)


class JsonIds:
    """Reads the ids of one span or log record from its JSON text."""

    __slots__ = ("_logs", "_what")

    def __init__(self, signal: Signal) -> None:
        self._logs = signal is Signal.LOGS
        self._what = "log record" if self._logs else "span"

    def read_all(self, items: list[bytes]) -> tuple[list[bytes], list[bytes]] | None:
        """The ids of all items where each starts with good ones, as known exporters write them; else None."""
        matches = list(map(_IDS_AT_FIXED_PLACE, items))
        trace_ids = [unhexlify(match[1]) for match in matches if match is not None]
        span_ids = [unhexlify(match[2]) for match in matches if match is not None]
        if len(trace_ids) < len(items) or _NO_TRACE in trace_ids or _NO_SPAN in span_ids:
            return None
        return trace_ids, span_ids

    def read(self, item: bytes) -> tuple[bytes, bytes] | str:
        """(trace id, span id) as bytes, or why the item is to be rejected, in words fit for the sender."""
        try:
            ids = _IDS.decode(item)
        except (msgspec.DecodeError, RecursionError):
            return f"unreadable {self._what}"
        trace = _hex_id(ids.trace or ids.trace_2 or "", 16)
        span = _hex_id(ids.span or ids.span_2 or "", 8)
        if "base64" in (trace, span):
            return (
                f"{self._what} whose ids look like base64: OTLP/JSON has hex ids "
                "(32 and 16 digits); use an OTLP/JSON encoder instead of protobuf's own JSON mapping"
            )
        if self._logs:
            if isinstance(trace, str) or isinstance(span, str):
                return "log record whose traceId is not 32, or spanId not 16 hex digits"
            return trace, span
        if isinstance(trace, str) or not trace:
            return "span whose traceId is missing, all zero or not 32 hex digits"
        if isinstance(span, str) or not span:
            return "span whose spanId is missing, all zero or not 16 hex digits"
        return trace, span


def _hex_id(text: str, size: int) -> bytes | str:
    """The id; b"" where absent or all zero; "base64" or "bad" where it is no hex of that size."""
    if not text:
        return b""
    if len(text) == 2 * size:
        try:
            value = unhexlify(text)
        except ValueError:
            return "bad"
        return value if any(value) else b""
    unpadded = -(-size * 4 // 3)
    padded = -(-size // 3) * 4
    return "base64" if len(text) in (unpadded, padded) and _BASE64(text) else "bad"
