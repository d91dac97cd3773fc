"""Which series are watched, and what is shown of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from collector.estimates.measures import Measure
from collector.estimates.options import DetectionOptions
from collector.estimates.sums import OTHER
from scorers.scorer import Kind, Tier


@dataclass(frozen=True, slots=True)
class Watched:
    """One series for people. `level` is in the metric's own scale, `evidence` M over the threshold; None while the
    baseline is learned, of which `progress` (0 to 1) says how much there is. Times are Unix seconds."""

    series: str
    metric: str
    kind: str
    segment: dict[str, str]
    state: str
    level: float | None
    given: bool
    direction: str
    evidence: float | None
    threshold: float | None
    progress: float
    baseline_n: float
    alarms: int
    alarm_since: float | None
    acknowledged: float | None


def watched(options: DetectionOptions, measures: Iterable[Measure]) -> list[Measure]:
    """The measures that the options choose: judged ones, and local ones that are named."""
    return [
        one
        for one in measures
        if (one.kind is Kind.JUDGED and (options.metrics is None or one.metric in options.metrics))
        or (one.kind is Kind.LOCAL and one.tier is Tier.FAST and one.metric in options.local)
    ]


def problems(options: DetectionOptions, measures: Sequence[Measure], segment_names: Sequence[str]) -> list[str]:
    """Why these options can not be met with these measures and segments, a sentence each."""
    found = []
    can = {
        Kind.JUDGED: {one.metric for one in measures if one.kind is Kind.JUDGED},
        Kind.LOCAL: {one.metric for one in measures if one.kind is Kind.LOCAL and one.tier is Tier.FAST},
    }
    asked = [("metrics", metric, Kind.JUDGED) for metric in options.metrics or ()]
    asked += [("local", metric, Kind.LOCAL) for metric in options.local]
    asked += [("levels", level.metric, level.kind) for level in options.levels]
    for field, metric, kind in asked:
        if metric not in can[kind]:
            names = ", ".join(sorted(can[kind])) or "none (configure a judge)"
            found.append(
                f"estimates.detection.{field}: no scorer gives the {kind} metric {metric!r}; there are: {names}"
            )
    chosen = {(one.metric, one.kind) for one in watched(options, measures)}
    for level in options.levels:
        where = f"estimates.detection.levels: {level.metric!r} ({level.kind})"
        if level.metric in can[level.kind] and (level.metric, level.kind) not in chosen:
            field = "metrics" if level.kind is Kind.JUDGED else "local"
            found.append(f"{where} has a level and is not watched: name it in estimates.detection.{field}")
        if level.segment and set(level.segment) != set(segment_names):
            found.append(
                f"{where} is limited to {', '.join(sorted(level.segment))}: name a value for each of the segments "
                f"({', '.join(segment_names) or 'none are configured'}), or none for the total"
            )
        elif level.segment and set(level.segment.values()) == {OTHER}:
            found.append(f"{where}: what is `other` is watched in the total only")
        elif level.segment and level.kind is Kind.LOCAL:
            found.append(f"{where}: local scores are watched in total only")
        elif level.segment and not options.by_segment:
            found.append(f"{where} speaks of a segment, and by_segment is false")
    return found
