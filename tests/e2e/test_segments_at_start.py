"""What is listed has its series before anything has come, what is matched when it is first screened."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from collector.telemetry import metrics
from tests.support.judge import JudgeServer
from tests.support.sidecar import Metrics, Sidecar, run_command
from tests.support.traces import body, rag_trace

pytestmark = pytest.mark.e2e

BY_SEGMENT = (
    *metrics.JUDGED_SUMS,
    *metrics.JUDGED_CLUSTERS,
    *metrics.LOCAL_SUMS,
    metrics.JUDGED_WEIGHT,
    metrics.LOCAL_WEIGHT,
    metrics.SCORE_WEIGHT,
    metrics.DIAGNOSIS_WEIGHT,
    metrics.CONDITIONAL,
)


def services(now: Metrics, name: str) -> set[str]:
    return {dict(labels)["service"] for labels in now.series(name)}


def test_listed_values_are_born_at_zero_before_the_first_scrape(
    start_sidecar: Callable[..., Sidecar], judge: JudgeServer
) -> None:
    segment = {"name": "service", "attribute": "service", "values": ["rides", "meals"], "glob": ["h*"]}
    sidecar = start_sidecar(
        judge=judge.section(scorers=["faithfulness", "noncommittal"]),
        sampling={"rate": 1.0, "segments": [segment]},
    )
    first = sidecar.metrics()
    for spec in BY_SEGMENT:
        assert services(first, spec.name) == {"other", "rides", "meals"}, spec.name
        assert not any(first.series(spec.name).values()), spec.name

    sidecar.send(body(rag_trace(random.Random(1)), service="hotels"))
    now = sidecar.wait_for_interactions(1)
    assert services(now, metrics.JUDGED_SUMS[0].name) == {"other", "rides", "meals", "hotels"}
    weights = now.by(metrics.LOCAL_WEIGHT.name, "service", metric="faithfulness", outcome="scored")
    assert weights == {"hotels": 1}


def test_half_of_the_series_budget_is_left_for_what_comes(start_sidecar: Callable[..., Sidecar]) -> None:
    values = [f"tenant-{number:02d}" for number in range(20)]
    segment = {"name": "tenant", "attribute": "tenant", "values": values}
    budget = 1_200
    sidecar = start_sidecar(sampling={"segments": [segment]}, estimates={"series_budget": budget})
    now = sidecar.metrics()
    tenants = {dict(labels)["tenant"] for labels in now.series(metrics.LOCAL_SUMS[0].name)}
    assert 0 < len(tenants) - 1 < 20
    assert tenants == {"other", *values[: len(tenants) - 1]}  # in the order of the configuration
    assert now.total(metrics.SERIES.name) <= budget / 2
    assert now.total(metrics.SEGMENTS_FOLDED.name) == 0
    _, told, _ = run_command("check", "-c", str(sidecar.config))
    assert f"{now.total(metrics.SERIES.name):.0f} series of sums at start" in told
