"""What assembly is told of the conventions that extraction reads: literals to look for in bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hints:
    """Literals of UTF-8 text, as they stand in the bytes of a span or log record.

    `wanted` occur in the items that tell of a model call, a retrieval or a framework: their traces are handed on.
    `wanted_keys` do so only at the end of an attribute's key. `content` occur in further spans that are of use in
    such a trace (an identity, an error, an application's own attribute) and too often elsewhere: a span with one
    of them keeps its content, but a trace of only such spans is dropped. `log_events` occur in the spans whose
    content may come in log records; they are wanted too.
    """

    wanted: Sequence[bytes]
    wanted_keys: Sequence[bytes] = ()
    content: Sequence[bytes] = ()
    log_events: Sequence[bytes] = ()
