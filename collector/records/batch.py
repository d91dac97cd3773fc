"""What a receiver hands to its downstream, and how that takes or refuses it.

`Batch`, `Group` and `Signal` are defined in `collector.otlp.batch`, because reading a request body makes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from collector.otlp.batch import Batch, Group, Signal

__all__ = ["Batch", "Group", "Intake", "Refusal", "Signal"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Downstream takes nothing of a batch now. `reason` is one of `telemetry.metrics.REFUSED`."""

    reason: str
    retry_after_seconds: float


class Intake(Protocol):
    """Takes batches. Never blocks and never awaits: it takes the whole batch, or refuses the whole batch.

    When it returns None, the batch is safe in the sense of the configured durability and may be acknowledged.
    """

    def offer(self, batch: Batch) -> Refusal | None: ...
