"""Unit tests of the alerts, for `promtool test rules`."""

from __future__ import annotations

from collections.abc import Iterable

from collector.telemetry import metrics
from dashboards.health_scenarios import health_scenarios
from dashboards.options import Options
from dashboards.quality_scenarios import quality_scenarios
from dashboards.scenarios import EVALUATED, MINUTES, Labels, Scenario


def alert_tests(options: Options) -> dict[str, object]:
    """The content of `tests/alerts.yml`."""
    scenarios = [*health_scenarios(), *quality_scenarios()]
    names = [scenario.job for scenario in scenarios]
    assert len(set(names)) == len(names)
    always = {"series": _series(metrics.BUILD_INFO.name, {"job": "always"}), "values": f"1x{MINUTES}"}
    floors = [
        {"series": _series("groundwatch:mean_floor", {"metric": metric}), "values": f"{floor:g}x{MINUTES}"}
        for metric, floor in options.floors.items()
    ]
    return {
        "rule_files": ["../alerts.yml"],
        "evaluation_interval": f"{EVALUATED}m",
        "tests": [
            {
                "name": "every alert fires where it should and nowhere else",
                "interval": "1m",
                "input_series": [always, *floors, *_input(scenarios)],
                "promql_expr_test": [_firing(scenarios, MINUTES)],
            },
            {
                "name": "no process at all",
                "interval": "1m",
                "input_series": [{"series": _series(metrics.LOG_LINES.name, {"job": "x"}), "values": "0x10"}],
                "promql_expr_test": [
                    {"expr": _FIRING, "eval_time": "4m", "exp_samples": []},
                    {
                        "expr": _FIRING,
                        "eval_time": "10m",
                        "exp_samples": [{"labels": '{alertname="GroundwatchAbsent"}', "value": 1}],
                    },
                ],
            },
        ],
    }


_FIRING = 'count by (alertname, job) (ALERTS{alertstate="firing"})'


def _series(name: str, labels: Labels) -> str:
    return f"{name}{{{', '.join(f'{key}={value!r}' for key, value in labels.items())}}}".replace("'", '"')


def _input(scenarios: Iterable[Scenario]) -> list[dict[str, str]]:
    return [
        {"series": _series(name, {"job": scenario.job, **labels}), "values": values}
        for scenario in scenarios
        for name, labels, values in scenario.fed
    ]


def _firing(scenarios: Iterable[Scenario], minute: int) -> dict[str, object]:
    expected = [
        {"labels": _series("", {"alertname": name, "job": scenario.job}), "value": scenario.fires.count(name)}
        for scenario in scenarios
        for name in sorted(set(scenario.fires))
    ]
    return {"expr": _FIRING, "eval_time": f"{minute}m", "exp_samples": expected}
