"""What a process counts while it ends is scraped, also where no state directory keeps it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from collector.telemetry import metrics
from tests.conftest import Program
from tests.e2e.conftest import StartSidecar
from tests.support import traces
from tests.support.prometheus import Prometheus
from tests.support.waiting import until

pytestmark = pytest.mark.e2e
COUNT = 20


def test_an_orderly_end_waits_for_a_last_scrape(
    start_sidecar: StartSidecar, program: Program, tmp_path: Path
) -> None:
    sidecar = start_sidecar(assembly={"quiet_seconds": 1, "quiet_log_events_seconds": 1})
    prometheus = Prometheus(program("prometheus"), tmp_path / "prometheus", sidecar.http.removeprefix("http://"))
    try:
        prometheus.ready()
        seen = metrics.ITEMS_RECEIVED.name
        until(lambda: (prometheus.number(f"sum(count_over_time({seen}[5m]))") or 0) >= 4, "it scrapes regularly")
        dice = random.Random(3)
        for _ in range(COUNT):
            sidecar.send(traces.body(traces.rag_trace(dice)))
        assert sidecar.terminate() == 0  # with all of them open
        counted = f'sum(last_over_time({metrics.LOCAL_WEIGHT.name}{{metric="faithfulness"}}[5m]))'
        until(lambda: prometheus.number(counted) == COUNT, "all that it counted was scraped", seconds=5)
    finally:
        prometheus.end()
