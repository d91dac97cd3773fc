"""What several dashboards share: choices, marks, and common panels."""

from __future__ import annotations

from collections.abc import Sequence

from collector.telemetry import metrics
from collector.telemetry.spec import MetricSpec
from dashboards.boards.panels import GREEN, RED, YELLOW, Panel, Query, Variable
from dashboards.names import by, select, series
from dashboards.options import Options

JOB = 'job=~"$job"'
METRIC = 'metric=~"$metric"'
SHARE_STEPS = ((None, RED), (0.7, YELLOW), (0.85, GREEN))
"""Colours of shares of which high is good. They tell no verdict; the interval and the floor do."""
COVERAGE_STEPS = ((None, RED), (0.9, YELLOW), (0.98, GREEN))
TIER = 'tier="fast"'
WINDOWS = "1h,6h,1d,7d"


def segment_matchers(options: Options) -> str:
    return ", ".join(f'{name}=~"${name}"' for name in options.segments)


def choices(
    options: Options, *, metric: bool = False, window: bool = False, segments: bool = True
) -> list[Variable]:
    """The choices at the head: always the job."""
    jobs = f"label_values({metrics.BUILD_INFO.name}, job)"
    chosen = [Variable("job", "Job", jobs, many=False, first="groundwatch")]
    if segments:
        chosen += [
            Variable(name, name.capitalize(), f"label_values({metrics.LOCAL_WEIGHT.name}{{{JOB}}}, {name})")
            for name in options.segments
        ]
    if metric:
        query = f'label_values({{__name__=~"{metrics.JUDGED_SUMS[0].name}|{metrics.LOCAL_SUMS[0].name}"}}, metric)'
        chosen.append(Variable("metric", "Metric", query, many=False, first="faithfulness"))
    if window:
        chosen.append(Variable("window", "Window", WINDOWS, fixed=True))
    return chosen


def marks() -> dict[str, str]:
    """First sight of releases, models, prompts and scorers, as marks on the time axis."""
    first = (
        f"min by (dimension, service, metric, value) "
        f"(min_over_time({select(metrics.CHANGE_FIRST_SEEN, JOB)}[1h])) * 1000"
    )
    return {"First seen": first}


def rate(spec: MetricSpec, labels: Sequence[str], *matchers: str) -> str:
    """A counter's increase a second, summed by labels."""
    return f"sum {by(labels)} (rate({select(spec, JOB, *matchers)}[$__rate_interval]))"


def hourly(spec: MetricSpec, *matchers: str, labels: Sequence[str] = ()) -> str:
    """A counter's increase in an hour, summed by labels."""
    grouped = f" {by(labels)} " if labels else ""
    return f"sum{grouped}(increase({select(spec, JOB, *matchers)}[1h]))"


def recorded(level: str, kind: str, what: str, window: str = "$window", *matchers: str) -> str:
    """A selector of a recorded series."""
    return f"{series(level, kind, what, window)}{{{', '.join((JOB, *matchers))}}}"


def ribbon(level: str, kind: str, *matchers: str, window: str = "$window") -> list[Query]:
    """Mean, and the area between lower and upper; of each instrument, where the window holds two."""
    faint = {"custom.lineWidth": 0, "color": {"mode": "fixed", "fixedColor": "blue"}}
    return [
        Query(
            f"max by (fingerprint) ({recorded(level, kind, 'upper', window, *matchers)})",
            "upper",
            style={**faint, "custom.fillBelowTo": "lower", "custom.fillOpacity": 20},
        ),
        Query(f"min by (fingerprint) ({recorded(level, kind, 'lower', window, *matchers)})", "lower", style=faint),
        Query(
            f"avg by (fingerprint) ({recorded(level, kind, 'mean', window, *matchers)} and "
            f"{recorded(level, kind, 'lower', window, *matchers)})",
            "mean",
            style={"color": {"mode": "fixed", "fixedColor": "blue"}},
        ),
    ]


def firing(title: str, text: str, category: str, *, width: int, height: int = 4) -> Panel:
    """How many alerts of a category fire."""
    # What speaks of no job (that there is none) belongs to every job.
    chosen = f'alertstate="firing", alertname=~"Groundwatch.+", category=~"{category}", job=~"$job|"'
    return Panel(
        title,
        text,
        [Query(f"count(ALERTS{{{chosen}}}) or vector(0)", "firing", instant=True)],
        kind="stat",
        width=width,
        height=height,
        steps=((None, GREEN), (1, RED)),
    )


def firing_list() -> Panel:
    """Which alerts fire, one a row."""
    labels = ("alertname", "severity", "metric", "kind", "service", "reason", "objective", "law")
    return Panel(
        "Alerts that fire",
        "Each alert that fires now; the runbook (dashboards/README.md) has a section for each.",
        [
            Query(
                f'max {by(labels)} (ALERTS{{alertstate="firing", alertname=~"Groundwatch.+", job=~"$job|"}})',
                "fires",
                instant=True,
            )
        ],
        kind="table",
        width=24,
        height=5,
        columns={label: label.replace("alertname", "alert") for label in labels},
        empty="while no alert fires",
    )


def dashed(colour: str) -> dict[str, object]:
    """A thin dashed line."""
    return {
        "color": {"mode": "fixed", "fixedColor": colour},
        "custom.lineWidth": 1,
        "custom.lineStyle": {"fill": "dash", "dash": [8, 6]},
    }
