"""Assembly: CPU per span beside the lazy decode floor, and the memory of open traces beside their wire bytes.

    python -m tests.bench.assembly [--quick]

Everything is measured in one run, on the same bytes: batches of 512 spans, 1 % of the traces RAG (7 spans, with
five contexts of 1 KB in the retriever's), the others of ordinary web traffic. The floor is what any receiver that
keeps spans as bytes must do: split the request, read the trace ids, and every attribute of 1 % of the spans. Hints are
those of the real conventions.
"""

from __future__ import annotations

import argparse
import random
import tracemalloc
from collections.abc import Sequence
from time import process_time

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.assembly.assembler import Assembler
from collector.assembly.options import Options
from collector.extract.extractor import trace_hints
from collector.extract.options import Options as ExtractOptions
from collector.otlp import schema
from collector.otlp.model import Encoding
from collector.otlp.request import RequestReader
from collector.pipeline.clock import ManualClock
from collector.records.batch import Signal
from collector.records.trace import ReleasedTrace
from collector.telemetry.instruments import Telemetry
from tests.bench.ingest import as_json

BATCH = 512
SPANS_PER_TRACE = 7
HINTS = trace_hints(ExtractOptions())


def _attributes(span: Span, values: dict[str, str | int]) -> None:
    for key, value in values.items():
        pair = KeyValue(key=key)
        if isinstance(value, int):
            pair.value.int_value = value
        else:
            pair.value.string_value = value
        span.attributes.append(pair)


_WEB: dict[str, str | int] = {
    "http.request.method": "GET",
    "url.full": "https://shop.example.com/api/v1/items/12345?expand=true",
    "http.response.status_code": 200,
    "network.protocol.version": "1.1",
    "server.address": "items.internal.example.com",
    "server.port": 8080,
    "user_agent.original": "python-requests/2.31.0 (linux; x86_64)",
    "thread.name": "worker-17",
    "db.query.text": "SELECT id, name, price FROM items WHERE id = $1 AND deleted_at IS NULL",
}


def _rag(step: int) -> dict[str, str | int]:
    values: dict[str, str | int] = {"openinference.span.kind": "RETRIEVER" if step == 3 else "CHAIN"}
    values["input.value"] = "How many days of leave are left after a transfer in the middle of the year?"
    if step == 3:
        for rank in range(5):
            values[f"retrieval.documents.{rank}.document.content"] = "Leave rules, page after page. " * 34
    return values


def _trace(rng: random.Random, *, rag: bool) -> list[Span]:
    trace_id = rng.randbytes(16)
    parent = b""
    spans = []
    for step in range(SPANS_PER_TRACE):
        span = Span(
            trace_id=trace_id,
            span_id=rng.randbytes(8),
            parent_span_id=parent,
            name="GET /api/v1/items/{id}",
            kind=2,
            start_time_unix_nano=1_700_000_000_000_000_000,
            end_time_unix_nano=1_700_000_000_500_000_000,
            flags=0x101,
        )
        _attributes(span, _rag(step) if rag else _WEB)
        parent = span.span_id
        spans.append(span)
    return spans


def requests(count: int, rag_share: float, *, groups: int = 1, seed: int = 7) -> list[bytes]:
    """`count` export requests of 512 spans in `groups` resources; traces run over their borders, as in life."""
    rng = random.Random(seed)
    spans: list[Span] = []
    bodies = []
    made = 0
    while len(bodies) < count:
        while len(spans) < BATCH:
            made += 1
            spans += _trace(rng, rag=made * rag_share % 1 < rag_share)
        request = ExportTraceServiceRequest()
        for number in range(groups):
            group = request.resource_spans.add()
            pair = group.resource.attributes.add(key="service.name")
            pair.value.string_value = f"service-{number}"
            group.scope_spans.add().spans.extend(spans[: BATCH // groups])
            del spans[: BATCH // groups]
        bodies.append(request.SerializeToString())
    return bodies


def _assembler(clock: ManualClock, released: list[ReleasedTrace]) -> Assembler:
    return Assembler(Options(), hints=HINTS, clock=clock, telemetry=Telemetry(), downstream=released.append)


def _floor(bodies: Sequence[bytes]) -> float:
    start = process_time()
    for body in bodies:
        for of_resource in schema.Request.FromString(body).groups:
            for of_scope in of_resource.scopes:
                items = list(of_scope.items)
                ids = [item[2:18] if item[:2] == b"\x0a\x10" else b"" for item in items]
                for item in items[: len(ids) // 100]:
                    for pair in Span.FromString(item).attributes:
                        getattr(pair.value, pair.value.WhichOneof("value") or "string_value")
    return process_time() - start


def _reading(bodies: Sequence[bytes]) -> float:
    reader = RequestReader()
    start = process_time()
    for body in bodies:
        reader.read(body, Signal.TRACES, Encoding.PROTO)
    return process_time() - start


def _assembly(
    bodies: Sequence[bytes], seconds_per_batch: float, encoding: Encoding = Encoding.PROTO
) -> tuple[float, float, int]:
    """(seconds with, seconds without reading the request, traces handed on)."""
    clock = ManualClock()
    released: list[ReleasedTrace] = []
    assembler = _assembler(clock, released)
    reader = RequestReader()
    start = process_time()
    own = 0.0
    for body in bodies:
        batch = reader.read(body, Signal.TRACES, encoding)
        before = process_time()
        assembler.offer(batch)
        del batch  # as a receiver does before it reads the next
        clock.advance(seconds_per_batch)
        assembler.tick()
        own += process_time() - before
    before = process_time()
    clock.advance(1000)
    assembler.tick()
    end = process_time()
    return end - start, own + end - before, len(released)


def _memory(bodies: Sequence[bytes]) -> tuple[float, float]:
    """Bytes allocated for the open traces of `bodies`, and counted for them, each over their wire bytes."""
    wire = sum(map(len, bodies))
    released: list[ReleasedTrace] = []
    assembler = _assembler(ManualClock(), released)
    reader = RequestReader()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for body in bodies:
        assembler.offer(reader.read(body, Signal.TRACES, Encoding.PROTO))
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return grown / wire, assembler.held_bytes / wire


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    quick = parser.parse_args(argv).quick
    count = 60 if quick else 600
    bodies = requests(count, 0.01)
    spans = count * BATCH
    # 15,000 spans a second: each batch takes 34 ms of the clock.
    pause = BATCH / 15_000
    rounds = []
    released = 0
    for _ in range(3 if quick else 7):
        floor, reading = _floor(bodies), _reading(bodies)
        total, own, released = _assembly(bodies, pause)
        rounds.append((floor, reading, own, total))
    floor, reading, own, total = (min(values) / spans * 1e6 for values in zip(*rounds, strict=True))
    print(
        f"{spans} spans in requests of {BATCH}, {sum(map(len, bodies)) / spans:.0f} bytes a span, best of rounds"
    )
    for what, cost in (
        ("lazy decode floor", floor),
        ("reading requests", reading),
        ("assembly", own),
        ("reading and assembly", total),
    ):
        print(f"{what:30s} {cost:.3f} us a span = {cost / floor:.2f} x the floor")
    for what, share, groups in (
        ("128 groups a request", 0.01, 128),
        ("20 % RAG", 0.2, 1),
        ("all RAG", 1.0, 1),
    ):
        others = requests(count // 8, share, groups=groups)
        costs = [(_floor(others), _assembly(others, pause)) for _ in range(3 if quick else 7)]
        floor = min(cost for cost, _ in costs) / (len(others) * BATCH) * 1e6
        total = min(cost for _, (cost, _, _) in costs) / (len(others) * BATCH) * 1e6
        print(f"{what + ', floor':30s} {floor:.3f} us a span")
        print(f"{what + ', both':30s} {total:.3f} us a span = {total / floor:.2f} x its floor")
    texts = [as_json(ExportTraceServiceRequest.FromString(body)) for body in bodies[: count // 8]]
    json_costs = [_assembly(texts, pause, Encoding.JSON) for _ in range(3 if quick else 7)]
    json_total = min(cost for cost, _, _ in json_costs) / (len(texts) * BATCH) * 1e6
    print(f"{'JSON, 1 % RAG, both':30s} {json_total:.3f} us a span")
    print(f"traces handed on: {released}")
    for share, what in ((0.0, "without a hint"), (0.01, "1 % RAG"), (1.0, "all RAG")):
        allocated, counted = _memory(requests(12 if quick else 60, share))
        print(
            f"memory of open traces, {what:15s} {allocated:.2f} x wire bytes (aim: 1.5); counted as {counted:.2f}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
