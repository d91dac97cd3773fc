"""Change detection over all watched series: a sink of settled interactions beside the estimates."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

from collector.estimates.clusters import ClusterKeys
from collector.estimates.detect_choice import Watched, problems, watched
from collector.estimates.detect_clusters import Content, Held, OpenClusters
from collector.estimates.detect_series import VERSION, BadRow, Change, Identity, Series, State
from collector.estimates.measures import Measure, label_value
from collector.estimates.options import ClusterOptions, DetectionOptions, Level
from collector.estimates.sums import OTHER
from collector.pipeline.clock import Clock
from collector.records.decision import Fate
from collector.records.settled import Settled
from collector.telemetry import metrics
from collector.telemetry.events import Event, Events
from collector.telemetry.events import Level as Loud
from collector.telemetry.instruments import Telemetry
from collector.telemetry.spec import Family, MetricSpec
from scorers.outcome import Result, Score
from scorers.scorer import Direction, Kind

_UNREADABLE = "it is damaged, or of another version"
_ITEMS = "items"
"""The row of the number of scored items."""
_SLACK = 1 + 1e-9
_TOLD = {
    Change.WATCHED: Event("detector_watches", Loud.INFO, "the baseline is frozen and the series is watched"),
    Change.SLOW: Event(
        "detector_slow",
        Loud.WARNING,
        "weights may be so much higher than they mostly are that changes are seen late; lower "
        "sampling.upstream.max_adjusted_count, or raise the lowest probability of the sampling policies",
    ),
    Change.ALARM: Event(
        "quality_drifted",
        Loud.WARNING,
        "the mean got worse than its level; see the runbook, then `groundwatch drift ack`",
    ),
    Change.RENEWED: Event(
        "detector_renewed",
        Loud.WARNING,
        "another judge, prompt or scorer gives the scores now: evidence begins at 0, and a learned baseline anew",
    ),
}


class UnknownSeries(LookupError):
    """No watched series has this name."""


class Detection:
    """Watches means for getting worse.

    `measures` can be watched, which of them are is the options' choice; `lower` names metrics of which low is good;
    `clusters` and `seed` are those of the estimates, so that both take the same interactions as belonging together.
    Raises ValueError for options that fit none of the measures or segments.

    Its state outlives the process as a `Durable`, but for open clusters: at a stop their bets are placed early
    (`close_all`), in a crash those of the last ten minutes or so are not placed, which costs a little delay and no
    promise. A result must be settled once: whoever replays deliveries leaves out what is known. `settle`, `tick`,
    `changed` and `restore` belong to one thread; the rest may be called from any.
    """

    name = "detection"

    def __init__(
        self,
        options: DetectionOptions,
        *,
        measures: Iterable[Measure],
        lower: Collection[str],
        segment_names: Sequence[str],
        clusters: ClusterOptions,
        seed: str,
        clock: Clock,
        telemetry: Telemetry,
        events: Events,
    ) -> None:
        self._options = options
        self._names = tuple(segment_names)
        self._clock = clock
        self._events = events
        self._lower = frozenset(lower)
        self._lock = threading.Lock()
        self._keys = ClusterKeys(clusters.by, seed)
        self._open = OpenClusters(
            idle=options.cluster_idle_seconds, longest=options.cluster_max_seconds, most=options.max_clusters
        )
        self._items = 0
        known = list(dict.fromkeys(measures))
        wrong = problems(options, known, self._names)
        if wrong:
            raise ValueError("\n".join(wrong))
        self._given = {(one.metric, one.kind, self._limited(one)): one.mean for one in options.levels}
        self._watch = {(one.metric, one.kind): one for one in watched(options, known)} if options.enabled else {}
        self._any_local = any(kind is Kind.LOCAL for _, kind in self._watch)
        self._series: list[Series] = []
        self._places: dict[tuple[Measure, tuple[str, ...] | None], int] = {}
        self._dirty: set[Series] = set()
        self._unbounded = telemetry.counter(metrics.DETECTOR_UNBOUNDED)
        self._unwatched = telemetry.counter(metrics.DETECTOR_UNWATCHED)
        for measure in self._watch.values():
            self._place(measure, None)
        for level in options.levels if options.by_segment else ():
            one = self._watch.get((level.metric, level.kind))
            if one is not None:
                self._place(one, self._limited(level))

    def _limited(self, level: Level) -> tuple[str, ...] | None:
        return tuple(label_value(level.segment[name]) for name in self._names) if level.segment else None

    def _now(self) -> float:
        return self._clock.unix_nano() / 1e9

    def _place(self, measure: Measure, segment: tuple[str, ...] | None) -> int | None:
        """The number of a series; None where it would be one too many."""
        place = self._places.get((measure, segment))
        if place is not None:
            return place
        if len(self._series) >= self._options.max_series:
            return None
        identity = Identity(
            measure,
            self._names,
            segment,
            measure.metric in self._lower,
            self._given.get((measure.metric, measure.kind, segment)),
        )
        place = self._places[measure, segment] = len(self._series)
        self._series.append(Series(identity, self._options, now=self._now(), items=self._items, tell=self._tell))
        return place

    def _tell(self, series: Series, change: Change) -> None:
        told = _TOLD[change]
        fields = {"series": series.identity.name, "level": series.level and round(series.level, 4)}
        self._events.tell(Event(told.name, told.level, told.message, fields))

    # --- interactions
    def settle(self, settled: Settled) -> None:
        """Take the scores of one interaction into its cluster, and place the bets of clusters that are due."""
        decision = settled.decision
        if decision.fate is Fate.FILTERED or not self._watch:
            return
        judged = settled.judged if decision.fate is Fate.QUEUED else ()
        if not judged and not self._any_local:
            return
        upstream = decision.upstream_weight / settled.screening_probability
        highest = decision.highest_upstream_weight / settled.screening_probability
        scores = list(self._scores(judged, Kind.JUDGED))
        if self._any_local:
            scores += self._scores(settled.local, Kind.LOCAL)
        if not scores:
            return
        segment = self._segment(settled) if self._options.by_segment else None
        key, shared = self._keys.of(settled.found)
        now, now_unix = self._clock.monotonic(), self._now()
        with self._lock:
            self._close(self._open.due(now, key), now_unix)
            content: Content = self._open.of(key, now) if shared else {}
            for measure, result, y in scores:
                w, most = upstream, highest
                if measure.kind is Kind.JUDGED:
                    w /= decision.probability
                    most = most / decision.least_probability if decision.least_probability > 0 else math.inf
                w, most = w / result.probability, most / result.probability
                if not 0 < w <= most * _SLACK or most == math.inf:
                    self._unbounded.inc()
                    continue
                for where in (None,) if segment is None or measure.kind is Kind.LOCAL else (None, segment):
                    held = self._held(content, measure, where, result.fingerprint)
                    if held is not None:
                        held.add(w, y, max(w, most))
            if not shared:
                self._close([content], now_unix)

    def _scores(self, results: Iterable[Result], kind: Kind) -> Iterator[tuple[Measure, Result, float]]:
        """Watched scores, turned so that high is good; one of each metric."""
        seen = set()
        for result in results:
            measure = self._watch.get((result.scorer, kind))
            if measure is None or measure.tier is not result.tier or result.attempt or measure in seen:
                continue
            outcome = result.outcome
            if isinstance(outcome, Score) and 0 <= outcome.value <= 1:
                seen.add(measure)
                yield measure, result, 1 - outcome.value if measure.metric in self._lower else outcome.value

    def _segment(self, settled: Settled) -> tuple[str, ...] | None:
        given = dict(settled.segments)
        segment = tuple(label_value(given.get(name, OTHER)) for name in self._names)
        return None if all(value == OTHER for value in segment) else segment

    def _held(
        self, content: Content, measure: Measure, segment: tuple[str, ...] | None, fingerprint: str
    ) -> Held | None:
        """What the cluster holds for one series; None where that is one series too many."""
        place = self._place(measure, segment)
        if place is None:
            self._unwatched.inc()
            return None
        series = self._series[place]
        series.seen(fingerprint, self._now(), self._items)
        self._items += 1
        held = content.get(place)
        if held is None or held.era != series.era:
            held = content[place] = Held(series.era)
        return held

    def _close(self, contents: Iterable[Content], now: float) -> None:
        for content in contents:
            for place, held in content.items():
                series = self._series[place]
                series.close(held, now, self._items)
                self._dirty.add(series)

    def tick(self) -> None:
        """Place the bets of clusters that are due though nothing arrives; call it now and then."""
        with self._lock:
            self._close(self._open.due(self._clock.monotonic()), self._now())

    def close_all(self) -> None:
        """Place the bets of all open clusters, before the process stops."""
        with self._lock:
            self._close(self._open.all(), self._now())

    # --- what is seen of it
    def families(self) -> list[Family]:
        """Every family for a scrape, all of one moment; makes this a `Source` for the Prometheus exporter."""
        now = self._now()
        with self._lock:
            rows = [
                (
                    self._labels(one.identity),
                    one.log1p_m,
                    one.threshold if one.detector is not None else None,
                    one.level,
                    one.progress(now),
                    float(one.state is State.ALARM),
                    float(one.alarms),
                )
                for one in self._series
            ]
        specs: tuple[MetricSpec, ...] = (
            metrics.DETECTOR_LOG1P_M,
            metrics.DETECTOR_THRESHOLD,
            metrics.DETECTOR_LEVEL,
            metrics.DETECTOR_PROGRESS,
            metrics.DETECTOR_ALARM,
            metrics.DETECTOR_ALARMS,
        )
        families = []
        for at, spec in enumerate(specs, start=1):
            samples = [(row[0], value) for row in rows if isinstance(value := row[at], float)]
            families.append(Family(spec, (*spec.labels, *self._names), samples))
        return [family for family in families if family.samples]

    def _labels(self, identity: Identity) -> tuple[str, ...]:
        measure = identity.measure
        level = "total" if identity.segment is None else "segment"
        tier = str(measure.tier) if measure.tier else ""
        direction = str(Direction.LOWER_IS_BETTER if identity.lower else Direction.HIGHER_IS_BETTER)
        return (
            measure.metric,
            str(measure.kind),
            tier,
            level,
            direction,
            *(identity.segment or ("",) * len(self._names)),
        )

    def watched(self) -> list[Watched]:
        """Every series, those in alarm first, then by name."""
        now = self._now()
        with self._lock:
            shown = [self._shown(one, now) for one in self._series]
        return sorted(shown, key=lambda one: (one.alarm_since is None, one.series))

    def _shown(self, one: Series, now: float) -> Watched:
        identity, detector = one.identity, one.detector
        # The share of two logarithms' exponentials, which may each be too large for a float.
        evidence = (
            None if detector is None else min(math.exp(min(one.log1p_m - math.log1p(one.threshold), 700)), 1e9)
        )
        return Watched(
            series=identity.name,
            metric=identity.measure.metric,
            kind=str(identity.measure.kind),
            segment=dict(zip(self._names, identity.segment, strict=True)) if identity.segment is not None else {},
            state=str(one.state),
            level=one.level,
            given=identity.given is not None,
            direction=str(Direction.LOWER_IS_BETTER if identity.lower else Direction.HIGHER_IS_BETTER),
            evidence=evidence,
            threshold=None if detector is None else one.threshold,
            progress=one.progress(now),
            baseline_n=one.baseline_n,
            alarms=one.alarms,
            alarm_since=one.alarm_since,
            acknowledged=one.acknowledged,
        )

    # --- what people can do; raises UnknownSeries
    def acknowledge(self, name: str) -> Watched:
        """The alarm was seen: watch on from M = 0 with the same level."""
        with self._lock:
            series = self._named(name)
            series.acknowledge(self._now())
            return self._done(series, "acknowledged")

    def reset(self, name: str) -> Watched:
        """M = 0 with the same level, and no alarm."""
        with self._lock:
            series = self._named(name)
            series.reset()
            return self._done(series, "reset")

    def learn(self, name: str) -> Watched:
        """What is now is the new normal: a new baseline from here on."""
        with self._lock:
            series = self._named(name)
            series.learn(self._now(), self._items)
            return self._done(series, "learns anew")

    def _named(self, name: str) -> Series:
        for one in self._series:
            if one.identity.name == name:
                return one
        raise UnknownSeries(name)

    def _done(self, series: Series, what: str) -> Watched:
        self._dirty.add(series)
        self._events.tell(
            Event(
                "detector_changed_by_hand",
                Loud.INFO,
                "somebody changed what is watched",
                {"series": series.identity.name, "what": what},
            )
        )
        return self._shown(series, self._now())

    # --- what outlives the process
    def changed(self) -> Mapping[str, bytes]:
        """Rows of series that changed since the last call."""
        with self._lock:
            if not self._dirty:
                return {}
            rows = {_row_key(one): one.row() for one in self._dirty}
            rows[_ITEMS] = json.dumps({"version": VERSION, "items": self._items}).encode()
            self._dirty.clear()
        return rows

    def restore(self, rows: Mapping[str, bytes]) -> None:
        """Go on where the process before stopped. A row that can not be used is told and begins anew."""
        kept = {key: _read(row) for key, row in rows.items()}
        with self._lock:
            items = kept.pop(_ITEMS, None)
            counted = (items or {}).get("items")
            if isinstance(counted, int) and counted >= 0:
                self._items = counted
            for one in list(self._series):
                if _row_key(one) in kept:
                    self._take(one, kept.pop(_row_key(one)))
            for key, row in kept.items():
                place = self._place_of(row)
                if row is None:
                    self._unusable(key, _UNREADABLE)
                elif place is not None:
                    self._take(self._series[place], row)

    def _take(self, series: Series, row: Mapping[str, object] | None) -> None:
        if row is None:
            self._unusable(series.identity.name, _UNREADABLE)
            return
        try:
            series.take(row)
        except BadRow as error:
            self._unusable(series.identity.name, str(error))

    def _unusable(self, name: str, why: str) -> None:
        text = "the kept state of a series can not be used and it begins anew"
        self._events.tell(Event("detector_state_unusable", Loud.WARNING, text, {"series": name, "why": why}))

    def _place_of(self, row: Mapping[str, object] | None) -> int | None:
        """The series by segment that a row is of, where it is still watched: it was not met yet in this process."""
        if row is None or not self._options.by_segment or row.get("names") != list(self._names):
            return None
        segment, name = row.get("segment"), str(row.get("name", ""))
        if not isinstance(segment, list) or len(segment) != len(self._names):
            return None
        values = tuple(label_value(str(value)) for value in segment)
        for measure in self._watch.values():
            if Identity(measure, self._names, values, False, None).name == name:
                return self._place(measure, values)
        return None


def _row_key(series: Series) -> str:
    return blake2b(series.identity.name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _read(row: bytes) -> dict[str, object] | None:
    """A row's content; None where it is none of this version."""
    try:
        content = json.loads(row)
    except ValueError:
        return None
    return content if isinstance(content, dict) and content.get("version") == VERSION else None
