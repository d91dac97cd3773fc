"""Sums over the last minutes, hours or day, for the status page and the demo. Prometheus keeps its own windows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from collector.estimates.sums import FAILED, NOT_APPLICABLE, PLACES, W2, W2Y, W2Y2, WY, Measure, Term, W
from collector.stats.interval import coverage, logit_interval, missing_bounds

_COUNT_SCORED, _COUNT_NOT_APPLICABLE, _COUNT_FAILED = range(PLACES, PLACES + 3)
_WIDTH = PLACES + 3


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

    def total(self, now: float, seconds: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        first = int(now // self._width) - seconds // self._width
        rows = [row for bucket, row in self._buckets.items() if bucket >= first]
        return np.sum(rows, axis=0) if rows else np.zeros(_WIDTH)


class Windows:
    """Rings for every series: an hour in minutes, a day in quarters of an hour (at most 158 buckets a series)."""

    def __init__(self, *, min_n_eff_interval: float) -> None:
        self._min_n_eff = min_n_eff_interval
        self._rings: dict[tuple[Measure, tuple[str, ...]], tuple[Ring, Ring]] = {}
        self._conditional: dict[tuple[str, ...], float] = {}

    def add(self, now: float, terms: list[Term], *, segment: tuple[str, ...], conditional: bool) -> None:
        """Add one settled interaction; `now` in seconds of the injected monotonic clock."""
        if conditional:
            self._conditional[segment] = now
        for term in terms:
            key = (term.measure, segment)
            rings = self._rings.get(key)
            if rings is None:
                rings = self._rings[key] = (
                    Ring(width_seconds=60, length_seconds=Window.HOUR.seconds),
                    Ring(width_seconds=900, length_seconds=Window.DAY.seconds),
                )
            for ring in rings:
                ring.add(now, term)

    def estimate(self, now: float, measure: Measure, segment: tuple[str, ...] | None, window: Window) -> Estimate:
        """The estimate at `now`; of all segments together where `segment` is None."""
        which = 0 if window.value[1] == 60 else 1
        rows = [
            rings[which].total(now, window.seconds)
            for (held, at), rings in self._rings.items()
            if held == measure and (segment is None or at == segment)
        ]
        row = np.sum(rows, axis=0) if rows else np.zeros(_WIDTH)
        interval = logit_interval(row[W], row[W2], row[WY], row[W2Y], row[W2Y2])
        drawn = interval.n_eff >= self._min_n_eff
        at_0, at_1 = missing_bounds(row[W], row[FAILED], row[WY])
        return Estimate(
            measure=measure,
            segment=segment,
            window=window,
            mean=_known(interval.mean),
            lower=_known(interval.lower) if drawn else None,
            upper=_known(interval.upper) if drawn else None,
            n_eff=float(interval.n_eff),
            coverage=_known(coverage(row[W], row[FAILED])),
            if_failed_0=_known(at_0),
            if_failed_1=_known(at_1),
            scored=int(row[_COUNT_SCORED]),
            not_applicable=int(row[_COUNT_NOT_APPLICABLE]),
            failed=int(row[_COUNT_FAILED]),
            conditional=any(
                now - at <= window.seconds
                for key, at in self._conditional.items()
                if segment is None or key == segment
            ),
        )


def _known(value: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float | None:
    number = float(value)
    return None if np.isnan(number) else number
