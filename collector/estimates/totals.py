"""What is kept of totals over all segments: cluster sums, random groups, and control variates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collector.estimates.clusters import group_of
from collector.estimates.measures import Measures, Places, Term, label_value
from collector.estimates.sums import Later
from collector.estimates.tally import Tally
from collector.telemetry import metrics
from collector.telemetry.spec import Family
from scorers.scorer import Kind

PARTS = len(metrics.CONTROL_PARTS)
"""Width of a control row, in the order of `CONTROL_PARTS`."""
MISSING_F = 0.5
"""f where the local score is unscored. Any value that is known before the decision leaves the estimate right."""
_MAX_VERSIONS = 4
"""Versions of one local score that get sums; a process has one, a few more after reloads."""


class Totals:
    """The caller holds the lock of all sums.

    A control row is of one judged measure with one version of its fast local score (its fingerprint): formulas must
    not sum over versions. Versions over the bound are left out, in whole interactions.
    """

    def __init__(self, measures: Measures) -> None:
        self._measures = measures
        self.tally = Tally(0)
        self._cluster_at: list[int] = []
        self._groups: list[list[float]] = []
        self._controls: dict[int, int] = {}
        self._rows: dict[int, dict[str, int]] = {}

    def declare(self) -> None:
        """Room for the measure numbered last."""
        judged = self._measures.all[-1].kind is Kind.JUDGED
        self._cluster_at.append(self.tally.extend(3))
        self._groups.append([0.0] * (2 * metrics.GROUPS) if judged else [])
        self._controls = self._measures.controls()
        for place, of_f in self._controls.items():
            self._rows.setdefault(place, {})
            if self._measures.all[of_f].fingerprint:
                self._row(place, self._measures.all[of_f].fingerprint)

    def clusters_at(self, place: int) -> int:
        """Where C2, CY, CYY of a measure stand in the tally."""
        return self._cluster_at[place]

    def control_at(self, place: int) -> Iterator[int]:
        """Where the control rows of a judged measure stand in the tally, one for each version."""
        yield from self._rows.get(place, {}).values()

    @property
    def control_rows(self) -> int:
        return sum(len(versions) for versions in self._rows.values())

    def add(self, local: Sequence[Term], judged: Sequence[Term], now: float, *, key: int) -> None:
        """Add one settled interaction."""
        self.tally.touch(now)
        values = self.tally.values
        for terms in (local, judged):
            for term in terms:
                if term.total is not None:
                    at = self._cluster_at[term.place]
                    c2, cy, cyy = term.total
                    values[at] += c2
                    values[at + 1] += cy
                    values[at + 2] += cyy
        if judged:
            group = group_of(key)
            for term in judged:
                if term.value is not None:
                    sums = self._groups[term.place]
                    sums[group] += term.weight
                    sums[metrics.GROUPS + group] += term.weight * term.value
        if self._controls and local:
            self._control(local, judged)

    def _control(self, local: Sequence[Term], judged: Sequence[Term]) -> None:
        screened = {term.place: term for term in local}
        answers = {term.place: term for term in judged}
        for place, of_f in self._controls.items():
            known = screened.get(of_f)
            if known is None:
                continue
            at = self._row(place, self._measures.all[of_f].fingerprint)
            if at is not None:
                _control_terms(self.tally.values, at, known, answers.get(place))

    def _row(self, place: int, version: str) -> int | None:
        rows = self._rows[place]
        at = rows.get(version)
        if at is None and len(rows) < _MAX_VERSIONS:
            at = rows[version] = self.tally.extend(PARTS)
        return at

    def kept(self) -> tuple[list[list[float]], list[list[float]], list[tuple[int, str, list[float]]]]:
        """For the next process: cluster sums and random groups by measure, and control rows by measure and version."""
        values = self.tally.values
        clusters = [values[at : at + 3] for at in self._cluster_at]
        controls = [
            (place, version, values[at : at + PARTS])
            for place, versions in self._rows.items()
            for version, at in versions.items()
        ]
        return clusters, self._groups, controls

    def go_on(
        self,
        clusters: Sequence[Sequence[float]],
        groups: Sequence[Sequence[float]],
        controls: Sequence[tuple[int, str, Sequence[float]]],
        places: Places,
    ) -> None:
        """Add what an earlier process had. Control rows over the bound of versions are left out."""
        values = self.tally.values
        for one, of_group, new in zip(clusters, groups, places, strict=False):
            if new is None:
                continue
            for part, value in enumerate(one):
                values[self._cluster_at[new] + part] += value
            if len(of_group) == len(self._groups[new]):
                self._groups[new] = [old + more for old, more in zip(self._groups[new], of_group, strict=True)]
        for old, version, sums in controls:
            place = places[old]
            at = self._row(place, version) if place is not None and place in self._rows else None
            if at is not None:
                for part, value in enumerate(sums):
                    values[at + part] += value

    def freeze(self) -> Later:
        """Copies the state; what is returned may be called later, in any thread."""
        values = self.tally.values[:]
        measures = list(enumerate(self._measures.all))
        clusters = self._cluster_at[:]
        groups = [sums[:] for sums in self._groups]
        rows = [(place, version, at) for place, versions in self._rows.items() for version, at in versions.items()]

        def families() -> list[Family]:
            local = [(m.labels, clusters[place]) for place, m in measures if m.kind is Kind.LOCAL]
            made = [
                Family(spec, tuple(spec.labels), [(labels, values[at + part]) for labels, at in local])
                for part, spec in enumerate(metrics.LOCAL_CLUSTERS)
            ]
            for part, spec in enumerate(metrics.JUDGED_GROUPS):
                made.append(
                    Family(
                        spec,
                        tuple(spec.labels),
                        [
                            ((*measure.labels, label), groups[place][part * metrics.GROUPS + number])
                            for place, measure in measures
                            if groups[place]
                            for number, label in enumerate(metrics.GROUP_LABELS)
                        ],
                    )
                )
            for part, spec in enumerate(metrics.CONTROL_SUMS):
                samples = [
                    ((*measures[place][1].labels, label_value(version)), values[at + part])
                    for place, version, at in rows
                ]
                made.append(Family(spec, tuple(spec.labels), samples))
            return made

        return families


def _control_terms(values: list[float], at: int, known: Term, answer: Term | None) -> None:
    """Add one interaction to a control row: `known` its local term, `answer` its judged one if there is any."""
    u = known.weight
    f = known.value if known.value is not None else MISSING_F
    q = u
    values[at + 5] += u
    values[at + 6] += u * f
    if answer is not None and answer.answered:
        w = answer.weight
        q = max(w - u, 0.0)
        values[at + 7] += w
        values[at + 8] += w * f
        y = answer.value
        if y is not None:
            wy, wv = w * y, w * q
            values[at] += w
            values[at + 1] += w * w
            values[at + 2] += wy
            values[at + 3] += w * wy
            values[at + 4] += wy * wy
            values[at + 9] += wv
            values[at + 10] += wv * f
            values[at + 11] += wv * y
            values[at + 12] += wv * y * f
    qf = q * f
    values[at + 13] += q * q
    values[at + 14] += q * qf
    values[at + 15] += qf * qf
