"""What was acknowledged over OTLP survives kill -9, and is scored once: books balance, sums included."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from scorers.testing import Fault
from tests.support.crashes import Crashes
from tests.support.crashing import POINTS
from tests.support.judge import JudgeServer
from tests.support.sidecar import Sidecar, quick_config
from tests.support.small_disk import small_disk
from tests.support.traces import body, rag_trace
from tests.support.waiting import until

pytestmark = pytest.mark.e2e
KILLS = 5


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer() as judge:
        yield judge


def test_killed_at_every_boundary_and_at_random_instants(tmp_path: Path, judge: JudgeServer) -> None:
    crashes = Crashes(tmp_path, judge)
    for number, point in enumerate(POINTS):
        crashes.die_at(point, 1 + 2 * number if point.startswith("spool") else 1 + number % 2)
    for _ in range(KILLS):
        crashes.die_some_time(2.0)
    assert crashes.wrong() == []


def test_what_is_open_at_the_end_is_the_next_process_s(tmp_path: Path, judge: JudgeServer) -> None:
    """SIGTERM waits for no trace, loses none, and fails no job: half a trace, and one that waits for the judge."""
    crashes = Crashes(tmp_path, judge, grace_seconds=4)
    judge.misbehave(*[Fault(delay_seconds=8)] * 20)
    first = crashes.start()
    try:
        first.ready()
        dice = random.Random(5)
        half = rag_trace(dice)
        first.send(body(half[:2]))
        for _ in range(6):
            first.send(body(rag_trace(dice)))
        first.wait(lambda now: now.total("groundwatch_judging_running_jobs") > 0, "the judge is asked")
        assert first.terminate() == 0
    finally:
        first.end()
    judge.judge.faults.clear()
    second = crashes.start()
    try:
        second.ready()
        second.send(body(half[2:]))
        second.wait(lambda now: now.total("groundwatch_spool_requests") == 0, "the spool is empty", seconds=60)
        now = second.metrics()
        assert now.total("groundwatch_local_weight_total", metric="faithfulness", outcome="scored") == 7
        assert now.total("groundwatch_judged_weight_total", outcome="failed") == 0
        assert now.total("groundwatch_judged_weight_total", outcome="scored") > 0
        assert second.terminate() == 0
    finally:
        second.end()


def test_a_full_disk_refuses_new_work_says_so_and_recovers(tmp_path: Path) -> None:
    dice = random.Random(6)
    with small_disk(tmp_path / "disk", 6) as disk:
        config = quick_config(
            process={"state_dir": str(disk), "durability": "spool"},
            screening={"workers": 1},
            books={"commit_seconds": 0.1},
        )
        sidecar = Sidecar(tmp_path, config)
        try:
            sidecar.ready()
            with (disk / "ballast").open("ab", buffering=0) as ballast, contextlib.suppress(OSError):
                while True:
                    ballast.write(bytes(4_096))

            def send(request: bytes) -> httpx.Response:
                headers = {"content-type": "application/x-protobuf"}
                return sidecar.client.post(f"{sidecar.http}/v1/traces", content=request, headers=headers)

            big = [body(rag_trace(dice, contexts=["A page. " * 40_000])) for _ in range(8)]
            refused = [request for request in big if send(request).status_code != 200]
            assert refused
            answer = send(refused[0])
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            unready = sidecar.get("/readyz")
            assert unready.status_code == 503
            assert "spool.sqlite can not be written" in unready.text
            now = sidecar.metrics()
            assert now.total("groundwatch_state_failing", store="spool") == 1

            (disk / "ballast").unlink()
            until(lambda: sidecar.get("/readyz").status_code == 200, "it is ready again", seconds=30)
            for request in refused:
                assert send(request).status_code == 200
            sidecar.wait(
                lambda now: (
                    now.total("groundwatch_local_weight_total", metric="faithfulness") == len(big)
                    and now.total("groundwatch_spool_requests") == 0
                ),
                "all is scored, once",
                seconds=60,
            )
            assert sidecar.terminate() == 0
        finally:
            sidecar.end()
