"""The last decisions, for `groundwatch why TRACE_ID`."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime

from collector.pipeline.clock import Clock

MAX_TEXT = 300
"""Characters kept of a note's text and of a fact's value."""
MAX_FACTS = 16

_Note = tuple[int, str, str, dict[str, object]]


class Ring:
    """Remembers the last `size` notes; older ones are forgotten. 0 remembers nothing.

    Bounded in items and in the length of each, so in memory: about 1 KB a note, at most 10 KB. Notes hold
    reasons, counts and probabilities; callers put no content of a trace into them.
    """

    def __init__(self, size: int, *, clock: Clock) -> None:
        self._size = size
        self._clock = clock
        self._notes: deque[str] = deque()
        self._by_trace: dict[str, deque[_Note]] = {}

    def __len__(self) -> int:
        return len(self._notes)

    def note(self, trace_id: str, stage: str, text: str, **facts: object) -> None:
        """Remember what `stage` decided about a trace (hex id), and the facts that it rests on."""
        if self._size <= 0:
            return
        short = {name[:MAX_TEXT]: _short(value) for name, value in list(facts.items())[:MAX_FACTS]}
        note: _Note = (self._clock.unix_nano(), stage, text[:MAX_TEXT], short)
        self._notes.append(trace_id)
        self._by_trace.setdefault(trace_id, deque()).append(note)
        if len(self._notes) > self._size:
            # A trace's own notes are in the order of all, so its first is the oldest of all.
            oldest = self._notes.popleft()
            of_trace = self._by_trace[oldest]
            of_trace.popleft()
            if not of_trace:
                del self._by_trace[oldest]

    def explain(self, trace_id: str) -> list[dict[str, object]]:
        """What is remembered of a trace, oldest first: `time` (ISO 8601, UTC), `stage`, `text` and `facts`."""
        return [_line(*note) for note in self._by_trace.get(trace_id, ())]

    def line(self, stage: str, text: str) -> dict[str, object]:
        """A line like those of `explain`, said now and not remembered."""
        return _line(self._clock.unix_nano(), stage, text, {})


def _line(unix_nano: int, stage: str, text: str, facts: dict[str, object]) -> dict[str, object]:
    time = datetime.fromtimestamp(unix_nano / 1e9, UTC).isoformat(timespec="milliseconds")
    return {"time": time, "stage": stage, "text": text, "facts": facts}


def _short(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)[:MAX_TEXT]
