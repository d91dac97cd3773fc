"""Names of recorded series, and the few shapes of PromQL that everything is made of.

A recorded name is `level:groundwatch_what:window`. Level `segment` keeps the segment labels, level `total` is over
all segments, level `version` is by service version; all keep the labels of `Options.keep` and none keeps the
replica.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from collector.telemetry import metrics
from collector.telemetry.spec import MetricSpec, Type
from dashboards.options import DAY, HOUR

STEP = 60
"""Seconds between evaluations of the short rules."""
SHORT = 300
"""Seconds of the windows that all longer ones are summed from."""
WINDOWS = {"1h": HOUR, "6h": 6 * HOUR, "1d": DAY, "7d": 7 * DAY}
"""Windows of estimates by name; the name stays whatever the time scale."""


@dataclass(frozen=True, slots=True)
class Column:
    """One counter of an estimate: its short name, and which of its series."""

    key: str
    spec: MetricSpec
    matcher: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """Estimates of one kind: their own labels, the counters by segment, and those that are over all segments."""

    name: str
    labels: tuple[str, ...]
    columns: tuple[Column, ...]
    total_columns: tuple[Column, ...] = ()


def columns(specs: Sequence[MetricSpec], parts: Sequence[str], prefix: str = "") -> tuple[Column, ...]:
    """One column for each of several counters."""
    return tuple(Column(prefix + part, spec) for part, spec in zip(parts, specs, strict=True))


def _unscored(spec: MetricSpec) -> tuple[Column, ...]:
    return tuple(Column(outcome, spec, f'outcome="{outcome}"') for outcome in metrics.OUTCOMES[1:])


_JUDGED_CLUSTERS = columns(metrics.JUDGED_CLUSTERS, metrics.CLUSTER_PARTS, "cluster_")
_LOCAL_CLUSTERS = columns(metrics.LOCAL_CLUSTERS, metrics.CLUSTER_PARTS, "cluster_")
JUDGED = Family(
    "judged",
    tuple(metrics.JUDGED_SUMS[0].labels),
    (*columns(metrics.JUDGED_SUMS, metrics.SUM_PARTS), *_JUDGED_CLUSTERS, *_unscored(metrics.JUDGED_WEIGHT)),
)
LOCAL = Family(
    "local",
    tuple(metrics.LOCAL_SUMS[0].labels),
    (*columns(metrics.LOCAL_SUMS, metrics.SUM_PARTS), *_unscored(metrics.LOCAL_WEIGHT)),
    _LOCAL_CLUSTERS,
)
KINDS = (JUDGED, LOCAL)


def by(labels: Iterable[str]) -> str:
    return f"by ({', '.join(labels)})"


def select(spec: MetricSpec, *matchers: str) -> str:
    """A selector of a metric of the table."""
    chosen = ", ".join(matcher for matcher in matchers if matcher)
    return f"{spec.name}{{{chosen}}}" if chosen else spec.name


def increase(spec: MetricSpec, window: str, labels: Iterable[str], *matchers: str) -> str:
    """The increase of a counter, of each series by itself and then summed."""
    if spec.type is not Type.COUNTER:
        raise ValueError(f"{spec.name} is a {spec.type}; only counters have an increase")
    return f"sum {by(labels)} (increase({select(spec, *matchers)}[{window}]))"


def series(level: str, kind: str, what: str, window: str) -> str:
    """The name of a recorded series, as in `total:groundwatch_judged_mean:1h`."""
    return f"{level}:groundwatch_{kind}_{what}:{window}"
