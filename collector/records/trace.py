"""What assembly releases: the spans and log records of one trace, still as bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from collector.otlp.model import RawItem
from collector.pipeline.receipt import Receipt


class Release(StrEnum):
    """Why a trace was closed. Only QUIET is a complete trace; all others lead to *incomplete*."""

    QUIET = "quiet"  # local root seen, then nothing new for the quiet period
    DEADLINE = "deadline"  # maximum age reached; complete if the local root had been seen
    EVICTED_OVERSIZE = "evicted_oversize"  # over the per-trace cap
    EVICTED_MEMORY = "evicted_memory"  # memory limit reached
    DRAIN = "drain"  # shutdown
    MOVED = (
        "moved"  # its Kafka partition is another replica's now, which is given it anew: dropped, never handed on
    )
    NO_HINT = "no_hint"  # nothing in it that a convention reads: dropped, never handed on


@dataclass(frozen=True, slots=True)
class ReleasedTrace:
    """All that was held of one trace at its release.

    `has_root` tells whether a local root was seen (no parent, remote parent by the flags, or a parent that was
    not seen when the quiet period ended). `opened_unix_nano` is the time of the first arrival. Picklable: it is
    handed to worker processes. `kept_probability` is below 1 where
    screening shed traces by hash because it could not keep up; it is a factor of every weight that follows.
    `receipt`, where its source keeps count, is held until all that was found in it is settled; it stays in this
    process. A plain record, which needs no assembly, comes in the same form: `record` is its JSON text, there are no
    spans, and `trace_id` is the name by which it is known where it has no id of its own.
    """

    trace_id: str
    spans: tuple[RawItem, ...]
    logs: tuple[RawItem, ...]
    reason: Release
    has_root: bool
    opened_unix_nano: int
    dropped_spans: int = 0
    kept_probability: float = 1.0
    receipt: Receipt | None = field(default=None, compare=False, repr=False)
    record: bytes | None = None

    @property
    def complete(self) -> bool:
        return self.has_root and self.reason in (Release.QUIET, Release.DEADLINE) and not self.dropped_spans
