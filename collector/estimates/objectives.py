"""Service levels as ratios of weighted counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from collector.estimates.measures import Measure, Term, label_value
from collector.estimates.options import Objective
from collector.estimates.sums import Later, SegmentKey
from collector.telemetry import metrics
from collector.telemetry.spec import Family
from scorers.scorer import Kind, Tier


class Objectives:
    """Weight of all and of the good answers for each objective; the caller holds the lock of all sums.

    `declare` numbers a measure. Objectives must have no `problems`.
    """

    def __init__(
        self, objectives: Sequence[Objective], declare: Callable[[Measure], int], segment_names: Sequence[str]
    ) -> None:
        self._objectives = tuple(objectives)
        self._labels = [(one.name, one.metric, one.kind.value) for one in objectives]
        self._sums = [[0.0, 0.0, 0.0] for _ in objectives]
        self._by_place: dict[int, list[int]] = {}
        self._segments: list[tuple[tuple[int, str], ...]] = []
        names = list(segment_names)
        for number, one in enumerate(objectives):
            self._segments.append(tuple((names.index(name), label_value(v)) for name, v in one.segment.items()))
            place = declare(measure_of(one))
            self._by_place.setdefault(place, []).append(number)

    def __len__(self) -> int:
        return len(self._objectives)

    def renew(self, old: int, new: int) -> None:
        """What these objectives say of the measure `old` they say of `new` as well: a service level is of the
        answers, whatever they are measured with."""
        if old in self._by_place:
            self._by_place[new] = self._by_place[old]

    def add(self, terms: Sequence[Term], key: SegmentKey) -> None:
        """Add the scored ones of an interaction's terms."""
        by_place = self._by_place
        if not by_place:
            return
        for term in terms:
            y = term.value
            if y is None:
                continue
            for number in by_place.get(term.place, ()):
                if all(key[at] == value for at, value in self._segments[number]):
                    one = self._objectives[number]
                    good = y >= one.threshold if one.good == "at_least" else y <= one.threshold
                    sums = self._sums[number]
                    sums[0] += term.weight
                    sums[1] += term.weight * term.weight
                    if good:
                        sums[2] += term.weight

    def kept(self) -> list[tuple[str, list[float]]]:
        """For the next process: the sums of each objective, by all that it says of what is good."""
        return [(_identity(one), sums) for one, sums in zip(self._objectives, self._sums, strict=True)]

    def go_on(self, kept: Sequence[tuple[str, Sequence[float]]]) -> None:
        """Add what an earlier process had of the same objectives."""
        earlier = dict(kept)
        for one, sums in zip(self._objectives, self._sums, strict=True):
            for part, value in enumerate(earlier.get(_identity(one), ())):
                sums[part] += value

    def freeze(self) -> Later:
        """Copies the state; what is returned may be called later, in any thread."""
        sums = [one[:] for one in self._sums]

        def families() -> list[Family]:
            columns = [
                (spec, [one[place] for one in sums])
                for place, spec in enumerate((metrics.SLO_WEIGHT, metrics.SLO_WEIGHT2, metrics.SLO_GOOD_WEIGHT))
            ]
            columns.append((metrics.SLO_TARGET, [one.target for one in self._objectives]))
            columns.append((metrics.SLO_THRESHOLD, [one.threshold for one in self._objectives]))
            return [
                Family(spec, tuple(spec.labels), list(zip(self._labels, column, strict=True)))
                for spec, column in columns
                if column
            ]

        return families


def _identity(objective: Objective) -> str:
    """The same as long as old sums and new ones speak of the same thing; the target is no part of that."""
    segment = sorted(objective.segment.items())
    return f"{objective.name}|{objective.metric}|{objective.kind}|{objective.threshold}|{objective.good}|{segment}"


def problems(
    objectives: Sequence[Objective], measures: Iterable[Measure], segment_names: Sequence[str]
) -> list[str]:
    """Why objectives can not be measured with these measures and segments, a sentence each."""
    known = set(measures)
    found = []
    for one in objectives:
        if measure_of(one) not in known:
            names = ", ".join(sorted({m.metric for m in known if m.kind is one.kind and m.tier is not Tier.FULL}))
            found.append(
                f"estimates.objectives: {one.name!r} speaks of the {one.kind} metric {one.metric!r}, which no scorer "
                f"gives; {one.kind} metrics here: {names or 'none (configure a judge, or set kind: local)'}"
            )
        found += [
            f"estimates.objectives: {one.name!r} is limited to the segment {name!r}, which is not configured; "
            f"sampling.segments has: {', '.join(segment_names) or 'none'}"
            for name in sorted(set(one.segment) - set(segment_names))
        ]
    return found


def measure_of(objective: Objective) -> Measure:
    """The measure that an objective speaks of; of local scores the fast tier."""
    return Measure(objective.metric, objective.kind, Tier.FAST if objective.kind is Kind.LOCAL else None)
