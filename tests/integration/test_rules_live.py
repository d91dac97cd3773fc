"""Recording rules and every panel's query, in a real Prometheus that scrapes a real sidecar with a scripted judge.

Durations in the rules are divided by SCALE, so that an hour's window is minutes long. What the rules record is
compared with `collector.stats` on the same sums. A busy machine leaves evaluations out, each group of rules its own:
where sums of two groups, or of a group and the raw counters, are compared, the tolerance is what was left out.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from collector.records.diagnosis import Cause
from collector.stats.control import MIN_N_EFF, ControlSums, controlled_interval
from collector.stats.interval import cluster_ratio, coverage, logit_interval, missing_bounds
from collector.telemetry import metrics
from dashboards import build
from dashboards.boards import boards
from dashboards.boards.panels import Panel
from dashboards.names import JUDGED, KINDS, series
from dashboards.options import Options
from tests.conftest import Program
from tests.support import traces
from tests.support.judge import JudgeServer
from tests.support.prometheus import Prometheus
from tests.support.sidecar import Sidecar, quick_config
from tests.support.waiting import until

SCALE = 20.0
OPTIONS = Options(time_scale=SCALE, week_every=120)
SHORT_SECONDS = 300 / SCALE
"""Over this increases are taken; after it without an event a sum grows no more."""
INTERACTIONS = 320
FACTS = (
    "The hotel limit is 120 euros per night.",
    "Taxi rides are paid back when no train runs.",
    "Claims are handed in within thirty days.",
    "Meals are paid up to 35 euros a day.",
)


@pytest.fixture(scope="module")
def run(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    directory = tmp_path_factory.mktemp("rules")
    files = build.generated(OPTIONS)
    build.write(directory, files)
    with ExitStack() as ends:
        judge = ends.enter_context(JudgeServer())
        price = {"input_usd_per_million": 1, "output_usd_per_million": 2}
        config = quick_config(
            judge=judge.section(
                scorers=["faithfulness", "groundedness", "context_relevance", "noncommittal"],
                prices={"scripted": price},
                budget={"day": {"calls": 1_000_000, "usd": 1_000}},
            ),
            sampling={"rate": 0.8, "budget": {"calls_per_day": None, "usd_per_day": None}, "segments": SEGMENTS},
            estimates={"objectives": [OBJECTIVE], "detection": DETECTION},
        )
        sidecar = Sidecar(directory, config)
        ends.callback(sidecar.end)
        sidecar.ready()
        rules = [directory / "prometheus" / name for name in ("recording.yml", "alerts.yml")]
        target = sidecar.http.removeprefix("http://")
        prometheus = Prometheus(program("prometheus"), directory, target, interval="1s", rules=rules)
        ends.callback(prometheus.end)
        prometheus.ready()
        feed(sidecar, prometheus)
        until(lambda: settled(prometheus), "the rules have seen everything", seconds=120, step=1)
        yield prometheus


SEGMENTS = [{"name": "service", "attribute": "service", "values": ["rides", "meals"]}]
DETECTION = {
    "levels": [
        {"metric": "faithfulness", "mean": 0.5},
        {"metric": "faithfulness", "mean": 0.5, "segment": {"service": "rides"}},
    ],
    "level_days": 1e-6,
    "cluster_idle_seconds": 0.2,
}
"""Levels that hold, so that something is watched and no alarm comes."""
OBJECTIVE = {"name": "grounded", "metric": "faithfulness", "threshold": 0.8, "target": 0.95}


def feed(sidecar: Sidecar, prometheus: Prometheus) -> None:
    """Interactions of two services, a fifth of the answers made up, some asked twice in a row."""
    dice = random.Random(5)
    groups = []
    for number in range(INTERACTIONS):
        fact, other = dice.sample(FACTS, 2)
        invented = dice.random() < 0.2
        answer = f"{fact} It was {number} last year." if invented else fact
        spans = traces.rag_trace(
            dice,
            question=f"What is rule {number // 2}, the one about '{fact[:12]}'?",
            contexts=[other, fact] if dice.random() < 0.9 else [other],
            response=answer,
        )
        groups.append(traces.group(spans, service=dice.choice(["rides", "meals"])))
    # Prometheus sees a counter's zero, or its first interactions, before the rest: increase() starts there.
    sidecar.send(traces.request(*groups[:10]))
    sidecar.wait_for_interactions(10)
    seen = f"count(count_over_time({metrics.LOCAL_SUMS[0].name}{{service!='other'}}[1m]) >= 2)"
    until(lambda: prometheus.query(seen), "both services have been scraped twice")
    sidecar.send(traces.request(*groups[10:]))
    sidecar.wait_for_interactions(INTERACTIONS)


def settled(prometheus: Prometheus) -> bool:
    """Whether every estimate that is compared has been recorded, and the sums no longer grow. On a busy machine
    evaluations are left out, so how much of the raw counters they hold is no condition."""
    wanted = [series("total", "combined", "mean", window) for window in ("1h", "7d")]
    wanted += [series("total", "cause", "share", "1h"), series("version", "local", "lower", "1h")]
    for kind in KINDS:
        weight = f"sum({series('total', kind.name, 'w', 'sum1h')}"
        wanted += [f"{weight}) > 0 and {weight}) == {weight} offset {SHORT_SECONDS:.0f}s)"]
        wanted += [series("segment", kind.name, "lower", "1h")]
    return all(prometheus.query(name) for name in wanted)


def at_one_moment(prometheus: Prometheus, names: list[str]) -> list[dict[tuple[str, ...], float]]:
    """Recorded values by their labels. They do not change any more, so it does not matter that an evaluation may be
    under way."""
    pattern = "|".join(names)
    rows = prometheus.query(f'{{__name__=~"{pattern}"}}')
    found: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in names}
    for labels, value in rows:
        key = tuple(f"{k}={v}" for k, v in sorted(labels.items()) if k != "__name__")
        found[labels["__name__"]][key] = value
    return [found[name] for name in names]


def test_no_rule_fails(run: Prometheus) -> None:
    assert run.failed_rules() == []


@pytest.mark.parametrize("level", ["segment", "total"])
@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_recorded_estimates_are_those_of_our_own_formulas(run: Prometheus, level: str, kind: str) -> None:
    clustered = (level, kind) != ("segment", "local")
    keys = [*metrics.SUM_PARTS, "failed", *(f"cluster_{p}" for p in metrics.CLUSTER_PARTS if clustered)]
    what = ["mean", "n_eff", "lower", "upper", "coverage", "mean_if_failed_0", "mean_if_failed_1"]
    what += ["cluster_ratio"] if clustered else []
    names = [series(level, kind, key, "sum1h") for key in keys] + [series(level, kind, w, "1h") for w in what]
    columns = at_one_moment(run, names)
    sums, got = (
        dict(zip(keys, columns[: len(keys)], strict=True)),
        dict(zip(what, columns[len(keys) :], strict=True)),
    )
    assert len(got["lower"]) >= 2, "some series are large enough for an interval"
    for key, mean in got["mean"].items():
        five = [sums[part][key] for part in metrics.SUM_PARTS]
        clusters = tuple(sums[f"cluster_{part}"][key] for part in metrics.CLUSTER_PARTS) if clustered else None
        interval = logit_interval(*five, clusters=clusters)  # type: ignore[arg-type]  # three of them
        expected = {"mean": interval.mean, "n_eff": interval.n_eff}
        if interval.n_eff >= OPTIONS.draw_n:
            expected |= {"lower": interval.lower, "upper": interval.upper}
        expected["coverage"] = coverage(five[0], sums["failed"][key])
        at_0, at_1 = missing_bounds(five[0], sums["failed"][key], five[2])
        expected |= {"mean_if_failed_0": at_0, "mean_if_failed_1": at_1}
        if clusters is not None:
            expected["cluster_ratio"] = cluster_ratio(*five, clusters=clusters)  # type: ignore[arg-type]  # likewise
        for name, value in expected.items():
            if not math.isnan(value):
                assert got[name].get(key) == pytest.approx(float(value), rel=1e-6, abs=1e-9), (name, key, mean)


def test_recorded_control_variates_are_those_of_our_own_formulas(run: Prometheus) -> None:
    names = [series("total", "control", part, "sum1h") for part in metrics.CONTROL_PARTS]
    names += [series("total", "control", what, "1h") for what in ("mean", "gain", "lower", "upper")]
    names += [series("total", JUDGED.name, f"cluster_{part}", "sum1h") for part in metrics.CLUSTER_PARTS]
    names.append(series("total", JUDGED.name, "w", "sum1h"))
    *columns, judged_weight = at_one_moment(run, names)
    count = len(metrics.CONTROL_PARTS)
    sums, (mean, gain, lower, upper), clusters = (
        columns[:count],
        columns[count : count + 4],
        columns[count + 4 :],
    )
    assert mean, "at least one metric has a local twin whose scores vary"
    for key, value in mean.items():
        judged = tuple(label for label in key if not label.startswith("version="))
        expected = controlled_interval(
            ControlSums(**dict(zip(metrics.CONTROL_PARTS, (one[key] for one in sums), strict=True))),
            clusters=tuple(one[judged] for one in clusters),  # type: ignore[arg-type]  # three of them
        )
        assert value == pytest.approx(float(expected.mean), rel=1e-6)
        # The clusters are those of the judged total, whose segments were born a little later than the control sums.
        apart = abs(1 - judged_weight[judged] / sums[metrics.CONTROL_PARTS.index("w")][key])
        assert gain[key] == pytest.approx(float(expected.gain), rel=0.03 + 2 * apart)
        if key not in lower:
            assert expected.n_eff < (1.1 + apart) * MIN_N_EFF
            continue
        assert lower[key] == pytest.approx(float(expected.lower), abs=0.01 + 2 * apart)
        assert upper[key] == pytest.approx(float(expected.upper), abs=0.01 + 2 * apart)


def test_windows_hold_what_the_counters_hold(run: Prometheus) -> None:
    """All of it happened within the last scaled day: means over it are those of the counters themselves, but for what
    no evaluation saw (scores lie between 0 and 1, so a share that is missing moves a mean by at most that share)."""
    for kind in KINDS:
        specs = {"judged": metrics.JUDGED_SUMS, "local": metrics.LOCAL_SUMS}[kind.name]
        by = f"by (job, {', '.join(kind.labels)})"
        w, wy = (series("total", kind.name, key, "sum1d") for key in ("w", "wy"))
        ratio = dict(_by_labels(run.query(f"{wy} / ({w} > 0)")))
        held = dict(_by_labels(run.query(f"sum {by} ({w})")))
        exact = run.query(f"sum {by} ({specs[2].name}) / (sum {by} ({specs[0].name}) > 0)")
        weight = dict(_by_labels(run.query(f"sum {by} ({specs[0].name})")))
        assert exact
        for key, value in _by_labels(exact):
            missing = abs(1 - held[key] / weight[key])
            assert missing < 0.5, key
            assert ratio[key] == pytest.approx(value, abs=0.02 + missing), key


def _by_labels(
    rows: Iterable[tuple[dict[str, str], float]],
) -> Iterator[tuple[tuple[tuple[str, str], ...], float]]:
    for labels, value in rows:
        yield tuple(sorted(labels.items())), value


def panels() -> Iterator[tuple[str, Panel]]:
    for board in boards(Options()):
        for _, row in board.rows:
            for panel in row:
                yield f"{board.uid.removeprefix('groundwatch-')}: {panel.title}", panel


CHOSEN = {"job": "groundwatch", "service": ".+", "metric": "faithfulness", "window": "1h", "__rate_interval": "1m"}


def filled(expression: str) -> str:
    return re.sub(r"\$(\w+)", lambda match: CHOSEN[match[1]], expression)


@pytest.mark.parametrize(("name", "panel"), [pytest.param(name, panel, id=name) for name, panel in panels()])
def test_every_panel_shows_something(run: Prometheus, name: str, panel: Panel) -> None:
    for query in panel.queries:
        rows = run.query(filled(query.expression))
        if not panel.empty:
            assert rows, f"{name}: nothing for {query.expression}"
            assert not all(math.isnan(value) for _, value in rows), f"{name}: no number for {query.expression}"
        for label in re.findall(r"\{\{(\w+)\}\}", query.name):
            assert all(label in labels for labels, _ in rows), f"{name}: legend needs {label}"
        if panel.kind == "table" and not panel.empty:
            for label in panel.columns:
                joined = [labels for labels, _ in run.query(filled(panel.queries[0].expression))]
                assert any(label in labels for labels in joined), f"{name}: column {label}"


def test_the_alerts_that_fire_are_those_that_should(run: Prometheus) -> None:
    """A fifth of the answers is made up: four times what the objective allows, so its slowest page fires. Nothing is
    wrong with the pipeline."""

    def firing() -> list[dict[str, Any]]:
        return [alert for alert in run.alerts() if alert["state"] == "firing"]

    def named(alert: dict[str, Any]) -> str:
        return str(alert["labels"]["alertname"])

    until(lambda: "GroundwatchErrorBudgetBurning" in map(named, firing()), "the error budget burns", step=0.5)
    for alert in firing():
        if named(alert) == "GroundwatchEventLoopLag":
            continue  # true of a busy machine, and with scaled durations a second of it is enough
        assert alert["labels"]["category"] == "quality", alert
        if named(alert) == "GroundwatchErrorBudgetBurning":
            assert alert["labels"]["objective"] == "grounded"
            told = re.search(
                r"Leading cause in the last hour: (\w+) \(\S+ by judged", alert["annotations"]["description"]
            )
            assert told, alert
            assert told[1] in set(Cause)


def test_choices_and_marks_are_there(run: Prometheus) -> None:
    for board in boards(Options()):
        for variable in board.variables:
            if variable.fixed:
                continue
            match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable.query)
            assert match
            values = {labels.get(match[2]) for labels, _ in run.query(filled(match[1]))}
            assert values - {None}, variable
            if variable.first:
                assert variable.first in values, variable
        for query in board.marks.values():
            assert run.query(filled(query)), query


def test_every_dashboard_query_is_worth_its_exemplars(run: Prometheus) -> None:
    chosen: list[Any] = [query for _, panel in panels() for query in panel.queries if query.exemplars]
    assert chosen
    for query in chosen:
        assert run.exemplars(filled(query.expression)), query.expression
