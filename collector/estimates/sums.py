"""The weighted sums: what every exported number is made of.

One *series* is one measure (metric, kind, tier) in one combination of segment values. Its sums change and are read
under one lock, so a scrape never sees half of an interaction.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from collector.telemetry import metrics
from collector.telemetry.spec import Family, MetricSpec
from scorers.outcome import FailedReason, NotApplicableReason
from scorers.scorer import Kind, Tier

OTHER = "other"
"""The segment value of everything that the config does not name."""
SCORE_BOUNDS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0, math.inf)
"""Upper bounds of the distribution counters; close together where good answers lie."""
_LE = tuple("+Inf" if bound == math.inf else str(bound) for bound in SCORE_BOUNDS)
_NOT_APPLICABLE = tuple(("not_applicable", reason.value) for reason in NotApplicableReason)
_REASONS = {
    Kind.JUDGED: _NOT_APPLICABLE + tuple(("failed", reason.value) for reason in FailedReason),
    Kind.LOCAL: _NOT_APPLICABLE
    + tuple(
        ("failed", r.value) for r in (FailedReason.INCOMPLETE, FailedReason.DEADLINE, FailedReason.SCORER_ERROR)
    ),
}
"""Reasons that are born at 0 for each measure."""
_RESERVED = frozenset(
    {"metric", "kind", "tier", "outcome", "reason", "le", "quantile", "instance", "job", "window", "severity"}
)
_LABEL_CHARACTERS = 128

W, W2, WY, W2Y, W2Y2, NOT_APPLICABLE, FAILED = range(7)
"""Places in a series' list of sums; the weight of the scored is `W`."""
PLACES = 7


@dataclass(frozen=True, slots=True)
class Measure:
    """What is measured: the metric's name with the kind and (local only) the tier of the scorer."""

    metric: str
    kind: Kind
    tier: Tier | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Label values of this measure in its kind's families."""
        return (self.metric,) if self.kind is Kind.JUDGED else (self.metric, self.tier.value if self.tier else "")


@dataclass(frozen=True, slots=True)
class Term:
    """One interaction's contribution to one series. `value` is the score, None where there is none."""

    measure: Measure
    weight: float
    value: float | None
    unscored: tuple[str, str] | None = None


class Sums:
    """Five sums, outcome weights and the distribution of every series.

    `segment_names` become label names; a bad or reserved one raises ValueError. Every declared measure is born at
    0 for segment `other` at once, and for each further combination of segment values when `announce` names it.
    `folded` counts the announcements that went to `other` because of the budget.
    """

    def __init__(self, declared: Iterable[Measure], segment_names: Sequence[str], *, series_budget: int) -> None:
        self._names = tuple(segment_names)
        for name in self._names:
            if not (name.isascii() and name.isidentifier()) or name.startswith("__") or name in _RESERVED:
                raise ValueError(
                    f"segments: {name!r} can not be a Prometheus label; use ASCII letters, digits and '_', no "
                    f"digit or '__' at the start, and none of {', '.join(sorted(_RESERVED))}"
                )
        if len(set(self._names)) != len(self._names):
            raise ValueError(f"segments: a name occurs twice in {list(self._names)}; name each segment once")
        self._budget = series_budget
        self.folded = 0
        self._lock = threading.Lock()
        self._measures: list[Measure] = []
        self._sums: dict[tuple[Measure, tuple[str, ...]], list[float]] = {}
        self._judged_distribution: dict[tuple[Measure, tuple[str, ...]], list[float]] = {}
        self._local_distribution: dict[Measure, list[float]] = {}
        self._reasons: dict[Measure, dict[tuple[str, str], float]] = {}
        self._conditional: dict[tuple[str, ...], int] = {}
        self._open(tuple(OTHER for _ in self._names))
        for measure in declared:
            self.declare(measure)

    @property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(self._measures)

    @property
    def segment_names(self) -> tuple[str, ...]:
        return self._names

    @property
    def segments(self) -> tuple[tuple[str, ...], ...]:
        """Combinations of segment values that have series, `other` first."""
        with self._lock:
            return tuple(self._conditional)

    @property
    def series(self) -> int:
        """Time series that the sums take in an exposition."""
        return series_needed(self._measures, len(self._conditional))

    def declare(self, measure: Measure) -> None:
        """Give a measure its series, at 0, in every known segment; known measures are left alone."""
        if measure in self._reasons:
            return
        with self._lock:
            self._measures.append(measure)
            self._reasons[measure] = dict.fromkeys(_REASONS[measure.kind], 0.0)
            if measure.kind is Kind.LOCAL:
                self._local_distribution[measure] = [0.0] * len(_LE)
            for segment in self._conditional:
                self._birth(measure, segment)

    def _birth(self, measure: Measure, segment: tuple[str, ...]) -> None:
        self._sums[measure, segment] = [0.0] * PLACES
        if measure.kind is Kind.JUDGED:
            self._judged_distribution[measure, segment] = [0.0] * len(_LE)

    def _open(self, segment: tuple[str, ...]) -> None:
        with self._lock:
            self._conditional[segment] = 0
            for measure in self._measures:
                self._birth(measure, segment)

    def announce(self, segments: Iterable[tuple[str, str]]) -> tuple[str, ...]:
        """The key of an interaction's segment values; its series are born at 0 if they are new.

        Call it when an interaction is screened: judging takes longer than a scrape, so Prometheus sees the zeros
        first and `increase()` is exact. Over the series budget the key is that of `other`.
        """
        given = dict(segments)
        key = tuple(label_value(given.get(name, OTHER)) for name in self._names)
        if key in self._conditional:
            return key
        if series_needed(self._measures, len(self._conditional) + 1) > self._budget:
            self.folded += 1
            return tuple(OTHER for _ in self._names)
        self._open(key)
        return key

    def add(self, terms: Sequence[Term], *, segment: tuple[str, ...], conditional: bool) -> None:
        """Add one settled interaction, all its terms at once."""
        for term in terms:
            self.declare(term.measure)
        with self._lock:
            if conditional:
                self._conditional[segment] += 1
            for term in terms:
                self._add(term, segment)

    def _add(self, term: Term, segment: tuple[str, ...]) -> None:
        sums = self._sums[term.measure, segment]
        w, y = term.weight, term.value
        if y is None:
            assert term.unscored is not None
            sums[NOT_APPLICABLE if term.unscored[0] == "not_applicable" else FAILED] += w
            reasons = self._reasons[term.measure]
            reasons[term.unscored] = reasons.get(term.unscored, 0.0) + w
            return
        wy = w * y
        sums[W] += w
        sums[W2] += w * w
        sums[WY] += wy
        sums[W2Y] += w * wy
        sums[W2Y2] += wy * wy
        distribution = (
            self._judged_distribution[term.measure, segment]
            if term.measure.kind is Kind.JUDGED
            else self._local_distribution[term.measure]
        )
        for place in range(bisect_left(SCORE_BOUNDS, y), len(distribution)):
            distribution[place] += w

    def read(self, measure: Measure, segment: tuple[str, ...]) -> tuple[float, ...]:
        """The sums of one series at one moment, by the places above; KeyError where there is no such series."""
        with self._lock:
            return tuple(self._sums[measure, segment])

    def families(self) -> list[Family]:
        """Every family for a scrape, all of one moment. May be called from any thread."""
        with self._lock:
            sums = [(measure, segment, values[:]) for (measure, segment), values in self._sums.items()]
            judged = [(m.labels, s, values[:]) for (m, s), values in self._judged_distribution.items()]
            local = [(m.labels, (), values[:]) for m, values in self._local_distribution.items()]
            reasons = [(measure, dict(weights)) for measure, weights in self._reasons.items()]
            conditional = list(self._conditional.items())
        families = []
        for kind, five, outcome, unscored in (
            (Kind.JUDGED, metrics.JUDGED_SUMS, metrics.JUDGED_WEIGHT, metrics.JUDGED_UNSCORED_WEIGHT),
            (Kind.LOCAL, metrics.LOCAL_SUMS, metrics.LOCAL_WEIGHT, metrics.LOCAL_UNSCORED_WEIGHT),
        ):
            rows = [(measure.labels, segment, values) for measure, segment, values in sums if measure.kind is kind]
            for place, spec in enumerate(five):
                families.append(
                    self._family(spec, [(labels + segment, values[place]) for labels, segment, values in rows])
                )
            families.append(
                self._family(
                    outcome,
                    [
                        ((*labels, name, *segment), values[place])
                        for labels, segment, values in rows
                        for name, place in zip(metrics.OUTCOMES, (W, NOT_APPLICABLE, FAILED), strict=True)
                    ],
                )
            )
            families.append(
                self._family(
                    unscored,
                    [
                        ((*measure.labels, *reason), weight)
                        for measure, weights in reasons
                        if measure.kind is kind
                        for reason, weight in weights.items()
                    ],
                )
            )
        for spec, distributions in ((metrics.SCORE_WEIGHT, judged), (metrics.LOCAL_SCORE_WEIGHT, local)):
            families.append(
                self._family(
                    spec,
                    [
                        ((*labels, le, *segment), value)
                        for labels, segment, values in distributions
                        for le, value in zip(_LE, values, strict=True)
                    ],
                )
            )
        families.append(self._family(metrics.CONDITIONAL, [(key, float(count)) for key, count in conditional]))
        return families

    def _family(self, spec: MetricSpec, samples: list[tuple[tuple[str, ...], float]]) -> Family:
        return Family(spec, (*spec.labels, *(self._names if spec.segmented else ())), samples)


def series_needed(measures: Sequence[Measure], segments: int) -> int:
    """Time series that the sums of these measures take with so many combinations of segment values."""
    in_each = 1 + sum(5 + 3 + (len(_LE) if measure.kind is Kind.JUDGED else 0) for measure in measures)
    in_all = sum(len(_REASONS[m.kind]) + (len(_LE) if m.kind is Kind.LOCAL else 0) for m in measures)
    return in_each * segments + in_all


def label_value(value: str) -> str:
    """A segment value as a label: at most 128 characters, nothing unprintable, never empty."""
    cut = value[:_LABEL_CHARACTERS]
    return (cut if cut.isprintable() else "".join(c if c.isprintable() else "_" for c in cut)) or "unknown"
