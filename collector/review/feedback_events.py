"""Users' feedback that the application tells as a log event, beside its telemetry."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from typing import Protocol

from collector.otlp.decode import Decoder, MalformedItem
from collector.otlp.model import LogRecord, RawItem, Value
from collector.records.batch import Batch, Intake, Refusal, Signal
from collector.review.store import ReviewError

EVENT = "gen_ai.evaluation.result"
"""The event of OpenTelemetry's conventions for what anybody says of an answer's quality."""
_NAME = "gen_ai.evaluation.name"
_GOOD = frozenset({"good", "like", "pass", "positive", "thumbs_up", "up", "yes"})
_BAD = frozenset({"bad", "dislike", "fail", "negative", "thumbs_down", "down", "no"})
_MOST_UNDER_WAY = 200


class Takes(Protocol):
    async def take(
        self,
        *,
        score: float | None,
        comment: str = "",
        name: str = "user_feedback",
        source: str = "api",
        trace_id: str = "",
        response_id: str = "",
    ) -> str: ...

    def failed(self) -> None:
        """Feedback could not be looked at: too much is under way, or the store does not answer."""
        ...


class FeedbackEvents:
    """An `Intake` before the assembler that reads users' feedback out of the log records it takes.

    Such an event mostly comes after its trace was closed, so it is never a part of one. It is named
    `gen_ai.evaluation.result`, its `gen_ai.evaluation.name` is one of `names`, and it says which answer by its trace
    or by `gen_ai.response.id`. Its score is `gen_ai.evaluation.score.value` where that lies in [0, 1], else what
    `gen_ai.evaluation.score.label` means; its words are `gen_ai.evaluation.explanation`. A request that is refused
    comes again, and its feedback is taken then. Lives on the event loop; never waits.
    """

    def __init__(self, intake: Intake, takes: Takes, *, names: Sequence[str]) -> None:
        self._intake = intake
        self._takes = takes
        self._names = frozenset(names)
        self._decoder = Decoder(max_entries=0)
        self._under_way: set[asyncio.Task[None]] = set()

    def offer(self, batch: Batch) -> Refusal | None:
        refusal = self._intake.offer(batch)
        if refusal is None and batch.signal is Signal.LOGS and self._names:
            for record in self._events(batch):
                self._take(record)
        return refusal

    def _events(self, batch: Batch) -> Iterator[LogRecord]:
        wanted = EVENT.encode()
        for group in batch.groups:
            for item in group.items:
                if wanted not in item:
                    continue
                try:
                    record = self._decoder.log_record(RawItem(item, group.resource, group.scope, group.encoding))
                except MalformedItem:
                    continue  # counted where the trace's items are
                if record.event_name == EVENT and record.attributes.get(_NAME) in self._names:
                    yield record

    def _take(self, record: LogRecord) -> None:
        if len(self._under_way) >= _MOST_UNDER_WAY:
            self._takes.failed()
            return
        task = asyncio.create_task(self._told(record), name="feedback event")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _told(self, record: LogRecord) -> None:
        said = record.attributes
        try:
            await self._takes.take(
                score=_score(said.get("gen_ai.evaluation.score.value"), said.get("gen_ai.evaluation.score.label")),
                comment=_text(said.get("gen_ai.evaluation.explanation")),
                name=_text(said.get(_NAME)),
                source="event",
                trace_id=record.trace_id,
                response_id=_text(said.get("gen_ai.response.id")),
            )
        except ReviewError:
            self._takes.failed()


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""


def _score(value: Value, label: Value) -> float | None:
    """In [0, 1]; None where only words tell."""
    if isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1:
        return float(value)
    word = _text(label).strip().casefold().replace(" ", "_").replace("-", "_")
    return 1.0 if word in _GOOD else 0.0 if word in _BAD else None
