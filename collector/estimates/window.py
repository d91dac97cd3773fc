"""Sums over the last minutes, hours or day, for the status page and the demo. Prometheus keeps its own windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from collector.estimates.sums import FAILED, NOT_APPLICABLE, PLACES, W2, W2Y, W2Y2, WY, Measure, Term, W
from collector.stats.interval import Floats, coverage, logit_interval, missing_bounds

_COUNT_SCORED, _COUNT_NOT_APPLICABLE, _COUNT_FAILED = range(PLACES, PLACES + 3)
_WIDTH = PLACES + 3

Wanted = tuple[Measure, tuple[str, ...] | None]
"""A measure in one segment, or (None) in all segments together."""


class Window(Enum):
    """A length in seconds, and the width in seconds of the buckets it is made of.

    A window is its whole buckets and the current one, so it is longer than its name by up to one bucket.
    """

    FIVE_MINUTES = (300, 60)
    HOUR = (3_600, 60)
    DAY = (86_400, 900)

    @property
    def seconds(self) -> int:
        return self.value[0]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of one measure over one window; `segment` is None for the total over all segments.

    `mean` is None where nothing was scored; `lower` and `upper` are None below the effective number of answers
    from which an interval is drawn. `coverage` is the scored share of the domain by weight, None where the domain
    is empty; `if_failed_0` and `if_failed_1` are the mean had every failed interaction scored 0 or 1.
    `conditional` is true where upstream sampling of some of it is unknown. Counts are interactions, unweighted.
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


class Ring:
    """Buckets of one width; a bucket is made when something falls into it, so a quiet series takes no memory."""

    __slots__ = ("_buckets", "_keep", "_width")

    def __init__(self, *, width_seconds: int, length_seconds: int) -> None:
        self._width = width_seconds
        self._keep = length_seconds // width_seconds + 1
        self._buckets: dict[int, list[float]] = {}

    def add(self, now: float, term: Term) -> None:
        bucket = int(now // self._width)
        row = self._buckets.get(bucket)
        if row is None:
            for old in [key for key in self._buckets if key <= bucket - self._keep]:
                del self._buckets[old]
            row = self._buckets[bucket] = [0.0] * _WIDTH
        w, y = term.weight, term.value
        if y is not None:
            wy = w * y
            row[W] += w
            row[W2] += w * w
            row[WY] += wy
            row[W2Y] += w * wy
            row[W2Y2] += wy * wy
            row[_COUNT_SCORED] += 1
        elif term.unscored is not None and term.unscored[0] == "not_applicable":
            row[NOT_APPLICABLE] += w
            row[_COUNT_NOT_APPLICABLE] += 1
        else:
            row[FAILED] += w
            row[_COUNT_FAILED] += 1

    def rows(self, now: float, seconds: int) -> list[list[float]]:
        """The buckets of the last `seconds`."""
        first = int(now // self._width) - seconds // self._width
        return [row for bucket, row in self._buckets.items() if bucket >= first]


class Windows:
    """Rings for every series: an hour in minutes, a day in quarters of an hour (at most 158 buckets a series)."""

    def __init__(self, *, min_n_eff_interval: float) -> None:
        self._min_n_eff = min_n_eff_interval
        self._rings: dict[Measure, dict[tuple[str, ...], tuple[Ring, Ring]]] = {}
        self._conditional: dict[tuple[str, ...], float] = {}

    def add(self, now: float, terms: list[Term], *, segment: tuple[str, ...], conditional: bool) -> None:
        """Add one settled interaction; `now` in seconds of the injected monotonic clock."""
        if conditional:
            self._conditional[segment] = now
        for term in terms:
            by_segment = self._rings.setdefault(term.measure, {})
            rings = by_segment.get(segment)
            if rings is None:
                rings = by_segment[segment] = (
                    Ring(width_seconds=60, length_seconds=Window.HOUR.seconds),
                    Ring(width_seconds=900, length_seconds=Window.DAY.seconds),
                )
            for ring in rings:
                ring.add(now, term)

    def estimates(self, now: float, wanted: Sequence[Wanted], window: Window) -> list[Estimate]:
        """The estimates of the series wanted at `now`, all computed together."""
        if not wanted:
            return []
        rows = np.array([self._row(now, measure, segment, window) for measure, segment in wanted])
        at = rows.T
        interval = logit_interval(at[W], at[W2], at[WY], at[W2Y], at[W2Y2])
        covered = coverage(at[W], at[FAILED])
        at_0, at_1 = missing_bounds(at[W], at[FAILED], at[WY])
        found = []
        for place, (measure, segment) in enumerate(wanted):
            drawn = interval.n_eff[place] >= self._min_n_eff
            found.append(
                Estimate(
                    measure=measure,
                    segment=segment,
                    window=window,
                    mean=_known(interval.mean[place]),
                    lower=_known(interval.lower[place]) if drawn else None,
                    upper=_known(interval.upper[place]) if drawn else None,
                    n_eff=float(interval.n_eff[place]),
                    coverage=_known(covered[place]),
                    if_failed_0=_known(at_0[place]),
                    if_failed_1=_known(at_1[place]),
                    scored=int(rows[place, _COUNT_SCORED]),
                    not_applicable=int(rows[place, _COUNT_NOT_APPLICABLE]),
                    failed=int(rows[place, _COUNT_FAILED]),
                    conditional=self._is_conditional(now, segment, window),
                )
            )
        return found

    def _row(self, now: float, measure: Measure, segment: tuple[str, ...] | None, window: Window) -> Floats:
        which = 0 if window.value[1] == 60 else 1
        by_segment = self._rings.get(measure, {})
        chosen = by_segment.values() if segment is None else filter(None, [by_segment.get(segment)])
        rows = [row for rings in chosen for row in rings[which].rows(now, window.seconds)]
        return np.sum(rows, axis=0) if rows else np.zeros(_WIDTH)

    def _is_conditional(self, now: float, segment: tuple[str, ...] | None, window: Window) -> bool:
        return any(
            now - at <= window.seconds and (segment is None or key == segment)
            for key, at in self._conditional.items()
        )

    def segments(self, measure: Measure) -> tuple[tuple[str, ...], ...]:
        """Segments in which something of this measure was settled."""
        return tuple(self._rings.get(measure, {}))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
