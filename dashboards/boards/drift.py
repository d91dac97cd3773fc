"""Panels about change detection, for several dashboards."""

from __future__ import annotations

from collector.telemetry import metrics
from dashboards.boards.panels import GREEN, RED, YELLOW, Panel, Query
from dashboards.boards.shared import JOB, METRIC, dashed, segment_matchers
from dashboards.drift import evidence, watched_level
from dashboards.names import select
from dashboards.options import Options

_MOST = 2
"""Evidence has no upper end; from 1 on it is an alarm, so no more is drawn."""
_STEPS = ((None, GREEN), (0.1, YELLOW), (1, RED))
_EMPTY = "while every baseline is learned (the first week), and where nothing is watched"


def _of(name: str, *matchers: str) -> str:
    return f"{name}{{{', '.join((JOB, *matchers))}}}"


def drifting() -> Panel:
    """For the first dashboard: what is nearest to an alarm."""
    return Panel(
        "Nearest to a drift alarm",
        "Evidence that a mean got worse than its level, as a share of what an alarm takes (shown up to 200 %). It "
        "moves by chance; from 100 % on GroundwatchQualityDrifted fires where the interval agrees.",
        [
            Query(
                f"topk(5, clamp_max({_of(evidence('total'))}, {_MOST}))",
                "{{metric}} ({{kind}})",
                instant=True,
            )
        ],
        kind="bargauge",
        unit="percentunit",
        width=24,
        height=5,
        low=0,
        high=1,
        steps=_STEPS,
        empty=_EMPTY,
    )


def drift(options: Options) -> list[Panel]:
    """One metric: evidence, level, and how far baselines are learned."""
    segment = segment_matchers(options)
    names = " / ".join(f"{{{{{name}}}}}" for name in options.segments)
    learned = select(metrics.DETECTOR_PROGRESS, JOB, METRIC)
    return [
        Panel(
            "Evidence that $metric got worse",
            "Evidence summed over replicas, as a share of what an alarm takes (shown up to 200 %). Without a change it "
            "reaches 100 % about as often as is allowed (estimates.detection.alarms_per_month, all series "
            "together).",
            [
                Query(f"clamp_max({_of(evidence('total'), METRIC)}, {_MOST})", "all ({{kind}})"),
                Query(f"clamp_max({_of(evidence('segment'), METRIC, segment)}, {_MOST})", names),
            ],
            unit="percentunit",
            width=12,
            low=0,
            steps=((None, GREEN), (1, RED)),
            empty=_EMPTY,
        ),
        Panel(
            "Level that $metric is held to",
            "Set in the configuration, or the bound of the learned baseline, which is frozen until `groundwatch drift "
            "learn` or another judge.",
            [
                Query(f"max({_of(watched_level('total'), METRIC)})", "all", style=dashed("blue")),
                Query(_of(watched_level("segment"), METRIC, segment), names),
            ],
            unit="percentunit",
            width=7,
            high=1,
            empty=_EMPTY,
        ),
        Panel(
            "Baseline learned",
            "How much of each baseline there is; at 100 % it is watched. The least of replicas and segments.",
            [
                Query(f"min by (level) ({learned})", "{{level}}", instant=True),
            ],
            kind="bargauge",
            unit="percentunit",
            width=5,
            low=0,
            high=1,
            empty="where nothing is watched",
        ),
    ]
