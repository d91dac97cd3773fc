"""Estimates over the last minutes, hour or day, for the status page and the demo. Prometheus keeps its own windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collector.estimates.changes import Changes, Version
from collector.estimates.measures import Measure, Measures
from collector.estimates.sums import (
    C2,
    CAUSES_AT,
    CONDITIONAL,
    CY,
    CYY,
    FAILED,
    N_FAILED,
    N_NOT_APPLICABLE,
    N_SCORED,
    W2,
    W2Y,
    W2Y2,
    WIDTH,
    WY,
    SegmentKey,
    Sums,
    W,
    row_at,
)
from collector.estimates.tally import Window
from collector.estimates.totals import PARTS, Totals
from collector.records.diagnosis import Cause
from collector.stats.control import Controlled, ControlSums, controlled_interval
from collector.stats.interval import Floats, cluster_ratio, coverage, logit_interval, missing_bounds
from collector.telemetry.metrics import CONTROL_PARTS
from scorers.scorer import Kind

Wanted = tuple[int, SegmentKey | None]
"""A measure's number in one segment, or (None) in all segments together."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of one measure over one window; `segment` is None for the total over all segments.

    `mean` is None where nothing was scored; `lower` and `upper` are None below the effective number of answers
    from which an interval is drawn. `coverage` is the scored share of the domain by weight, None where the domain
    is empty; `if_failed_0` and `if_failed_1` are the mean had every failed interaction scored 0 or 1.
    `conditional` is true where upstream sampling of some of it is unknown. Counts are interactions, unweighted.

    Interval and effective n take the interactions of one session, or of one repeated question, as belonging
    together (judged ones, and local totals); `cluster_ratio` is the variance so computed over that of as many
    unrelated ones, None where there is none. `gain` says how many times more judged answers the same interval would
    take without the local score as a control (judged totals only); where `controlled`, mean and interval use it, and
    `plain_mean` is the judged-only mean.
    """

    measure: Measure
    segment: tuple[str, ...] | None
    window: Window
    mean: float | None
    lower: float | None
    upper: float | None
    n_eff: float
    coverage: float | None
    if_failed_0: float | None
    if_failed_1: float | None
    scored: int
    not_applicable: int
    failed: int
    conditional: bool
    plain_mean: float | None = None
    cluster_ratio: float | None = None
    gain: float | None = None
    controlled: bool = False


@dataclass(frozen=True, slots=True)
class CauseShare:
    """The share, by weight, of one cause among the interactions of the window; `kind` says whose scores tell."""

    cause: Cause
    kind: Kind
    share: float
    weight: float


@dataclass(frozen=True, slots=True)
class VersionMean:
    """One measure's mean of one service version over a window, with the interval of single interactions."""

    service: str
    version: str
    measure: Measure
    mean: float
    lower: float | None
    upper: float | None
    n_eff: float


class Windows:
    """Reads the tallies; lives on the thread that adds to them."""

    def __init__(
        self, measures: Measures, sums: Sums, totals: Totals, changes: Changes, *, min_n_eff_interval: float
    ) -> None:
        self._measures = measures
        self._sums = sums
        self._totals = totals
        self._changes = changes
        self._min_n_eff = min_n_eff_interval

    def estimates(
        self,
        now: float,
        window: Window,
        *,
        places: Sequence[int],
        segment: SegmentKey | None = None,
        each: bool = False,
    ) -> list[Estimate]:
        """Estimates of these measures in one segment (None: in all together); with `each` also in each segment
        that had an interaction in the window. All computed together."""
        growth = {key: tally.growth(now, window) for key, tally in self._sums.tallies()}
        together: Floats = np.sum(list(growth.values()), axis=0)
        totals = self._totals.tally.growth(now, window)
        rows: list[Floats] = []
        wanted: list[Wanted] = []
        for place in places:
            at = row_at(place)
            if segment is None:
                row = together[at : at + WIDTH].copy()
                clusters = self._totals.clusters_at(place)
                row[C2 : CYY + 1] = totals[clusters : clusters + 3]
                rows.append(row)
                wanted.append((place, None))
            for key, grown in growth.items() if each or segment is not None else ():
                row = grown[at : at + WIDTH]
                if key == segment if segment is not None else row[N_SCORED:].any():
                    rows.append(row)
                    wanted.append((place, key))
        if segment is not None and not rows:
            rows = [np.zeros(WIDTH) for _ in places]
            wanted = [(place, segment) for place in places]
        conditional = {key: bool(grown[CONDITIONAL]) for key, grown in growth.items()}
        return self._made(window, np.array(rows), wanted, totals, conditional) if rows else []

    def _made(
        self,
        window: Window,
        rows: Floats,
        wanted: Sequence[Wanted],
        totals: Floats,
        conditional: dict[SegmentKey, bool],
    ) -> list[Estimate]:
        at = rows.T
        five = (at[W], at[W2], at[WY], at[W2Y], at[W2Y2])
        # Where no cluster sums are kept (local scores by segment) items stand for themselves.
        own = at[C2] > 0
        clusters = tuple(np.where(own, at[c], at[item]) for c, item in ((C2, W2), (CY, W2Y), (CYY, W2Y2)))
        interval = logit_interval(*five, clusters=clusters)
        apart = cluster_ratio(*five, clusters=clusters)
        covered = coverage(at[W], at[FAILED])
        at_0, at_1 = missing_bounds(at[W], at[FAILED], at[WY])
        found = []
        for number, (place, segment) in enumerate(wanted):
            row = rows[number]
            mean, lower, upper = interval.mean[number], interval.lower[number], interval.upper[number]
            controlled = None
            if segment is None and row[N_SCORED]:
                controlled = self._controlled(place, totals, (row[C2], row[CY], row[CYY]))
            use = controlled is not None and bool(controlled.usable)
            if use and controlled is not None:
                mean, lower, upper = controlled.mean, controlled.lower, controlled.upper
            drawn = interval.n_eff[number] >= self._min_n_eff
            found.append(
                Estimate(
                    measure=self._measures.all[place],
                    segment=segment,
                    window=window,
                    mean=_known(mean),
                    lower=_known(lower) if drawn else None,
                    upper=_known(upper) if drawn else None,
                    n_eff=float(interval.n_eff[number]),
                    coverage=_known(covered[number]),
                    if_failed_0=_known(at_0[number]),
                    if_failed_1=_known(at_1[number]),
                    scored=int(row[N_SCORED]),
                    not_applicable=int(row[N_NOT_APPLICABLE]),
                    failed=int(row[N_FAILED]),
                    conditional=any(conditional.values()) if segment is None else conditional.get(segment, False),
                    plain_mean=_known(interval.mean[number]),
                    cluster_ratio=_known(apart[number]) if own[number] and drawn else None,
                    gain=_known(controlled.gain) if controlled is not None and drawn else None,
                    controlled=use,
                )
            )
        return found

    def _controlled(self, place: int, totals: Floats, clusters: tuple[float, float, float]) -> Controlled | None:
        """The controlled estimate, where all judged answers of the window have one version of the local score."""
        rows = [row for at in self._totals.control_at(place) if (row := totals[at : at + PARTS])[0] > 0]
        if len(rows) != 1:
            return None
        return controlled_interval(
            ControlSums(**dict(zip(CONTROL_PARTS, map(float, rows[0]), strict=True))), clusters=clusters
        )

    def causes(self, now: float, window: Window, segment: SegmentKey | None = None) -> list[CauseShare]:
        """Share by cause, judged first, of one segment or (None) of all; causes that did not occur are left out."""
        grown = [
            tally.growth(now, window)[: row_at(0)]
            for key, tally in self._sums.tallies()
            if segment is None or key == segment
        ]
        if not grown:
            return []
        heads: Floats = np.sum(grown, axis=0)
        found = []
        for kind in (Kind.JUDGED, Kind.LOCAL):
            weights = heads[CAUSES_AT[kind] : CAUSES_AT[kind] + len(Cause)]
            total = float(weights.sum())
            found += [
                CauseShare(cause, kind, float(weight) / total, float(weight))
                for cause, weight in zip(Cause, weights, strict=True)
                if weight > 0
            ]
        return found

    def versions(self, now: float, window: Window) -> list[VersionMean]:
        """Means by service version of what was scored in the window."""
        found = []
        width = 5
        for (service, version), tally in self._changes.tallies():
            rows = tally.growth(now, window).reshape(-1, width)
            interval = logit_interval(*rows.T)
            for place in np.flatnonzero(rows[:, W] > 0):
                drawn = interval.n_eff[place] >= self._min_n_eff
                found.append(
                    VersionMean(
                        service,
                        version,
                        self._measures.all[place],
                        float(interval.mean[place]),
                        float(interval.lower[place]) if drawn else None,
                        float(interval.upper[place]) if drawn else None,
                        float(interval.n_eff[place]),
                    )
                )
        return found


def _known(value: float | Floats) -> float | None:
    return None if math.isnan(value) else float(value)


__all__ = ["CauseShare", "Estimate", "Version", "VersionMean", "Window", "Windows"]
