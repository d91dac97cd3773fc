"""`groundwatch replay` as its user calls it: what can not be meant, what is sent on, and how."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from collector.cli import main
from collector.commands.resend import NotTaken, Sent, mark_resource, resend
from collector.otlp.batch import Batch, Signal
from collector.otlp.model import Encoding
from collector.otlp.request import RequestReader
from collector.receivers.kafka_range import Place, place
from collector.records.trace import Release, ReleasedTrace
from tests.support.recordings import as_json
from tests.support.traces import body, rag_trace

BROKERS = "receivers: {kafka: {brokers: '127.0.0.1:1', topics: spans}}\n"
RESULTS = BROKERS + "export: {kafka: {topic: results}}\n"


@dataclass
class Server:
    """Takes requests over HTTP; answers with `statuses` first, then 200."""

    url: str = ""
    statuses: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    answer: bytes = b""
    taken: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["content-length"]))
            status, headers = made.statuses.pop(0) if made.statuses else (200, {})
            if status == 200:
                made.taken.append((self.path, {k.lower(): v for k, v in self.headers.items()}, sent))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(made.answer)))
            self.end_headers()
            self.wfile.write(made.answer)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield made
    http.shutdown()
    http.server_close()
    thread.join()


def recording(tmp_path: Path, *, traces: int = 2) -> Path:
    dice = random.Random(1)
    path = tmp_path / "recorded.pb"
    path.write_bytes(body(span for _ in range(traces) for span in rag_trace(dice)))
    return path


def config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "groundwatch.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "settings", "says"),
    [
        ([], "", "give files, or --topic"),
        (["FILE", "--topic", "spans"], BROKERS, "give files, or --topic"),
        (["FILE"], "", "nothing would be kept: configure export.otlp"),
        (["missing.pb", "-o", "OUT"], "", "missing.pb: there is no such file"),
        (["FILE", "--partition", "1", "-o", "OUT"], "", "go with --topic"),
        (["FILE", "--from", "10", "-o", "OUT"], "", "go with --topic"),
        (["--topic", "spans", "-o", "OUT"], "", "no brokers are configured"),
        (["--topic", "results", "-o", "OUT"], RESULTS, "it holds results"),
        (["FILE", "--into-sums", "http://127.0.0.1:1", "-o", "OUT"], "", "do not go with --into-sums"),
        (["FILE", "--token-env", "NAME", "-o", "OUT"], "", "goes with --into-sums"),
        (["FILE", "--into-sums", "http://127.0.0.1:1", "--token-env", "NOT_SET_HERE"], "", "is not set"),
    ],
)
def test_what_can_not_be_meant_is_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], settings: str, says: str
) -> None:
    names = {"FILE": str(recording(tmp_path)), "OUT": str(tmp_path / "out.jsonl")}
    given = [names.get(argument, argument) for argument in arguments]
    assert main(["replay", *given, "-c", config(tmp_path, settings)]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("export: {kafka: {topic: results}}\n", "export.kafka.brokers: is required"),
        (BROKERS + "export: {kafka: {topic: spans}}\n", "'spans' is a topic that is consumed"),
        (
            "receivers: {kafka: {brokers: 'a:1', topics: spans, dead_letter: {topic: dead}}}\n"
            "export: {kafka: {topic: dead, brokers: 'b:1'}}\n",
            "'dead' is a topic that is consumed, or the dead-letter topic",
        ),
    ],
)
def test_the_results_topic_needs_brokers_and_is_none_that_is_consumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: str, says: str
) -> None:
    assert main(["config", "-c", config(tmp_path, settings)]) == 2
    assert says in capsys.readouterr().err


def test_the_results_topic_is_in_the_cluster_that_is_consumed_unless_it_names_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tls = "receivers: {kafka: {brokers: 'a:1', topics: spans, client_id: me, tls: {check_hostname: false}}}\n"
    assert main(["config", "-c", config(tmp_path, tls + "export: {kafka: {topic: results}}\n")]) == 0
    shown = capsys.readouterr().out.split("export:")[1]
    assert "a:1" in shown
    assert "check_hostname: false" in shown
    other = tls + "export: {kafka: {topic: results, brokers: 'b:2'}}\n"
    assert main(["config", "-c", config(tmp_path, other)]) == 0
    shown = capsys.readouterr().out.split("export:")[1]
    assert "b:2" in shown
    assert "check_hostname" not in shown


@pytest.mark.parametrize("text", ["1.5", "yesterday", "", "-3"])
def test_a_place_that_is_neither_offset_nor_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither an offset"):
        place(text)


def test_places_are_offsets_or_times() -> None:
    assert place("1200") == Place(offset=1200)
    assert place("2026-11-30T10:00:00Z") == Place(unix_ms=1_796_032_800_000)
    assert place("2026-11-30T11:00:00+01:00") == place("2026-11-30T10:00:00")


def test_a_recording_is_sent_to_the_groundwatch_that_runs_and_marked(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLAY_TEST_TOKEN", "secret")
    path = recording(tmp_path)
    code = main(
        ["replay", str(path), "--into-sums", server.url, "--token-env", "REPLAY_TEST_TOKEN", "--no-progress"]
    )
    assert code == 0
    assert "sent 1 request(s) with 6 span(s)" in capsys.readouterr().err
    [(where, headers, sent)] = server.taken
    assert (where, headers["authorization"]) == ("/v1/traces", "Bearer secret")
    before, after = (ExportTraceServiceRequest.FromString(one) for one in (path.read_bytes(), sent))
    marks = [(one.key, one.value.bool_value) for one in after.resource_spans[0].resource.attributes]
    assert ("groundwatch.replayed", True) in marks
    del after.resource_spans[0].resource.attributes[-1]
    assert [s.span_id for r in after.resource_spans for g in r.scope_spans for s in g.spans] == [
        s.span_id for r in before.resource_spans for g in r.scope_spans for s in g.spans
    ]


def batch(encoding: Encoding) -> Batch:
    request = body(rag_trace(random.Random(2)))
    text = request if encoding is Encoding.PROTO else as_json(request, "traces")
    return RequestReader().read(text, Signal.TRACES, encoding)


async def several(*items: Batch | ReleasedTrace) -> AsyncIterator[Batch | ReleasedTrace]:
    for item in items:
        yield item


async def test_json_stays_json_and_plain_records_are_told_of(server: Server) -> None:
    sent = Sent()
    record = ReleasedTrace("t/0/1", (), (), Release.QUIET, True, 0, record=b"{}")
    server.answer = b"{}"
    await resend(several(batch(Encoding.JSON), record), server.url, headers={}, sent=sent)
    assert (sent.requests, sent.items, sent.records) == (1, 3, 1)
    [(_, headers, text)] = server.taken
    assert headers["content-type"] == "application/json"
    attributes = json.loads(text)["resourceSpans"][0]["resource"]["attributes"]
    assert {"key": "groundwatch.replayed", "value": {"boolValue": True}} in attributes


async def test_a_side_that_is_busy_is_asked_again_after_the_time_that_it_names(server: Server) -> None:
    server.statuses = [(429, {"retry-after": "7"}), (503, {})]
    waits: list[float] = []
    sent = Sent()
    await resend(several(batch(Encoding.PROTO)), server.url, headers={}, sent=sent, sleep=waits.append)
    assert waits == [7, 14]
    assert (len(server.taken), sent.requests) == (1, 1)


async def test_a_request_that_is_not_taken_says_why(server: Server) -> None:
    server.statuses, server.answer = [(401, {})], b"a token is needed"
    with pytest.raises(NotTaken, match="it answered 401: a token is needed"):
        await resend(several(batch(Encoding.PROTO)), server.url, headers={}, sent=Sent(), sleep=lambda _: None)
    waits: list[float] = []
    with pytest.raises(NotTaken, match="given up after 20 tries; no answer"):
        await resend(
            several(batch(Encoding.PROTO)), "http://127.0.0.1:1", headers={}, sent=Sent(), sleep=waits.append
        )
    assert max(waits) == 30


async def test_items_that_could_not_be_used_are_counted(server: Server) -> None:
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 2
    server.answer = answer.SerializeToString()
    sent = Sent()
    await resend(several(batch(Encoding.PROTO)), server.url, headers={}, sent=sent)
    server.answer = b'{"partialSuccess": {"rejectedSpans": "3"}}'
    await resend(several(batch(Encoding.JSON)), server.url, headers={}, sent=sent)
    assert sent.rejected == 5


def test_a_resource_that_is_absent_is_marked_too() -> None:
    assert json.loads(mark_resource(b"", Encoding.JSON))["attributes"][0]["key"] == "groundwatch.replayed"
    assert b"groundwatch.replayed" in mark_resource(b"", Encoding.PROTO)
