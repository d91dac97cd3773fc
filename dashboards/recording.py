"""Recording rules: from weighted counters to means with intervals, effective n and coverage.

Five-minute increases of every counter are taken each minute, of each series by itself; longer windows are sums of
those, so they cost little and stay right over restarts and any number of replicas. All rules that belong together
are in one group, so that sums of different moments never meet in a formula.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from collector.telemetry import metrics
from dashboards.burn import SHORT_WINDOWS
from dashboards.drift import drift_group
from dashboards.estimates import PROCESSES, Group, Place, control, estimate, short_estimate
from dashboards.names import (
    JUDGED,
    KINDS,
    SHORT,
    STEP,
    WINDOWS,
    Column,
    Family,
    by,
    columns,
    increase,
    series,
)
from dashboards.options import DAY, HOUR, Options

WEEK = "7d"
_OFTEN = tuple(window for window in WINDOWS if window != WEEK)
_RAW_WEEK = "7d_seldom"
_HELD = ("mean", "lower", "upper", "n_eff", "coverage", "mean_if_failed_0", "mean_if_failed_1")
"""What is read back of a week, which is computed seldom."""
_HELD_FOR_ALERTS = ("shrunk_mean", "logit_error")
OBJECTIVE_WINDOWS = {"30m": HOUR // 2, "1h": HOUR, "2h": 2 * HOUR, "6h": 6 * HOUR, "1d": DAY}
assert set(SHORT_WINDOWS) <= set(OBJECTIVE_WINDOWS.values())


def recording_rules(options: Options) -> dict[str, object]:
    """The content of `recording.yml`."""
    groups = [_facts(options)]
    for kind in KINDS:
        groups += [_often(kind, options), _week(kind, options), _hold(kind, options)]
    groups += [_objectives(options), _causes(options), *_versions(options), drift_group(options)]
    return {"groups": [group.written(options) for group in groups]}


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters whose increases and sums are recorded at one level under one kind's name."""

    group: Group
    level: str
    kind: str
    options: Options

    def increases(self, found: Iterable[Column], labels: Iterable[str]) -> None:
        """Record the five-minute increases."""
        labels = tuple(labels)
        for column in found:
            expression = increase(column.spec, self.options.time(SHORT), labels, column.matcher)
            self.group.record(series(self.level, self.kind, column.key, "increase5m"), expression)

    def sums(self, keys: Iterable[str], window: str, seconds: float | None = None) -> dict[str, str]:
        """Record one window's sums of the increases that are recorded each minute; gives names by short name."""
        length = self.options.time(seconds or WINDOWS[window.removesuffix("_seldom")])
        found = {}
        for key in keys:
            five = series(self.level, self.kind, key, "increase5m")
            name = series(self.level, self.kind, key, f"sum{window}")
            found[key] = self.group.record(name, f"sum_over_time({five}[{length}]) / {SHORT // STEP}")
        return found


def _keys(found: Iterable[Column]) -> list[str]:
    return [column.key for column in found]


def _window(group: Group, kind: Family, window: str, options: Options) -> None:
    """All of one window: sums and estimates by segment, in total, and with the control variate."""
    keep = (*options.keep, *kind.labels)
    segment = Counters(group, "segment", kind.name, options).sums(_keys(kind.columns), window)
    estimate(Place(group, "segment", kind.name, window), segment, options)
    total = {
        key: group.record(series("total", kind.name, key, f"sum{window}"), f"sum {by(keep)} ({name})")
        for key, name in segment.items()
    }
    total |= Counters(group, "total", kind.name, options).sums(_keys(kind.total_columns), window)
    if kind is JUDGED:
        groups = Counters(group, "group", kind.name, options).sums(_keys(GROUP_COLUMNS), window)
        total |= {f"group_{key}": name for key, name in groups.items()}
    place = Place(group, "total", kind.name, window)
    estimate(place, total, options)
    if kind is JUDGED:
        sums = Counters(group, "total", "control", options).sums(_keys(CONTROL_COLUMNS), window)
        control(Place(group, "total", "control", window), sums, place, options)


GROUP_COLUMNS = columns(metrics.JUDGED_GROUPS, ("w", "wy"))
CONTROL_COLUMNS = columns(metrics.CONTROL_SUMS, metrics.CONTROL_PARTS)


def _often(kind: Family, options: Options) -> Group:
    group = Group(f"groundwatch_{kind.name}", STEP)
    keep = (*options.keep, *kind.labels)
    Counters(group, "segment", kind.name, options).increases(kind.columns, (*keep, *options.segments))
    Counters(group, "total", kind.name, options).increases(kind.total_columns, keep)
    if kind is JUDGED:
        Counters(group, "group", kind.name, options).increases(GROUP_COLUMNS, (*keep, "group"))
        Counters(group, "total", "control", options).increases(CONTROL_COLUMNS, (*keep, "version"))
    for window in _OFTEN:
        _window(group, kind, window, options)
    return group


def _week(kind: Family, options: Options) -> Group:
    group = Group(f"groundwatch_{kind.name}_week", options.week_every)
    _window(group, kind, _RAW_WEEK, options)
    return group


def _hold(kind: Family, options: Options) -> Group:
    """Keep a week's estimates readable between its evaluations."""
    group = Group(f"groundwatch_{kind.name}_week_held", STEP)
    both = _HELD + _HELD_FOR_ALERTS
    places: list[tuple[str, str, tuple[str, ...]]] = [(level, kind.name, both) for level in ("segment", "total")]
    if kind is JUDGED:
        places += [("total", "combined", ("mean", "lower", "upper")), ("total", "control", ("gain",))]
        places += [("total", kind.name, ("cluster_ratio", "degrees"))]
    for level, name, held in places:
        for what in held:
            raw = series(level, name, what, _RAW_WEEK)
            group.record(
                series(level, name, what, WEEK), f"last_over_time({raw}[{options.time(1.5 * options.week_every)}])"
            )
    return group


def _objectives(options: Options) -> Group:
    """Bad share, burn rate and effective n of each objective over the windows of the burn-rate alerts."""
    group = Group("groundwatch_objectives", STEP)
    labels = (*options.keep, *metrics.SLO_WEIGHT.labels)
    parts = columns((metrics.SLO_WEIGHT, metrics.SLO_WEIGHT2, metrics.SLO_GOOD_WEIGHT), ("all", "all2", "good"))
    Counters(group, "total", "objective", options).increases(parts, labels)
    budget = group.record(
        "total:groundwatch_objective_budget", f"1 - max {by(labels)} ({metrics.SLO_TARGET.name})"
    )
    for window, seconds in OBJECTIVE_WINDOWS.items():
        place = Place(group, "total", "objective", window)
        sums = Counters(group, "total", "objective", options).sums(_keys(parts), window, seconds)
        every, every2, good = sums.values()
        place.record("n_eff", f"({every} > 0) ^ 2 / {every2}")
        bad = place.record("bad_share", f"clamp_min(1 - {good} / ({every} > 0), 0)")
        place.record("burn_rate", f"{bad} / ({budget} > 0)")
    all_month, good_month = (
        f"sum_over_time(total:groundwatch_objective_{key}:sum1d[{options.time(30 * DAY)}:{options.time(DAY)}])"
        for key in ("all", "good")
    )
    group.record(
        "total:groundwatch_objective_budget_left:30d",
        f"1 - (1 - {good_month} / ({all_month} > 0)) / ({budget} > 0) "
        f"or 1 - total:groundwatch_objective_burn_rate:1d",
    )
    return group


def _causes(options: Options) -> Group:
    """Share of interactions by cause, by segment and in total."""
    group = Group("groundwatch_causes", STEP)
    own = (*options.keep, *metrics.DIAGNOSIS_WEIGHT.labels)
    weight = (Column("weight", metrics.DIAGNOSIS_WEIGHT),)
    Counters(group, "segment", "cause", options).increases(weight, (*own, *options.segments))
    for window in _OFTEN:
        (name,) = Counters(group, "segment", "cause", options).sums(_keys(weight), window).values()
        total = group.record(series("total", "cause", "weight", f"sum{window}"), f"sum {by(own)} ({name})")
        for level, found in (("segment", name), ("total", total)):
            whole = f"ignoring (cause) group_left () (sum without (cause) ({found}) > 0)"
            group.record(series(level, "cause", "share", window), f"{found} / {whole}")
    return group


def _versions(options: Options) -> list[Group]:
    """Means by service version, to compare releases."""
    groups = []
    for kind, specs in zip(KINDS, (metrics.JUDGED_VERSIONS, metrics.LOCAL_VERSIONS), strict=True):
        group = Group(f"groundwatch_{kind.name}_versions", STEP)
        parts = columns(specs, metrics.VERSION_PARTS)
        Counters(group, "version", kind.name, options).increases(parts, (*options.keep, *specs[0].labels))
        for window in ("1h", "1d"):
            sums = Counters(group, "version", kind.name, options).sums(_keys(parts), window)
            short_estimate(Place(group, "version", kind.name, window), sums, options)
        groups.append(group)
    return groups


def _facts(options: Options) -> Group:
    """Numbers that other rules and panels refer to."""
    group = Group("groundwatch_facts", STEP)
    keep = by(options.keep)
    group.record(PROCESSES, f"count {keep} ({metrics.BUILD_INFO.name})")
    for metric, floor in sorted(options.floors.items()):
        group.record("groundwatch:mean_floor", f"vector({floor:g})", metric=metric)
    return group
