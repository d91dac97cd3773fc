"""Small builders of spans, batches and an assembler with everything observable."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.assembly.assembler import Assembler
from collector.assembly.options import Options
from collector.otlp.model import Encoding
from collector.pipeline.clock import ManualClock
from collector.records.batch import Batch, Group, Signal
from collector.records.hints import Hints
from collector.records.trace import Release, ReleasedTrace
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry

HINT = "openinference.span.kind"
LOG_HINT = "gen_ai."
CONTENT_HINT = "session.id"
_FAMILIES = (
    metrics.ITEMS,
    metrics.TRACES_OPENED,
    metrics.TRACES_OPEN,
    metrics.TRACES_RELEASED,
    metrics.SPANS_TRIMMED,
)
OUTCOMES = ("held", "duplicate", "late", "malformed", "own_evaluation", "unrelated")


def trace_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def span_id(number: int) -> bytes:
    return number.to_bytes(8, "big")


def span(
    trace: int,
    number: int,
    parent: int = 0,
    *,
    hint: str = "",
    flags: int = 0,
    name: str = "work",
    state: str = "",
    text: str = "",
) -> bytes:
    message = Span(
        trace_id=trace_id(trace),
        span_id=span_id(number),
        parent_span_id=span_id(parent) if parent else b"",
        trace_state=state,
        name=name,
        kind=1,
        start_time_unix_nano=1_000 + number,
        end_time_unix_nano=2_000 + number,
        flags=flags,
        attributes=[KeyValue(key="http.route", value=AnyValue(string_value=text or "/things/{id}" * 6))],
    )
    if hint:
        message.attributes.append(KeyValue(key=hint, value=AnyValue(string_value="CHAIN")))
    data: bytes = message.SerializeToString()
    return data


def log(trace: int, body: str, *, key: str = LOG_HINT) -> bytes:
    record = LogRecord(
        trace_id=trace_id(trace) if trace else b"",
        body=AnyValue(string_value=body),
        attributes=[KeyValue(key=key, value=AnyValue(string_value="x"))],
    )
    data: bytes = record.SerializeToString()
    return data


RESOURCE: bytes = Resource(
    attributes=[KeyValue(key="service.name", value=AnyValue(string_value="shop"))]
).SerializeToString()


def spans(items: Iterable[bytes], *, resource: bytes = RESOURCE) -> Batch:
    parsed = [(Span.FromString(item), item) for item in items]
    return Batch(
        Signal.TRACES,
        [
            Group(
                resource,
                b"",
                Encoding.PROTO,
                [message.trace_id for message, _ in parsed],
                [message.span_id for message, _ in parsed],
                [item for _, item in parsed],
            )
        ],
    )


def logs(items: Iterable[bytes]) -> Batch:
    parsed = [(LogRecord.FromString(item), item) for item in items]
    return Batch(
        Signal.LOGS,
        [
            Group(
                RESOURCE,
                b"",
                Encoding.PROTO,
                [message.trace_id for message, _ in parsed],
                [message.span_id for message, _ in parsed],
                [item for _, item in parsed],
            )
        ],
    )


class Notebook:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str]] = []

    def note(self, trace_id: str, stage: str, text: str) -> None:
        self.said.append((trace_id, stage, text))


class Bench:
    """An assembler, its clock, its counters, and what it released."""

    def __init__(self, **options: object) -> None:
        self.clock = ManualClock()
        self.telemetry = Telemetry()
        self.released: list[ReleasedTrace] = []
        self.notes = Notebook()
        self.offered = {Signal.TRACES: 0, Signal.LOGS: 0}
        self.assembler = Assembler(
            Options.model_validate(options),
            hints=Hints((HINT.encode(),), content=(CONTENT_HINT.encode(),), log_events=(LOG_HINT.encode(),)),
            clock=self.clock,
            telemetry=self.telemetry,
            downstream=self.released.append,
            notes=self.notes,
        )

    def offer(self, *items: bytes) -> None:
        self.take(spans(items))

    def offer_logs(self, *items: bytes) -> None:
        self.take(logs(items))

    def take(self, batch: Batch) -> None:
        assert self.assembler.offer(batch) is None
        self.offered[batch.signal] += len(batch)
        self.check()

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.assembler.tick()
        self.check()

    def outcome(self, outcome: str, signal: Signal = Signal.TRACES) -> int:
        return int(self._values()[metrics.ITEMS.name, signal, outcome])

    def released_for(self, reason: Release) -> int:
        return int(self._values()[metrics.TRACES_RELEASED.name, reason])

    def trimmed(self) -> int:
        return int(self._values()[(metrics.SPANS_TRIMMED.name,)])

    def _values(self) -> dict[tuple[str, ...], float]:
        """Every sample of the families of assembly, by name and label values in the order of the table."""
        registry = self.telemetry.registry.restricted_registry([spec.name for spec in _FAMILIES])
        return {
            (sample.name, *(sample.labels[name] for name in spec.labels)): sample.value
            for family in registry.collect()
            for sample in family.samples
            for spec in _FAMILIES
            if spec.name == sample.name
        }

    def check(self) -> None:
        """The conservation laws, which hold at every instant."""
        values = self._values()
        for signal, offered in self.offered.items():
            assert sum(values[metrics.ITEMS.name, signal, outcome] for outcome in OUTCOMES) == offered
        released = sum(values[metrics.TRACES_RELEASED.name, reason] for reason in Release)
        assert values[(metrics.TRACES_OPENED.name,)] == released + self.assembler.open_traces
        assert values[(metrics.TRACES_OPEN.name,)] == self.assembler.open_traces
        assert self.assembler.held_bytes >= 0
