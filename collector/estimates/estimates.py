"""From settled interactions to weighted sums and windows."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence

from collector.estimates.changes import Change, Changes, Version
from collector.estimates.clusters import ClusterKeys, Clusters
from collector.estimates.diagnosis import Diagnoser
from collector.estimates.keeping import Keeper, Parts
from collector.estimates.measures import Measure, Measures, Term, ratio, term
from collector.estimates.objectives import Objectives, problems
from collector.estimates.options import Options
from collector.estimates.sums import Later, SegmentKey, Sums, series_needed
from collector.estimates.totals import PARTS, Totals
from collector.estimates.window import CauseShare, Estimate, VersionMean, Window, Windows
from collector.pipeline.clock import Clock
from collector.records.decision import Fate
from collector.records.found import Found
from collector.records.settled import Settled
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from collector.telemetry.spec import Family
from scorers.outcome import Result
from scorers.scorer import Kind


class Estimates:
    """The downstream of scoring that every number comes from.

    `declared` are the measures that the configured scorers can give, with their fingerprints where those are known;
    their series exist at 0 from the start. Scores of another fingerprint go to series of their own.
    `seed` is shared by replicas, so that they agree on the random groups. Raises ValueError for segment names that
    can not be labels and for objectives that can not be measured.
    `settle`, `announce` and `seen` belong to one thread (the event loop); `families` may be called from any. With
    `durable`, all that is a counter outlives the process, as a `Durable`.
    """

    name = "estimates"

    def __init__(
        self,
        options: Options,
        *,
        declared: Iterable[Measure],
        segment_names: Sequence[str],
        clock: Clock,
        telemetry: Telemetry,
        seed: str = "groundwatch",
        durable: bool = False,
    ) -> None:
        self._clock = clock
        self._telemetry = telemetry
        self._budget = options.series_budget
        self._lock = threading.Lock()
        self._measures = Measures()
        self._sums = Sums(self._measures, segment_names)
        self._totals = Totals(self._measures)
        self._changes = Changes(options.changes, self._measures, room=self._room, folded=self._fold)
        self._clusters = {
            Kind.JUDGED: Clusters(
                most=options.clusters.max_judged, max_age_seconds=options.clusters.max_age_seconds
            ),
            Kind.LOCAL: Clusters(
                most=options.clusters.max_local, max_age_seconds=options.clusters.max_age_seconds
            ),
        }
        self._keys = ClusterKeys(options.clusters.by, seed)
        self.diagnose = Diagnoser(options.diagnosis)
        self._noted: dict[int, float] = {}
        for measure in declared:
            self._declare(measure)
        wrong = problems(options.objectives, self._measures.all, segment_names)
        if wrong:
            raise ValueError("\n".join(wrong))
        self._objectives = Objectives(options.objectives, self._declare, segment_names)
        self._keeper: Keeper | None = None
        if durable:
            parts = Parts(
                self._measures, self._sums, self._totals, self._objectives, self._changes, self._clusters
            )
            self._keeper = Keeper(parts, clock=clock)
        self._windows = Windows(
            self._measures,
            self._sums,
            self._totals,
            self._changes,
            min_n_eff_interval=options.min_n_eff_interval,
        )
        self._settled = {
            fate: telemetry.counter(metrics.SETTLED, fate=fate) for fate in Fate if fate != "filtered"
        }
        self._segments_folded = telemetry.counter(metrics.SEGMENTS_FOLDED)
        self._evicted = {kind: telemetry.counter(metrics.CLUSTERS_EVICTED, kind=kind) for kind in Kind}
        telemetry.gauge(metrics.SERIES).set_function(lambda: float(self.series))

    def _declare(self, measure: Measure) -> int:
        known = len(self._measures.all)
        place = self._measures.add(measure)
        if place == known:
            self._make_room()
        return place

    def _make_room(self) -> None:
        for part in (self._sums, self._totals, self._changes):
            part.declare()

    def _renew(self, place: int, fingerprint: str) -> int:
        """The number of the measure whose scores come from an instrument with this fingerprint from now on."""
        known = len(self._measures.all)
        new = self._measures.renew(place, fingerprint)
        if new == known:
            self._make_room()
            self._objectives.renew(place, new)
        return new

    def _fold(self, dimension: str) -> None:
        self._telemetry.inc(metrics.CHANGES_FOLDED, dimension=dimension)

    def _room(self, more: int) -> bool:
        return self.series + more <= self._budget

    @property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(self._measures.all)

    @property
    def segments(self) -> tuple[tuple[str, ...], ...]:
        return self._sums.segments

    @property
    def series(self) -> int:
        """Time series that the sums take now."""
        return self._series(len(self._sums.segments))

    def _series(self, segments: int) -> int:
        rows = self._totals.control_rows
        return (
            PARTS * rows
            + self._sums.unforeseen
            + series_needed(
                self._measures.all,
                segments,
                objectives=len(self._objectives),
                versions=self._changes.versions,
                marks=self._changes.marks,
                control_versions=0,
            )
        )

    def families(self) -> list[Family]:
        """Every family for a scrape, all of one moment; makes this a `Source` for the Prometheus exporter."""
        return self.freeze()()

    def freeze(self) -> Later:
        """Copies the state of all families; what is returned may be called later, in any thread."""
        with self._lock:
            later = [part.freeze() for part in (self._sums, self._totals, self._objectives, self._changes)]
        return lambda: [family for families in later for family in families() if family.samples]

    def changed(self) -> Mapping[str, bytes]:
        """Rows of the sums that changed since the last call; none where they are not `durable`."""
        return self._keeper.changed() if self._keeper is not None else {}

    def restore(self, rows: Mapping[str, bytes]) -> None:
        """Go on from the sums of an earlier process. Windows begin anew. Raises UnreadableSums when some rows could not
        be read; the others have been taken over."""
        if self._keeper is None:
            return
        with self._lock:
            self._keeper.restore(
                rows,
                place=self._same_instrument,
                segment=self._opened,
            )

    def _same_instrument(self, measure: Measure) -> int | None:
        place = self._measures.place(measure.metric, measure.kind, measure.tier)
        if place is None or self._measures.all[place].fingerprint != measure.fingerprint:
            return None
        return place

    def expect(self, combinations: Iterable[Iterable[tuple[str, str]]]) -> int:
        """Give combinations of segment values that are known at the start their series, at 0, before the first scrape.

        Taken in order while half of the series budget is left for what is seen later, and no further: what does not
        occur must not take the room of what does. Gives how many found room.
        """
        opened = 0
        with self._lock:
            for segments in combinations:
                if 2 * self._series(len(self._sums.segments) + 1) > self._budget:
                    break
                key = self._sums.key(segments)
                if not self._sums.known(key):
                    self._sums.open(key)
                    opened += 1
        return opened

    def announce(self, segments: Iterable[tuple[str, str]]) -> SegmentKey:
        """The key of an interaction's segment values; its series are born at 0 if they are new.

        Call it when an interaction is screened: judging takes longer than a scrape, so Prometheus sees the zeros
        first and `increase()` is exact. Over the series budget the key is that of `other`.
        """
        with self._lock:
            return self._announce(segments)

    def _announce(self, segments: Iterable[tuple[str, str]]) -> SegmentKey:
        return self._opened(self._sums.key(segments))

    def _opened(self, key: SegmentKey) -> SegmentKey:
        if self._sums.known(key):
            return key
        if self._series(len(self._sums.segments) + 1) > self._budget:
            self._segments_folded.inc()
            return self._sums.other
        self._sums.open(key)
        if self._keeper is not None:
            self._keeper.touch(key)
        return key

    def seen(self, found: Found) -> None:
        """An interaction was screened: its release, model and prompt are noted, and its release has sums at 0."""
        with self._lock:
            self._changes.seen(found, self._clock.unix_nano() / 1e9)

    def settle(self, settled: Settled) -> None:
        """Add one interaction at its settlement: sampled out, shed, answered or failed.

        Local results weigh u / screening probability, judged ones that / inclusion probability. *Not applicable*
        leaves the domain, *failed* counts against coverage. A filtered interaction is in no estimate.
        """
        decision = settled.decision
        if decision.fate is Fate.FILTERED:
            return
        self._settled[decision.fate].inc()
        now, now_unix = self._clock.monotonic(), self._clock.unix_nano() / 1e9
        local_weight = ratio(decision.upstream_weight, settled.screening_probability)
        judged_weight = ratio(local_weight, decision.probability) if decision.fate is Fate.QUEUED else 0.0
        diagnosis = settled.diagnosis or self.diagnose(settled)
        found = settled.found
        key, shared = self._keys.of(found)
        local_clusters, judged_clusters = self._clusters[Kind.LOCAL], self._clusters[Kind.JUDGED]
        evicted = local_clusters.evicted, judged_clusters.evicted
        with self._lock:
            local = self._terms(settled.local, local_weight, now_unix)
            judged: list[Term] = []
            if settled.judged and decision.fate is Fate.QUEUED:
                judged = self._terms(settled.judged, judged_weight, now_unix)
            segment = self._announce(settled.segments)
            version: Version = self._changes.seen(found, now_unix)
            local_clusters.add(local, key, (), now, shared=shared)
            terms = local
            if judged:
                judged_clusters.add(judged, key, segment, now, shared=shared)
                terms = local + judged
            self._sums.add(terms, segment, now, conditional=decision.conditional, local=len(local))
            self._sums.diagnose(segment, diagnosis, _positive(local_weight), _positive(judged_weight))
            self._totals.add(local, judged, now, key=key)
            self._objectives.add(terms, segment)
            self._changes.add(terms, version, now)
            if self._keeper is not None:
                self._keeper.touch(segment)
        if (local_clusters.evicted, judged_clusters.evicted) != evicted:
            self._evicted[Kind.LOCAL].inc(local_clusters.evicted - evicted[0])
            self._evicted[Kind.JUDGED].inc(judged_clusters.evicted - evicted[1])

    def _terms(self, results: Sequence[Result], weight: float, now_unix: float) -> list[Term]:
        terms: dict[int, Term] = {}
        usable = 0 < weight < math.inf
        for result in results:
            if not usable:
                self._telemetry.inc(metrics.ESTIMATES_IGNORED, reason="weight")
                continue
            if result.attempt:
                self._telemetry.inc(metrics.ESTIMATES_IGNORED, reason="attempt")
                continue
            place = self._measures.place(result.scorer, result.kind, result.tier)
            if place is None:
                place = self._declare(Measure(result.scorer, result.kind, result.tier))
            if place in terms:
                self._telemetry.inc(metrics.ESTIMATES_IGNORED, reason="duplicate")
                continue
            own = weight if result.probability == 1 else ratio(weight, result.probability)
            made = term(place, own, result)
            # What is unscored may not come from the scorer itself: its fingerprint names no instrument.
            if made.value is not None:
                if result.fingerprint != self._measures.all[place].fingerprint:
                    place = made.place = self._renew(place, result.fingerprint)
                if self._noted.get(place, -math.inf) < now_unix - 1:
                    self._show_instrument(place, result, now_unix)
            terms[place] = made
        return list(terms.values())

    def _show_instrument(self, place: int, result: Result, now_unix: float) -> None:
        self._changes.instrument(place, result.fingerprint, now_unix)
        known = place in self._noted
        self._noted[place] = now_unix
        if known:
            return
        measure = self._measures.all[place]
        self._telemetry.set(
            metrics.SCORER_INFO,
            1,
            metric=measure.metric,
            kind=measure.kind,
            tier=measure.tier or "",
            version=result.version,
            fingerprint=result.fingerprint,
        )

    def estimate(self, measure: Measure, window: Window, segment: tuple[str, ...] | None = None) -> Estimate:
        """The estimate of one measure now, of all segments together where `segment` is None."""
        place = self._measures.place(measure.metric, measure.kind, measure.tier)
        if place is None:
            raise KeyError(measure)
        (found,) = self._windows.estimates(self._clock.monotonic(), window, places=[place], segment=segment)
        return found

    def all(self, window: Window) -> list[Estimate]:
        """Every measure's estimate: the total first, then each segment that had an interaction in the window."""
        places = range(len(self._measures.all))
        each = bool(self._sums.segment_names)
        return self._windows.estimates(self._clock.monotonic(), window, places=places, each=each)

    def causes(self, window: Window, segment: tuple[str, ...] | None = None) -> list[CauseShare]:
        """Share of interactions by cause: by the judge's scores, then by local ones."""
        return self._windows.causes(self._clock.monotonic(), window, segment)

    def versions(self, window: Window) -> list[VersionMean]:
        """Means by service version."""
        return self._windows.versions(self._clock.monotonic(), window)

    def changes(self) -> list[Change]:
        """The last values of each change dimension, with the times at which they were first and last seen."""
        return self._changes.all()


def _positive(weight: float) -> float:
    return weight if 0 < weight < math.inf else 0.0
