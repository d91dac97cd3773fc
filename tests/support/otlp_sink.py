"""A real OTLP receiver for log records, made from the public stubs."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import (
    LogsServiceServicer,
    add_LogsServiceServicer_to_server,
)


@dataclass(frozen=True, slots=True)
class Event:
    """One log record that arrived."""

    name: str
    trace_id: str
    span_id: str
    attributes: dict[str, Any]
    resource: dict[str, Any]


class LogSink:
    """Takes logs over gRPC on loopback; keeps requests as they came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: list[ExportLogsServiceRequest] = []
        self._metadata: list[dict[str, str]] = []
        self._server = grpc.server(ThreadPoolExecutor(max_workers=2))
        sink = self

        class Service(LogsServiceServicer):
            def Export(self, request: Any, context: Any) -> ExportLogsServiceResponse:
                with sink._lock:
                    sink._requests.append(request)
                    sink._metadata.append({key.lower(): value for key, value in context.invocation_metadata()})
                return ExportLogsServiceResponse()

        add_LogsServiceServicer_to_server(Service(), self._server)  # type: ignore[no-untyped-call]  # generated, untyped
        self.endpoint = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None).wait()

    @property
    def requests(self) -> list[ExportLogsServiceRequest]:
        with self._lock:
            return list(self._requests)

    @property
    def metadata(self) -> list[dict[str, str]]:
        with self._lock:
            return list(self._metadata)

    @property
    def events(self) -> list[Event]:
        return [
            Event(
                record.event_name,
                record.trace_id.hex(),
                record.span_id.hex(),
                plain(record.attributes),
                plain(group.resource.attributes),
            )
            for request in self.requests
            for group in request.resource_logs
            for scope in group.scope_logs
            for record in scope.log_records
        ]


def plain(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
