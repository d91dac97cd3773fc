"""The demo's planted drop, from spans to a notification: real sidecar, Prometheus and Alertmanager.

Durations in the rules are divided by SCALE. On a busy machine evaluations are left out; that makes effective numbers
smaller and changes no mean, so there is traffic to spare, and every step is awaited.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards import build
from dashboards.names import series
from dashboards.options import Options
from scorers.judge.canary import CanaryCase, canary_cases
from scorers.testing import Received, ScriptedJudge, plain_answer
from tests.conftest import Program
from tests.support.alertmanager import Alertmanager, WebhookSink
from tests.support.apps import App, start_assistant, start_model
from tests.support.judge import JudgeServer
from tests.support.prometheus import Prometheus
from tests.support.sidecar import Sidecar, quick_config
from tests.support.waiting import until

pytestmark = pytest.mark.e2e
pytest.importorskip("openinference.instrumentation.openai", reason="extra [demo] is not installed")

SCALE = 20.0
OPTIONS = Options(time_scale=SCALE, week_every=300)
BY_INVENTION = {
    "GroundwatchErrorBudgetBurning": {"faithfulness"},
    "GroundwatchQualityLow": {"faithfulness"},
    "GroundwatchQualityDropped": {"faithfulness", "groundedness", "response_relevancy"},
}
"""What answers that are made up may set off, of which metrics; the last two only on a slow machine."""
SEEN_BEFORE = 110
"""Effective number of judged answers before the drop, when every quality alert could speak."""
BUSY = {"GroundwatchEventLoopLag", "GroundwatchAbsent"}
"""What a machine that is too busy says of itself, rightly: `for` is seconds long here, as is a late first scrape."""


class Judge:
    """Judges by words, and most planted cases as it should; once it is `harsh`, nothing is supported or relevant."""

    def __init__(self) -> None:
        self.harsh = False
        self._planted = {(case.question, case.response): case for case in canary_cases()}

    def __call__(self, received: Received) -> str:
        reply = json.loads(plain_answer(received))
        blocks = received.blocks
        case = self._planted.get((blocks.get("question", "").strip(), blocks.get("response", "").strip()))
        for task, value in reply.items():
            good = _expected(case, task.split("_take_")[0]) if case is not None else None
            if task.startswith(("claims", "verdicts")):
                judged = value if isinstance(value, list) else value.values()
                for claim in (one for one in judged if isinstance(one, dict)):
                    if self.harsh or good is not None:
                        claim["label"] = "supported" if good and not self.harsh else "unsupported"
            elif task.startswith("context_relevance"):
                if self.harsh or good is not None:
                    value["label"] = "2" if good and not self.harsh else "0"
            elif task.startswith("noncommittal") and case is not None:
                value["label"] = "yes" if case.kind == "refusal" else "no"
        return json.dumps(reply)


def _expected(case: CanaryCase, task: str) -> bool | None:
    """Whether the case's answer (or context) is good; None where the case does not say."""
    expected = case.expect.get("context_relevance" if task == "context_relevance" else "faithfulness")
    return None if expected is None or expected == "refusal" else expected[1] == 1


def firing(prometheus: Prometheus) -> list[dict[str, Any]]:
    return [one for one in prometheus.alerts() if one["state"] == "firing"]


def test_a_release_that_makes_things_up_is_told_with_its_cause_and_nothing_else(
    program: Program, tmp_path: Path
) -> None:
    build.write(tmp_path, build.generated(OPTIONS))
    inhibit = yaml.safe_load((tmp_path / "alertmanager/inhibit_rules.yml").read_text(encoding="utf-8"))
    script = Judge()
    with ExitStack() as ends:
        sink = ends.enter_context(WebhookSink())
        judge = ends.enter_context(JudgeServer(ScriptedJudge(script)))
        alertmanager = Alertmanager(
            program("prometheus-alertmanager"), tmp_path, webhook=sink.url, inhibit_rules=inhibit["inhibit_rules"]
        )
        ends.callback(alertmanager.end)
        model = start_model(tmp_path)
        ends.callback(model.end)
        sidecar = Sidecar(tmp_path, config(judge))
        ends.callback(sidecar.end)
        sidecar.ready()
        alertmanager.ready()
        prometheus = Prometheus(
            program("prometheus"),
            tmp_path,
            sidecar.http.removeprefix("http://"),
            rules=[tmp_path / "prometheus" / name for name in ("recording.yml", "alerts.yml")],
            alertmanager=alertmanager.address,
        )
        ends.callback(prometheus.end)
        prometheus.ready()
        url = str(until(model.told, "the stub model listens")[0]["listening"])

        def release(version: str, model_name: str) -> App:
            app = start_assistant(tmp_path, url, sidecar.http, model=model_name, release=version, rate=40)
            ends.callback(app.end)
            return app

        old = release("1.4.0", "fable-mini-1")
        n = f'{series("total", "judged", "n_eff", "1h")}{{metric="faithfulness"}}'
        until(
            lambda: (prometheus.number(n) or 0) > SEEN_BEFORE,
            "enough is judged before the drop",
            seconds=120,
            step=0.5,
        )
        assert {one["labels"]["alertname"] for one in firing(prometheus)} - BUSY == set()
        assert {one.name for one in sink.received} - BUSY == set()

        release("1.5.0", "fable-mini-2")  # the new one answers before the old one ends
        old.end()
        until(
            lambda: [one for one in sink.firing if one.labels["severity"] == "critical"],
            "somebody is woken",
            seconds=400,
            step=0.5,
        )
        told = [one for one in sink.firing if one.name not in BUSY]
        assert "GroundwatchErrorBudgetBurning" in {one.name for one in told}
        for one in told:
            assert one.name in BY_INVENTION, one
            assert one.labels["metric"] in BY_INVENTION[one.name], one
            if one.labels["kind"] == "judged":
                assert "Leading cause in the last hour: unsupported (" in one.annotations["description"], one
                assert one.annotations["runbook_url"].startswith(OPTIONS.runbook)

        # The judge itself goes wrong: what it says of the answers wakes nobody any more.
        script.harsh = True
        until(
            lambda: alertmanager.alerts(alertname="GroundwatchCanaryLow"),
            "planted cases fail",
            seconds=120,
            step=0.5,
        )
        until(lambda: quiet(alertmanager), "judged quality alerts are inhibited", step=0.5)
        assert alertmanager.alerts(alertname="GroundwatchErrorBudgetBurning")
        ((_, inhibited),) = alertmanager.alerts(alertname="GroundwatchCanaryLow")
        assert not inhibited
        until(lambda: "GroundwatchCanaryLow" in {one.name for one in sink.firing}, "the judge's failure is told")
        assert prometheus.failed_rules() == []


def quiet(alertmanager: Alertmanager) -> bool:
    return all(inhibited for _, inhibited in alertmanager.alerts(category="quality", kind="judged"))


JUDGED = {"category": "quality", "kind": "judged", "metric": "faithfulness", "service": "shop"}
LOW = {"alertname": "GroundwatchQualityLow", **JUDGED}
BURNING = {"alertname": "GroundwatchErrorBudgetBurning", "category": "quality", "kind": "local", "objective": "o"}
CASES = {
    "canary": ({"alertname": "GroundwatchCanaryLow", "category": "judge"}, LOW, {**LOW, "kind": "local"}),
    "failing": ({"alertname": "GroundwatchJudgeFailing", "category": "judge"}, LOW, {**LOW, "kind": "local"}),
    "fuse": (
        {"alertname": "GroundwatchBudgetFuse", "category": "judge"},
        {"alertname": "GroundwatchQueueOld", "category": "judge"},
        {"alertname": "GroundwatchQueueOld", "category": "pipeline"},
    ),
    "coverage": (
        {"alertname": "GroundwatchCoverageLow", "category": "judge", "level": "total", "metric": "faithfulness"},
        LOW,
        {**LOW, "metric": "noncommittal"},
    ),
    "no-traces": (
        {"alertname": "GroundwatchNoTraces", "category": "instrumentation"},
        {"alertname": "GroundwatchNoInteractions", "category": "instrumentation"},
        {"alertname": "GroundwatchQueueOld", "category": "judge"},
    ),
    "no-interactions": (
        {"alertname": "GroundwatchNoInteractions", "category": "instrumentation"},
        {"alertname": "GroundwatchNoScores", "category": "pipeline"},
        {"alertname": "GroundwatchEventsNotSent", "category": "pipeline"},
    ),
    "low": (
        LOW,
        {**LOW, "alertname": "GroundwatchQualityDropped"},
        {**LOW, "alertname": "GroundwatchQualityDropped", "service": "chat"},
    ),
    "burning": (
        {**BURNING, "severity": "critical"},
        {**BURNING, "severity": "warning"},
        {**BURNING, "severity": "warning", "objective": "another"},
    ),
}
"""By job: what inhibits, what it inhibits, and what it leaves alone."""


def test_a_cause_keeps_quiet_what_follows_from_it_and_nothing_else(program: Program, tmp_path: Path) -> None:
    files = build.generated(Options())
    rules = yaml.safe_load(files["alertmanager/inhibit_rules.yml"])["inhibit_rules"]
    with ExitStack() as ends:
        sink = ends.enter_context(WebhookSink())
        alertmanager = Alertmanager(
            program("prometheus-alertmanager"), tmp_path, webhook=sink.url, inhibit_rules=rules
        )
        ends.callback(alertmanager.end)
        alertmanager.ready()
        alone = [{**inhibited, "job": f"only-{job}"} for job, (_, inhibited, _) in CASES.items()]
        alertmanager.post(*alone, *({**one, "job": job} for job, case in CASES.items() for one in case))
        wanted = {job: {False: 2, True: 1} for job in CASES} | {f"only-{job}": {False: 1} for job in CASES}

        def by_job() -> dict[str, dict[bool, int]]:
            found: dict[str, dict[bool, int]] = {}
            for labels, inhibited in alertmanager.alerts():
                counts = found.setdefault(labels["job"], {})
                counts[inhibited] = counts.get(inhibited, 0) + 1
            return found

        until(lambda: by_job() == wanted, "each rule inhibits its own")
        until(lambda: len(sink.received) >= 3 * len(CASES), "the others are told")
        for job, (source, inhibited, beside) in CASES.items():
            told = {frozenset(one.labels.items()) for one in sink.received if one.labels["job"] == job}
            assert told == {frozenset({**one, "job": job}.items()) for one in (source, beside)}, inhibited


def config(judge: JudgeServer) -> dict[str, Any]:
    return quick_config(
        judge=judge.section(
            scorers=["faithfulness", "context_relevance", "noncommittal"],
            budget={"day": {"calls": None, "usd": None}},
        ),
        judging={"canary_hours": 0.002},  # 7 seconds
        sampling={"rate": 1.0, "budget": {"calls_per_day": None, "usd_per_day": None}},
        estimates={
            "objectives": [{"name": "grounded", "metric": "faithfulness", "threshold": 0.8, "target": 0.95}]
        },
    )
