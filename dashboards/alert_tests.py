"""Unit tests of the alerts, for `promtool test rules`."""

from __future__ import annotations

import math
from collections.abc import Iterable

from collector.stats.interval import t_quantile
from collector.telemetry import metrics
from dashboards.health_scenarios import health_scenarios
from dashboards.names import series
from dashboards.options import Options
from dashboards.quality_alerts import quality_alerts, z_of
from dashboards.quality_scenarios import estimate, quality_scenarios
from dashboards.scenarios import EVALUATED, INSTRUMENT, MINUTES, Labels, Scenario, is_at


def alert_tests(options: Options) -> dict[str, object]:
    """The content of `tests/alerts.yml`."""
    scenarios = [*health_scenarios(), *quality_scenarios()]
    names = [scenario.job for scenario in scenarios]
    assert len(set(names)) == len(names)
    always = {"series": _series(metrics.BUILD_INFO.name, {"job": "always"}), "values": f"1x{MINUTES}"}
    return {
        "rule_files": ["../alerts.yml"],
        "evaluation_interval": f"{EVALUATED}m",
        "tests": [
            {
                "name": "every alert fires where it should and nowhere else",
                "interval": "1m",
                "input_series": [always, *_floors(options), *_input(scenarios)],
                "promql_expr_test": [_firing(scenarios, MINUTES)],
            },
            _named_cause(options),
            _nights(),
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


def _named_cause(options: Options) -> dict[str, object]:
    """The whole text of one alert, with the cause that it looks up when it fires."""
    labels = {"metric": "faithfulness", "service": "shop"}
    share = series("segment", "cause", "share", "1h")
    causes = {"fine": 0.5, "unsupported": 0.3, "retrieval_miss": 0.2}
    scenario = Scenario(
        "shops",
        (
            *estimate("segment", "judged", 0.6, n=400, error=0.1, at=labels),
            *(is_at(share, value, cause=cause, kind="judged", service="shop") for cause, value in causes.items()),
            is_at(share, 0.9, cause="retrieval_miss", kind="judged", service="another"),
        ),
    )
    alert = next(one for one in quality_alerts(options) if one.labels.get("level") == "segment")
    t = float(t_quantile(400, z_of(options.false_alarm)))
    highest = 1 / (1 + math.exp(-(math.log(0.6 / 0.4) + t * 0.1)))
    text = (
        f"For two windows of an hour the mean has been at most {100 * highest:.4g}% (upper end of a one-sided "
        "interval, wrong once in 100,000 looks), below the floor that was set. Leading cause in the last hour: "
        "unsupported (30% by judged scores)."
    )
    return {
        "name": "the alert names the leading cause",
        "interval": "1m",
        "input_series": [*_floors(options), *_input([scenario])],
        "alert_rule_test": [
            {
                "alertname": alert.name,
                "eval_time": f"{MINUTES}m",
                "exp_alerts": [
                    {
                        "exp_labels": {
                            "job": "shops",
                            "fingerprint": INSTRUMENT,
                            **labels,
                            "severity": alert.severity,
                            "category": alert.category,
                            **alert.labels,
                        },
                        "exp_annotations": {
                            "summary": "faithfulness is below its floor for service shop",
                            "description": text,
                            "runbook_url": f"{options.runbook}#groundwatchqualitylow",
                        },
                    }
                ],
            }
        ],
    }


def _nights() -> dict[str, object]:
    """Silence at an hour that was silent yesterday too is no alert."""
    hours, night = 26, 2
    each = 60 // EVALUATED
    grown = 100 * (hours - 2 * night) * each
    by_job = {
        "silent-each-night": f"0x{night * each} 0+100x{(hours - 2 * night) * each} {grown}x{night * each}",
        "silent-tonight": f"0+100x{(hours - night) * each} {100 * (hours - night) * each}x{night * each}",
    }
    always = {"series": _series(metrics.BUILD_INFO.name, {"job": "always"}), "values": f"1x{hours * each}"}
    name = metrics.ITEMS_RECEIVED.name
    return {
        "name": "silence at night",
        "interval": f"{EVALUATED}m",
        "input_series": [always]
        + [{"series": _series(name, {"job": job, "signal": "traces"}), "values": v} for job, v in by_job.items()],
        "promql_expr_test": [
            {
                "expr": _FIRING,
                "eval_time": f"{hours * 60 - 10}m",
                "exp_samples": [
                    {
                        "labels": _series("", {"alertname": "GroundwatchNoTraces", "job": "silent-tonight"}),
                        "value": 1,
                    }
                ],
            }
        ],
    }


def _floors(options: Options) -> list[dict[str, str]]:
    return [
        {"series": _series("groundwatch:mean_floor", {"metric": metric}), "values": f"{floor:g}x{MINUTES}"}
        for metric, floor in options.floors.items()
    ]


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
