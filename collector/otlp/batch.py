"""The items of one export request, still as bytes: what reading a request body gives, and writing one takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from collector.otlp.model import Encoding, RawItem
from collector.otlp.rows import Rows
from collector.pipeline.receipt import Receipt


class Signal(StrEnum):
    TRACES = "traces"
    LOGS = "logs"


class Group:
    """The items of one request that share resource and scope, as parallel lists of one length.

    No object is made per span on this path: `trace_ids` are 16 bytes each, `span_ids` 8 bytes each (for log
    records b"" where the record names no span, and trace id b"" where it names no trace), `items` the
    serialized span or log record. The ids of spans that have them where every known exporter puts them are read
    from the items only when somebody asks (`with_ids_inside`).
    """

    __slots__ = ("_span_ids", "_trace_ids", "encoding", "items", "resource", "scope")

    def __init__(  # noqa: PLR0917  # a record: its fields, in their order
        self,
        resource: bytes,
        scope: bytes,
        encoding: Encoding,
        trace_ids: list[bytes] | None = None,
        span_ids: list[bytes] | None = None,
        items: list[bytes] | None = None,
    ) -> None:
        self.resource = resource
        self.scope = scope
        self.encoding = encoding
        self.items: list[bytes] = items if items is not None else []
        self._trace_ids: list[bytes] | None = trace_ids if trace_ids is not None else []
        self._span_ids: list[bytes] | None = span_ids if span_ids is not None else []

    @classmethod
    def with_ids_inside(cls, resource: bytes, scope: bytes, items: list[bytes]) -> Group:
        """A group of serialized spans for which `Rows.have_ids` holds."""
        group = cls(resource, scope, Encoding.PROTO, items=items)
        group._trace_ids = group._span_ids = None
        return group

    @property
    def trace_ids(self) -> list[bytes]:
        if self._trace_ids is None:
            self._trace_ids = [item[2:18] for item in self.items]
        return self._trace_ids

    @property
    def span_ids(self) -> list[bytes]:
        if self._span_ids is None:
            self._span_ids = [item[20:28] for item in self.items]
        return self._span_ids

    def _all(self) -> tuple[object, ...]:
        return self.resource, self.scope, self.encoding, self.trace_ids, self.span_ids, self.items

    def __eq__(self, other: object) -> bool:
        return self._all() == other._all() if isinstance(other, Group) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # mutable: how Python says that an object has no hash

    def __repr__(self) -> str:
        return f"Group{self._all()}"


@dataclass(slots=True)
class Batch:
    """One export request. `rejected` items were unusable at the border (bad ids, over the item size limit);
    they are not in `groups`, and `rejected_reason` says to the sender why. `rows` holds all items of all groups in
    one piece, where reading the request made it: whoever takes away or adds items must take it away too. `receipt` is
    held by whoever keeps something of it, where its source must know when all of it is settled (where it is made of
    several, `receipts` are those of the requests that hold spans of a trace, by trace id); `kept`, a list, is then
    filled by the intake with what it keeps, where the source must write that down; `repeated` it sets where some items
    had come before, in another batch or in this one."""

    signal: Signal
    groups: list[Group] = field(default_factory=list)
    rejected: int = 0
    rejected_reason: str = ""
    rows: Rows | None = field(default=None, compare=False, repr=False)
    receipt: Receipt | None = field(default=None, compare=False, repr=False)
    receipts: Mapping[bytes, Sequence[Receipt]] | None = field(default=None, compare=False, repr=False)
    kept: list[RawItem] | None = field(default=None, compare=False, repr=False)
    repeated: bool = field(default=False, compare=False, repr=False)

    def __len__(self) -> int:
        return sum(len(group.items) for group in self.groups)
