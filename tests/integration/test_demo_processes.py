"""The demo's processes: what the application sends is exactly what it did, and nothing is left behind."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector import demo
from collector.commands import demo as command
from collector.demo.processes import Child, environment, free_port, start_model
from collector.extract.extractor import Extractor
from collector.extract.options import Options
from collector.otlp import decode
from collector.otlp.batch import Signal
from collector.otlp.model import RawItem
from collector.otlp.request import decode_request
from collector.records.found import Mark

SCRIPTS = Path(demo.__file__).parent
pytest.importorskip("openinference.instrumentation.openai", reason="extra [demo] is not installed")


@dataclass
class Sink:
    """Keeps what arrives over OTLP, by HTTP or gRPC."""

    http_url: str = ""
    grpc_url: str = ""
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)

    def spans(self) -> list[tuple[dict[str, str], Span]]:
        return [
            ({a.key: a.value.string_value for a in rs.resource.attributes}, span)
            for request in self.requests
            for rs in request.resource_spans
            for ss in rs.scope_spans
            for span in ss.spans
        ]


@pytest.fixture
def sink() -> Iterator[Sink]:
    kept = Sink()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.requests.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    def export(request: ExportTraceServiceRequest, _context: object) -> ExportTraceServiceResponse:
        kept.requests.append(request)
        return ExportTraceServiceResponse()

    method = grpc.unary_unary_rpc_method_handler(
        export,
        request_deserializer=ExportTraceServiceRequest.FromString,
        response_serializer=ExportTraceServiceResponse.SerializeToString,
    )
    service = "opentelemetry.proto.collector.trace.v1.TraceService"
    rpc = grpc.server(futures.ThreadPoolExecutor(2))
    rpc.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": method}),))
    kept.grpc_url = f"http://127.0.0.1:{rpc.add_insecure_port('127.0.0.1:0')}"
    rpc.start()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        kept.http_url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield kept
        server.shutdown()
        thread.join()
    rpc.stop(None).wait()


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Child]:
    child = start_model(tmp_path / "model.log", seed=11, max_seconds=60)
    yield child
    assert child.stop() == 0


def attributes(span: Span) -> dict[str, str | float]:
    return {
        a.key: a.value.double_value if a.value.HasField("double_value") else a.value.string_value
        for a in span.attributes
    }


def found(sink: Sink) -> dict[str, dict[str, object]]:
    """What groundwatch's extraction finds in the same spans, in the application's own terms."""
    spans = defaultdict(list)
    for request in sink.requests:
        for group in decode_request(request.SerializeToString(), Signal.TRACES).groups:
            for item in group.items:
                span = decode.span(RawItem(item, group.resource, group.scope, group.encoding))
                spans[span.trace_id].append(span)
    extractor = Extractor(Options())
    rows = {}
    for trace_id, of_trace in spans.items():
        (one,) = extractor.extract(of_trace, [], complete=True).found
        contexts = one.interaction.contexts or ()
        rows[trace_id] = {
            "trace_id": trace_id,
            "question": one.interaction.question,
            "contexts": [{"id": passage.id, "text": passage.text, "score": passage.score} for passage in contexts],
            "response": one.interaction.response,
            "model": one.model,
            "session": one.session,
            "user": one.user,
            "tenant": one.tenant,
        }
        assert one.service_version == "9.8.7"
        assert (Mark.APPLICATION_ERROR in one.marks) == (one.interaction.response is None)
    return rows


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_the_spans_hold_exactly_what_the_application_did(sink: Sink, model: Child, protocol: str) -> None:
    url = str(model.first_line(20)["listening"])
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-X", "importtime", SCRIPTS / "rag_app.py", "--llm", f"{url}/v1"),
            *("--model", "fable-mini-2", "--release", "9.8.7", "--rate", "40", "--duration", "1.5"),
        ],
        env=environment(
            {
                "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
                "OTEL_EXPORTER_OTLP_ENDPOINT": sink.grpc_url if protocol == "grpc" else sink.http_url,
                "OTEL_SERVICE_NAME": "shop",
            }
        ),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    # Seen while it ran: no module of groundwatch was imported.
    loaded = {line.split("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "openai" in loaded
    assert not loaded & {"collector", "scorers", "dashboards"}

    told = {row["trace_id"]: row for row in map(json.loads, done.stdout.splitlines())}
    for row in told.values():
        assert row.pop("wrong_documents") in {True, False}
    assert len(told) >= 10
    by_trace: dict[str, dict[str, Span]] = {}
    for resource, span in sink.spans():
        assert (resource["service.name"], resource["service.version"]) == ("shop", "9.8.7")
        kind = str(attributes(span)["openinference.span.kind"])
        by_trace.setdefault(span.trace_id.hex(), {})[kind] = span
    assert by_trace.keys() == told.keys()
    for trace_id, row in told.items():
        spans = by_trace[trace_id]
        chain, retriever, llm = (attributes(spans[kind]) for kind in ("CHAIN", "RETRIEVER", "LLM"))
        assert chain["input.value"] == row["question"]
        assert chain.get("output.value") == row["response"]
        if row["response"] is None:
            assert spans["CHAIN"].status.code == 2
        else:
            assert llm["llm.output_messages.0.message.content"] == row["response"]
            assert llm["llm.model_name"] == "fable-mini-2"
        seen = [
            {
                "id": retriever[f"retrieval.documents.{n}.document.id"],
                "text": retriever[f"retrieval.documents.{n}.document.content"],
                "score": retriever[f"retrieval.documents.{n}.document.score"],
            }
            for n in range(3)
        ]
        assert seen == row["contexts"]
        for attrs in (chain, retriever, llm):
            assert (attrs["session.id"], attrs["user.id"]) == (row["session"], row["user"])
            assert json.loads(str(attrs["metadata"]))["tenant"] == row["tenant"]
        assert not spans["CHAIN"].parent_span_id
        assert spans["RETRIEVER"].parent_span_id == spans["LLM"].parent_span_id == spans["CHAIN"].span_id
    assert sum(model.counts.values()) == len(told)
    assert found(sink) == told


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie that waits for its parent has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up under /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_leash_ends_its_command_when_the_starter_is_gone(how: signal.Signals) -> None:
    sleeper = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    leash = str(SCRIPTS / "leash.py")
    starter = (
        "import subprocess, sys, time;"
        f"p = subprocess.Popen([sys.executable, {leash!r}, sys.executable, '-c', {sleeper!r}]);"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(parent.stdout.readline()) for _ in range(2)]
        parent.send_signal(how)
        parent.wait()
        # The pipe closes when the last holder has ended.
        parent.stdout.read()
    deadline = time.monotonic() + 10
    while not all(map(gone, pids)) and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    assert all(map(gone, pids))


def test_the_leash_hands_on_the_exit_code() -> None:
    leash = [sys.executable, str(SCRIPTS / "leash.py")]
    assert subprocess.run([*leash, sys.executable, "-c", "raise SystemExit(7)"], check=False).returncode == 7
    assert subprocess.run(leash, check=False, capture_output=True).returncode == 2


def test_a_child_that_says_nothing_is_reported_with_its_log(tmp_path: Path) -> None:
    command_line = [sys.executable, "-c", "import sys; print('plain'); sys.exit('no such file')"]
    child = Child("thing", command_line, env=environment({}), log=tmp_path / "log")
    with pytest.raises(RuntimeError, match=r"(?s)the thing did not start.*no such file"):
        child.first_line(20)
    child.stop()
    assert not child.running
    assert "plain" in child.tail()


def test_children_do_not_inherit_what_could_cost_or_send(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GROUNDWATCH_JUDGE_API_KEY", "OTEL_EXPORTER_OTLP_HEADERS", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "secret")
    given = environment({"OTEL_SERVICE_NAME": "x"})
    assert "secret" not in given.values()
    assert given["OTEL_SERVICE_NAME"] == "x"
    assert given["PATH"] == os.environ["PATH"]


def test_a_taken_port_is_replaced_by_a_free_one() -> None:
    first = free_port(0)
    assert free_port(first) == first
    with ThreadingHTTPServer(("127.0.0.1", first), BaseHTTPRequestHandler):
        assert free_port(first) != first


@pytest.mark.parametrize("argument", ["--duration=5", "--rate=0", "--rate=1000"])
def test_bad_arguments_are_usage_errors(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(SystemExit) as refused:
        parser.parse_args([argument])
    assert refused.value.code == 2
    assert "give" in capsys.readouterr().err
