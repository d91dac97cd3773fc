"""The items of one export request, still as bytes: what reading a request body gives, and writing one takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from collector.otlp.model import Encoding


class Signal(StrEnum):
    TRACES = "traces"
    LOGS = "logs"


@dataclass(slots=True)
class Group:
    """The items of one request that share resource and scope, as parallel lists of one length.

    No object is made per span on this path: `trace_ids` are 16 bytes each, `span_ids` 8 bytes each (for log
    records b"" where the record names no span, and trace id b"" where it names no trace), `items` the
    serialized span or log record.
    """

    resource: bytes
    scope: bytes
    encoding: Encoding
    trace_ids: list[bytes] = field(default_factory=list)
    span_ids: list[bytes] = field(default_factory=list)
    items: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class Batch:
    """One export request. `rejected` items were unusable at the border (bad ids, over the item size limit);
    they are not in `groups`, and `rejected_reason` says to the sender why."""

    signal: Signal
    groups: list[Group] = field(default_factory=list)
    rejected: int = 0
    rejected_reason: str = ""

    def __len__(self) -> int:
        return sum(len(group.items) for group in self.groups)
