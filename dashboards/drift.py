"""Change detection in Prometheus: evidence summed over replicas, and whether the interval lies beyond the level.

Each process exports ln(1 + M) and its own threshold A. M - n is a supermartingale in each of them while its mean is
not worse than its level, so the sum over processes is one too, and the sum of thresholds bounds the false alarms of all
together (`collector/stats/detector.py`).
"""

from __future__ import annotations

from collector.telemetry import metrics
from collector.telemetry.spec import MetricSpec
from dashboards.estimates import Group
from dashboards.names import JUDGED, KINDS, LOCAL, STEP, WINDOWS, by, select, series
from dashboards.options import Options

WATCHED = ((JUDGED.name, "segment"), (JUDGED.name, "total"), (LOCAL.name, "total"))
"""Kinds and levels that the sidecars watch: local scores in total only."""
_LABELS = {kind.name: tuple(label for label in kind.labels if label != "fingerprint") for kind in KINDS}
"""Detectors know the fingerprint and learn anew with another, so that they are of what measures now."""
_WEEK, _DAY = "7d", "1d"


def evidence(level: str) -> str:
    """The recorded sum of M over replicas, over the sum of their thresholds: an alarm from 1 on."""
    return f"{level}:groundwatch_detector_evidence"


def watched_level(level: str) -> str:
    """The recorded level that the mean must not be worse than."""
    return f"{level}:groundwatch_detector_level"


def beyond(kind: str, level: str) -> str:
    """The recorded near end of an interval that lies beyond the level as a whole; absent where none does."""
    return f"{level}:groundwatch_{kind}_beyond_level"


def drift_group(options: Options) -> Group:
    """The recording rules. A process that still learns has no threshold, and its M is 0."""
    group = Group("groundwatch_detector", STEP)
    for level in ("segment", "total"):
        labels = (
            *options.keep,
            "metric",
            "kind",
            "tier",
            "direction",
            *(options.segments if level == "segment" else ()),
        )

        def of(spec: MetricSpec, level: str = level) -> str:
            return select(spec, f'level="{level}"')

        threshold = f"sum {by(labels)} ({of(metrics.DETECTOR_THRESHOLD)})"
        group.record(evidence(level), f"sum {by(labels)} (exp({of(metrics.DETECTOR_LOG1P_M)}) - 1) / {threshold}")
        group.record(watched_level(level), f"avg {by(labels)} ({of(metrics.DETECTOR_LEVEL)})")
    for kind, level in WATCHED:
        worse = [_beyond(kind, level, low_is_good=low_is_good, options=options) for low_is_good in (False, True)]
        group.record(beyond(kind, level), " or ".join(one for found in worse for one in found))
    return group


def on(kind: str, level: str, options: Options) -> str:
    """How recorded estimates of a kind are matched with what is recorded here."""
    labels = (*options.keep, *_LABELS[kind], *(options.segments if level == "segment" else ()))
    return f"on ({', '.join(labels)})"


def _beyond(kind: str, level: str, *, low_is_good: bool, options: Options) -> list[str]:
    """A condition for each window, from enough answers. A week counts only where a day has too few, so that what is
    mended does not alarm for a week."""
    end, sign, direction = ("lower", ">", "lower") if low_is_good else ("upper", "<", "higher")
    watched = f'{watched_level(level)}{{kind="{kind}", direction="{direction}"}}'
    found = []
    for window in WINDOWS:

        def of(what: str, window: str = window) -> str:
            return series(level, kind, what, window)

        compared = f"{of(end)} {sign} {on(kind, level, options)} group_left () {watched}"
        enough = f"{of('n_eff')} >= {options.min_n:g} and {of('coverage')} >= {options.min_coverage:g}"
        unless = f" unless {of('n_eff', _DAY)} >= {options.min_n:g}" if window == _WEEK else ""
        found.append(f"({compared} and {enough}{unless})")
    return found
