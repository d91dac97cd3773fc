"""Export requests from files, recognised by what is in them, not by their names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from google.protobuf.message import DecodeError

from collector.otlp import schema
from collector.otlp.batch import Batch, Signal
from collector.otlp.model import Encoding
from collector.otlp.request import Interner, RequestReader, UnreadableRequest
from collector.otlp.surrogates import mend_surrogates

_SNIFFED = 4096
_BOM = b"\xef\xbb\xbf"
_FOREIGN = {
    b"\x1f\x8b": "it is compressed with gzip; decompress it first (gunzip)",
    b"\x28\xb5\x2f\xfd": "it is compressed with zstd; decompress it first (zstd -d)",
    b"PK\x03\x04": "it is a zip archive; unpack it first",
}
_EXPECTED = (
    "expected one OTLP export request of traces or logs (protobuf or JSON), or OTLP/JSON requests one a line "
    "(as the Collector's file exporter writes them)"
)


class UnreadableFile(ValueError):
    """A file, or a part of it, that holds no export request; names the file, the place and the cure."""


class _Keys(msgspec.Struct):
    """Which signals a JSON request holds."""

    spans: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resourceSpans")
    spans_2: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resource_spans")
    logs: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resourceLogs")
    logs_2: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resource_logs")
    metrics: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resourceMetrics")
    metrics_2: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resource_metrics")


def read_requests(path: Path, *, max_item_bytes: int = 2**31) -> Iterator[Batch]:
    """The requests of a file, in order; a JSON document that holds traces and logs gives two.

    Taken are: one request in protobuf; one in JSON, or an array of such; JSON Lines of requests, read line by
    line; protobuf requests each behind its size as four bytes, most significant first (the Collector's file
    exporter, `format: proto`). Requests of metrics are passed over.

    Raises `UnreadableFile` at the first part that can not be read (what was before it has been given), and
    OSError.
    """
    reader = RequestReader(max_item_bytes=max_item_bytes, max_parts=2**63, intern=Interner())
    with path.open("rb") as file:
        start = file.read(_SNIFFED)
        file.seek(0)
        if not start.removeprefix(_BOM).strip():
            raise UnreadableFile(f"{path}: the file is empty; {_EXPECTED}")
        for magic, cure in _FOREIGN.items():
            if start.startswith(magic):
                raise UnreadableFile(f"{path}: {cure}")
        if start[0] == 0 and len(start) > 4 and start[4] == 0x0A:
            yield from _framed(path, file, reader)
            return
        looks_json = start.removeprefix(_BOM).lstrip()[:1] in (b"{", b"[")
        # A protobuf request starts with 0x0A, which is a line feed too: "\n{" may be both.
        if not looks_json or start[0] == 0x0A:
            body = file.read()
            signal = proto_signal(body)
            if signal is not None:
                yield reader.read(body, signal, Encoding.PROTO)
                return
            if not looks_json:
                raise UnreadableFile(_why_not_proto(path, body))
            file.seek(0)
        yield from _json(path, file, reader)


def proto_signal(body: bytes) -> Signal | None:
    """Which protobuf request this is; None where it is none.

    Trace, log and metric requests look alike on the outer levels. A span starts with its ids (fields 1 and 2, 16
    and 8 bytes); a log record has a time as its field 1 or 11, or a body as field 5, and no field 1 of bytes.
    """
    try:
        request = schema.Request.FromString(body)
    except DecodeError:
        return None
    if not request.groups:
        return None
    records = 0
    for of_resource in request.groups:
        for of_scope in of_resource.scopes:
            for item in of_scope.items:
                try:
                    ids = schema.SpanIds.FromString(item)
                    if len(ids.trace_id) == 16 and len(ids.span_id) == 8:
                        return Signal.TRACES
                    record = schema.LogRecord.FromString(item)
                except DecodeError:
                    continue
                if not ids.trace_id and (
                    record.time_unix_nano or record.observed_time_unix_nano or record.HasField("body")
                ):
                    records += 1
    return Signal.LOGS if records else None


def _why_not_proto(path: Path, body: bytes) -> str:
    if body[:1] != b"\x0a":
        return f"{path}: offset 0: neither JSON nor a protobuf request; {_EXPECTED}"
    offset = _broken_at(body)
    if offset is None:
        return f"{path}: a protobuf message, but without spans or log records; {_EXPECTED}"
    return (
        f"{path}: offset {offset}: a protobuf request that is cut off or damaged there "
        f"(the file has {len(body)} bytes); write or copy it again"
    )


def _broken_at(body: bytes) -> int | None:
    """The offset of the first outermost field that is not whole; None where all are."""
    position = 0
    while position < len(body):
        start = position
        if body[position] != 0x0A:
            return start
        position += 1
        size = shift = 0
        while True:
            if position >= len(body) or shift > 63:
                return start
            byte = body[position]
            position += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        part = body[position : position + size]
        if len(part) < size:
            return start
        try:
            schema.ResourceItems.FromString(part)
        except DecodeError:
            return start
        position += size
    return None


def _framed(path: Path, file: BinaryIO, reader: RequestReader) -> Iterator[Batch]:
    while header := file.read(4):
        offset = file.tell() - len(header)
        size = int.from_bytes(header, "big")
        body = file.read(size) if len(header) == 4 else b""
        if len(header) < 4 or len(body) < size:
            raise UnreadableFile(
                f"{path}: offset {offset}: the file ends in the middle of a request of {size} bytes; "
                "copy it again, or leave out its end"
            )
        signal = proto_signal(body)
        if signal is None:
            raise UnreadableFile(f"{path}: offset {offset}: no protobuf request of traces or logs; {_EXPECTED}")
        yield reader.read(body, signal, Encoding.PROTO)


def _json(path: Path, file: BinaryIO, reader: RequestReader) -> Iterator[Batch]:
    first = file.readline().removeprefix(_BOM)
    number = 1
    while not first.strip():  # the caller saw something in this file
        first = file.readline()
        number += 1
    if _is_whole(first):
        yield from _json_document(f"{path}: line {number}", first, reader)
        for line in file:
            number += 1
            if line.strip():
                yield from _json_document(f"{path}: line {number}", line, reader)
        return
    whole = first + file.read()
    text = whole.strip()
    if text.startswith(b"["):
        try:
            documents = msgspec.json.decode(text, type=list[msgspec.Raw])
        except (msgspec.DecodeError, RecursionError) as error:
            raise UnreadableFile(f"{path}: not a whole JSON array: {error}; {_EXPECTED}") from error
        for index, document in enumerate(documents):
            yield from _json_document(f"{path}: element {index}", bytes(document), reader)
        return
    yield from _json_document(str(path), text, reader)


def _is_whole(line: bytes) -> bool:
    """Whether a line is a JSON object by itself."""
    if not line.strip().startswith(b"{"):
        return False
    try:
        msgspec.json.decode(mend_surrogates(line), type=_Keys)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _json_document(place: str, text: bytes, reader: RequestReader) -> Iterator[Batch]:
    try:
        keys = msgspec.json.decode(mend_surrogates(text), type=_Keys)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableFile(f"{place}: not a whole JSON object: {error}; {_EXPECTED}") from error
    found = False
    for signal, given in (
        (Signal.TRACES, (keys.spans, keys.spans_2)),
        (Signal.LOGS, (keys.logs, keys.logs_2)),
    ):
        if any(bytes(raw) for raw in given):
            found = True
            try:
                yield reader.read(text, signal, Encoding.JSON)
            except UnreadableRequest as error:
                raise UnreadableFile(f"{place}: {error}") from error
    if not found and not bytes(keys.metrics) and not bytes(keys.metrics_2):
        raise UnreadableFile(f"{place}: JSON, but without resourceSpans or resourceLogs; {_EXPECTED}")
