"""Unit tests of the recording rules and of the alerts above them, from raw counters, for `promtool test rules`.

Rates are constant, so what every window must hold is known without computing it. Expectations are given as
comparisons, since versions of Prometheus differ in whether a window holds both its ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from collector.stats.groups import group_interval
from collector.stats.interval import logit_interval
from collector.telemetry import metrics
from dashboards.names import series
from dashboards.options import Options
from dashboards.scenarios import INSTRUMENT

LONG = 190
"""Minutes: an hour's window, held for two hours, and some to spare."""
EVALUATED = 5
"""Minutes between evaluations. The rules count on one a minute, so all rates are this many times as high: the sums
come out the same, and the test takes a fifth of the time."""
YOUNG = 175
"""The minute at which young series are born."""
_SERVICE = "shop"


@dataclass(frozen=True, slots=True)
class Replica:
    """One process: a minute adds `scored` judged answers of weight `weight`, a share `good` of which is 1 and the
    rest 0, and `failed` such that failed. Counters are born at 0 at minute `born`, and again at `again`."""

    job: str
    instance: str = "a"
    scored: float = 4
    weight: float = 10
    good: float = 0.9
    failed: float = 0
    born: int = 0
    again: int = 0
    grouped: bool = False
    fingerprint: str = INSTRUMENT

    def sums(self) -> list[float]:
        """W, W2, WY, W2Y, W2Y2 of one minute."""
        w, n, good = self.weight, self.scored * EVALUATED, self.good
        return [n * w, n * w * w, n * w * good, n * w * w * good, n * w * w * good]

    def groups(self) -> list[tuple[float, float]]:
        """W_g and WY_g of one minute: the weight in equal parts, half of the groups with all that is bad, so that
        clusters matter."""
        if not self.grouped:
            return []
        weight = self.sums()[0] / metrics.GROUPS
        shares = (2 * self.good - 1, 1.0)
        return [(weight, weight * shares[number % 2]) for number in range(metrics.GROUPS)]

    def fed(self) -> list[dict[str, str]]:
        five = self.sums()
        rows = [
            *zip(metrics.JUDGED_SUMS, five, [""] * len(five), strict=True),
            (metrics.JUDGED_WEIGHT, five[0], ', outcome="scored"'),
            (metrics.JUDGED_WEIGHT, self.failed * self.weight * EVALUATED, ', outcome="failed"'),
            (metrics.JUDGED_WEIGHT, 0, ', outcome="not_applicable"'),
        ]
        labels = f'job="{self.job}", instance="{self.instance}", metric="faithfulness"'
        measured = f'{labels}, fingerprint="{self.fingerprint}"'
        fed = [
            {
                "series": f'{spec.name}{{{measured}, service="{_SERVICE}"{extra}}}',
                "values": self._values(per_minute),
            }
            for spec, per_minute, extra in rows
        ]
        for number, (weight, good) in enumerate(self.groups()):
            group = f', group="{metrics.GROUP_LABELS[number]}"'
            for spec, per_minute in zip(metrics.JUDGED_GROUPS, (weight, good), strict=True):
                fed.append({"series": f"{spec.name}{{{measured}{group}}}", "values": self._values(per_minute)})
        fed.append({"series": f"{metrics.BUILD_INFO.name}{{{labels}}}", "values": f"1x{LONG}"})
        for outcome, per_minute in (("scored", self.scored), ("failed", self.failed)):
            name = metrics.JUDGING_RESULTS.name
            fed.append(
                {
                    "series": f'{name}{{{labels}, outcome="{outcome}", reason="none"}}',
                    "values": self._values(per_minute),
                }
            )
        return fed

    def _values(self, per_minute: float) -> str:
        gap = f"_x{self.born - 1} " if self.born else ""
        if self.again:
            return f"{gap}0+{per_minute:g}x{self.again - 1} 0+{per_minute:g}x{LONG - self.again}"
        return f"{gap}0+{per_minute:g}x{LONG - self.born}"


REPLICAS = (
    Replica("plain"),
    Replica("two", "a", good=0.8),
    Replica("two", "b", good=0.9, scored=12),
    Replica("restarted", again=160),
    Replica("groups", "a", grouped=True),
    Replica("groups", "b", grouped=True),
    Replica("young", good=0.5, scored=20, born=YOUNG),
    Replica("few", good=0.5, scored=0.2),
    Replica("perfect", good=1),
    Replica("failing", good=0.5, failed=2),
    Replica("bad", good=0.5),
    Replica("upgraded", "a", good=1, grouped=True, fingerprint="old"),
    Replica("upgraded", "b", good=0.8, grouped=True, fingerprint="new"),
)


def estimate_tests(options: Options) -> dict[str, object]:
    """The content of `tests/estimates.yml`."""
    mean, n, coverage, lower, upper = (
        series("total", "judged", what, "1h") for what in ("mean", "n_eff", "coverage", "lower", "upper")
    )
    at_0, at_1 = (series("segment", "judged", what, "1h") for what in ("mean_if_failed_0", "mean_if_failed_1"))
    intervals = {
        one.job: logit_interval(*(total * 60 / EVALUATED for total in one.sums()))
        for one in REPLICAS
        if one.job in ("plain", "perfect", "bad")
    }
    two = [one for one in REPLICAS if one.job == "groups"]
    by_group = [[60 / EVALUATED * sum(column) for column in zip(*rows, strict=True)] for rows in zip(
        *(one.groups() for one in two), strict=True)]  # fmt: skip
    weights, good = zip(*by_group, strict=True)
    intervals["groups"] = group_interval(sum(60 / EVALUATED * one.sums()[1] for one in two), weights, good)
    near = [
        (mean, "plain", 0.9, 1e-9),
        (mean, "two", 0.875, 1e-9),
        (mean, "restarted", 0.9, 1e-9),
        (mean, "young", 0.5, 1e-9),
        (mean, "perfect", 1, 1e-9),
        (mean, 'upgraded", fingerprint="old', 1, 1e-9),
        (mean, 'upgraded", fingerprint="new', 0.8, 1e-9),
        (series("total", "combined", "mean", "1h"), 'upgraded", fingerprint="new', 0.8, 1e-9),
        (n, "plain", 240, 26),
        (n, "two", 960, 104),
        (n, "restarted", 240, 26),
        (n, "few", 12, 1.5),
        (series("segment", "judged", "n_eff", "1h"), "plain", 240, 26),
        (coverage, "plain", 1, 1e-9),
        (coverage, "failing", 2 / 3, 1e-9),
        (at_0, "failing", 1 / 3, 1e-9),
        (at_1, "failing", 2 / 3, 1e-9),
        *((lower, job, float(interval.lower), 0.003) for job, interval in intervals.items()),
        *((upper, job, float(interval.upper), 0.003) for job, interval in intervals.items()),
        (series("segment", "judged", "mean", "6h"), "young", 0.5, 1e-9),
        (series("segment", "judged", "mean", "7d"), "bad", 0.5, 1e-9),
    ]
    return {
        "rule_files": ["../recording.yml", "../alerts.yml"],
        "evaluation_interval": f"{EVALUATED}m",
        "tests": [
            {
                "name": "means, intervals, effective n and coverage; which of them are worth an alert",
                "interval": "1m",
                "input_series": [row for replica in REPLICAS for row in replica.fed()],
                "promql_expr_test": [
                    *(_near(*row) for row in near),
                    _is(f'absent({lower}{{job="few"}})', '{job="few"}', 1),
                    _alerts((("bad", "GroundwatchQualityLow"), ("failing", "GroundwatchCoverageLow"))),
                ],
            }
        ],
    }


def _near(name: str, job: str, value: float, tolerance: float) -> dict[str, object]:
    return _is(f'max(abs({name}{{job="{job}"}} - {value:.9g}) < bool {tolerance:g})', "{}", 1)


def _is(expression: str, labels: str, value: float) -> dict[str, object]:
    return {
        "expr": expression,
        "eval_time": f"{LONG}m",
        "exp_samples": [{"labels": labels, "value": value}],
    }


def _alerts(expected: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Twice each: for the segment and for the total. What has few answers, is young or could not be scored enough
    is silent."""
    chosen = 'alertname=~"GroundwatchQuality.+|GroundwatchCoverage.+|GroundwatchRefusals.+"'
    return {
        "expr": f'count by (job, alertname) (ALERTS{{alertstate="firing", {chosen}}})',
        "eval_time": f"{LONG}m",
        "exp_samples": [{"labels": f'{{job="{job}", alertname="{name}"}}', "value": 2} for job, name in expected],
    }
