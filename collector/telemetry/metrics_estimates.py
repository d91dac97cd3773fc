"""Rows of the table that go with the weighted sums: clusters, control variates, service levels, causes, changes.

`metrics.py` joins it with the rest and re-exports every constant; use them from there. Formulas are in
`collector/stats`.
"""

from __future__ import annotations

from collector.records.diagnosis import Cause
from collector.telemetry.metrics_scoring import JUDGED_LABELS, LOCAL_LABELS
from collector.telemetry.spec import MetricSpec, Type
from scorers.scorer import Direction, Kind

_TABLE: list[MetricSpec] = []
_Labels = dict[str, tuple[str, ...] | None]


def _metric(
    name: str, text: str, labels: _Labels, *, kind: Type = Type.COUNTER, segmented: bool = False
) -> MetricSpec:
    spec = MetricSpec(name, kind, text, labels, group="estimates", collected=True, segmented=segmented)
    _TABLE.append(spec)
    return spec


# --- clusters: interactions of one session, or of one question asked by many ------------------------------
CLUSTER_PARTS = ("w2", "w2y", "w2y2")
"""They take the places of the item sums of the same names in the variance: sums over clusters of a^2, a b and b^2,
with a = sum of weights and b = sum of weight x score of a cluster."""
_CLUSTER_HELP = ("(weight)^2", "weight x (weight x score)", "(weight x score)^2")


def _cluster(kind: str, labels: _Labels, *, segmented: bool) -> tuple[MetricSpec, ...]:
    return tuple(
        _metric(
            f"groundwatch_{kind}_cluster_{part}_total",
            f"Sum over clusters of {text}, each added up within the cluster first; for the variance of {kind} "
            "scores where one session, or one question asked by many, gives several interactions.",
            labels,
            segmented=segmented,
        )
        for part, text in zip(CLUSTER_PARTS, _CLUSTER_HELP, strict=True)
    )


JUDGED_CLUSTERS = _cluster("judged", JUDGED_LABELS, segmented=True)
LOCAL_CLUSTERS = _cluster("local", LOCAL_LABELS, segmented=False)

GROUPS = 16
GROUP_LABELS = tuple(f"{number:02d}" for number in range(GROUPS))
JUDGED_GROUPS = tuple(
    _metric(
        f"groundwatch_judged_group_{part}_total",
        f"Sum of {text} over scored interactions of one of {GROUPS} random groups (by a hash of the cluster), over "
        "all segments: the variance of totals over any number of replicas.",
        {**JUDGED_LABELS, "group": GROUP_LABELS},
    )
    for part, text in (("w", "weights"), ("wy", "weight x score"))
)

# --- control variate: judged totals with the fast local score f of the same name ----------------------------
CONTROL_PARTS = (
    *("w", "w2", "wy", "w2y", "w2y2"),
    *("u", "uf", "j", "jf", "wv", "wvf", "wvy", "wvyf", "q", "qf", "qff"),
)
"""The sixteen sums of one judged metric with one version of its local score, over all segments."""
_CONTROL_HELP = (
    *("w over scored", "w^2 over scored", "w y over scored", "w^2 y over scored", "(w y)^2 over scored"),
    *("u over settled", "u f over settled", "w over answered", "w f over answered"),
    *("w v over scored", "w v f over scored", "w v y over scored", "w v y f over scored"),
    *("q^2 over settled", "q^2 f over settled", "(q f)^2 over settled"),
)
CONTROL_SUMS = tuple(
    _metric(
        f"groundwatch_control_{part}_total",
        f"Sum of {text} interactions (y judged score, f fast local score, u weight before our sampling, w weight "
        "after, v = w - u, q = v where answered, else u), by the version (fingerprint) of f.",
        {**JUDGED_LABELS, "version": None},
    )
    for part, text in zip(CONTROL_PARTS, _CONTROL_HELP, strict=True)
)

# --- service levels -----------------------------------------------------------------------------------------
_OBJECTIVE: _Labels = {"objective": None, "metric": None, "kind": tuple(Kind)}
SLO_WEIGHT = _metric(
    "groundwatch_slo_weight_total",
    "Weight of the scored interactions that an objective speaks of.",
    _OBJECTIVE,
)
SLO_WEIGHT2 = _metric(
    "groundwatch_slo_weight2_total",
    "Sum of squared weights of the same interactions; effective n = weight^2 / weight2.",
    _OBJECTIVE,
)
SLO_GOOD_WEIGHT = _metric(
    "groundwatch_slo_good_weight_total",
    "Weight of those whose score is on the good side of the objective's threshold.",
    _OBJECTIVE,
)
SLO_TARGET = _metric(
    "groundwatch_slo_target_ratio",
    "Share of interactions, by weight, that an objective wants to be good, 0 to 1.",
    _OBJECTIVE,
    kind=Type.GAUGE,
)
SLO_THRESHOLD = _metric(
    "groundwatch_slo_threshold_score",
    "Score from which (lower is better: up to which) an interaction is good, 0 to 1.",
    _OBJECTIVE,
    kind=Type.GAUGE,
)

# --- diagnosis ----------------------------------------------------------------------------------------------
DIAGNOSIS_WEIGHT = _metric(
    "groundwatch_diagnosis_weight_total",
    "Weight of interactions by cause, from the judge's scores (kind judged: the judged sample) or from local ones "
    "(kind local: every interaction).",
    {"cause": tuple(Cause), "kind": tuple(Kind)},
    segmented=True,
)

# --- what changed -------------------------------------------------------------------------------------------
DIMENSIONS = ("service_version", "response_model", "prompt_version", "scorer")
CHANGE_FIRST_SEEN = _metric(
    "groundwatch_change_first_seen_timestamp_seconds",
    "Unix time at which this process first saw a value of a change dimension, for the last five values of each "
    "service (dimension scorer: of each metric, and the value is the scorer's fingerprint). Over restarts and "
    "replicas take min, min_over_time.",
    {"dimension": DIMENSIONS, "service": None, "metric": None, "value": None},
    kind=Type.GAUGE,
)
CHANGE_LAST_SEEN = _metric(
    "groundwatch_change_last_seen_timestamp_seconds",
    "Unix time at which this process last saw the value.",
    {"dimension": DIMENSIONS, "service": None, "metric": None, "value": None},
    kind=Type.GAUGE,
)
VERSION_PARTS = ("w", "w2", "wy", "w2y", "w2y2")
_VERSION_HELP = (
    "weights",
    "squared weights",
    "weight x score",
    "squared weight x score",
    "(weight x score) squared",
)


def _version(kind: str, labels: _Labels) -> tuple[MetricSpec, ...]:
    return tuple(
        _metric(
            f"groundwatch_{kind}_version_{part}_total",
            f"Sum of {text} over scored interactions ({kind} scores) by service and service version, for the last "
            "five versions of each service; 'other' holds what is over the bounds.",
            labels,
        )
        for part, text in zip(VERSION_PARTS, _VERSION_HELP, strict=True)
    )


JUDGED_VERSIONS = _version("judged", {**JUDGED_LABELS, "service": None, "version": None})
LOCAL_VERSIONS = _version("local", {**LOCAL_LABELS, "service": None, "version": None})

# --- change detection ---------------------------------------------------------------------------------------
_DETECTOR: _Labels = {
    "metric": None,
    "kind": tuple(Kind),
    "tier": None,
    "level": ("total", "segment"),
    "direction": tuple(Direction),
}
DETECTOR_LOG1P_M = _metric(
    "groundwatch_detector_log1p_m",
    "Evidence that a mean got worse than its level, as ln(1 + M): sum exp() - 1 of it over replicas, and the sum is an "
    "alarm where it reaches the sum of their thresholds. Level total is over all segments; direction says whether "
    "high or low is good.",
    _DETECTOR,
    kind=Type.GAUGE,
    segmented=True,
)
DETECTOR_THRESHOLD = _metric(
    "groundwatch_detector_threshold",
    "M from which it is an alarm: the scored interactions, on average at least, until a false one. Absent while the "
    "baseline is learned.",
    _DETECTOR,
    kind=Type.GAUGE,
    segmented=True,
)
DETECTOR_LEVEL = _metric(
    "groundwatch_detector_level_score",
    "Level that the mean must not be worse than, 0 to 1: given, or the bound of the learned baseline.",
    _DETECTOR,
    kind=Type.GAUGE,
    segmented=True,
)
DETECTOR_PROGRESS = _metric(
    "groundwatch_detector_baseline_ratio",
    "How much of the baseline is learned, 0 to 1; at 1 the series is watched.",
    _DETECTOR,
    kind=Type.GAUGE,
    segmented=True,
)
DETECTOR_ALARM = _metric(
    "groundwatch_detector_alarm",
    "1 from an alarm of this process on until somebody acknowledges it (`groundwatch drift`), else 0.",
    _DETECTOR,
    kind=Type.GAUGE,
    segmented=True,
)
DETECTOR_ALARMS = _metric(
    "groundwatch_detector_alarms_total",
    "Alarms of this process.",
    _DETECTOR,
    segmented=True,
)
DETECTOR_UNBOUNDED = MetricSpec(
    "groundwatch_detector_unbounded_total",
    Type.COUNTER,
    "Scores that the change detection left out because no bound of their weight is known.",
    group="estimates",
)
_TABLE.append(DETECTOR_UNBOUNDED)
DETECTOR_UNWATCHED = MetricSpec(
    "groundwatch_detector_unwatched_total",
    Type.COUNTER,
    "Scores of segments that are not watched because detection.max_series is reached.",
    group="estimates",
)
_TABLE.append(DETECTOR_UNWATCHED)

# --- their bounds -------------------------------------------------------------------------------------------
CLUSTERS_EVICTED = MetricSpec(
    "groundwatch_clusters_evicted_total",
    Type.COUNTER,
    "Clusters forgotten before their time because too many were open; where this grows fast, intervals may be too "
    "narrow.",
    {"kind": tuple(Kind)},
    group="estimates",
)
_TABLE.append(CLUSTERS_EVICTED)
CHANGES_FOLDED = MetricSpec(
    "groundwatch_changes_folded_total",
    Type.COUNTER,
    "Interactions whose value of a change dimension is not told apart because the bound on values, services or "
    "series is reached.",
    {"dimension": DIMENSIONS},
    group="estimates",
)
_TABLE.append(CHANGES_FOLDED)


def estimates_table() -> tuple[MetricSpec, ...]:
    """The rows of this file, in the order of declaration."""
    return tuple(_TABLE)
