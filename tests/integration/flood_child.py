"""Floods an assembler with large open traces, and prints by how much the process grew over what it was allowed.

    python flood_child.py LIMIT_BYTES ROUNDS

Growth is the peak of the resident set over the resident set before the first request; what is released is dropped.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.assembly.assembler import Assembler
from collector.assembly.options import Options
from collector.otlp.model import Encoding
from collector.otlp.request import RequestReader
from collector.pipeline.clock import ManualClock
from collector.records.batch import Signal
from collector.records.hints import Hints
from collector.telemetry.instruments import Telemetry

HINT = "openinference.span.kind"


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def body(rng: random.Random, names: list[bytes]) -> bytes:
    """A request of 200 spans: large ones with a hint, small ones without, of traces that are kept open and new."""
    spans = bytearray()
    for number in range(200):
        span = Span(
            trace_id=rng.choice(names) if number % 2 else rng.randbytes(16),
            span_id=rng.randbytes(8),
            parent_span_id=rng.randbytes(8),
            name="step",
            start_time_unix_nano=1,
            end_time_unix_nano=2,
        )
        pair = span.attributes.add(key=HINT if number % 2 else "http.route")
        pair.value.string_value = "x" * rng.choice((300, 3_000, 30_000) if number % 2 else (200, 800))
        data = span.SerializeToString()
        spans += b"\x12" + varint(len(data)) + data
    scope = b"\x12" + varint(len(spans)) + bytes(spans)
    return b"\x0a" + varint(len(scope)) + scope


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def main() -> None:
    limit, rounds = int(sys.argv[1]), int(sys.argv[2])
    rng = random.Random(1)
    clock = ManualClock()
    released = 0

    def downstream(trace: object) -> None:
        nonlocal released
        released += 1

    assembler = Assembler(
        Options(max_bytes=limit, max_trace_bytes=2 * 1024 * 1024, evict_after_seconds=20),
        hints=Hints((HINT.encode(),)),
        clock=clock,
        telemetry=Telemetry(),
        downstream=downstream,
    )
    reader = RequestReader()
    names = [rng.randbytes(16) for _ in range(400)]
    reader.read(body(rng, names), Signal.TRACES, Encoding.PROTO)
    before = peak = resident()
    refused = taken = 0
    for step in range(rounds):
        names[step % len(names)] = rng.randbytes(16)
        batch = reader.read(body(rng, names), Signal.TRACES, Encoding.PROTO)
        if assembler.offer(batch) is None:
            taken += 1
        else:
            refused += 1
        del batch
        clock.advance(0.25)
        assembler.tick()
        peak = max(peak, resident())
    print(
        json.dumps(
            {
                "growth": peak - before,
                "limit": limit,
                "held": assembler.held_bytes,
                "taken": taken,
                "refused": refused,
                "released": released,
            }
        )
    )


if __name__ == "__main__":
    main()
