"""Diagnosis: what went wrong, where, and what changed."""

from __future__ import annotations

from collector.telemetry import metrics
from dashboards.boards.panels import Board, Panel, Query
from dashboards.boards.shared import JOB, METRIC, choices, hourly, marks, rate, recorded, segment_matchers
from dashboards.names import by, select
from dashboards.options import Options


def diagnosis(options: Options) -> Board:
    """Causes over time and by segment; releases, models, prompts and scorers; what the traces lack."""
    rows = [
        ("Causes", _causes(options)),
        ("What changed", _changes()),
        ("What the traces lack", _contents()),
    ]
    return Board(
        "groundwatch-diagnosis",
        "groundwatch: diagnosis",
        "Which part of the pipeline broke, for whom, and what changed before it did.",
        choices(options, metric=True, window=True),
        rows,
        marks(),
    )


def _causes(options: Options) -> list[Panel]:
    segment = segment_matchers(options)

    def over_time(kind: str) -> str:
        weight = recorded("segment", "cause", "weight", "sum1h", f'kind="{kind}"', segment)
        return f"sum by (cause) ({weight}) / on () group_left () (sum({weight}) > 0)"

    bad = recorded("segment", "cause", "share", "$window", 'cause!~"fine|undetermined"', segment)
    return [
        Panel(
            "Causes by the judge's scores",
            "Share of the judged sample by cause, over the last hour as it slides. The runbook says what each cause "
            "means.",
            [Query(over_time("judged"), "{{cause}}")],
            unit="percentunit",
            width=12,
            low=0,
            high=1,
            stacked=True,
        ),
        Panel(
            "Causes by local scores",
            "Share of all traffic by cause. Less sure than the judge's, and of every answer.",
            [Query(over_time("local"), "{{cause}}")],
            unit="percentunit",
            width=12,
            low=0,
            high=1,
            stacked=True,
        ),
        Panel(
            "Causes by segment",
            "Where which cause is most frequent, over the window.",
            [Query(f"sort_desc({bad} > 0)", "share", instant=True)],
            kind="table",
            unit="percentunit",
            width=24,
            columns={name: name for name in options.segments} | {"cause": "cause", "kind": "scores of"},
            empty="while every answer is fine",
        ),
    ]


def _changes() -> list[Panel]:
    labels = ("dimension", "service", "metric", "value")
    first, last = (
        f"{how} {by(labels)} ({how}_over_time({select(spec, JOB)}[1h])) * 1000"
        for how, spec in (("min", metrics.CHANGE_FIRST_SEEN), ("max", metrics.CHANGE_LAST_SEEN))
    )
    version = "{{service}} {{version}}"
    local = recorded("version", "local", "mean", "1h", METRIC, 'tier="fast"')
    return [
        Panel(
            "First and last sight",
            "Releases, response models, prompt versions and scorers, with when a running process first and last saw "
            "each.",
            [Query(first, "first seen", instant=True), Query(last, "last seen", instant=True)],
            kind="table",
            unit="dateTimeAsIso",
            width=12,
            columns={label: label for label in labels},
        ),
        Panel(
            "$metric by release, judged",
            "Judged mean of the last hour by service version.",
            [Query(recorded("version", "judged", "mean", "1h", METRIC), version)],
            unit="percentunit",
            width=6,
            high=1,
        ),
        Panel(
            "$metric by release, local",
            "Local mean of the last hour by service version: of all traffic, so it moves first.",
            [Query(local, version)],
            unit="percentunit",
            width=6,
            high=1,
        ),
    ]


def _contents() -> list[Panel]:
    marked = hourly(metrics.INTERACTION_MARKS, labels=("mark",))
    return [
        Panel(
            "Marks",
            "Interactions of the last hour by what is special about their telemetry: hidden, cut, dropped, unsplit or "
            "missing content.",
            [Query(f"{marked} > 0", "{{mark}}")],
            width=12,
            low=0,
            empty="while all telemetry is complete",
        ),
        Panel(
            "Not applicable or failed, locally",
            "Weight of the interactions without a local score, a second, by reason.",
            [
                Query(
                    f"{rate(metrics.LOCAL_UNSCORED_WEIGHT, ('outcome', 'reason'), METRIC)} > 0",
                    "{{outcome}}: {{reason}}",
                )
            ],
            width=12,
            low=0,
            empty="while everything has a score",
        ),
    ]
