"""Evaluation events arrive at real OTLP servers, and nothing of the surroundings leaks into them."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import (
    LogsServiceServicer,
    add_LogsServiceServicer_to_server,
)
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from pydantic import SecretStr, ValidationError

from collector.exporters.options import OtlpOptions
from collector.exporters.options import Protocol as Otlp
from collector.exporters.otlp_client import make_exporter
from collector.exporters.otlp_events import EvaluationEvents, attributes
from collector.pipeline.clock import ManualClock
from collector.records.decision import Decision, Fate
from collector.records.diagnosis import Cause, Diagnosis
from collector.records.found import Found, Mark
from collector.records.settled import Settled
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction
from scorers.outcome import (
    Failed,
    FailedReason,
    Label,
    NotApplicable,
    NotApplicableReason,
    Outcome,
    Result,
    Score,
    Verdict,
)
from scorers.scorer import Kind, Tier

TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
APPLICATION_ENVIRONMENT = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://127.0.0.1:9/v1/logs",
    "OTEL_EXPORTER_OTLP_HEADERS": "x-application-key=secret",
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS": "x-application-key=secret",
    "OTEL_EXPORTER_OTLP_TIMEOUT": "never",
    "OTEL_EXPORTER_OTLP_LOGS_TIMEOUT": "never",
    "OTEL_EXPORTER_OTLP_LOGS_INSECURE": "false",
    "OTEL_EXPORTER_OTLP_COMPRESSION": "nonsense",
    "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere.pem",
    "OTEL_RESOURCE_ATTRIBUTES": "service.name=groundwatch-itself",
    "OTEL_ATTRIBUTE_COUNT_LIMIT": "1",
    "OTEL_SDK_DISABLED": "true",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
}


class Server:
    """What arrived: requests, with their headers in lower case."""

    def __init__(self) -> None:
        self.requests: list[ExportLogsServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.endpoint = ""

    def take(self, request: ExportLogsServiceRequest, headers: dict[str, str]) -> None:
        self.requests.append(request)
        self.headers.append(headers)

    def records(self) -> list[tuple[dict[str, Any], Any, dict[str, Any]]]:
        """(resource attributes, log record, its attributes) of every record."""
        return [
            (plain(group.resource.attributes), record, plain(record.attributes))
            for request in self.requests
            for group in request.resource_logs
            for scope in group.scope_logs
            for record in scope.log_records
        ]


def plain(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@pytest.fixture(params=[Otlp.GRPC, Otlp.HTTP])
def protocol(request: pytest.FixtureRequest) -> Otlp:
    return Otlp(request.param)


@pytest.fixture
def server(protocol: Otlp) -> Iterator[Server]:
    server = Server()
    yield from (grpc_server(server) if protocol is Otlp.GRPC else http_server(server))


def grpc_server(server: Server) -> Iterator[Server]:
    class Service(LogsServiceServicer):  # type: ignore[misc]  # the generated base class is untyped
        def Export(self, request: Any, context: Any) -> ExportLogsServiceResponse:
            server.take(request, {key.lower(): value for key, value in context.invocation_metadata()})
            return ExportLogsServiceResponse()

    real = grpc.server(ThreadPoolExecutor(max_workers=1))
    add_LogsServiceServicer_to_server(Service(), real)
    port = real.add_insecure_port("127.0.0.1:0")
    real.start()
    server.endpoint = f"http://127.0.0.1:{port}"
    yield server
    real.stop(None).wait()


def http_server(server: Server) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/logs"
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            server.take(ExportLogsServiceRequest.FromString(body), {k.lower(): v for k, v in self.headers.items()})
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as real:
        real.daemon_threads = True
        thread = threading.Thread(target=real.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        server.endpoint = f"http://127.0.0.1:{real.server_port}"
        yield server
        real.shutdown()
        thread.join()


def result(outcome: Outcome, *, kind: Kind = Kind.JUDGED, verdicts: Sequence[Verdict] = ()) -> Result:
    tier = Tier.FAST if kind is Kind.LOCAL else None
    return Result("i-1", "faithfulness", kind, outcome, "3", "print", tier=tier, verdicts=verdicts)


def settled(
    *judged: Result, local: tuple[Result, ...] = (), service: str = "shop", trace: str = TRACE_ID
) -> Settled:
    found = Found(
        Interaction("i-1"),
        trace_ids=(trace,) if trace else (),
        span_id=SPAN_ID,
        response_id="resp-9",
        resource={"service.name": service, "process.pid": 42, "odd": ["a", "b"]},
    )
    return Settled(found, Decision(Fate.QUEUED, 0.5, "rate"), local, judged)


def events(
    options: OtlpOptions, exporter: LogRecordExporter, telemetry: Telemetry, *, content: bool = False
) -> EvaluationEvents:
    return EvaluationEvents(
        options, exporter, version="0.1.0", content=content, clock=ManualClock(), telemetry=telemetry
    )


def counted(telemetry: Telemetry, outcome: str) -> float:
    return float(telemetry.registry.get_sample_value(metrics.EVENTS_EXPORTED.name, {"outcome": outcome}) or 0)


async def test_events_arrive_in_the_context_of_the_evaluated_span(
    server: Server, protocol: Otlp, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in APPLICATION_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    telemetry = Telemetry()
    options = OtlpOptions(
        endpoint=server.endpoint, protocol=protocol, headers={"Authorization": SecretStr("Bearer ours")}
    )
    sender = events(options, make_exporter(options), telemetry)
    sender.start()
    sender.settle(
        settled(
            result(Score(0.75, label="good")),
            result(NotApplicable(NotApplicableReason.REFUSAL)),
            result(Failed(FailedReason.DEADLINE, "in detail")),
            local=(result(Score(0.5), kind=Kind.LOCAL),),
        )
    )
    told = replace(settled(result(Score(1.0)), service="bank", trace=""), diagnosis=Diagnosis(Cause.FINE, None))
    sender.settle(told)
    await sender.stop(10)

    assert counted(telemetry, "sent") == 5
    for headers in server.headers:
        assert headers["x-groundwatch-evaluation"] == "1"
        assert headers["authorization"] == "Bearer ours"
        assert "x-application-key" not in headers
    records = server.records()
    local, scored, not_applicable, failed, bank = records
    assert local[2]["groundwatch.scorer.tier"] == "fast"
    resource, record, attributes = scored
    assert resource == {"service.name": "shop", "process.pid": 42, "odd": "['a', 'b']"}
    assert record.event_name == "gen_ai.evaluation.result"
    assert (record.trace_id.hex(), record.span_id.hex()) == (TRACE_ID, SPAN_ID)
    assert record.time_unix_nano == 1_700_000_000_000_000_000
    assert attributes["gen_ai.evaluation.name"] == "faithfulness"
    assert attributes["gen_ai.evaluation.score.value"] == 0.75
    assert attributes["gen_ai.evaluation.score.label"] == "good"
    assert attributes["gen_ai.response.id"] == "resp-9"
    assert "error.type" not in attributes
    assert not_applicable[2]["gen_ai.evaluation.score.label"] == "not_applicable"
    assert not_applicable[2]["groundwatch.reason"] == "refusal"
    assert "gen_ai.evaluation.score.value" not in not_applicable[2]
    assert failed[2]["error.type"] == "deadline"
    assert "gen_ai.evaluation.score.value" not in failed[2]
    assert "in detail" not in str(server.requests)
    assert bank[0]["service.name"] == "bank"
    assert bank[1].trace_id == b""
    assert bank[2]["groundwatch.diagnosis.cause"] == "fine"
    assert bank[2]["groundwatch.diagnosis.kind"] == "judged"
    assert "groundwatch.diagnosis.cause" not in attributes


async def test_explanations_leave_only_with_content(server: Server, protocol: Otlp) -> None:
    options = OtlpOptions(endpoint=server.endpoint, protocol=protocol)
    verdicts = (Verdict("Paris is in Spain", Label.CONTRADICTED, "the context says France"),)
    for content in (False, True):
        sender = events(options, make_exporter(options), Telemetry(), content=content)
        sender.start()
        sender.settle(settled(result(Score(0.0), verdicts=verdicts)))
        await sender.stop(10)
    without, with_content = server.records()
    assert "gen_ai.evaluation.explanation" not in without[2]
    assert with_content[2]["gen_ai.evaluation.explanation"] == (
        "contradicted: Paris is in Spain (the context says France)"
    )


class Gate(LogRecordExporter):
    """An exporter that holds every batch until it is opened, or refuses it."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.open = threading.Event()
        self.refuses = refuses
        self.closed = False

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        self.open.wait()
        if self.refuses:
            raise RuntimeError("the endpoint is broken in a new way")
        return LogRecordExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True

    def shutdown(self) -> None:
        self.closed = True
        self.open.set()


async def test_a_full_queue_drops_and_counts_and_never_waits() -> None:
    telemetry, gate = Telemetry(), Gate()
    options = OtlpOptions(endpoint="http://127.0.0.1:9", queue_events=10)
    sender = events(options, gate, telemetry)
    for _ in range(25):
        sender.settle(settled(result(Score(1.0))))
    assert counted(telemetry, "dropped_queue_full") == 15
    assert telemetry.registry.get_sample_value(metrics.EVENTS_WAITING.name) == 10
    sender.start()
    await sender.stop(0.01)
    assert gate.closed
    total = sum(counted(telemetry, outcome) for outcome in metrics.EVENTS_EXPORTED.labels["outcome"] or ())
    assert total == 25, "every event is counted once, the batch that was in flight included"
    sender.settle(settled(result(Score(1.0))))
    assert counted(telemetry, "dropped_shutdown") >= 1


async def test_a_broken_endpoint_is_counted_and_survived() -> None:
    telemetry, gate = Telemetry(), Gate(refuses=True)
    gate.open.set()
    sender = events(OtlpOptions(endpoint="http://127.0.0.1:9", batch_events=1), gate, telemetry)
    sender.start()
    for _ in range(3):
        sender.settle(settled(result(Score(1.0))))
    await sender.stop(10)
    assert counted(telemetry, "failed") == 3


async def test_stop_without_start_and_twice() -> None:
    telemetry, gate = Telemetry(), Gate()
    sender = events(OtlpOptions(endpoint="http://127.0.0.1:9"), gate, telemetry)
    sender.settle(settled(result(Score(1.0))))
    await sender.stop(1)
    await sender.stop(1)
    assert counted(telemetry, "dropped_shutdown") == 1


async def test_resources_are_bounded() -> None:
    options = OtlpOptions(endpoint="http://127.0.0.1:9", resources=3)
    sender = events(options, Gate(), Telemetry())
    for n in range(50):
        sender.settle(settled(result(Score(1.0)), service=f"service-{n}"))
    assert sender.resources == 3
    await sender.stop(1)


@pytest.mark.parametrize("endpoint", ["collector:4317", "ftp://x:1", "http://", "", "http:///v1/logs"])
def test_an_endpoint_that_is_no_url_is_refused(endpoint: str) -> None:
    with pytest.raises(ValidationError, match="is no URL"):
        OtlpOptions(endpoint=endpoint)


def test_an_event_of_a_replayed_interaction_says_so() -> None:
    result = Result("i", "faithfulness", Kind.JUDGED, Score(1.0), "1", "f")
    live, replayed = (
        Found(Interaction("i"), marks=marks) for marks in (frozenset[Mark](), frozenset({Mark.REPLAYED}))
    )
    assert "groundwatch.replayed" not in attributes(result, live, content=True)
    assert attributes(result, replayed, content=True)["groundwatch.replayed"] is True
