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


class Through:
    """An assembler, and what it made of the requests of one recording after another."""

    def __init__(self) -> None:
        self._clock = ManualClock()
        self._released: list[ReleasedTrace] = []
        self._assembler = Assembler(
            # Some recordings have traces in common; each is to be taken anew.
            AssemblyOptions(dedup_window_seconds=1),
            hints=trace_hints(Options()),
            clock=self._clock,
            telemetry=Telemetry(),
            downstream=self._released.append,
        )

    def put(self, requests: list[Items]) -> dict[str, ReleasedTrace]:
        for items in requests:
            for batch in encode.to_batches([item for item, _ in items], items[0][1]):
                assert self._assembler.offer(batch) is None
        for _ in range(3):  # once for the traces, twice for the two generations of tombstones
            self._clock.advance(1_000)
            self._assembler.tick()
        released = {trace.trace_id: trace for trace in self._released}
        self._released.clear()
        return released


def by_signal(items: Items) -> list[Items]:
    parts = [[each for each in items if each[1] is signal] for signal in Signal]
    return [part for part in parts if part]


def test_nothing_is_lost_on_the_way(recordings: list[tuple[Items, Result]]) -> None:
    decoder, extractor = Decoder(), Extractor(Options())
    through = Through()
    found = 0
    for items, expected in recordings:
        released = through.put(by_signal(items))
        for name, extraction in expected.items():
            trace = released.get(name)
            if trace is None:
                assert extraction.found == ()
                continue
            spans = [decoder.span(item) for item in trace.spans]
            logs = [decoder.log_record(item) for item in trace.logs]
            assert plain(extractor.extract(spans, logs, complete=True)) == extraction
            found += len(extraction.found)
    assert found > 100


def test_one_by_one_in_any_order_the_same_is_released(recordings: list[tuple[Items, Result]]) -> None:
    """Extraction does not look at the order of spans, so what is released is all that matters."""
    rng = random.Random(1)
    through = Through()
    for items, _ in recordings:
        at_once = through.put(by_signal(items))
        one_by_one = through.put([[each] for each in rng.sample(items, len(items))])
        assert one_by_one.keys() == at_once.keys()
        for name, trace in at_once.items():
            assert set(one_by_one[name].spans) == set(trace.spans)
            assert set(one_by_one[name].logs) == set(trace.logs)
