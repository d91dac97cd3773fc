"""Overview: is quality down, since when, for whom, which release, retrieval or generation."""

from __future__ import annotations

from collector.telemetry import metrics
from dashboards.boards.drift import drifting
from dashboards.boards.panels import BLUE, GREEN, RED, YELLOW, Board, Panel, Query
from dashboards.boards.shared import (
    COVERAGE_STEPS,
    JOB,
    METRIC,
    SHARE_STEPS,
    TIER,
    choices,
    dashed,
    firing,
    firing_list,
    hourly,
    marks,
    recorded,
    ribbon,
    segment_matchers,
)
from dashboards.names import select
from dashboards.options import Options
from dashboards.quality_alerts import DESCRIPTIVE, LOWER_IS_BETTER

CAUSES = 'cause!~"fine|undetermined"'


def overview(options: Options) -> Board:
    """The first screen at three in the morning: the first three rows are 24 units high, a screen of 1080 lines."""
    rows = [
        ("Is quality down?", _verdict()),
        ("Since when, and for whom?", _when_and_whom(options)),
        ("Which release? Retrieval or generation?", _release_and_cause(options)),
        ("Which alerts fire? Can these numbers be trusted?", [firing_list(), drifting(), *_trust()]),
    ]
    return Board(
        "groundwatch-overview",
        "groundwatch: overview",
        "Is quality down, since when, for whom, with which release, and is it retrieval or generation?",
        choices(options, metric=True, window=True),
        rows,
        marks(),
    )


def _verdict() -> list[Panel]:
    others = f'metric!~"{"|".join((*LOWER_IS_BETTER, *DESCRIPTIVE))}"'
    mean = recorded("total", "combined", "mean")
    lower = recorded("total", "combined", "lower")
    ignore = "on (job, metric, fingerprint)"
    lowest = f"{recorded('total', 'combined', 'mean', '$window', others)} and {ignore} {lower}"
    return [
        firing(
            "Quality alerts", "Alerts about the answers that fire now. 0 is good.", "quality", width=4, height=6
        ),
        firing(
            "Other alerts",
            "Alerts about the judge, about what arrives and about groundwatch. Where one fires, read the numbers "
            "below with care.",
            "judge|instrumentation|pipeline",
            width=4,
            height=6,
        ),
        Panel(
            "Quality now",
            "Judged means over the window with their 95 % interval, the change against the week before, the floor "
            "that was set, the effective number of answers, and how much of the traffic could be scored. An interval "
            "is given from 20 answers on. While the window reaches over a change of judge, prompt or scorer, a metric "
            "has a row for each.",
            [
                Query(f"{mean} and {ignore} {lower}", "mean", instant=True),
                Query(lower, "lower", instant=True),
                Query(recorded("total", "combined", "upper"), "upper", instant=True),
                Query(f"{mean} - {ignore} {recorded('total', 'combined', 'mean', '7d')}", "change", instant=True),
                Query(f"groundwatch:mean_floor and on (metric) {mean}", "floor", instant=True),
                Query(recorded("total", "judged", "n_eff"), "answers", instant=True),
                Query(recorded("total", "judged", "coverage"), "coverage", instant=True),
            ],
            kind="table",
            unit="percentunit",
            width=12,
            height=6,
            columns={"metric": "metric"},
            units={"answers": "short"},
        ),
        Panel(
            "Lowest mean now",
            "The judged metric that is lowest among those where high is good (window as chosen above).",
            [
                Query(
                    f"bottomk(1, {lowest})",
                    "{{metric}}",
                    instant=True,
                )
            ],
            kind="stat",
            unit="percentunit",
            width=4,
            height=6,
            steps=SHARE_STEPS,
        ),
    ]


def _when_and_whom(options: Options) -> list[Panel]:
    segment = segment_matchers(options)
    names = " / ".join(f"{{{{{name}}}}}" for name in options.segments)
    local = recorded("total", "local", "mean", "$window", METRIC, TIER)
    return [
        Panel(
            "$metric over time",
            "Judged mean with its 95 % interval over the window as it slides, all segments together, and the local "
            "mean of all traffic beside it. The red line is the floor. Purple marks: a release, model, prompt or "
            "scorer was first seen.",
            [
                *ribbon("total", "combined", METRIC),
                Query(f"groundwatch:mean_floor{{{METRIC}}}", "floor", style=dashed("red")),
                Query(f"max({local})", "local", style=dashed("#8e8e8e")),
            ],
            unit="percentunit",
            width=16,
            height=8,
            high=1,
        ),
        Panel(
            "$metric by segment",
            "Judged means by segment over the window, lowest first; shown from 20 answers on.",
            [
                Query(
                    f"sort({recorded('segment', 'judged', 'mean', '$window', METRIC, segment)} "
                    f"and {recorded('segment', 'judged', 'lower', '$window', METRIC, segment)})",
                    names,
                    instant=True,
                )
            ],
            kind="bargauge",
            unit="percentunit",
            height=8,
            low=0,
            high=1,
            steps=SHARE_STEPS,
        ),
    ]


def _release_and_cause(options: Options) -> list[Panel]:
    service = 'service=~"$service"' if "service" in options.segments else ""
    label = "{{service}} {{version}}"

    def of(what: str) -> str:
        return recorded("version", "judged", what, "1h", METRIC, service)

    causes = recorded("segment", "cause", "weight", "sum1h", segment_matchers(options))
    every = f"ignoring (cause) group_left () sum without (cause) (sum by (cause, kind) ({causes}))"
    return [
        Panel(
            "$metric by release",
            "Judged means of the last hour by service and service version, with their intervals. Two releases differ "
            "where their intervals do not overlap.",
            [
                Query(of("mean"), "mean", instant=True),
                Query(of("lower"), "lower", instant=True),
                Query(of("upper"), "upper", instant=True),
                Query(of("n_eff"), "answers", instant=True),
            ],
            kind="table",
            unit="percentunit",
            height=7,
            columns={"service": "service", "version": "version"},
            units={"answers": "short"},
        ),
        Panel(
            "$metric by release over time",
            "The same as lines. A new release that starts low, while the old one stays, is the reason.",
            [Query(of("mean"), label)],
            unit="percentunit",
            height=7,
            high=1,
        ),
        Panel(
            "What went wrong",
            "Share of interactions by cause in the last hour (by the judge's scores, else by local ones). Causes that "
            "begin with retrieval, knowledge or nothing point to retrieval, unsupported and beside the question to "
            "generation.",
            [
                Query(
                    f"sort_desc(sum by (cause, kind) ({causes.replace('}', ', ' + CAUSES + '}')}) / {every} > 0)",
                    "{{cause}} ({{kind}})",
                    instant=True,
                )
            ],
            kind="bargauge",
            unit="percentunit",
            height=7,
            low=0,
            steps=((None, BLUE), (0.1, YELLOW), (0.3, RED)),
            empty="while every answer is fine",
        ),
    ]


def _trust() -> list[Panel]:
    well = hourly(metrics.JUDGE_CALLS, 'outcome="ok"')
    return [
        Panel(
            "Coverage",
            "Share of what should have been scored, by weight, that was. Below 90 % no quality alert fires.",
            [Query(f"min by (metric) ({recorded('total', 'judged', 'coverage')})", "{{metric}}", instant=True)],
            kind="bargauge",
            unit="percentunit",
            height=6,
            low=0,
            high=1,
            steps=COVERAGE_STEPS,
        ),
        Panel(
            "Interactions found",
            "RAG interactions found in the traces, an hour.",
            [Query(hourly(metrics.INTERACTIONS_FOUND), "an hour")],
            width=8,
            height=6,
            low=0,
        ),
        Panel(
            "Judge",
            "Share of the judge's calls of the last hour that went well.",
            [
                Query(
                    f"{well} / {hourly(metrics.JUDGE_CALLS)}",
                    "calls that went well",
                    instant=True,
                )
            ],
            kind="stat",
            unit="percentunit",
            width=4,
            height=6,
            steps=((None, RED), (0.9, YELLOW), (0.98, GREEN)),
        ),
        Panel(
            "Budget spent",
            "Largest share of any limit of the judge's budget that is spent.",
            [Query(f"max by (period) ({select(metrics.JUDGE_BUDGET, JOB)})", "{{period}}", instant=True)],
            kind="stat",
            unit="percentunit",
            width=4,
            height=6,
            steps=((None, GREEN), (0.8, YELLOW), (1, RED)),
        ),
    ]
