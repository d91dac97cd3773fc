"""Replays of recorded telemetry, in both encodings and over both transports."""

from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

DATA = Path(__file__).parents[1] / "data" / "spans"
_IDS = ("traceId", "spanId", "parentSpanId")


def rows() -> list[dict[str, Any]]:
    """The interactions that the recordings hold, with their truth."""
    return [json.loads(line) for line in (DATA / "expected.jsonl").read_text(encoding="utf-8").splitlines()]


def requests(files: list[str] | None = None) -> Iterator[tuple[str, str, bytes]]:
    """(name, signal, protobuf body) of some recorded requests, or of all."""
    with zipfile.ZipFile(DATA / "recordings.zip") as archive:
        for name in files if files is not None else archive.namelist():
            if name.endswith(".pb"):
                yield name, "logs" if name.endswith(".logs.pb") else "traces", archive.read(name)


def as_json(body: bytes, signal: str) -> bytes:
    """The same request as OTLP/JSON, made by protobuf's own mapping and the one deviation of OTLP: hex ids."""
    kind = ExportLogsServiceRequest if signal == "logs" else ExportTraceServiceRequest
    value = MessageToDict(kind.FromString(body), use_integers_for_enums=True)
    return json.dumps(_hex_ids(value)).encode()


def _hex_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_hex_ids(one) for one in value]
    if isinstance(value, dict):
        return {
            key: base64.b64decode(one).hex() if key in _IDS and isinstance(one, str) else _hex_ids(one)
            for key, one in value.items()
        }
    return value
