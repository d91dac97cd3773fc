"""What changed: releases, models, prompts and scorers as they appear, and the sums of each release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from collector.estimates.measures import Measures, Places, Term, label_value, moved
from collector.estimates.options import ChangeOptions
from collector.estimates.sums import OTHER, W2, W2Y, W2Y2, WY, Later, W
from collector.estimates.tally import Tally
from collector.records.found import Found
from collector.telemetry import metrics
from collector.telemetry.spec import Family
from scorers.scorer import Kind

SERVICE_VERSION, RESPONSE_MODEL, PROMPT_VERSION, SCORER = metrics.DIMENSIONS
Room = Callable[[int], bool]
"""Whether so many more time series fit into the budget."""
Folded = Callable[[str], None]
"""Told the dimension when a value is not told apart."""
Version = tuple[str, str]
"""Service and its version."""
_OTHER: Version = (OTHER, OTHER)
_ROW = len(metrics.VERSION_PARTS)


@dataclass(slots=True)
class Change:
    """One value of a change dimension: of a service, or (dimension `scorer`) of a metric. Times are Unix seconds."""

    dimension: str
    service: str
    metric: str
    value: str
    first_seen: float
    last_seen: float


class Marks:
    """When each value was first and last seen. The last values of each service are kept, bounded in all; one that is
    still seen never gives way to a new one."""

    def __init__(self, options: ChangeOptions, room: Room, folded: Folded) -> None:
        self._options = options
        self._room = room
        self._folded = folded
        self._marks: dict[tuple[str, str, str], dict[str, Change]] = {}
        self.count = 0

    def see(self, dimension: str, service: str, metric: str, value: str, now_unix: float) -> None:
        """A value was met at this Unix time."""
        values = self._marks.get((dimension, service, metric))
        known = values.get(value) if values is not None else None
        if known is not None:
            known.last_seen = now_unix
        elif not self._open(dimension, service, metric, value, now_unix):
            self._folded(dimension)

    def _open(self, dimension: str, service: str, metric: str, value: str, now: float) -> bool:
        key = (dimension, service, metric)
        values = self._marks.get(key, {})
        if len(values) >= self._options.values:
            stalest = min(values.values(), key=lambda change: change.last_seen)
            if now - stalest.last_seen < self._options.replace_after_seconds:
                return False
            del values[stalest.value]
            self.count -= 1
        elif self.count >= self._options.max_values or not self._room(2):
            return False
        self._marks.setdefault(key, values)[value] = Change(dimension, service, metric, value, now, now)
        self.count += 1
        return True

    def go_on(self, marks: Sequence[Change]) -> None:
        """Take over what an earlier process had seen, within the bounds."""
        for mark in sorted(marks, key=lambda mark: mark.last_seen, reverse=True):
            if self._open(mark.dimension, mark.service, mark.metric, mark.value, mark.first_seen):
                self._marks[mark.dimension, mark.service, mark.metric][mark.value].last_seen = mark.last_seen

    def all(self) -> list[Change]:
        """Copies of all marks."""
        return [
            Change(c.dimension, c.service, c.metric, c.value, c.first_seen, c.last_seen)
            for values in self._marks.values()
            for c in values.values()
        ]


class Changes:
    """Marks of all dimensions and the five sums by service version; the caller holds the lock of all sums."""

    def __init__(self, options: ChangeOptions, measures: Measures, *, room: Room, folded: Folded) -> None:
        self._options = options
        self._measures = measures
        self._room = room
        self._folded = folded
        self._marks = Marks(options, room, folded)
        self._versions: dict[Version, tuple[Tally, list[float]]] = {_OTHER: (Tally(0), [0.0])}

    @property
    def marks(self) -> int:
        return self._marks.count

    @property
    def versions(self) -> int:
        """Pairs of service and version that have sums, `other` among them."""
        return len(self._versions)

    def declare(self) -> None:
        """Room for the measure numbered last."""
        for tally, _ in self._versions.values():
            tally.extend(_ROW)

    def instrument(self, place: int, fingerprint: str, now_unix: float) -> None:
        """A result of this measure came from the scorer with this fingerprint."""
        self._marks.see(SCORER, "", self._measures.all[place].metric, label_value(fingerprint), now_unix)

    def seen(self, found: Found, now_unix: float) -> Version:
        """An interaction was screened or settled: its values are noted, and its version has sums from now on."""
        service = label_value(found.service)
        version = label_value(found.service_version or "")
        if found.service_version:
            self._marks.see(SERVICE_VERSION, service, "", version, now_unix)
        if found.model:
            self._marks.see(RESPONSE_MODEL, service, "", label_value(found.model), now_unix)
        attributes = found.attributes
        for name in self._options.prompt_version_attributes if attributes else ():
            if name in attributes:
                self._marks.see(PROMPT_VERSION, service, "", label_value(str(attributes[name])), now_unix)
                break
        return self._version((service, version), now_unix)

    def _version(self, pair: Version, now: float) -> Version:
        held = self._versions.get(pair)
        if held is not None:
            held[1][0] = now
            return pair
        if not self._fits(pair, now):
            self._folded(SERVICE_VERSION)
            return _OTHER
        self._versions[pair] = (Tally(_ROW * len(self._measures.all)), [now])
        return pair

    def _fits(self, pair: Version, now: float) -> bool:
        """Makes room for one more pair, if need be in the place of one that has not been seen for long."""
        own = [held for held in self._versions if held[0] == pair[0] and held != _OTHER]
        full = len(own) >= self._options.values
        if not full and len(self._versions) <= self._options.max_versions:
            return self._room(_ROW * len(self._measures.all))
        candidates = own if full else [held for held in self._versions if held != _OTHER]
        stalest = min(candidates, key=lambda held: self._versions[held][1][0])
        if now - self._versions[stalest][1][0] < self._options.replace_after_seconds:
            return False
        del self._versions[stalest]
        return True

    def add(self, terms: Sequence[Term], version: Version, now: float) -> None:
        """Add one settled interaction; `now` on the monotonic clock."""
        tally, _ = self._versions.get(version) or self._versions[_OTHER]
        tally.touch(now)
        values = tally.values
        for term in terms:
            y = term.value
            if y is None:
                continue
            at = _ROW * term.place
            w = term.weight
            wy = w * y
            values[at] += w
            values[at + W2] += w * w
            values[at + WY] += wy
            values[at + W2Y] += w * wy
            values[at + W2Y2] += wy * wy

    def kept(self) -> tuple[list[Change], list[tuple[Version, float, list[float]]]]:
        """For the next process: marks, and versions with the Unix time at which each was last seen and its sums."""
        versions = [(version, seen[0], tally.values) for version, (tally, seen) in self._versions.items()]
        return self._marks.all(), versions

    def go_on(
        self,
        marks: Sequence[Change],
        versions: Sequence[tuple[Version, float, Sequence[float]]],
        places: Places,
    ) -> None:
        """Add what an earlier process had; what the bounds have no place for goes to `other`."""
        self._marks.go_on(marks)
        for version, last_seen, values in sorted(versions, key=lambda one: one[1], reverse=True):
            there = version if version in self._versions else self._version(version, last_seen)
            tally, seen = self._versions[there]
            seen[0] = max(seen[0], last_seen)
            moved(values, _ROW, places, tally.values)

    def all(self) -> list[Change]:
        """Every value that is kept, with its times."""
        return self._marks.all()

    def tallies(self) -> list[tuple[Version, Tally]]:
        """Sums by version, for windows; five for each measure."""
        return [(version, tally) for version, (tally, _) in self._versions.items()]

    def freeze(self) -> Later:
        """Copies the state; what is returned may be called later, in any thread."""
        marks = self._marks.all()
        versions = [(version, tally.values[:]) for version, (tally, _) in self._versions.items()]
        measures = list(enumerate(self._measures.all))

        def families() -> list[Family]:
            made = []
            for kind, specs in ((Kind.JUDGED, metrics.JUDGED_VERSIONS), (Kind.LOCAL, metrics.LOCAL_VERSIONS)):
                of_kind = [(place, measure.labels) for place, measure in measures if measure.kind is kind]
                for part, spec in zip((W, W2, WY, W2Y, W2Y2), specs, strict=True):
                    samples = [
                        ((*labels, *version), values[_ROW * place + part])
                        for version, values in versions
                        for place, labels in of_kind
                    ]
                    made.append(Family(spec, tuple(spec.labels), samples))
            if marks:
                for spec, name in (
                    (metrics.CHANGE_FIRST_SEEN, "first_seen"),
                    (metrics.CHANGE_LAST_SEEN, "last_seen"),
                ):
                    made.append(
                        Family(
                            spec,
                            tuple(spec.labels),
                            [((c.dimension, c.service, c.metric, c.value), getattr(c, name)) for c in marks],
                        )
                    )
            return made

        return families
