"""Each result as a `gen_ai.evaluation.result` event, in the context of the span that it evaluates."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from collector.exporters.options import OtlpOptions
from collector.pipeline.clock import Clock
from collector.records.decision import Fate
from collector.records.found import Found, Mark
from collector.records.settled import Settled
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from scorers.judge.marker import ATTRIBUTE
from scorers.outcome import Failed, Result, Score

EVENT_NAME = "gen_ai.evaluation.result"
_LAST_CALL_SECONDS = 1.0
_MAX_RESOURCE_ATTRIBUTES = 64
_MAX_TEXT = 1_024
_MAX_EXPLANATION = 4_096

Plain = str | bool | int | float


class EvaluationEvents:
    """A downstream of scoring that sends events.

    `settle` never waits: it makes records and leaves them to a thread of its own; a full queue drops the newest
    and counts it. Retries are the exporter's, within its timeout. `stop` sends what waits, until its deadline.

    Records are built on the SDK's own types with a bounded cache of resources, instead of one LoggerProvider for
    each evaluated service: a provider registers a fork handler that is never released, and turns itself off where
    the surroundings set OTEL_SDK_DISABLED for the application.
    """

    def __init__(
        self,
        options: OtlpOptions,
        exporter: LogRecordExporter,
        *,
        version: str,
        content: bool,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._options = options
        self._exporter = exporter
        self._content = content
        self._clock = clock
        self._kinds = frozenset(options.kinds)
        self._scope = InstrumentationScope("groundwatch", version)
        self._resources: OrderedDict[tuple[tuple[str, Plain], ...], Resource] = OrderedDict()
        self._queue: deque[ReadableLogRecord] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._outcomes = {
            outcome: telemetry.counter(metrics.EVENTS_EXPORTED, outcome=outcome)
            for outcome in ("sent", "failed", "dropped_queue_full", "dropped_shutdown")
        }
        telemetry.gauge(metrics.EVENTS_WAITING).set_function(lambda: float(len(self._queue)))

    @property
    def fill(self) -> float:
        """How full the queue is: 1 is full."""
        return len(self._queue) / self._options.queue_events

    @property
    def resources(self) -> int:
        """Resources of evaluated services that are kept."""
        return len(self._resources)

    def start(self) -> None:
        """Start the sending thread; twice is fine."""
        if self._thread is None and not self._stopping:
            self._thread = threading.Thread(target=self._send, name="evaluation-events", daemon=True)
            self._thread.start()

    async def stop(self, deadline_seconds: float) -> None:
        """Send what waits, for at most `deadline_seconds`, and close. What is left is counted as dropped. Without
        `start` it only counts; twice is fine."""
        with self._wake:
            if self._stopping:
                return
            self._stopping = True
            self._wake.notify_all()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, deadline_seconds)
        with self._wake:
            left = len(self._queue)
            self._queue.clear()
        self._outcomes["dropped_shutdown"].inc(left)
        await asyncio.to_thread(self._exporter.shutdown)
        if self._thread is not None:
            await asyncio.to_thread(
                self._thread.join, _LAST_CALL_SECONDS
            )  # closing ends the call that was in flight

    def settle(self, settled: Settled) -> None:
        """Turn the results of one interaction into events."""
        if settled.decision.fate is Fate.FILTERED:
            return
        results = [r for r in (*settled.local, *settled.judged) if r.kind in self._kinds]
        if not results:
            return
        found = settled.found
        context = _context(found)
        resource = self._resource(found.resource)
        cause = _cause(settled)
        now = self._clock.unix_nano()
        records = [
            ReadableLogRecord(
                LogRecord(
                    timestamp=now,
                    observed_timestamp=now,
                    context=context,
                    severity_number=SeverityNumber.INFO,
                    attributes=attributes(result, found, content=self._content) | cause,
                    event_name=EVENT_NAME,
                ),
                resource,
                self._scope,
            )
            for result in results
        ]
        with self._wake:
            room = 0 if self._stopping else max(0, self._options.queue_events - len(self._queue))
            self._queue.extend(records[:room])
            stopping = self._stopping
            self._wake.notify()
        lost = len(records) - min(room, len(records))
        self._outcomes["dropped_shutdown" if stopping else "dropped_queue_full"].inc(lost)

    def _resource(self, attributes: Mapping[str, object]) -> Resource:
        kept = sorted(attributes)[:_MAX_RESOURCE_ATTRIBUTES]
        plain = tuple((key[:_MAX_TEXT], _plain(attributes[key])) for key in kept)
        resource = self._resources.get(plain)
        if resource is None:
            resource = self._resources[plain] = Resource(dict(plain))
            if len(self._resources) > self._options.resources:
                self._resources.popitem(last=False)
        else:
            self._resources.move_to_end(plain)
        return resource

    def _send(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not self._stopping:
                    self._wake.wait()
                if not self._queue:
                    return
                batch = [self._queue.popleft() for _ in range(min(len(self._queue), self._options.batch_events))]
            try:
                sent = self._exporter.export(batch) is LogRecordExportResult.SUCCESS
            except Exception:  # noqa: BLE001  # whatever a broken endpoint provokes in the SDK must not end the thread
                sent = False
            self._outcomes["sent" if sent else "failed"].inc(len(batch))


def attributes(result: Result, found: Found, *, content: bool) -> dict[str, Plain]:
    """The event's attributes: OpenTelemetry's names where there are some, our own with the prefix `groundwatch.`.

    `content` adds the explanation, which quotes the application's texts.
    """
    outcome = result.outcome
    event: dict[str, Plain] = {
        ATTRIBUTE: True,
        "gen_ai.evaluation.name": result.scorer,
        "groundwatch.interaction.id": result.interaction_id,
        "groundwatch.scorer.kind": result.kind.value,
        "groundwatch.scorer.version": result.version,
        "groundwatch.scorer.fingerprint": result.fingerprint,
        "groundwatch.attempt": result.attempt,
    }
    if result.tier is not None:
        event["groundwatch.scorer.tier"] = result.tier.value
    if Mark.REPLAYED in found.marks:
        event["groundwatch.replayed"] = True
    if found.response_id:
        event["gen_ai.response.id"] = found.response_id[:_MAX_TEXT]
    if isinstance(outcome, Score):
        event["groundwatch.outcome"] = "scored"
        event["gen_ai.evaluation.score.value"] = outcome.value
        if outcome.label:
            event["gen_ai.evaluation.score.label"] = outcome.label[:_MAX_TEXT]
    else:
        failed = isinstance(outcome, Failed)
        event["groundwatch.outcome"] = "failed" if failed else "not_applicable"
        event["groundwatch.reason"] = outcome.reason.value
        if failed:
            event["error.type"] = outcome.reason.value
        else:
            event["gen_ai.evaluation.score.label"] = "not_applicable"
    if content and (explanation := _explanation(result)):
        event["gen_ai.evaluation.explanation"] = explanation
    return event


def _cause(settled: Settled) -> dict[str, Plain]:
    """The interaction's cause, the same on each of its events."""
    diagnosis = settled.diagnosis
    if diagnosis is None or diagnosis.cause is None:
        return {}
    return {
        "groundwatch.diagnosis.cause": diagnosis.cause.value,
        "groundwatch.diagnosis.kind": diagnosis.kind.value,
    }


def _explanation(result: Result) -> str:
    if result.verdicts:
        lines = (f"{v.label.value}: {v.claim}" + (f" ({v.reason})" if v.reason else "") for v in result.verdicts)
        return "\n".join(lines)[:_MAX_EXPLANATION]
    return (
        json.dumps(result.evidence, ensure_ascii=False, default=str)[:_MAX_EXPLANATION] if result.evidence else ""
    )


def _context(found: Found) -> Context | None:
    """The evaluated span's context; None for a record that came without a span."""
    try:
        trace_id, span_id = int(found.trace_ids[0], 16), int(found.span_id, 16)
    except (IndexError, ValueError):
        return None
    span = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(span)) if span.is_valid else None


def _plain(value: object) -> Plain:
    if isinstance(value, bool | int | float):
        return value
    return str(value)[:_MAX_TEXT]
