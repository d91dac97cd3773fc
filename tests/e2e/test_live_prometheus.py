"""The main job, end to end: two real instrumentation libraries and replays of the others in, a real Prometheus out.

One run for all tests of this file: a sidecar that judges everything with a scripted judge, the demo's application
(OpenInference, OTLP/HTTP), the same pipeline traced by OpenLLMetry (OTLP/gRPC), and one recording of each library,
in turn over gRPC, over HTTP, and as JSON. What Prometheus holds is compared with what the applications themselves
told of their interactions.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scorers.catalog import judged
from scorers.interaction import Interaction, Passage
from scorers.judge.options import JudgeOptions
from scorers.judge.service import Judge
from scorers.local import DEFAULT, build
from scorers.outcome import Result, Score
from scorers.run import run_local
from scorers.scorer import Tier
from scorers.testing import ScriptedJudge
from tests.conftest import Program
from tests.support import laws, recordings
from tests.support.apps import App, start_model, start_openinference, start_openllmetry
from tests.support.judge import JudgeServer
from tests.support.prometheus import Prometheus
from tests.support.sidecar import Metrics, Sidecar, quick_config
from tests.support.waiting import until

pytestmark = pytest.mark.e2e
pytest.importorskip("openinference.instrumentation.openai", reason="extra [demo] is not installed")
pytest.importorskip("opentelemetry.instrumentation.openai", reason="extra [test] is not installed")

JUDGED = ("faithfulness", "context_relevance", "groundedness", "noncommittal")
SERVICES = ("openinference-app", "openllmetry-app")
ENCODINGS = (("grpc", False), ("http", False), ("http", True))
"""(transport, as JSON), taken in turn by the replays."""


@dataclass(frozen=True)
class Run:
    """What was sent, what the applications told, and who saw it."""

    sidecar: Sidecar
    prometheus: Prometheus
    final: Metrics
    told: dict[str, list[dict[str, Any]]]
    replayed: list[dict[str, Any]]


@pytest.fixture(scope="module")
def run(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    directory = tmp_path_factory.mktemp("live")
    with ExitStack() as ends:
        judge = ends.enter_context(JudgeServer())
        config = quick_config(
            judge=judge.section(
                scorers=[*JUDGED, "response_relevancy"], budget={"day": {"calls": None, "usd": None}}
            ),
            sampling={"rate": 1.0, "budget": {"calls_per_day": None, "usd_per_day": None}},
        )
        model: App = start_model(directory)
        ends.callback(model.end)
        sidecar = Sidecar(directory, config)
        ends.callback(sidecar.end)
        sidecar.ready()
        prometheus = Prometheus(program("prometheus"), directory, sidecar.http.removeprefix("http://"))
        ends.callback(prometheus.end)
        url = str(until(model.told, "the stub model listens")[0]["listening"])
        apps = {
            SERVICES[0]: start_openinference(directory, url, sidecar.http, seconds=4.0),
            SERVICES[1]: start_openllmetry(directory, url, sidecar.grpc, questions=30),
        }
        for app in apps.values():
            ends.callback(app.end)
        replayed = replay(sidecar)
        told = {service: app.finish() for service, app in apps.items()}
        sent = sum(len(one) for one in told.values()) + len(replayed)
        final = sidecar.wait(
            lambda now: (
                now.total("groundwatch_traces_open") == 0
                and now.total("groundwatch_interactions_found_total") >= sent
                and not laws.broken(now)
                and now.total("groundwatch_judging_waiting") == 0
            ),
            f"{sent} interactions are settled",
            seconds=60,
        )
        prometheus.ready()
        found = final.total("groundwatch_interactions_found_total")
        settled = final.total("groundwatch_interactions_settled_total")
        until(
            lambda: (
                prometheus.number("groundwatch_interactions_found_total") == found
                and prometheus.number("sum(groundwatch_interactions_settled_total)") == settled
                and prometheus.exemplars("groundwatch_judged_score_bucket")
            ),
            "Prometheus has scraped the end",
        )
        prometheus.scraped_once_more("groundwatch_interactions_settled_total")
        yield Run(sidecar, prometheus, final, told, replayed)


def replay(sidecar: Sidecar) -> list[dict[str, Any]]:
    """Send the first basic recording of each library; gives the true values."""
    chosen: dict[str, dict[str, Any]] = {}
    for row in recordings.rows():
        if row["case"].startswith("basic"):
            chosen.setdefault(f"{row['convention']}/{row['library']}", row)
    for number, row in enumerate(chosen.values()):
        transport, json = ENCODINGS[number % len(ENCODINGS)]
        for _, signal, body in recordings.requests(row["files"]):
            sent = recordings.as_json(body, signal) if json else body
            sidecar.send(sent, signal, transport=transport, json=json)
    return list(chosen.values())


def interactions(told: list[dict[str, Any]]) -> list[Interaction]:
    """What the application told, as records. Where its own call failed there is no response: only what needs none
    is scored."""
    return [
        Interaction(
            one["trace_id"],
            one["question"],
            tuple(Passage(context["text"], id=context["id"]) for context in one["contexts"]),
            one["response"],
        )
        for one in told
    ]


def means(results: list[list[Result]]) -> dict[str, tuple[float, int]]:
    """Mean and number of scores by metric."""
    scores: dict[str, list[float]] = {}
    for row in results:
        for result in row:
            if isinstance(result.outcome, Score):
                scores.setdefault(result.scorer, []).append(result.outcome.value)
    return {metric: (math.fsum(values) / len(values), len(values)) for metric, values in scores.items()}


def mean_of(run: Run, kind: str, metric: str, service: str) -> tuple[float | None, float | None]:
    """The mean by PromQL from the sums, and the number of scores behind it."""
    labels = f'{{metric="{metric}",service="{service}"}}'
    weight = f"sum(groundwatch_{kind}_sum_w_total{labels})"
    return (
        run.prometheus.number(f"sum(groundwatch_{kind}_sum_wy_total{labels}) / {weight}"),
        run.prometheus.number(f"{weight}^2 / sum(groundwatch_{kind}_sum_w2_total{labels})"),
    )


@pytest.mark.parametrize("service", SERVICES)
def test_local_means_are_those_of_the_applications_own_records(run: Run, service: str) -> None:
    records = interactions(run.told[service])
    assert len(records) >= 20
    truth = means(run_local_on(records))
    assert {"faithfulness", "context_relevance", "groundedness"} <= truth.keys()
    for metric, (mean, count) in truth.items():
        seen, effective = mean_of(run, "local", metric, service)
        assert seen == pytest.approx(mean, abs=1e-9), metric
        assert effective == pytest.approx(count), metric


def run_local_on(records: list[Interaction]) -> list[list[Result]]:
    return run_local(build(DEFAULT, Tier.FAST), records)


@pytest.mark.parametrize("service", SERVICES)
def test_judged_means_are_those_of_the_applications_own_records(run: Run, service: str) -> None:
    records = interactions(run.told[service])

    async def ask() -> list[list[Result]]:
        # A second judge of the same rules: what it says depends on the texts alone.
        async with ScriptedJudge() as server:
            options = JudgeOptions(
                base_url=server.base_url, model="scripted", budget={"day": {"calls": None, "usd": None}}
            )
            async with Judge(options, judged(JUDGED), environ={}) as judge:
                return list(await asyncio.gather(*(judge.score(one) for one in records)))

    truth = means(asyncio.run(ask()))
    assert truth.keys() == set(JUDGED)
    for metric, (mean, count) in truth.items():
        seen, effective = mean_of(run, "judged", metric, service)
        assert seen == pytest.approx(mean, abs=1e-9), metric
        assert effective == pytest.approx(count), metric


def test_the_model_that_makes_things_up_scores_lower_in_both_kinds(run: Run) -> None:
    for kind in ("local", "judged"):
        honest, inventing = (mean_of(run, kind, "faithfulness", service)[0] for service in SERVICES)
        assert honest is not None
        assert inventing is not None
        assert inventing < honest - 0.2, kind


def test_exemplars_lead_to_the_traces(run: Run) -> None:
    exemplars = run.prometheus.exemplars("groundwatch_judged_score_bucket")
    known = {one["trace_id"] for told in run.told.values() for one in told}
    known |= {trace_id for row in run.replayed for trace_id in row["trace_ids"]}
    assert {one["series"]["metric"] for one in exemplars} <= set(JUDGED)
    for one in exemplars:
        assert one["labels"].keys() == {"trace_id"}
        assert one["labels"]["trace_id"] in known
    trace_id = exemplars[0]["labels"]["trace_id"]
    assert "scoring" in {note["stage"] for note in run.sidecar.why(trace_id)}
    # The histogram carries them and no weights: all is judged here, so it counts what the sums weigh.
    assert run.prometheus.number('groundwatch_judged_score_count{metric="faithfulness"}') == run.prometheus.number(
        'sum(groundwatch_judged_sum_w_total{metric="faithfulness"})'
    )


def test_the_funnel_balances_in_promql(run: Run) -> None:
    number = run.prometheus.number
    opened_and_gone = "sum(groundwatch_traces_open) - sum(groundwatch_traces_released_total)"
    assert number("sum(groundwatch_items_received_total) - sum(groundwatch_items_total)") == 0
    assert number(f"sum(groundwatch_traces_opened_total) - {opened_and_gone}") == 0
    assert number("sum(groundwatch_interactions_found_total) - sum(groundwatch_interactions_total)") == 0
    assert number("sum(groundwatch_interactions_settled_total)") == number(
        'sum(groundwatch_interactions_total{fate!="filtered"})'
    )
    queued = {
        labels["metric"]: value
        for labels, value in run.prometheus.query("sum by (metric) (groundwatch_judging_queued_total)")
    }
    answered = {
        labels["metric"]: value
        for labels, value in run.prometheus.query("sum by (metric) (groundwatch_judging_results_total)")
    }
    assert queued.keys() == set(JUDGED)
    assert queued == answered
    assert laws.broken(run.final) == []


def test_every_interaction_is_there_once(run: Run) -> None:
    for service, told in run.told.items():
        weight = run.prometheus.number(
            f'sum(groundwatch_local_weight_total{{metric="faithfulness",service="{service}"}})'
        )
        assert weight == len(told), service


def test_each_library_is_found_as_its_application_knew_it(run: Run) -> None:
    for row in run.replayed:
        name = f"{row['convention']}/{row['library']}"
        notes = [note for trace_id in row["trace_ids"] for note in run.sidecar.why(trace_id)]
        facts = [note["facts"] for note in notes if note["text"] == "interaction found"]
        assert len(facts) == 1, (name, notes)
        for field in ("question", "response"):
            if row["in_spans"].get(field) == "exact":
                assert facts[0][field] == "found", (name, facts)
        if row["in_spans"].get("contexts") == "exact":
            assert facts[0]["contexts"] == len(row["contexts"]), (name, facts)


def test_start_up_says_what_is_not_judged(run: Run) -> None:
    assert "response_relevancy is not judged: it needs an embeddings endpoint" in run.sidecar.log


def test_prometheus_is_content_with_the_target(run: Run) -> None:
    target = run.prometheus.target()
    assert target["health"] == "up"
    assert target["lastError"] == ""


def test_a_judge_without_a_price_costs_nothing_known(run: Run) -> None:
    assert run.prometheus.query("groundwatch_judge_cost_usd_total") == []
    assert run.prometheus.number("groundwatch_judge_unpriced_calls_total") == run.prometheus.number(
        "sum(groundwatch_judge_calls_total)"
    )


def test_the_page_shows_the_same_run(run: Run) -> None:
    page = run.sidecar.get("/")
    assert page.status_code == 200
    assert "faithfulness" in page.text
    status = run.sidecar.get("/api/v1/status").json()
    assert status["worst"], status
    assert all(Path(one["trace_id"]).name == one["trace_id"] for one in status["worst"])
