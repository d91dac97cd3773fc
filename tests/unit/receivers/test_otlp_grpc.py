"""OTLP over gRPC against a real server, with the official generated stubs."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from grpc import aio
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from collector.otlp.batch import Signal
from collector.receivers.options import GrpcOptions, TokenSource
from collector.records.batch import Refusal

DATA = Path(__file__).parents[2] / "data" / "otlp"
TRACES = ExportTraceServiceRequest.FromString((DATA / "sdk.basic.pb").read_bytes())
LOGS = ExportLogsServiceRequest.FromString((DATA / "openai_v2_legacy.error.2.logs.pb").read_bytes())
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
SPANS = 3

Start = Callable[..., Awaitable[Any]]


async def export(running: Any, request: Any = TRACES, **call: Any) -> Any:
    async with aio.insecure_channel(running.grpc_address) as channel:
        stub = LogsServiceStub if isinstance(request, ExportLogsServiceRequest) else TraceServiceStub
        return await stub(channel).Export(request, **call)


async def send(running: Any, body: bytes, **call: Any) -> bytes:
    async with aio.insecure_channel(running.grpc_address) as channel:
        answer: bytes = await channel.unary_unary(METHOD)(body, **call)
        return answer


async def refused(call: Awaitable[Any]) -> tuple[aio.AioRpcError, Status]:
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    metadata = dict(caught.value.trailing_metadata() or ())
    return caught.value, Status.FromString(metadata.get("grpc-status-details-bin", b""))


@pytest.mark.parametrize(
    "compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip, grpc.Compression.Deflate]
)
async def test_both_signals_in_every_compression(running: Any, compression: grpc.Compression) -> None:
    response = await export(running, TRACES, compression=compression)
    assert not response.HasField("partial_success")
    await export(running, LOGS, compression=compression)
    assert [(batch.signal, len(batch)) for batch in running.intake.batches] == [
        (Signal.TRACES, SPANS),
        (Signal.LOGS, 2),
    ]
    labels = {"transport": "grpc", "signal": "traces"}
    assert running.count("receiver_requests_total", outcome="accepted", **labels) == 1
    assert running.count("receiver_bytes_total", **labels) == TRACES.ByteSize()


async def test_partial_success(running: Any) -> None:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    spans.add(trace_id=b"t" * 16, span_id=b"s" * 8)
    spans.add(span_id=b"s" * 8)
    response = await export(running, request)
    assert response.partial_success.rejected_spans == 1
    assert "trace id" in response.partial_success.error_message
    assert running.intake.items == 1


@pytest.mark.parametrize(
    ("reason", "code"),
    [("memory_full", grpc.StatusCode.RESOURCE_EXHAUSTED), ("shutting_down", grpc.StatusCode.UNAVAILABLE)],
)
async def test_refused_downstream_says_when_to_try_again(running: Any, reason: str, code: grpc.StatusCode) -> None:
    running.intake.refusal = Refusal(reason, 1.5)
    error, status = await refused(export(running))
    assert error.code() is code
    assert (status.code, status.message) == (code.value[0], error.details())
    info = RetryInfo()
    assert status.details[0].Unpack(info)
    assert info.retry_delay.ToTimedelta().total_seconds() == 1.5
    assert running.count("items_total", signal="traces", outcome="refused") == SPANS


async def test_unreadable_is_not_retryable(running: Any) -> None:
    for body in (b"hello", gzip.compress(b"x" * 100)[:-4]):
        error, status = await refused(send(running, body))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert not status.details
    assert running.count("receiver_refused_requests_total", transport="grpc", reason="unreadable") == 2


async def test_over_size_has_no_retry_hint_and_is_counted(start: Start) -> None:
    running = await start(max_request_bytes=2048, max_decompressed_bytes=8192)
    for body, compression in (
        (bytes(5000), grpc.Compression.NoCompression),
        (b"\n" * 1_000_000, grpc.Compression.Gzip),
        (b"\n" * 1_000_000, grpc.Compression.Deflate),
    ):
        error, status = await refused(send(running, body, compression=compression))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert not status.details
    assert running.count("receiver_refused_requests_total", transport="grpc", reason="too_large") == 3
    running = await start(max_request_bytes=8192, max_decompressed_bytes=2048)
    error, _ = await refused(send(running, bytes(5000)))
    assert "max_decompressed_bytes" in str(error.details())
    assert running.intake.batches == []


async def test_other_methods_are_not_implemented(running: Any) -> None:
    async with aio.insecure_channel(running.grpc_address) as channel:
        with pytest.raises(aio.AioRpcError) as caught:
            await channel.unary_unary("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export")(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_tokens(start: Start) -> None:
    running = await start(tokens=[TokenSource(env="TOKEN")], environ={"TOKEN": "secret"})
    await export(running, metadata=(("authorization", "Bearer secret"),))
    for metadata in ((), (("authorization", "Bearer other"),)):
        error, status = await refused(export(running, metadata=metadata))
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED
        assert not status.details
        assert "secret" not in str(error.details())
    assert running.intake.items == SPANS
    assert running.count("receiver_refused_requests_total", transport="grpc", reason="unauthenticated") == 2


async def test_own_evaluations_are_refused(running: Any) -> None:
    error, _ = await refused(export(running, metadata=(("x-groundwatch-evaluation", "1"),)))
    assert error.code() is grpc.StatusCode.PERMISSION_DENIED
    assert running.intake.batches == []


async def test_a_closed_border_refuses_with_a_hint(running: Any) -> None:
    running.borders["grpc"].close(5)
    error, status = await refused(export(running))
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert status.details


async def test_requests_being_read_are_bounded(start: Start) -> None:
    running = await start(grpc=GrpcOptions(port=0, max_concurrent_requests=1), request_timeout_seconds=0.3)
    async with aio.insecure_channel(running.grpc_address) as channel:
        silent = channel.stream_unary(METHOD)()
        await silent.wait_for_connection()
        error, status = await refused(export(running))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert status.details
        error, _ = await refused(silent)  # it sends nothing, and is given up
        assert "no whole message" in str(error.details())
    await export(running)
    assert running.intake.items == SPANS


async def test_a_stream_without_a_message_is_refused(running: Any) -> None:
    async with aio.insecure_channel(running.grpc_address) as channel:
        call = channel.stream_unary(METHOD)()
        await call.done_writing()
        error, _ = await refused(call)
    assert "no whole message" in str(error.details())


async def test_starting_and_stopping_twice(running: Any) -> None:
    port = running.grpc.port
    await running.grpc.start()
    assert running.grpc.port == port
    await running.grpc.stop(0)
    await running.grpc.stop(0)


async def test_a_taken_port_is_named_with_the_cure(start: Start, running: Any) -> None:
    with pytest.raises(OSError, match=r"receivers\.grpc\.port"):
        await start(grpc=GrpcOptions(port=running.grpc.port))
