"""Reads scores off the sidecar's `/metrics`, as a Prometheus would, and makes windowed estimates of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from prometheus_client.parser import text_string_to_metric_families

from collector.stats.interval import coverage, logit_interval
from collector.telemetry import metrics

Key = tuple[str, str, str]
"""Metric, kind (judged, local), tier (empty where judged)."""
Sums = NDArray[np.float64]

_SUMS = {
    spec.name: (kind, place)
    for kind, specs in (
        ("judged", (*metrics.JUDGED_SUMS, *metrics.JUDGED_CLUSTERS)),
        ("local", (*metrics.LOCAL_SUMS, *metrics.LOCAL_CLUSTERS)),
    )
    for place, spec in enumerate(specs)
}
_OUTCOMES = {metrics.JUDGED_WEIGHT.name: "judged", metrics.LOCAL_WEIGHT.name: "local"}
_FIRST_OUTCOME = 8
_PLACES = 11
"""The five sums, the three cluster sums, then the weights of scored, not applicable, failed."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The counters at one moment, added up over segments."""

    sums: dict[Key, Sums] = field(default_factory=dict)
    found: float = 0.0
    fates: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Estimate:
    """One metric between two snapshots, with the interval and effective n that the status page would give for the
    same time. `mean`, `lower`, `upper` are NaN where nothing was scored."""

    key: Key
    mean: float
    lower: float
    upper: float
    n_eff: float
    coverage: float
    not_applicable: float

    @property
    def label(self) -> str:
        metric, kind, tier = self.key
        return f"{metric} ({kind}{', ' + tier if tier else ''})"


def read(exposition: str) -> Snapshot:
    """A snapshot from the text format. Raises ValueError when it is no exposition."""
    sums: dict[Key, Sums] = {}
    fates: Counter[str] = Counter()
    found = 0.0
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            name, labels = sample.name, sample.labels
            if name in _SUMS:
                kind, place = _SUMS[name]
            elif name in _OUTCOMES:
                kind, place = _OUTCOMES[name], _FIRST_OUTCOME + metrics.OUTCOMES.index(labels["outcome"])
            else:
                if name == metrics.INTERACTIONS_FOUND.name:
                    found += sample.value
                elif name == metrics.INTERACTIONS.name:
                    fates[labels["fate"]] += int(sample.value)
                continue
            key = (labels["metric"], kind, labels.get("tier", ""))
            sums.setdefault(key, np.zeros(_PLACES))[place] += sample.value
    return Snapshot(sums, found, fates)


def between(earlier: Snapshot, later: Snapshot) -> list[Estimate]:
    """What was measured between two snapshots; metrics for which nothing came are left out."""
    return [
        estimate
        for key, sums in sorted(later.sums.items())
        if (estimate := _estimate(key, sums - earlier.sums.get(key, np.zeros(_PLACES)))) is not None
    ]


def _estimate(key: Key, sums: Sums) -> Estimate | None:
    w, w2, wy, w2y, w2y2, c2, cy, cyy, scored, not_applicable, failed = (float(value) for value in sums)
    if scored + not_applicable + failed <= 0:
        return None
    # As on the page: a rider's questions of one session, and one question asked by many, count as one. Where no
    # cluster sums are told, each interaction stands for itself.
    interval = logit_interval(w, w2, wy, w2y, w2y2, clusters=(c2, cy, cyy) if c2 > 0 else None)
    return Estimate(
        key=key,
        mean=float(interval.mean),
        lower=float(interval.lower),
        upper=float(interval.upper),
        n_eff=float(interval.n_eff),
        coverage=float(coverage(scored, failed)),
        not_applicable=not_applicable,
    )


def moved(before: Iterable[Estimate], after: Iterable[Estimate]) -> list[tuple[Estimate, Estimate]]:
    """Pairs whose 95 % intervals do not overlap, the largest change first."""
    was = {estimate.key: estimate for estimate in before}
    pairs = [(was[estimate.key], estimate) for estimate in after if estimate.key in was]
    apart = [
        (old, new)
        for old, new in pairs
        if not math.isnan(old.mean + new.mean) and (new.upper < old.lower or new.lower > old.upper)
    ]
    return sorted(apart, key=lambda pair: -abs(pair[0].mean - pair[1].mean))
