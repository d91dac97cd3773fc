"""Quality: one metric in depth."""

from __future__ import annotations

from collector.telemetry import metrics
from dashboards.boards.drift import drift
from dashboards.boards.panels import GREEN, RED, YELLOW, Board, Panel, Query
from dashboards.boards.shared import (
    COVERAGE_STEPS,
    JOB,
    METRIC,
    TIER,
    choices,
    dashed,
    hourly,
    marks,
    recorded,
    ribbon,
    segment_matchers,
)
from dashboards.names import select, series
from dashboards.options import Options


def quality(options: Options) -> Board:
    """Interval, segments, distribution, coverage and objectives of the metric chosen."""
    rows = [
        ("$metric: judged sample and all traffic", _means()),
        ("$metric by segment", _segments(options)),
        ("$metric: did it get worse than its level?", drift(options)),
        ("$metric: scores and traces", _scores()),
        ("$metric: how good are these numbers?", _goodness()),
        ("Objectives", _objectives()),
    ]
    return Board(
        "groundwatch-quality",
        "groundwatch: quality",
        "One metric: its mean with interval, by segment, its distribution, the worst traces, and its objectives.",
        choices(options, metric=True, window=True),
        rows,
        marks(),
    )


def _means() -> list[Panel]:
    return [
        Panel(
            "Judged",
            "Mean of the judge's scores over the window with its 95 % interval, weighted so that it speaks of all "
            "traffic; with the help of local scores where that makes it narrower. Shown from 20 answers on.",
            [
                *ribbon("total", "combined", METRIC),
                Query(f"groundwatch:mean_floor{{{METRIC}}}", "floor", style=dashed("red")),
            ],
            unit="percentunit",
            width=12,
            high=1,
        ),
        Panel(
            "Local",
            "Mean of the local scores of all traffic with its 95 % interval. Local scores are cheaper and blinder "
            "than the judge's: look at how they move, not at their height.",
            ribbon("total", "local", METRIC, TIER),
            unit="percentunit",
            width=12,
            high=1,
        ),
    ]


def _segments(options: Options) -> list[Panel]:
    segment = segment_matchers(options)
    names = " / ".join(f"{{{{{name}}}}}" for name in options.segments)

    def of(what: str) -> str:
        return recorded("segment", "judged", what, "$window", METRIC, segment)

    return [
        Panel(
            "Judged mean by segment",
            "Means over the window by segment; shown from 20 answers on.",
            [Query(f"{of('mean')} and {of('lower')}", names)],
            unit="percentunit",
            width=14,
            high=1,
        ),
        Panel(
            "Segments now",
            "Mean, 95 % interval, effective number of answers and coverage by segment.",
            [
                Query(of("mean"), "mean", instant=True),
                Query(of("lower"), "lower", instant=True),
                Query(of("upper"), "upper", instant=True),
                Query(of("n_eff"), "answers", instant=True),
                Query(of("coverage"), "coverage", instant=True),
            ],
            kind="table",
            unit="percentunit",
            width=10,
            columns={name: name for name in options.segments},
            units={"answers": "short"},
        ),
    ]


def _scores() -> list[Panel]:
    weight = select(metrics.SCORE_WEIGHT, JOB, METRIC)
    below = hourly(metrics.SCORE_WEIGHT, METRIC, 'le=~"0.2|0.5|0.8|0.9"', labels=("le",))
    every = hourly(metrics.SCORE_WEIGHT, METRIC, 'le="+Inf"')
    # Exemplars lie in the bucket of their own score; the largest of the counts is that of the last bucket.
    worst = 'le=~"0.0|0.2|0.4|0.5"'
    buckets = f"{metrics.JUDGED_SCORE.name}_bucket"
    return [
        Panel(
            "Distribution of judged scores",
            "Weight of the answers by score over time: each column is a time, each row a range of scores, by its "
            "upper end.",
            [Query(f"sum by (le) (increase({weight}[$__rate_interval]))", "{{le}}", heatmap=True)],
            kind="heatmap",
            width=12,
        ),
        Panel(
            "Worst traces",
            "Answers judged at 0.5 or less. Each dot is a trace: click it to open it, or ask `groundwatch why` with "
            "its id.",
            [
                Query(
                    f"max(sum by (le) (increase({buckets}{{{JOB}, {METRIC}, {worst}}}[$__rate_interval])))",
                    "judged at 0.5 or less",
                    exemplars=True,
                )
            ],
            width=12,
            low=0,
        ),
        Panel(
            "Share of answers at or below a score",
            "Of the weight of the last hour, the share that scored at most 0.2, 0.5, 0.8 and 0.9.",
            [
                Query(
                    f"{below} / on () group_left () {every}",
                    "at most {{le}}",
                )
            ],
            unit="percentunit",
            width=12,
            low=0,
        ),
        Panel(
            "Why there is no score",
            "Weight without a score in the last hour, by reason. Not applicable leaves the mean's domain; failed "
            "counts against coverage.",
            [
                Query(
                    f"{hourly(metrics.JUDGED_UNSCORED_WEIGHT, METRIC, labels=('outcome', 'reason'))} > 0",
                    "{{outcome}}: {{reason}}",
                )
            ],
            width=12,
            low=0,
            empty="while everything has a score",
        ),
    ]


def _goodness() -> list[Panel]:
    labels = {"custom.lineWidth": 0, "color": {"mode": "fixed", "fixedColor": "orange"}}

    def of(what: str) -> str:
        return recorded("total", "judged", what, "$window", METRIC)

    return [
        Panel(
            "Coverage",
            "Share of what should have been scored, by weight, that was. Below 98 % look at the bounds; below 90 % "
            "no quality alert fires.",
            [Query(of("coverage"), "coverage")],
            unit="percentunit",
            high=1,
            steps=COVERAGE_STEPS,
        ),
        Panel(
            "If the failed had all scored 0, or 1",
            "The mean at worst and at best, whatever the answers are like that could not be scored. Where coverage "
            "is full both are the mean.",
            [
                Query(of("mean_if_failed_1"), "all 1", style={**labels, "custom.fillBelowTo": "all 0"}),
                Query(of("mean_if_failed_0"), "all 0", style=labels),
            ],
            unit="percentunit",
            high=1,
        ),
        Panel(
            "Effective number of answers",
            "How many equally weighted, independent answers the window is worth. Intervals from 20, alerts from 100.",
            [
                Query(of("n_eff"), "judged"),
                Query(recorded("total", "local", "n_eff", "$window", METRIC, TIER), "local"),
            ],
            low=0,
            steps=((None, RED), (20, YELLOW), (100, GREEN)),
        ),
        Panel(
            "Variance against independent answers",
            "How much repeated sessions and questions widen the interval: 1 is not at all.",
            [Query(of("cluster_ratio"), "ratio")],
            low=0,
            empty="while all scores are equal",
        ),
        Panel(
            "Gain by local scores",
            "How many times as many judged answers would give the same interval without the local scores' help; used "
            "from 1.1 and 100 answers on.",
            [Query(recorded("total", "control", "gain", "$window", METRIC), "{{version}}")],
            empty="where the metric has no local twin, or all its scores are equal",
        ),
        Panel(
            "Traffic of which upstream sampling is unknown",
            "Share of the interactions whose sampling before us is not known: numbers speak of what was received.",
            [
                Query(
                    f"{hourly(metrics.CONDITIONAL)} / {hourly(metrics.SETTLED)}",
                    "share",
                )
            ],
            unit="percentunit",
            low=0,
            high=1,
        ),
    ]


def _objectives() -> list[Panel]:
    none = "while the configuration names no objective"
    target, threshold = (
        f"max by (objective, metric, kind) ({select(spec, JOB)})"
        for spec in (metrics.SLO_TARGET, metrics.SLO_THRESHOLD)
    )

    def of(what: str, window: str) -> str:
        return recorded("total", "objective", what, window)

    return [
        Panel(
            "Error budget left",
            "What is left of 30 days' error budget (of what is stored of them); below 0 the objective is missed.",
            [
                Query(
                    f"{series('total', 'objective', 'budget_left', '30d')}{{{JOB}}}", "{{objective}}", instant=True
                )
            ],
            kind="bargauge",
            unit="percentunit",
            high=1,
            steps=((None, RED), (0, YELLOW), (0.25, GREEN)),
            empty=none,
        ),
        Panel(
            "Burn rate",
            "How many times faster than allowed the error budget is used, over an hour and over six.",
            [
                Query(of("burn_rate", "1h"), "{{objective}} 1h"),
                Query(of("burn_rate", "6h"), "{{objective}} 6h"),
            ],
            low=0,
            steps=((None, GREEN), (6, YELLOW), (14.4, RED)),
            empty=none,
        ),
        Panel(
            "Objectives",
            "Each objective: the share wanted, the share of bad answers over a day, and the answers behind it.",
            [
                Query(target, "wanted", instant=True),
                Query(
                    threshold,
                    "from score",
                    instant=True,
                ),
                Query(of("bad_share", "1d"), "bad over a day", instant=True),
                Query(of("n_eff", "1d"), "answers", instant=True),
            ],
            kind="table",
            unit="percentunit",
            columns={"objective": "objective", "metric": "metric", "kind": "kind"},
            units={"answers": "short", "from score": "short"},
            empty=none,
        ),
    ]
