"""What happens, said once: an event writes its log line and moves its counter together.

An event's name is a constant of the code and its fields are ids, numbers and enums: never text of a trace, and
never an exception's message, which may quote one.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum

from collector.pipeline.clock import Clock
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from collector.telemetry.spec import MetricSpec

Plain = str | int | float | bool | None
_MAX_FIELD = 200
_MAX_NAMES = 1_000


class Level(IntEnum):
    DEBUG = logging.DEBUG
    INFO = logging.INFO
    WARNING = logging.WARNING
    ERROR = logging.ERROR


@dataclass(frozen=True, slots=True)
class Count:
    """A counter to move by `amount`, with its label values."""

    spec: MetricSpec
    labels: Mapping[str, str] = field(default_factory=dict)
    amount: float = 1


@dataclass(frozen=True, slots=True)
class Event:
    """`name` is a constant (`judge_slot_abandoned`), `message` a sentence for a person, without values in it."""

    name: str
    level: Level
    message: str
    fields: Mapping[str, Plain] = field(default_factory=dict)
    count: Count | None = None


class Events:
    """Tells events to the log and the metrics.

    Of one name at most `burst` lines are written in `period_seconds`; the next line afterwards says how many were
    suppressed. Counters move every time.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        clock: Clock,
        logger: logging.Logger,
        *,
        burst: int = 5,
        period_seconds: float = 60,
    ) -> None:
        self._telemetry = telemetry
        self._clock = clock
        self._logger = logger
        self._burst = burst
        self._period = period_seconds
        self._seen: dict[str, tuple[float, int]] = {}

    def tell(self, event: Event, error: BaseException | None = None) -> None:
        """Count and log one event. Of `error` the type and the places in the code are logged, not its message."""
        if event.count is not None:
            self._telemetry.inc(event.count.spec, event.count.amount, **event.count.labels)
        suppressed = self._suppressed(event.name)
        written = suppressed is not None
        self._telemetry.inc(
            metrics.LOG_LINES, level=event.level.name.lower(), written="yes" if written else "suppressed"
        )
        if suppressed is None or not self._logger.isEnabledFor(event.level):
            return
        fields = dict(event.fields)
        if suppressed:
            fields["suppressed"] = suppressed
        if error is not None:
            fields["error"] = type(error).__name__
            fields["where"] = where(error)
        self._logger.log(event.level, event.message, extra={"event": event.name, "fields": fields})

    def _suppressed(self, name: str) -> int | None:
        """How many lines were left out before this one; None when this one is left out too."""
        now = self._clock.monotonic()
        start, lines = self._seen.get(name, (now, 0))
        left_out = 0
        if now - start >= self._period:
            start, left_out, lines = now, max(0, lines - self._burst), 0
        if name not in self._seen and len(self._seen) >= _MAX_NAMES:
            return 0
        self._seen[name] = (start, lines + 1)
        return left_out if lines < self._burst else None


def where(error: BaseException) -> str:
    """The innermost places in the code that an exception passed: `file:line function`, nearest last."""
    frames = traceback.extract_tb(error.__traceback__)[-5:]
    return " > ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in frames)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, event, message, and the event's fields."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", record.name),
            "message": record.getMessage(),
        } | {key: _field(value) for key, value in _fields(record).items()}
        if record.exc_info and record.exc_info[1] is not None:
            line |= {"error": type(record.exc_info[1]).__name__, "where": where(record.exc_info[1])}
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """`time level event: message key=value ...`, on one line whatever the values hold."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {key: _field(value) for key, value in _fields(record).items()}
        if record.exc_info and record.exc_info[1] is not None:
            fields |= {"error": type(record.exc_info[1]).__name__, "where": where(record.exc_info[1])}
        pairs = "".join(f" {key}={json.dumps(value, ensure_ascii=False)}" for key, value in fields.items())
        message = json.dumps(record.getMessage(), ensure_ascii=False)[1:-1].replace('\\"', '"')
        return (
            f"{_time(record)} {record.levelname.lower()} {getattr(record, 'event', record.name)}: {message}{pairs}"
        )


def _fields(record: logging.LogRecord) -> dict[str, Plain]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, dict) else {}


def _field(value: Plain) -> Plain:
    return value[:_MAX_FIELD] if isinstance(value, str) else value


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
