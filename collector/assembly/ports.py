"""What the assembler is handed, and what it counts of a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from collector.records.trace import ReleasedTrace


class Downstream(Protocol):
    """Takes a released trace. Never blocks: what it can not take it sheds and counts."""

    def __call__(self, trace: ReleasedTrace, /) -> None: ...


class Notes(Protocol):
    """Takes what is told about a trace, for `groundwatch why`."""

    def note(self, trace_id: str, stage: str, text: str) -> None: ...


@dataclass(slots=True)
class Tally:
    """What became of the items of one request."""

    held: int = 0
    duplicate: int = 0
    late: int = 0
    malformed: int = 0
    own_evaluation: int = 0
    unrelated: int = 0
