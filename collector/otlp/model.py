"""Decoded OTLP values. Everything above the wire reads these; `collector.otlp.decode` makes them.

Attribute values are plain Python: str, bool, int, float, bytes, list, dict (kvlist) or None (empty value).
Ids are lower-case hex strings; an absent id is "".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NamedTuple

Value = str | bool | int | float | bytes | list["Value"] | dict[str, "Value"] | None
Attributes = Mapping[str, Value]


class Encoding(StrEnum):
    """How the bytes of a raw span or log record are encoded."""

    PROTO = "proto"
    JSON = "json"


class Status(IntEnum):
    UNSET = 0
    OK = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Resource:
    attributes: Attributes = field(default_factory=dict)
    dropped_attributes_count: int = 0

    @property
    def service_name(self) -> str:
        """`service.name`, or "" where the resource does not say."""
        name = self.attributes.get("service.name")
        return name if isinstance(name, str) else ""


@dataclass(frozen=True, slots=True)
class Scope:
    name: str = ""
    version: str = ""
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    time_unix_nano: int = 0
    attributes: Attributes = field(default_factory=dict)
    dropped_attributes_count: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    trace_id: str
    span_id: str
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span:
    """One decoded span. `cut` is true when its content was thrown away on arrival because it carried no hint;
    a cut span keeps ids, parent, times, flags and resource only."""

    trace_id: str
    span_id: str
    parent_span_id: str = ""
    name: str = ""
    kind: int = 0
    start_unix_nano: int = 0
    end_unix_nano: int = 0
    attributes: Attributes = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    links: tuple[Link, ...] = ()
    status: Status = Status.UNSET
    status_message: str = ""
    trace_state: str = ""
    flags: int = 0
    dropped_attributes_count: int = 0
    dropped_events_count: int = 0
    resource: Resource = field(default_factory=Resource)
    scope: Scope = field(default_factory=Scope)
    cut: bool = False

    @property
    def parent_is_remote(self) -> bool | None:
        """What the OTLP flags say of the parent; None where they do not say."""
        if self.flags & 0x100:
            return bool(self.flags & 0x200)
        return None


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One decoded log record. `body` is any value; `event_name` is the field, else the `event.name` attribute."""

    trace_id: str
    span_id: str
    event_name: str = ""
    body: Value = None
    time_unix_nano: int = 0
    attributes: Attributes = field(default_factory=dict)
    dropped_attributes_count: int = 0
    flags: int = 0
    resource: Resource = field(default_factory=Resource)
    scope: Scope = field(default_factory=Scope)


class RawItem(NamedTuple):
    """A span or log record as it arrived: its bytes, and the bytes of the resource and scope it came under.

    `resource` and `scope` are serialized in the same encoding and shared (interned) between the items of a
    request, so that a thousand spans of one process hold one copy. `cut` is true when the item's content was
    thrown away on arrival because it carried no hint: `data` then holds ids, parent, times and flags only.
    """

    data: bytes
    resource: bytes
    scope: bytes
    encoding: Encoding
    cut: bool = False
