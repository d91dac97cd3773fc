"""CPU and memory of OTLP ingest, each against the floor measured in the same run.

The floor is the lazy decode of the same bytes: splitting the request, reading the ids, and decoding every
attribute of 1 % of the spans. Servers run in a process of their own, whose CPU time is read before and after;
the load generator is not counted. Aim: at most 3 x the floor at batches of 512.

"assembled" puts the real assembler behind the receiver: it holds the traces that are wanted and cuts the others.
Decoding what it releases is the work of other processes and not in the figure. One RAG trace among the 74 of a
request is the case of the aim; the other lines have 20 %.

    python -m tests.bench.ingest [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import http.client
import multiprocessing as mp
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp.batch import Batch, Signal
from collector.otlp.decode import Decoder
from collector.otlp.model import Encoding, RawItem
from collector.otlp.request import Interner, RequestReader
from collector.pipeline.clock import SystemClock
from collector.pipeline.garbage import collect_less_often
from collector.receivers.border import Border
from collector.receivers.inflate import inflate
from collector.receivers.options import GrpcOptions, Options
from collector.records.batch import Intake, Refusal
from collector.telemetry.instruments import Telemetry

KEPT_EVERY = 100
TRACE_PREFIX = b"\xf0bench!\xf1"  # of every trace id, to be replaced where each request has to be of new traces
GRPC_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
WORDS = ["travel", "expense", "leave", "invoice", "dishwasher", "filter", "rinse", "salt", "refund", "receipt"]


def _text(rng: random.Random, size: int) -> str:
    words = []
    length = 0
    while length < size:
        word = rng.choice(WORDS)
        words.append(word)
        length += len(word) + 1
    return " ".join(words)[:size]


def make_body(spans: int, seed: int = 7, *, one_in: int = 5) -> ExportTraceServiceRequest:
    """Traces of 7 spans. One in `one_in` is a RAG trace, of which a span has five contexts of 1 KB; the rest are
    ordinary."""
    rng = random.Random(seed)
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    for key in ("service.name", "service.version", "telemetry.sdk.name", "deployment.environment.name"):
        group.resource.attributes.add(key=key).value.string_value = "rag-api"
    scope = group.scope_spans.add()
    scope.scope.name = "bench"
    trace_id = root_id = b""
    for index in range(spans):
        rag = index // 7 % one_in == 0
        span_id = rng.randbytes(8)
        root = index % 7 == 0
        if root:
            trace_id, root_id = TRACE_PREFIX + rng.randbytes(8), span_id
        span = scope.spans.add(
            trace_id=trace_id,
            span_id=span_id,
            parent_span_id=b"" if root else root_id,
            name="retrieve" if rag else "GET /health",
            kind=1,
            start_time_unix_nano=1_700_000_000_000_000_000 + index,
            end_time_unix_nano=1_700_000_000_100_000_000 + index,
            flags=0x101,
        )
        for number in range(6):
            span.attributes.add(key=f"http.attribute_{number}").value.string_value = _text(rng, 20)
        if rag and index % 7 == 1:
            for number in range(5):
                key = f"retrieval.documents.{number}.document.content"
                span.attributes.add(key=key).value.string_value = _text(rng, 1000)
    return request


class KeepSome:
    """A null downstream that decodes every 100th span whole, as an application keeping 1 % would."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._seen = 0
        self.decoded = 0

    def offer(self, batch: Batch) -> Refusal | None:
        for group in batch.groups:
            first = -self._seen % KEPT_EVERY
            self._seen += len(group.items)
            for item in group.items[first::KEPT_EVERY]:
                self._decoder.span(RawItem(item, group.resource, group.scope, group.encoding))
                self.decoded += 1
        return None


def cpu_per_span(run: Callable[[], None], spans: int, repeats: int) -> float:
    """The least of five rounds, microseconds."""
    run()
    rounds = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(repeats):
            run()
        rounds.append((time.process_time() - start) / repeats / spans * 1e6)
    return min(rounds)


# --- servers, each in a process of its own


def _assembler(telemetry: Telemetry) -> Any:
    """The real assembler with a quiet period of 1 s; what it releases is thrown away."""
    from collector.assembly.assembler import Assembler
    from collector.assembly.options import Options as AssemblyOptions
    from collector.extract.extractor import trace_hints
    from collector.extract.options import Options as ExtractOptions

    return Assembler(
        AssemblyOptions(quiet_seconds=1),
        hints=trace_hints(ExtractOptions()),
        clock=SystemClock(),
        telemetry=telemetry,
        downstream=lambda _trace: None,
    )


def _border(transport: str, assemble: bool) -> tuple[Border, Options]:
    options = Options(grpc=GrpcOptions(port=0))
    telemetry = Telemetry()
    intake: Intake = KeepSome()
    if assemble:
        intake = assembler = _assembler(telemetry)
        loop = asyncio.get_running_loop()

        def tick() -> None:
            assembler.tick()
            loop.call_later(0.25, tick)

        tick()
    border = Border(
        transport=transport,
        intake=intake,
        telemetry=telemetry,
        max_item_bytes=options.max_item_bytes,
        intern=Interner(),
    )
    return border, options


def _answer_cpu(pipe: Any, loop: asyncio.AbstractEventLoop, done: asyncio.Event) -> None:
    while pipe.recv() == "cpu":
        pipe.send(time.process_time())
    loop.call_soon_threadsafe(done.set)


async def _serve_http(pipe: Any, assemble: bool) -> None:
    from collector.receivers.otlp_http import OtlpHttp

    border, options = _border("http", assemble)
    await _serve_app(pipe, OtlpHttp(options=options, border=border, auth=None))


async def _swallow(_scope: Any, receive: Any, send: Any) -> None:
    """An application that throws bodies away: what the server alone costs."""
    while (await receive()).get("more_body", False):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def _serve_bare(pipe: Any, assemble: bool) -> None:
    del assemble
    await _serve_app(pipe, _swallow)


async def _serve_app(pipe: Any, app: Any) -> None:
    import uvicorn

    config = uvicorn.Config(app, lifespan="off", access_log=False, log_level="warning")
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    done = asyncio.Event()
    while not server.started:  # uvicorn offers a flag, not an event
        await asyncio.sleep(0.01)
    pipe.send(listener.getsockname()[1])
    threading.Thread(target=_answer_cpu, args=(pipe, asyncio.get_running_loop(), done), daemon=True).start()
    await done.wait()
    server.should_exit = True
    await serving


async def _serve_grpc(pipe: Any, assemble: bool) -> None:
    from collector.receivers.otlp_grpc import OtlpGrpc

    border, options = _border("grpc", assemble)
    server = OtlpGrpc(options=options, border=border, auth=None)
    await server.start()
    done = asyncio.Event()
    pipe.send(server.port)
    threading.Thread(target=_answer_cpu, args=(pipe, asyncio.get_running_loop(), done), daemon=True).start()
    await done.wait()
    await server.stop(1)


def _serve(transport: str, assemble: bool, pipe: Any) -> None:
    import uvloop

    collect_less_often()  # as `groundwatch run` does
    serve = {"http": _serve_http, "bare": _serve_bare, "grpc": _serve_grpc}[transport]
    uvloop.run(serve(pipe, assemble))


@dataclass(frozen=True)
class Load:
    name: str
    transport: str
    body: bytes
    headers: dict[str, str]
    assemble: bool = False

    def bodies(self, count: int) -> Iterator[bytes]:
        """The same body again and again; for the assembler each with trace ids of its own."""
        for _ in range(count):
            new = os.urandom(8)
            body = self.body
            if self.assemble:
                body = body.replace(TRACE_PREFIX, new).replace(TRACE_PREFIX.hex().encode(), new.hex().encode())
            yield body


def _send_http(port: int, load: Load, requests: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for body in load.bodies(requests):
        connection.request("POST", "/v1/traces", body, load.headers)
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise SystemExit(f"{load.name}: HTTP {response.status}")
    connection.close()


def _send_grpc(port: int, load: Load, requests: int) -> None:
    import grpc

    compression = grpc.Compression.Gzip if load.headers else grpc.Compression.NoCompression
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(GRPC_METHOD, request_serializer=None, response_deserializer=None)
        for body in load.bodies(requests):
            call(body, compression=compression)


def server_cpu_per_span(load: Load, spans: int, requests: int) -> float:
    """The least of five rounds, microseconds of the server's CPU; two connections."""
    context = mp.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(load.transport, load.assemble, theirs), daemon=True)
    process.start()
    theirs.close()  # so that a server which dies ends our waiting with EOFError
    port = ours.recv()
    send = _send_grpc if load.transport == "grpc" else _send_http

    def round_trip(count: int) -> None:
        threads = [threading.Thread(target=send, args=(port, load, count // 2)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def cpu() -> float:
        ours.send("cpu")
        value: float = ours.recv()
        return value

    round_trip(20)
    rounds = []
    for _ in range(5):
        before = cpu()
        round_trip(requests)
        rounds.append((cpu() - before) / (requests // 2 * 2) / spans * 1e6)
    ours.send("stop")
    process.join(10)
    return min(rounds)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer requests")
    parser.add_argument("--spans", type=int, default=512, help="spans in one request")
    arguments = parser.parse_args(argv)
    spans: int = arguments.spans
    repeats, requests = (40, 60) if arguments.quick else (200, 400)

    message = make_body(spans)
    body = message.SerializeToString()
    json_body = as_json(message)
    reader = RequestReader()

    def decode(data: bytes, encoding: Encoding) -> Callable[[], None]:
        downstream = KeepSome()
        return lambda: _drop(downstream.offer(reader.read(data, Signal.TRACES, encoding)))

    def floor_of(data: bytes) -> float:
        return cpu_per_span(decode(data, Encoding.PROTO), spans, repeats)

    def show(loads: Sequence[Load], data: bytes) -> None:
        """Each beside a floor that was measured before and after it: neighbours on the machine come and go."""
        for load in loads:
            before = floor_of(data)
            cost = server_cpu_per_span(load, spans, requests)
            near = min(before, floor_of(data))
            print(f"{load.name:34s} {cost:7.3f} {cost / near:6.2f}   floor {near:.3f}")

    floor = floor_of(body)
    eager = cpu_per_span(lambda: _decode_all(body, reader), spans, max(3, repeats // 20))
    json_floor = cpu_per_span(decode(json_body, Encoding.JSON), spans, max(5, repeats // 5))
    print(f"{spans} spans a request, {len(body) / spans:.0f} bytes a span; microseconds of CPU per span, x floor")
    print(f"{'floor: lazy decode, 1 % whole':34s} {floor:7.3f}   1.00")
    print(f"{'every attribute of every span':34s} {eager:7.3f} {eager / floor:6.2f}")
    zipped_body = gzip.compress(body, 6)
    unzip = cpu_per_span(lambda: _drop(inflate(zipped_body, "gzip", 2**24)), spans, max(5, repeats // 5))
    print(f"{'gunzip alone':34s} {unzip:7.3f} {unzip / floor:6.2f}")
    print(f"{'JSON, lazy decode, 1 % whole':34s} {json_floor:7.3f} {json_floor / floor:6.2f}")
    proto_headers = {"content-type": "application/x-protobuf"}
    json_headers = {"content-type": "application/json"}
    zipped = {**proto_headers, "content-encoding": "gzip"}
    show(
        (
            Load("HTTP, bodies thrown away", "bare", body, proto_headers),
            Load("HTTP protobuf", "http", body, proto_headers),
            Load("HTTP protobuf gzip", "http", zipped_body, zipped),
            Load("HTTP JSON", "http", json_body, json_headers),
            Load("gRPC", "grpc", body, {}),
            Load("gRPC gzip", "grpc", body, {"compression": "gzip"}),
            Load("HTTP protobuf, assembled", "http", body, proto_headers, assemble=True),
            Load("gRPC, assembled", "grpc", body, {}, assemble=True),
        ),
        body,
    )
    message = make_body(spans, one_in=spans)
    body, json_body = message.SerializeToString(), as_json(message)
    print(f"one RAG trace a request, {len(body) / spans:.0f} bytes a span")
    show(
        (
            Load("HTTP protobuf, assembled", "http", body, proto_headers, assemble=True),
            Load("HTTP JSON, assembled", "http", json_body, json_headers, assemble=True),
            Load("gRPC, assembled", "grpc", body, {}, assemble=True),
        ),
        body,
    )


def _drop(_result: object) -> None: ...


def _decode_all(body: bytes, reader: RequestReader) -> None:
    decoder = Decoder()
    for group in reader.read(body, Signal.TRACES, Encoding.PROTO).groups:
        for item in group.items:
            decoder.span(RawItem(item, group.resource, group.scope, group.encoding))


def as_json(message: ExportTraceServiceRequest) -> bytes:
    """OTLP/JSON of a message: protobuf's own mapping, with its base64 ids made hex."""
    import base64
    import json

    from google.protobuf.json_format import MessageToDict

    document = MessageToDict(message, use_integers_for_enums=True)
    for of_resource in document["resourceSpans"]:
        for of_scope in of_resource["scopeSpans"]:
            for span in of_scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64decode(span[key]).hex()
    return json.dumps(document, separators=(",", ":")).encode()


if __name__ == "__main__":
    main()
