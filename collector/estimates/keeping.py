"""The sums as they outlive the process: rows of bytes, each small, written when it changed.

Measures are numbered anew in each process, so a row of their names goes with the numbers of the others; what was
restored is written again whole, under the new numbers. Clusters are kept as long as they are open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeVar

import msgspec

from collector.estimates.changes import Change, Changes
from collector.estimates.clusters import Clusters, Kept
from collector.estimates.measures import Measure, Measures, Places
from collector.estimates.objectives import Objectives
from collector.estimates.sums import SegmentKey, Sums
from collector.estimates.totals import Totals
from collector.pipeline.clock import Clock
from scorers.scorer import Kind, Tier

_VERSION = b"2"
_LAYOUT, _ALL, _TOTALS, _OBJECTIVES, _CHANGES = "layout", "all", "totals", "objectives", "changes"
_SEGMENT, _CLUSTER = "segment/", "cluster/"


class _Layout(msgspec.Struct, array_like=True):
    measures: list[tuple[str, Kind, Tier | None, str]]
    segment_names: tuple[str, ...]


class _Segment(msgspec.Struct, array_like=True):
    key: tuple[str, ...]
    values: list[float]
    bins: list[list[float]]


class _All(msgspec.Struct, array_like=True):
    local_bins: list[list[float]]
    reasons: list[list[tuple[str, str, float]]]


class _Totals(msgspec.Struct, array_like=True):
    clusters: list[list[float]]
    groups: list[list[float]]
    controls: list[tuple[int, str, list[float]]]


class _Objectives(msgspec.Struct, array_like=True):
    sums: list[tuple[str, list[float]]]


class _Changes(msgspec.Struct, array_like=True):
    marks: list[tuple[str, str, str, str, float, float]]
    versions: list[tuple[tuple[str, str], float, list[float]]]


class _Cluster(msgspec.Struct, array_like=True):
    written: float
    """Unix time: the order of use, as far as it matters."""
    kept: Kept


_T = TypeVar("_T", bound=msgspec.Struct)


class UnreadableSums(ValueError):
    """Rows that could not be read; the rest was taken over. The text names them."""


@dataclass(slots=True)
class Parts:
    """What the sums are made of."""

    measures: Measures
    sums: Sums
    totals: Totals
    objectives: Objectives
    changes: Changes
    clusters: Mapping[Kind, Clusters]


@dataclass(slots=True)
class _Dirty:
    """What changed since it was last written: segments, and the rest, which every interaction changes."""

    segments: set[SegmentKey] = field(default_factory=set)
    other: bool = False


class Keeper:
    """Rows of all parts, and all parts from rows. It is told which segments change."""

    def __init__(self, parts: Parts, *, clock: Clock) -> None:
        self._parts = parts
        self._clock = clock
        self._measures = 0
        self._dirty = _Dirty()
        self._gone: set[str] = set()
        for clusters in parts.clusters.values():
            clusters.keep_track()

    def touch(self, segment: SegmentKey) -> None:
        """An interaction was added to this segment, or its series were opened."""
        self._dirty.segments.add(segment)
        self._dirty.other = True

    def changed(self) -> dict[str, bytes]:
        """Rows that changed since the last call; empty ones are to be taken away."""
        parts = self._parts
        rows = dict.fromkeys(self._gone, b"")
        self._gone = set()
        dirty, self._dirty = self._dirty, _Dirty()
        if dirty.other and len(parts.measures.all) != self._measures:
            self._measures = len(parts.measures.all)
            named = [(one.metric, one.kind, one.tier, one.fingerprint) for one in parts.measures.all]
            rows[_LAYOUT] = _row(_Layout(named, parts.sums.segment_names))
            dirty.segments.update(parts.sums.segments)
        for key in dirty.segments:
            rows[_SEGMENT + _hash(key)] = _row(_Segment(key, *parts.sums.kept(key)))
        if dirty.other:
            marks, versions = parts.changes.kept()
            plain = [(m.dimension, m.service, m.metric, m.value, m.first_seen, m.last_seen) for m in marks]
            rows[_ALL] = _row(_All(*parts.sums.kept_of_all()))
            rows[_TOTALS] = _row(_Totals(*parts.totals.kept()))
            rows[_OBJECTIVES] = _row(_Objectives(parts.objectives.kept()))
            rows[_CHANGES] = _row(_Changes(plain, versions))
        now_unix, ahead = self._now()
        for kind, clusters in parts.clusters.items():
            for number, kept in clusters.kept():
                value = b""
                if kept is not None:
                    value = _row(_Cluster(now_unix, (kept[0] + ahead, *kept[1:])))
                rows[f"{_CLUSTER}{kind}/{number:016x}"] = value
        return rows

    def _now(self) -> tuple[float, float]:
        """Unix time, and how far it is ahead of the monotonic clock, which begins anew in each process."""
        now_unix = self._clock.unix_nano() / 1e9
        return now_unix, now_unix - self._clock.monotonic()

    def restore(
        self,
        rows: Mapping[str, bytes],
        *,
        place: Callable[[Measure], int | None],
        segment: Callable[[SegmentKey], SegmentKey],
    ) -> None:
        """Go on from an earlier process: what it had is added to what is here. `place` gives the number of
        a measure with its fingerprint, None where nothing gives it any more; `segment` the key under which a segment's
        sums are to go on.

        With other segment names than now, everything begins anew: sums of one part must fit those of another.
        Raises UnreadableSums when all that can be read has been taken over.
        """
        reader = _Reader(rows)
        self._gone, self._measures = set(rows), 0
        layout = reader.row(_LAYOUT, _Layout)
        if layout is not None and layout.segment_names == self._parts.sums.segment_names:
            self._take_over(reader, [place(Measure(*one)) for one in layout.measures], segment)
        for key in self._parts.sums.segments:
            self.touch(key)
        for clusters in self._parts.clusters.values():
            clusters.keep_track()
        self._gone -= reader.unread
        if reader.unread:
            raise UnreadableSums(f"rows of the sums could not be read: {', '.join(sorted(reader.unread)[:5])}")

    def _take_over(self, reader: _Reader, places: Places, segment: Callable[[SegmentKey], SegmentKey]) -> None:
        parts = self._parts
        for one in reader.rows(_SEGMENT, _Segment):
            parts.sums.go_on(segment(one.key), one.values, one.bins, places)
        of_all = reader.row(_ALL, _All)
        if of_all is not None:
            parts.sums.go_on_of_all(of_all.local_bins, of_all.reasons, places)
        totals = reader.row(_TOTALS, _Totals)
        if totals is not None:
            parts.totals.go_on(totals.clusters, totals.groups, totals.controls, places)
        objectives = reader.row(_OBJECTIVES, _Objectives)
        if objectives is not None:
            parts.objectives.go_on(objectives.sums)
        changes = reader.row(_CHANGES, _Changes)
        if changes is not None:
            parts.changes.go_on([Change(*mark) for mark in changes.marks], changes.versions, places)
        _, ahead = self._now()
        for kind, clusters in parts.clusters.items():
            prefix = f"{_CLUSTER}{kind}/"
            found = [(name, reader.row(name, _Cluster)) for name in reader.names(prefix)]
            for name, cluster in sorted(found, key=lambda pair: pair[1].written if pair[1] else 0.0):
                if cluster is not None:
                    kept = cluster.kept
                    clusters.go_on(int(name.removeprefix(prefix), 16), (kept[0] - ahead, *kept[1:]), places)


class _Reader:
    """Reads rows, and remembers those that it could not."""

    def __init__(self, rows: Mapping[str, bytes]) -> None:
        self._rows = rows
        self.unread: set[str] = set()

    def names(self, prefix: str) -> list[str]:
        return [name for name in self._rows if name.startswith(prefix)]

    def rows(self, prefix: str, kind: type[_T]) -> list[_T]:
        return [row for name in self.names(prefix) if (row := self.row(name, kind)) is not None]

    def row(self, name: str, kind: type[_T]) -> _T | None:
        data = self._rows.get(name)
        if data is None:
            return None
        try:
            if data.startswith(_VERSION):
                return msgspec.msgpack.decode(data[len(_VERSION) :], type=kind)
        except msgspec.DecodeError:
            pass
        self.unread.add(name)
        return None


def _row(value: msgspec.Struct) -> bytes:
    return _VERSION + msgspec.msgpack.encode(value)


def _hash(key: Sequence[str]) -> str:
    return blake2b("\x00".join(key).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
