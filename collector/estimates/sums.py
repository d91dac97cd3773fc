"""The weighted sums of every segment: what every exported number is made of.

One *series* is one measure (metric, kind, tier, fingerprint) in one combination of segment values. The caller holds
one lock while it adds an interaction and while it freezes, so a scrape never sees half of an interaction.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from collector.estimates.measures import Measure, Measures, Places, Term, controlled, label_value, moved
from collector.estimates.tally import Tally
from collector.records.diagnosis import Cause, Diagnosis
from collector.telemetry import metrics
from collector.telemetry.spec import Family, MetricSpec
from scorers.outcome import FailedReason, NotApplicableReason
from scorers.scorer import Kind

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
    {
        "metric",
        "kind",
        "tier",
        "fingerprint",
        "outcome",
        "reason",
        "le",
        "quantile",
        "instance",
        "job",
        "window",
        "level",
        "direction",
        "severity",
        "cause",
    }
)
CONDITIONAL = 0
CAUSES_AT = {Kind.LOCAL: 1, Kind.JUDGED: 1 + len(Cause)}
"""Where a segment's weights by cause begin, in the order of `Cause`."""
_CAUSE_PLACE = {cause: place for place, cause in enumerate(Cause)}
_HEAD = 1 + 2 * len(Cause)
W, W2, WY, W2Y, W2Y2, NOT_APPLICABLE, FAILED, C2, CY, CYY, N_SCORED, N_NOT_APPLICABLE, N_FAILED = range(13)
"""Places in a measure's row of sums; the weight of the scored is `W`. C are the cluster sums (judged only), N plain
counts of interactions, for windows."""
WIDTH = 13

SegmentKey = tuple[str, ...]
Later = Callable[[], list[Family]]
"""Makes families of a state that was copied before."""


def row_at(place: int) -> int:
    """Where the row of a measure begins in a segment's tally."""
    return _HEAD + place * WIDTH


class _Segment:
    __slots__ = ("bins", "tally")

    def __init__(self) -> None:
        self.tally = Tally(_HEAD)
        self.bins: list[list[float]] = []
        """Judged distributions by measure, not cumulative; empty lists for local measures."""


class Sums:
    """Five sums, cluster sums, outcome weights, causes and the distribution of every segment.

    `segment_names` become label names; a bad or reserved one raises ValueError. Every declared measure is born at
    0 for segment `other` at once, and for each further combination of segment values when `announce` names it.
    """

    def __init__(self, measures: Measures, segment_names: Sequence[str]) -> None:
        self._names = tuple(segment_names)
        for name in self._names:
            if not (name.isascii() and name.isidentifier()) or name.startswith("__") or name in _RESERVED:
                raise ValueError(
                    f"segments: {name!r} can not be a Prometheus label; use ASCII letters, digits and '_', no "
                    f"digit or '__' at the start, and none of {', '.join(sorted(_RESERVED))}"
                )
        if len(set(self._names)) != len(self._names):
            raise ValueError(f"segments: a name occurs twice in {list(self._names)}; name each segment once")
        self._measures = measures
        self._segments: dict[SegmentKey, _Segment] = {}
        self._local_bins: list[list[float]] = []
        self._reasons: list[dict[tuple[str, str], float]] = []
        self.other = tuple(OTHER for _ in self._names)
        self.open(self.other)

    @property
    def segment_names(self) -> tuple[str, ...]:
        return self._names

    @property
    def segments(self) -> tuple[SegmentKey, ...]:
        """Combinations of segment values that have series, `other` first."""
        return tuple(self._segments)

    @property
    def unforeseen(self) -> int:
        """Series of reasons that came though no scorer of their kind should give them."""
        foreseen = (len(_REASONS[measure.kind]) for measure in self._measures.all)
        return sum(len(reasons) for reasons in self._reasons) - sum(foreseen)

    def tallies(self) -> Iterator[tuple[SegmentKey, Tally]]:
        """Every segment's tally, for windows."""
        for key, segment in self._segments.items():
            yield key, segment.tally

    def declare(self) -> None:
        """Give the measure numbered last its row, at 0, in every known segment."""
        measure = self._measures.all[-1]
        self._reasons.append(dict.fromkeys(_REASONS[measure.kind], 0.0))
        self._local_bins.append([] if measure.kind is Kind.JUDGED else [0.0] * len(_LE))
        for segment in self._segments.values():
            self._birth(segment, measure)

    def _birth(self, segment: _Segment, measure: Measure) -> None:
        segment.tally.extend(WIDTH)
        segment.bins.append([0.0] * len(_LE) if measure.kind is Kind.JUDGED else [])

    def key(self, segments: Iterable[tuple[str, str]]) -> SegmentKey:
        """The label values of an interaction's segment values."""
        given = dict(segments)
        return tuple([label_value(given.get(name, OTHER)) for name in self._names])

    def known(self, key: SegmentKey) -> bool:
        return key in self._segments

    def open(self, key: SegmentKey) -> None:
        """Series at 0 for one more combination of segment values."""
        segment = self._segments[key] = _Segment()
        for measure in self._measures.all:
            self._birth(segment, measure)

    def add(self, terms: Sequence[Term], key: SegmentKey, now: float, *, conditional: bool, local: int) -> None:
        """Add the terms of one settled interaction; the first `local` of them are of local measures."""
        segment = self._segments[key]
        tally = segment.tally
        tally.touch(now)
        values = tally.values
        if conditional:
            values[CONDITIONAL] += 1
        for position, term in enumerate(terms):
            at = _HEAD + term.place * WIDTH
            w, y = term.weight, term.value
            if y is None:
                unscored = term.unscored
                assert unscored is not None
                not_applicable = unscored[0] == "not_applicable"
                values[at + (NOT_APPLICABLE if not_applicable else FAILED)] += w
                values[at + (N_NOT_APPLICABLE if not_applicable else N_FAILED)] += 1
                reasons = self._reasons[term.place]
                reasons[unscored] = reasons.get(unscored, 0.0) + w
                continue
            wy = w * y
            values[at] += w
            values[at + W2] += w * w
            values[at + WY] += wy
            values[at + W2Y] += w * wy
            values[at + W2Y2] += wy * wy
            values[at + N_SCORED] += 1
            bins = self._local_bins[term.place] if position < local else segment.bins[term.place]
            bins[bisect_left(SCORE_BOUNDS, y)] += w
            own = term.own
            if own is not None and position >= local:
                values[at + C2] += own[0]
                values[at + CY] += own[1]
                values[at + CYY] += own[2]

    def diagnose(self, key: SegmentKey, diagnosis: Diagnosis, local_weight: float, judged_weight: float) -> None:
        """Add the causes of the interaction that `add` was called with last; a weight of 0 adds nothing."""
        values = self._segments[key].tally.values
        if diagnosis.local is not None:
            values[1 + _CAUSE_PLACE[diagnosis.local]] += local_weight
        if diagnosis.judged is not None:
            values[1 + len(Cause) + _CAUSE_PLACE[diagnosis.judged]] += judged_weight

    def kept(self, key: SegmentKey) -> tuple[list[float], list[list[float]]]:
        """The sums and the distributions of one segment, for the next process."""
        return self._segments[key].tally.values, self._segments[key].bins

    def kept_of_all(self) -> tuple[list[list[float]], list[list[tuple[str, str, float]]]]:
        """The same of all segments: local distributions, and weights by reason."""
        return self._local_bins, [[(*reason, weight) for reason, weight in one.items()] for one in self._reasons]

    def go_on(
        self, key: SegmentKey, values: Sequence[float], bins: Sequence[Sequence[float]], places: Places
    ) -> None:
        """Add what an earlier process had of a segment, which is known here."""
        segment = self._segments[key]
        for at in range(min(_HEAD, len(values))):
            segment.tally.values[at] += values[at]
        moved(values, WIDTH, places, segment.tally.values, _HEAD)
        _add_bins(bins, segment.bins, places)

    def go_on_of_all(
        self,
        local_bins: Sequence[Sequence[float]],
        reasons: Sequence[Sequence[tuple[str, str, float]]],
        places: Places,
    ) -> None:
        """Add what an earlier process had of all segments together."""
        _add_bins(local_bins, self._local_bins, places)
        for one, new in zip(reasons, places, strict=False):
            if new is not None:
                known = self._reasons[new]
                for outcome, reason, weight in one:
                    known[outcome, reason] = known.get((outcome, reason), 0.0) + weight

    def freeze(self) -> Later:
        """Copies the state; what is returned may be called later, in any thread."""
        segments = [
            (key, one.tally.values[:], [bins[:] for bins in one.bins]) for key, one in self._segments.items()
        ]
        local_bins = [bins[:] for bins in self._local_bins]
        reasons = [dict(weights) for weights in self._reasons]
        measures = list(enumerate(self._measures.all))
        return lambda: self._families(measures, segments, local_bins, reasons)

    def _families(
        self,
        measures: list[tuple[int, Measure]],
        segments: list[tuple[SegmentKey, list[float], list[list[float]]]],
        local_bins: list[list[float]],
        reasons: list[dict[tuple[str, str], float]],
    ) -> list[Family]:
        families = []
        for kind, five, outcome, unscored in (
            (Kind.JUDGED, metrics.JUDGED_SUMS, metrics.JUDGED_WEIGHT, metrics.JUDGED_UNSCORED_WEIGHT),
            (Kind.LOCAL, metrics.LOCAL_SUMS, metrics.LOCAL_WEIGHT, metrics.LOCAL_UNSCORED_WEIGHT),
        ):
            of_kind = [(place, measure.labels) for place, measure in measures if measure.kind is kind]
            rows = [
                (labels, key, values, row_at(place)) for key, values, _ in segments for place, labels in of_kind
            ]
            specs = [(W + place, spec) for place, spec in enumerate(five)]
            if kind is Kind.JUDGED:
                specs += [(C2 + place, spec) for place, spec in enumerate(metrics.JUDGED_CLUSTERS)]
            for place, spec in specs:
                families.append(self._family(spec, [(labels + key, v[at + place]) for labels, key, v, at in rows]))
            families.append(
                self._family(
                    outcome,
                    [
                        ((*labels, name, *key), values[at + place])
                        for labels, key, values, at in rows
                        for name, place in zip(metrics.OUTCOMES, (W, NOT_APPLICABLE, FAILED), strict=True)
                    ],
                )
            )
            families.append(
                self._family(
                    unscored,
                    [
                        ((*labels, *reason), weight)
                        for place, labels in of_kind
                        for reason, weight in reasons[place].items()
                    ],
                )
            )
        judged = [(measures[p][1].labels, key, b) for key, _, all_ in segments for p, b in enumerate(all_) if b]
        local = [(measures[p][1].labels, (), b) for p, b in enumerate(local_bins) if b]
        for spec, distributions in ((metrics.SCORE_WEIGHT, judged), (metrics.LOCAL_SCORE_WEIGHT, local)):
            families.append(
                self._family(
                    spec,
                    [
                        ((*labels, le, *key), value)
                        for labels, key, bins in distributions
                        for le, value in zip(_LE, accumulate(bins), strict=True)
                    ],
                )
            )
        families.append(
            self._family(metrics.CONDITIONAL, [(key, values[CONDITIONAL]) for key, values, _ in segments])
        )
        families.append(
            self._family(
                metrics.DIAGNOSIS_WEIGHT,
                [
                    ((cause.value, kind.value, *key), values[first + place])
                    for key, values, _ in segments
                    for kind, first in CAUSES_AT.items()
                    for place, cause in enumerate(Cause)
                ],
            )
        )
        return families

    def _family(self, spec: MetricSpec, samples: list[tuple[tuple[str, ...], float]]) -> Family:
        return Family(spec, (*spec.labels, *(self._names if spec.segmented else ())), samples)


def _add_bins(bins: Sequence[Sequence[float]], into: list[list[float]], places: Places) -> None:
    for one, new in zip(bins, places, strict=False):  # what was written may be of fewer measures
        if new is not None and len(one) == len(into[new]):
            into[new] = [old + more for old, more in zip(into[new], one, strict=True)]


def series_needed(
    measures: Sequence[Measure],
    segments: int,
    *,
    objectives: int = 0,
    versions: int = 1,
    marks: int = 0,
    control_versions: int = 1,
) -> int:
    """Time series that the sums of these measures take.

    `segments` are combinations of segment values, `other` among them; `versions` pairs of service and version
    (`other` is one); `marks` values of change dimensions; `control_versions` versions of each fast local score.
    """
    judged = sum(measure.kind is Kind.JUDGED for measure in measures)
    local = len(measures) - judged
    in_each = _HEAD + 8 * len(measures) + (len(metrics.CLUSTER_PARTS) + len(_LE)) * judged
    in_all = sum(len(_REASONS[measure.kind]) for measure in measures)
    in_all += (len(_LE) + len(metrics.CLUSTER_PARTS)) * local + 2 * metrics.GROUPS * judged
    in_all += len(metrics.CONTROL_PARTS) * controlled(measures) * control_versions
    in_all += 5 * objectives + len(metrics.VERSION_PARTS) * len(measures) * versions + 2 * marks
    return in_each * segments + in_all
