"""Unit tests of change detection's rules and alert, from what processes export, for `promtool test rules`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from collector.telemetry import metrics
from dashboards.drift import evidence, watched_level
from dashboards.drift_alerts import NAME
from dashboards.names import series
from dashboards.options import Options
from dashboards.scenarios import INSTRUMENT, Fed, Labels, Scenario, is_at

_MINUTES = 40
_A = 70_000.0
"""Threshold of one process."""
_NEAR = 1e-4
"""Values are fed with six digits, logarithms too."""


@dataclass(frozen=True, slots=True)
class Process:
    """What one process says of one series: M as a multiple of its threshold; None where it learns."""

    m: float | None
    level: float = 0.87

    def fed(self, instance: str, labels: Labels) -> tuple[Fed, ...]:
        at = {"instance": instance, **labels}
        if self.m is None:
            return (is_at(metrics.DETECTOR_LOG1P_M, 0, at=at), is_at(metrics.DETECTOR_PROGRESS, 0.4, at=at))
        log1p = self.m if self.m > 100 else math.log1p(self.m * _A)
        return (
            is_at(metrics.DETECTOR_LOG1P_M, log1p, at=at),
            is_at(metrics.DETECTOR_THRESHOLD, _A, at=at),
            is_at(metrics.DETECTOR_LEVEL, self.level, at=at),
            is_at(metrics.DETECTOR_PROGRESS, 1, at=at),
        )


def drift_scenarios() -> list[Scenario]:
    """Jobs with what their processes export and what is recorded of their means, and whether the alert fires."""
    shop = {"metric": "faithfulness", "service": "shop"}
    low = _mean("segment", "judged", "1h", 0.8, at=shop)
    far = {"kind": "judged", "tier": "", "level": "segment", "direction": "higher"}

    def one(job: str, *processes: Process, fed: tuple[Fed, ...] = low, fires: bool, at: Labels = shop) -> Scenario:
        told = [row for n, process in enumerate(processes) for row in process.fed(f"{n}", {**far, **at})]
        return Scenario(job, (*told, *fed), (NAME,) * fires)

    def within(name: str, window: str, **how: float) -> tuple[Fed, ...]:
        return _mean("segment", name, window, 0.8, at=shop, **how)

    total = {"metric": "faithfulness"}
    refuses = {"metric": "noncommittal", "service": "shop"}
    low_is_good = {**refuses, "direction": "lower"}
    local = {"metric": "faithfulness", "tier": "fast"}
    week = within("judged", "7d")
    return [
        one("drifted", Process(1.1), fires=True),
        one("nearly", Process(0.9), fires=False),
        one("one-of-two-is-not-enough", Process(1.5), Process(0.3), fires=False),
        one("one-of-two-carries-both", Process(2.5), Process(0.0), fires=True),
        one("together", Process(1.1), Process(1.0), fires=True),
        one("one-learns", Process(1.1), Process(None), fires=True),
        one("both-learn", Process(None), Process(None), fires=False),
        one("overflows", Process(800), Process(0.1), fires=True),
        one("mean-is-fine", Process(5), fed=_mean("segment", "judged", "1h", 0.9, at=shop), fires=False),
        one("interval-holds-the-level", Process(5), fed=within("judged", "1h", width=0.08), fires=False),
        one("few", Process(5), fed=within("judged", "1h", n=90), fires=False),
        one("not-covered", Process(5), fed=within("judged", "1h", coverage=0.85), fires=False),
        one(
            "two-judges-in-the-window",
            Process(5),
            fed=(*low, *_mean("segment", "judged", "1h", 0.9, at={**shop, "fingerprint": "another"})),
            fires=True,
        ),
        one("young", Process(5), fed=(), fires=False),
        one("a-day-tells", Process(5), fed=(*within("judged", "1h", n=20), *within("judged", "1d")), fires=True),
        one(
            "a-week-tells-where-a-day-has-few", Process(5), fed=(*within("judged", "1d", n=60), *week), fires=True
        ),
        one(
            "mended-this-week",
            Process(5),
            fed=(*_mean("segment", "judged", "1d", 0.9, at=shop), *week),
            fires=False,
        ),
        one(
            "refuses-more",
            Process(2, level=0.1),
            fed=_mean("segment", "judged", "1h", 0.2, at=refuses),
            at=low_is_good,
            fires=True,
        ),
        one(
            "refuses-less",
            Process(2, level=0.3),
            fed=_mean("segment", "judged", "1h", 0.2, at=refuses),
            at=low_is_good,
            fires=False,
        ),
        one(
            "in-total",
            Process(2),
            fed=_mean("total", "judged", "1h", 0.8, at=total),
            at={**total, "level": "total"},
            fires=True,
        ),
        one(
            "locally",
            Process(2),
            fed=_mean("total", "local", "6h", 0.8, at=local),
            at={**local, "kind": "local", "level": "total"},
            fires=True,
        ),
        one(
            "other-service",
            Process(2),
            fed=_mean("segment", "judged", "1h", 0.8, at={**shop, "service": "x"}),
            fires=False,
        ),
    ]


def _mean(
    level: str,
    kind: str,
    window: str,
    mean: float,
    *,
    at: Labels,
    n: float = 400,
    width: float = 0.03,
    coverage: float = 1,
) -> tuple[Fed, ...]:
    """A recorded estimate whose interval reaches `width` to both sides."""
    values = {"mean": mean, "lower": mean - width, "upper": mean + width, "n_eff": n, "coverage": coverage}
    at = {"fingerprint": INSTRUMENT, **at}
    return tuple(is_at(series(level, kind, what, window), value, at=at) for what, value in values.items())


def drift_tests(options: Options) -> dict[str, object]:
    """The content of `tests/drift.yml`."""
    scenarios = drift_scenarios()
    labels = '{direction="higher", job="together", kind="judged", metric="faithfulness", service="shop"}'
    near = f'abs({evidence("segment")}{{job="together"}} - {2.1 / 2!r}) < bool {_NEAR:g}'
    return {
        "rule_files": ["../recording.yml", "../alerts.yml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "name": "evidence is summed over processes, and alone is no alert",
                "interval": "1m",
                "input_series": [
                    {"series": _series(name, {"job": one.job, **at}), "values": values}
                    for one in scenarios
                    for name, at, values in one.fed
                ],
                "promql_expr_test": [
                    {
                        "expr": f'count by (alertname, job) (ALERTS{{alertstate="firing", alertname="{NAME}"}})',
                        "eval_time": f"{_MINUTES}m",
                        "exp_samples": [
                            {"labels": f'{{alertname="{NAME}", job="{one.job}"}}', "value": 1}
                            for one in scenarios
                            if one.fires
                        ],
                    },
                    {"expr": near, "eval_time": f"{_MINUTES}m", "exp_samples": [{"labels": labels, "value": 1}]},
                    {
                        "expr": f'{watched_level("segment")}{{job="one-learns"}}',
                        "eval_time": f"{_MINUTES}m",
                        "exp_samples": [
                            {
                                "labels": f"{watched_level('segment')}{labels.replace('together', 'one-learns')}",
                                "value": 0.87,
                            }
                        ],
                    },
                ],
            }
        ],
    }


def _series(name: str, labels: Labels) -> str:
    return f"{name}{{{', '.join(f'{key}={value!r}' for key, value in labels.items())}}}".replace("'", '"')
