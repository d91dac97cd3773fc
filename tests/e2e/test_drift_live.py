"""A sidecar whose application gets worse: the alarm, what the command says of it, and restarts in between."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import traces
from tests.support.judge import JudgeServer
from tests.support.sidecar import Metrics, Sidecar, run_command

pytestmark = pytest.mark.e2e

ALARM = "groundwatch_detector_alarm"
SERIES = "faithfulness/service=shop"
DETECTION = {
    "levels": [
        {"metric": "faithfulness", "mean": 0.9},
        {"metric": "faithfulness", "mean": 0.9, "segment": {"service": "shop"}},
    ],
    "judged_per_month": 60,
    "level_days": 1e-6,
    "cluster_idle_seconds": 0.2,
}
FACTS = ("The limit is 120 euros per night.", "Taxi rides are paid back.", "Claims are due within thirty days.")


def interactions(dice: random.Random, count: int, *, bad: bool) -> bytes:
    groups = []
    for number in range(count):
        fact = dice.choice(FACTS)
        response = "Nobody was ever paid for the moon." if bad else fact
        question = f"What does rule {dice.random()} say, number {number}?"
        spans = traces.rag_trace(dice, question=question, contexts=[fact], response=response)
        groups.append(traces.group(spans, service="shop"))
    return traces.request(*groups)


def drift(sidecar: Sidecar, *arguments: str) -> list[dict[str, Any]]:
    code, out, err = run_command("drift", *arguments, "--json", "--url", sidecar.http)
    assert code == 0, err
    content = json.loads(out)
    series: list[dict[str, Any]] = content["series"] if "series" in content and not arguments else [content]
    return series


def test_an_application_that_gets_worse_is_told_and_stays_told_over_a_restart(
    start_sidecar: Callable[..., Sidecar], judge: JudgeServer, tmp_path: Path
) -> None:
    def start() -> Sidecar:
        return start_sidecar(
            judge=judge.section(scorers=["faithfulness"], budget={"day": {"calls": 1_000_000, "usd": 1_000}}),
            sampling={
                "rate": 1.0,
                "budget": {"calls_per_day": None, "usd_per_day": None},
                "segments": [{"name": "service", "attribute": "service", "values": ["shop"]}],
            },
            estimates={"detection": DETECTION},
            process={"state_dir": str(tmp_path / "state")},
        )

    def watched(now: Metrics) -> bool:
        return now.total("groundwatch_detector_baseline_ratio", level="segment") == 1

    dice = random.Random(8)
    first = start()
    first.send(interactions(dice, 110, bad=False))
    first.wait_for_interactions(110, seconds=60)
    first.wait(watched, "the series are watched")
    assert first.metrics().total(ALARM) == 0
    first.send(interactions(dice, 20, bad=True))
    first.wait(lambda now: now.total(ALARM) == 2, "the total and the shop are in alarm", seconds=60)
    assert "quality_drifted" in first.log
    page = first.get("/").text
    assert "Worse than it was" in page
    assert f"groundwatch drift ack {SERIES}" in page
    first.wait_for_interactions(130)
    assert first.terminate() == 0
    second = start()
    kept = {one["series"]: one for one in drift(second)}
    assert {name: one["state"] for name, one in kept.items()} == {"faithfulness": "alarm", SERIES: "alarm"}
    assert kept[SERIES]["evidence"] > 1
    assert kept[SERIES]["alarms"] == 1
    assert drift(second, "ack", SERIES)[0]["state"] == "watching"
    assert second.metrics().total(ALARM) == 1
