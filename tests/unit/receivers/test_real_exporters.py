"""The OpenTelemetry SDK's own exporters, which applications use, against both receivers."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from collector.otlp import encode
from collector.otlp.decode import span
from collector.records.batch import Refusal


def emit(exporter: SpanExporter) -> None:
    provider = TracerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("ask", attributes={"question": "é?", "ids": [1, 2], "share": 0.5}):
        for _ in range(3):
            with tracer.start_as_current_span("retrieve"):
                pass
    provider.shutdown()


def exporter_for(kind: str, running: Any) -> SpanExporter:
    if kind == "grpc":
        return GrpcExporter(endpoint=running.grpc_address, insecure=True, compression=grpc.Compression.Gzip)
    compression = Compression.Gzip if kind == "http gzip" else Compression.Deflate
    return HttpExporter(endpoint=running.url + "/v1/traces", compression=compression)


@pytest.mark.parametrize("kind", ["grpc", "http gzip", "http deflate"])
async def test_spans_of_the_sdk_arrive(running: Any, kind: str) -> None:
    await asyncio.to_thread(emit, exporter_for(kind, running))
    (batch,) = running.intake.batches
    spans = [span(item) for item in encode.items(batch)]
    (root,) = [one for one in spans if one.name == "ask"]
    assert root.attributes == {"question": "é?", "ids": [1, 2], "share": 0.5}
    assert root.resource.service_name == "shop"
    assert root.parent_span_id == ""
    assert [one.parent_span_id for one in spans if one.name == "retrieve"] == [root.span_id] * 3


class RefusesOnce:
    """Refuses the first batch, with a short hint."""

    def __init__(self, running: Any) -> None:
        self._intake = running.intake
        self._offer = running.intake.offer
        self.refused = 0

    def __call__(self, batch: Any) -> Refusal | None:
        if not self.refused:
            self.refused += 1
            return Refusal("memory_full", 0.05)
        result: Refusal | None = self._offer(batch)
        return result


@pytest.mark.parametrize("kind", ["grpc", "http gzip"])
async def test_the_sdk_tries_again_after_a_refusal(running: Any, kind: str) -> None:
    once = RefusesOnce(running)
    running.intake.offer = once
    await asyncio.to_thread(emit, exporter_for(kind, running))
    assert once.refused == 1
    assert running.intake.items == 4
