"""OTLP over HTTP against a real server."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from collector.otlp.batch import Signal
from collector.receivers.options import HttpOptions, TokenSource
from collector.records.batch import Refusal

DATA = Path(__file__).parents[2] / "data" / "otlp"
PROTO = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
TRACES = (DATA / "sdk.basic.pb").read_bytes()
TRACES_JSON = (DATA / "sdk.basic.json").read_bytes()
LOGS = (DATA / "openai_v2_legacy.error.2.logs.pb").read_bytes()
SPANS = 3
HALF_A_REQUEST = (
    b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\ncontent-length: 5000\r\n\r\n"
    + bytes(1000)
)

Start = Callable[..., Awaitable[Any]]


async def post(url: str, body: bytes, headers: dict[str, str], path: str = "/v1/traces") -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.post(url + path, content=body, headers=headers)


def one_bad_span() -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    spans.add(trace_id=b"t" * 16, span_id=b"s" * 8)
    spans.add(trace_id=b"t" * 16)
    return request


async def test_protobuf_and_json_both_signals(running: Any) -> None:
    for body, headers, path in (
        (TRACES, PROTO, "/v1/traces"),
        (TRACES_JSON, {"content-type": "application/json; charset=utf-8"}, "/v1/traces"),
        (LOGS, PROTO, "/v1/logs"),
    ):
        response = await post(running.url, body, headers, path)
        assert response.status_code == 200
        if headers is PROTO:
            assert response.headers["content-type"] == "application/x-protobuf"
            assert response.content == b""
        else:
            assert response.headers["content-type"] == "application/json"
            assert response.json() == {}
    assert [batch.signal for batch in running.intake.batches] == [Signal.TRACES, Signal.TRACES, Signal.LOGS]
    assert running.count("items_received_total", signal="traces") == 2 * SPANS
    labels = {"transport": "http", "signal": "traces"}
    assert running.count("receiver_requests_total", outcome="accepted", **labels) == 2
    assert running.count("receiver_bytes_total", **labels) == len(TRACES) + len(TRACES_JSON)
    assert running.http.body_bytes_in_progress == 0


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("GZIP", lambda body: gzip.compress(body[:1000]) + gzip.compress(body[1000:])),
        ("gzip", lambda body: gzip.compress(body) + bytes(100)),
        ("deflate", zlib.compress),
        ("deflate", lambda body: zlib.compress(body, wbits=-15)),
        ("identity", lambda body: body),
    ],
)
async def test_content_encodings(running: Any, encoding: str, compress: Callable[[bytes], bytes]) -> None:
    response = await post(running.url, compress(TRACES), {**PROTO, "content-encoding": encoding})
    assert response.status_code == 200
    assert running.intake.items == SPANS


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({**PROTO, "content-encoding": "br"}, "br"),
        ({**PROTO, "content-encoding": "gzip, gzip"}, "gzip, gzip"),
        ({"content-type": "text/plain"}, "text/plain"),
        ({}, "Content-Type"),
    ],
)
async def test_what_is_not_supported_is_named(running: Any, headers: dict[str, str], named: str) -> None:
    response = await post(running.url, TRACES, headers)
    assert response.status_code == 415
    assert "retry-after" not in response.headers
    text = response.json()["message"] if headers.get("content-type") != PROTO["content-type"] else response.text
    assert named in text
    assert running.count("receiver_refused_requests_total", transport="http", reason="unsupported") == 1


async def test_other_methods_and_paths(running: Any) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        response = await client.get(running.url + "/v1/traces")
        assert response.status_code == 405
        assert response.headers["allow"] == "POST"
        response = await client.post(running.url + "/v1/metrics<x>", content=b"")
        assert response.status_code == 404
        assert "/v1/metrics%3Cx%3E" in response.json()["message"]


@pytest.mark.parametrize("body", [b"hello", TRACES[:-3]])
async def test_unreadable_protobuf_is_a_status_in_protobuf(running: Any, body: bytes) -> None:
    response = await post(running.url, body, PROTO)
    assert response.status_code == 400
    status = Status.FromString(response.content)
    assert status.code == 3
    assert "protobuf ExportTraceServiceRequest" in status.message
    assert not status.details
    assert running.count("receiver_refused_requests_total", transport="http", reason="unreadable") == 1
    assert running.intake.batches == []


async def test_unreadable_json_is_a_status_in_json(running: Any) -> None:
    for body in (b'{"resourceSpans":', b"[" * 100_000):
        response = await post(running.url, body, JSON)
        assert response.status_code == 400
        assert response.json()["code"] == 3


async def test_partial_success_in_both_encodings(running: Any) -> None:
    request = one_bad_span()
    response = await post(running.url, request.SerializeToString(), PROTO)
    assert response.status_code == 200
    partial = ExportTraceServiceResponse.FromString(response.content).partial_success
    assert partial.rejected_spans == 1
    assert "span id" in partial.error_message
    bad = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "ab"}, {"traceId": "cd"}]}]}]}
    response = await post(running.url, json.dumps(bad).encode(), JSON)
    assert response.status_code == 200
    assert response.json()["partialSuccess"]["rejectedSpans"] == "2"
    assert "32 hex digits" in response.json()["partialSuccess"]["errorMessage"]
    bad = {"resourceLogs": [{"scopeLogs": [{"logRecords": [5]}]}]}
    response = await post(running.url, json.dumps(bad).encode(), JSON, "/v1/logs")
    assert response.json()["partialSuccess"]["rejectedLogRecords"] == "1"
    assert running.count("items_received_total", signal="traces") == 4
    assert running.count("items_total", signal="traces", outcome="malformed") == 3
    labels = {"transport": "http", "signal": "traces"}
    assert running.count("receiver_requests_total", outcome="partial", **labels) == 2


async def test_partial_success_of_log_records_in_protobuf(running: Any) -> None:
    broken = b"\x0a\x06\x12\x04\x12\x02\x0a\x7f"  # a log record that says 127 bytes and has none
    response = await post(running.url, broken, PROTO, "/v1/logs")
    assert ExportLogsServiceResponse.FromString(response.content).partial_success.rejected_log_records == 1


@pytest.mark.parametrize(("reason", "code", "status"), [("memory_full", 8, 429), ("shutting_down", 14, 503)])
async def test_refused_downstream_says_when_to_try_again(
    running: Any, reason: str, code: int, status: int
) -> None:
    running.intake.refusal = Refusal(reason, 2.25)
    response = await post(running.url, one_bad_span().SerializeToString(), PROTO)
    assert response.status_code == status
    assert response.headers["retry-after"] == "3"
    message = Status.FromString(response.content)
    assert message.code == code
    info = RetryInfo()
    assert message.details[0].Unpack(info)
    assert info.retry_delay.ToTimedelta().total_seconds() == 2.25
    assert running.count("items_received_total", signal="traces") == 2
    assert running.count("items_total", signal="traces", outcome="malformed") == 1
    assert running.count("items_total", signal="traces", outcome="refused") == 1
    assert running.count("receiver_refused_requests_total", transport="http", reason=reason) == 1
    response = await post(running.url, TRACES_JSON, JSON)
    assert (response.status_code, response.json()["code"]) == (status, code)


async def test_a_closed_border_refuses_with_a_hint(running: Any) -> None:
    running.borders["http"].close(5)
    response = await post(running.url, TRACES, PROTO)
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    assert running.intake.batches == []


async def test_size_limits_before_and_after_decompression(start: Start) -> None:
    running = await start(max_request_bytes=2048, max_decompressed_bytes=8192)
    bomb = gzip.compress(bytes(100_000_000), 9)[:2048]
    members = gzip.compress(bytes(3000)) * 4
    for body, headers, option in (
        (bytes(2049), PROTO, "max_request_bytes"),
        (bomb, {**PROTO, "content-encoding": "gzip"}, "max_decompressed_bytes"),
        (members, {**PROTO, "content-encoding": "gzip"}, "max_decompressed_bytes"),
        (zlib.compress(bytes(9000)), {**PROTO, "content-encoding": "deflate"}, "max_decompressed_bytes"),
    ):
        response = await post(running.url, body, headers)
        assert response.status_code == 413
        assert "retry-after" not in response.headers
        assert option in Status.FromString(response.content).message
    assert running.count("receiver_refused_requests_total", transport="http", reason="too_large") == 4
    assert running.http.body_bytes_in_progress == 0


async def test_a_flood_of_parts_is_too_large(running: Any) -> None:
    response = await post(running.url, b"\x0a\x00" * 1_000_000, PROTO)
    assert response.status_code == 413
    assert "smaller batches" in Status.FromString(response.content).message
    assert running.count("receiver_refused_requests_total", transport="http", reason="too_large") == 1


async def test_size_limit_without_a_content_length(start: Start) -> None:
    running = await start(max_request_bytes=2048)

    async def pieces() -> Any:
        for _ in range(5):
            yield bytes(1000)

    async with httpx.AsyncClient(trust_env=False) as client:
        response = await client.post(running.url + "/v1/traces", content=pieces(), headers=PROTO)
    assert response.status_code == 413


async def test_compressed_bodies_that_are_not(running: Any) -> None:
    for body in (b"hello", gzip.compress(TRACES)[:-9], b""):
        response = await post(running.url, body, {**PROTO, "content-encoding": "gzip"})
        assert response.status_code == 400


async def test_bodies_in_progress_are_bounded(start: Start) -> None:
    running = await start(http=HttpOptions(max_body_bytes_in_progress=2000))
    response = await post(running.url, gzip.compress(bytes(3000)), {**PROTO, "content-encoding": "gzip"})
    assert (response.status_code, response.headers["retry-after"]) == (429, "1")
    assert running.count("receiver_refused_requests_total", transport="http", reason="memory_full") == 1
    assert running.http.body_bytes_in_progress == 0
    assert (await post(running.url, one_bad_span().SerializeToString(), PROTO)).status_code == 200


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # what is waited for is a number, not an event
            await asyncio.sleep(0)


async def test_a_client_that_goes_away_leaves_nothing(running: Any) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", running.http_port)
    writer.write(HALF_A_REQUEST)
    await until(lambda: running.http.body_bytes_in_progress > 0)
    writer.close()
    await writer.wait_closed()
    await until(lambda: running.http.body_bytes_in_progress == 0)
    assert running.intake.batches == []


async def test_a_body_that_does_not_come_is_given_up(start: Start) -> None:
    running = await start(request_timeout_seconds=0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", running.http_port)
    writer.write(HALF_A_REQUEST)
    assert b"408" in await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert running.http.body_bytes_in_progress == 0


async def test_tokens(start: Start, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("# rotated monthly\nfirst\n\nsecond\n")
    running = await start(tokens=[TokenSource(file=tokens), TokenSource(env="TOKEN")], environ={"TOKEN": "third"})
    for token in ("first", "second", "third"):
        assert (await post(running.url, TRACES, {**PROTO, "authorization": f"Bearer {token}"})).status_code == 200
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic first"},
        {"authorization": "first"},
    ):
        response = await post(running.url, TRACES, {**PROTO, **headers})
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert b"first" not in response.content
    assert running.count("receiver_refused_requests_total", transport="http", reason="unauthenticated") == 4


async def test_own_evaluations_are_refused(running: Any) -> None:
    response = await post(running.url, TRACES, {**PROTO, "x-groundwatch-evaluation": "1"})
    assert response.status_code == 403
    assert running.intake.batches == []
    assert running.count("receiver_refused_requests_total", transport="http", reason="own_evaluation") == 1
