"""The latest interactions, so that what is said of them later finds them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from collector.records.settled import Settled
from collector.review.case import text_bytes
from collector.review.query import Subject, SubjectKind

_OVERHEAD_BYTES = 8_192


@dataclass(slots=True)
class Remembered:
    """An interaction, and whether it is a case by now."""

    settled: Settled
    bytes: int
    kept: bool


class Recent:
    """Holds at most `max_items` interactions and about `max_bytes`, in memory; the oldest goes first. `forget` may be
    called from another thread than the rest."""

    def __init__(self, *, max_items: int, max_bytes: int) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._bytes = 0
        self._by_id: OrderedDict[str, Remembered] = OrderedDict()
        self._names: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()  # protects all of the above against an erasure, which comes from a thread

    def add(self, settled: Settled, *, kept: bool) -> None:
        size = _size(settled)
        if self._max_items <= 0 or size > self._max_bytes:
            return
        case_id = settled.found.interaction.id
        with self._lock:
            if case_id in self._by_id:
                self._drop(case_id)
            self._by_id[case_id] = Remembered(_needed(settled), size, kept)
            self._bytes += size
            for name in _names(settled):
                self._names[name] = case_id
            while len(self._by_id) > self._max_items or self._bytes > self._max_bytes:
                self._drop(next(iter(self._by_id)))

    def find(self, *, case_id: str = "", trace_id: str = "", response_id: str = "") -> Remembered | None:
        """By the first of them that is given. A trace that holds several interactions stands for its latest."""
        with self._lock:
            if not case_id:
                name = ("response", response_id) if response_id else ("trace", trace_id)
                case_id = self._names.get(name, "")
            return self._by_id.get(case_id)

    def forget(self, subject: Subject) -> int:
        """Drop what is remembered of a subject; returns how many interactions."""
        with self._lock:
            gone = [case_id for case_id, one in self._by_id.items() if _is_of(one.settled, subject)]
            for case_id in gone:
                self._drop(case_id)
        return len(gone)

    def _drop(self, case_id: str) -> None:
        dropped = self._by_id.pop(case_id)
        self._bytes -= dropped.bytes
        for name in _names(dropped.settled):
            if self._names.get(name) == case_id:
                del self._names[name]


def _is_of(settled: Settled, subject: Subject) -> bool:
    found = settled.found
    own: dict[SubjectKind, tuple[str | None, ...]] = {
        SubjectKind.TRACE: found.trace_ids,
        SubjectKind.USER: (found.user,),
        SubjectKind.SESSION: (found.session,),
        SubjectKind.CASE: (found.interaction.id,),
    }
    return any(one in subject.ids for one in own[subject.kind])


def _names(settled: Settled) -> list[tuple[str, str]]:
    found = settled.found
    names = [("trace", one) for one in found.trace_ids]
    return [*names, ("response", found.response_id)] if found.response_id else names


def _needed(settled: Settled) -> Settled:
    """What a case is made of: not the passages that were retrieved and not used, which may be a hundred times as many,
    nor the resource."""
    return replace(settled, receipt=None, found=replace(settled.found, unused_passages=(), resource={}))


def _size(settled: Settled) -> int:
    return _OVERHEAD_BYTES + text_bytes(settled.found.interaction)
