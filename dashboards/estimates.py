"""The formulas of `collector/stats` in PromQL, over recorded sums.

Rules of one group are evaluated in order at one time, so a formula may be cut into recorded steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from collector.stats.control import MIN_GAIN, MIN_N_EFF
from collector.stats.interval import Z95
from collector.telemetry import metrics
from dashboards.names import JUDGED, by, series
from dashboards.options import Options

Columns = Mapping[str, str]
"""Names of the recorded sums of one window, by their short names."""
PROCESSES = "total:groundwatch_processes"
GROUP_DEGREES = metrics.GROUPS - 1


@dataclass(slots=True)
class Group:
    """A group of rules that are evaluated in order every `interval` seconds."""

    name: str
    interval: float
    rules: list[dict[str, object]] = field(default_factory=list)

    def record(self, name: str, expression: str, **labels: str) -> str:
        """Add a rule and give the recorded name."""
        self.rules.append({"record": name, "expr": expression, **({"labels": labels} if labels else {})})
        return name

    def written(self, options: Options) -> dict[str, object]:
        return {"name": self.name, "interval": options.time(self.interval), "rules": self.rules}


def t_of(degrees: str, z: float) -> str:
    """`collector.stats.interval.t_quantile` in PromQL."""
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return f"({z!r} + {first!r} / {degrees} + {second!r} / {degrees} ^ 2)"


def bound(mean: str, error: str, degrees: str, z: float, sign: str) -> str:
    """A bound of the log-odds interval: `sign` - gives the lower one, + the upper."""
    flipped = "" if sign == "-" else "-"
    return f"1 / (1 + exp({flipped}{t_of(degrees, z)} * {error} - ln({mean} / (1 - {mean}))))"


@dataclass(frozen=True, slots=True)
class Place:
    """Where estimates are recorded: level, kind and window are parts of their names."""

    group: Group
    level: str
    kind: str
    window: str

    def name(self, what: str) -> str:
        return series(self.level, self.kind, what, self.window)

    def record(self, what: str, expression: str) -> str:
        return self.group.record(self.name(what), expression)


def estimate(place: Place, sums: Columns, options: Options) -> None:
    """Mean, log-odds interval, effective n, coverage and bounds, from sums at one level over one window."""
    w, w2, wy = f"({sums['w']} > 0)", sums["w2"], sums["wy"]
    var2, var_y, var_yy = (sums[part] for part in metrics.CLUSTER_PARTS)
    if "cluster_w2" in sums:
        var2, var_y, var_yy = (f"({sums[f'cluster_{part}']} or {sums[part]})" for part in metrics.CLUSTER_PARTS)
    mean = place.record("mean", f"{wy} / {w}")
    n = place.record("n_eff", f"{w} ^ 2 / {var2}")
    shrunk = place.record("shrunk_mean", f"clamp(({wy} + {w2} / {w} / 2) / ({w} + {w2} / {w}), 1e-12, 1 - 1e-12)")
    spread = f"clamp_min({var_yy} - 2 * {shrunk} * {var_y} + {shrunk} ^ 2 * {var2}, 0)"
    prior = f"({w2} / {w}) ^ 2 / 2 * ({shrunk} ^ 2 + (1 - {shrunk}) ^ 2)"
    scale = f"({w} + {w2} / {w}) / ({shrunk} * (1 - {shrunk}))"
    error, degrees = f"sqrt(({spread} + {prior}) * ({n} + 1) / {n}) / {scale}", n
    if "group_w" in sums:
        # Replicas may share a cluster: with more than one process the random groups give the variance.
        alone = f"on ({', '.join(options.keep)}) ({PROCESSES} == 1)"
        groups = place.record("group_spread", _group_spread(sums, mean, options))
        error = f"(({error}) and {alone}) or sqrt({groups} + {prior}) / {scale} or ({error})"
        degrees = place.record("degrees", f"({n} and {alone}) or 0 * {groups} + {GROUP_DEGREES} or {n}")
    recorded = place.record("logit_error", error)
    for what, sign in (("lower", "-"), ("upper", "+")):
        place.record(what, f"{bound(shrunk, recorded, degrees, Z95, sign)} and {n} >= {options.draw_n:g}")
    domain = f"({sums['w']} + {sums['failed']} > 0)"
    place.record("coverage", f"{sums['w']} / {domain}")
    place.record("mean_if_failed_0", f"{wy} / {domain}")
    place.record("mean_if_failed_1", f"({wy} + {sums['failed']}) / {domain}")
    if "cluster_w2" in sums:
        item = f"clamp_min({sums['w2y2']} - 2 * {mean} * {sums['w2y']} + {mean} ^ 2 * {w2}, 0)"
        cluster = f"clamp_min({var_yy} - 2 * {mean} * {var_y} + {mean} ^ 2 * {var2}, 0)"
        place.record("cluster_ratio", f"{cluster} / ({item} > 1e-9 * {w2})")


def short_estimate(place: Place, sums: Columns, options: Options) -> None:
    """Mean, log-odds interval and effective n from the five sums alone."""
    w, w2, wy = f"({sums['w']} > 0)", sums["w2"], sums["wy"]
    place.record("mean", f"{wy} / {w}")
    n = place.record("n_eff", f"{w} ^ 2 / {w2}")
    shrunk = place.record("shrunk_mean", f"clamp(({wy} + {w2} / {w} / 2) / ({w} + {w2} / {w}), 1e-12, 1 - 1e-12)")
    error = place.record("logit_error", logit_error(sums, shrunk, n))
    for what, sign in (("lower", "-"), ("upper", "+")):
        place.record(what, f"{bound(shrunk, error, n, Z95, sign)} and {n} >= {options.draw_n:g}")


def _group_spread(sums: Columns, mean: str, options: Options) -> str:
    """16/15 sum over the random groups of (WY_g - m W_g)^2."""
    labels = (*options.keep, *JUDGED.labels)
    match = f"on ({', '.join(labels)}) group_left ()"
    difference = f"{sums['group_wy']} - {sums['group_w']} * {match} {mean}"
    return f"{metrics.GROUPS / GROUP_DEGREES!r} * sum {by(labels)} (({difference}) ^ 2)"


def control(place: Place, sums: Columns, judged: Place, options: Options) -> None:
    """The control-variate estimate of each version of the local score, and beside it `combined`: that where it is
    worth having (effective n, gain, and it covers all that was judged), else the judged mean."""
    w, u, wy = f"({sums['w']} > 0)", f"({sums['u']} > 0)", sums["wy"]
    labels = ", ".join((*options.keep, *JUDGED.labels))
    match = f"on ({labels}) group_left ()"
    mean = place.record("judged_mean", f"{wy} / {w}")
    local = place.record("local_mean", f"{sums['uf']} / {u}")
    shift = place.record("shift", f"{sums['jf']} / ({sums['j']} > 0) - {local}")
    a = place.record("a", f"{sums['w2y2']} - 2 * {mean} * {sums['w2y']} + {mean} ^ 2 * {sums['w2']}")
    b = place.record(
        "b",
        f"clamp_min({sums['wvyf']} - {mean} * {sums['wvf']} - {local} * {sums['wvy']} "
        f"+ {mean} * {local} * {sums['wv']}, 0)",
    )
    c = place.record("c", f"{sums['qff']} - 2 * {local} * {sums['qf']} + {local} ^ 2 * {sums['q']}")
    told = f"({a} > 1e-12 * {sums['w2']} and {c} > 1e-12 * {sums['q']})"
    k = place.record("k", f"{b} / {c} * {u} / {w} and {told}")
    r2 = place.record("r2_of_items", f"clamp({b} ^ 2 / ({a} * {c}), 0, 0.99) and {told}")
    # Where clusters make the variance larger, the part of it that f explains is smaller.
    larger = f"clamp_min({judged.name('cluster_ratio')}, 1)"
    explained = place.record("r2", f"{r2} / {match} {larger} or {r2}")
    gain = place.record("gain", f"1 / (1 - {explained})")
    value = place.record("mean", f"clamp({mean} - {k} * {shift}, 0, 1)")
    wb = f"({sums['w2']} / {w})"
    plain = place.record("plain_mean", f"({wy} + {wb} / 2) / ({w} + {wb})")
    shrunk = place.record("shrunk_mean", f"clamp({plain} - {k} * {shift}, 0.001, 0.999)")
    n = place.record("n_eff", f"0 * {w} + {match} {judged.name('n_eff')}")
    degrees = place.record("degrees", f"0 * {w} + {match} {judged.name('degrees')}")
    # The judged mean's own error (clusters, or groups) with A' (1 - R2) n/(n-2) in the place of A' (n+1)/n.
    recorded = place.record(
        "logit_error",
        f"sqrt((1 - {explained}) * {n} ^ 2 / ({n} - 2 > 0) / ({n} + 1)) "
        f"* {plain} * (1 - {plain}) / ({shrunk} * (1 - {shrunk})) * {match} {judged.name('logit_error')}",
    )
    for what, sign in (("lower", "-"), ("upper", "+")):
        place.record(what, f"{bound(shrunk, recorded, degrees, Z95, sign)} and {n} >= {MIN_N_EFF:g}")
    judged_weight = judged.name("w").replace(judged.window, f"sum{judged.window}")
    whole = f"{sums['w']} >= {match} 0.999 * {judged_weight}"
    worth = f"({n} >= {MIN_N_EFF:g} and {gain} >= {MIN_GAIN:g} and {place.name('lower')} and {whole})"
    for what, own in (("mean", value), ("lower", place.name("lower")), ("upper", place.name("upper"))):
        place.group.record(
            series("total", "combined", what, place.window),
            f"max {by((*options.keep, *JUDGED.labels))} ({own} and {worth}) or {judged.name(what)}",
        )


def logit_error(sums: Columns, mean: str, n: str) -> str:
    """The standard error on the log-odds scale, from item sums."""
    w, w2 = f"({sums['w']} > 0)", sums["w2"]
    spread = f"clamp_min({sums['w2y2']} - 2 * {mean} * {sums['w2y']} + {mean} ^ 2 * {w2}, 0)"
    prior = f"({w2} / {w}) ^ 2 / 2 * ({mean} ^ 2 + (1 - {mean}) ^ 2)"
    return f"sqrt(({spread} + {prior}) * ({n} + 1) / {n}) / ({w} + {w2} / {w}) / ({mean} * (1 - {mean}))"
