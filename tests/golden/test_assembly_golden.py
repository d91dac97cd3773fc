"""The recorded libraries through the real assembler: what extraction finds in what is released is what it finds in
all of it, whatever way the spans came."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from collector.assembly.assembler import Assembler
from collector.assembly.options import Options as AssemblyOptions
from collector.extract.extractor import Extraction, Extractor, trace_hints
from collector.extract.options import Options
from collector.otlp import encode
from collector.otlp.batch import Signal
from collector.otlp.decode import Decoder
from collector.otlp.model import LogRecord, RawItem, Span
from collector.pipeline.clock import ManualClock
from collector.records.trace import ReleasedTrace
from collector.telemetry.instruments import Telemetry
from tests.golden.extract_measure import raw_items, rows, unpack
from tests.unit.extract.extract_builders import plain

Items = list[tuple[RawItem, Signal]]
Result = dict[str, Extraction]
"""By trace id."""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Items, Result]]:
    """Each recording, and what extraction finds in it."""
    base = unpack(tmp_path_factory.mktemp("recordings"))
    every = [list(raw_items(base, each)) for each in sorted({tuple(row["files"]) for row in rows()})]
    return [(items, whole(items)) for items in every]


def whole(items: Items) -> Result:
    """What extraction finds in each trace of a recording."""
    decoder, extractor = Decoder(), Extractor(Options())
    spans: dict[str, list[Span]] = defaultdict(list)
    logs: dict[str, list[LogRecord]] = defaultdict(list)
    for item, signal in items:
        if signal is Signal.TRACES:
            span = decoder.span(item)
            spans[span.trace_id].append(span)
        else:
            record = decoder.log_record(item)
            logs[record.trace_id].append(record)
    return {name: plain(extractor.extract(some, logs[name], complete=True)) for name, some in spans.items()}


def assembled(items: Items, rng: random.Random | None) -> Result:
    """The same through an assembler: in one request of each signal, or one by one in any order."""
    clock = ManualClock()
    released: list[ReleasedTrace] = []
    assembler = Assembler(
        AssemblyOptions(),
        hints=trace_hints(Options()),
        clock=clock,
        telemetry=Telemetry(),
        downstream=released.append,
    )
    groups = [[each for each in items if each[1] is signal] for signal in Signal]
    if rng is not None:
        groups = [[each] for each in rng.sample(items, len(items))]
    for group in groups:
        for batch in encode.to_batches([item for item, _ in group], group[0][1]) if group else ():
            assert assembler.offer(batch) is None
    clock.advance(1_000)
    assembler.tick()
    decoder, extractor = Decoder(), Extractor(Options())
    return {
        trace.trace_id: plain(
            extractor.extract(
                [decoder.span(item) for item in trace.spans],
                [decoder.log_record(item) for item in trace.logs],
                complete=True,
            )
        )
        for trace in released
    }


@pytest.mark.parametrize("seed", [None, 1])
def test_nothing_is_lost_on_the_way(recordings: list[tuple[Items, Result]], seed: int | None) -> None:
    found = 0
    for items, expected in recordings:
        passed = assembled(items, random.Random(seed) if seed is not None else None)
        for name, extraction in expected.items():
            if name in passed:
                assert passed[name] == extraction
                found += len(extraction.found)
            else:
                assert extraction.found == ()
    assert found > 100
