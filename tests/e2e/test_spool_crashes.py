"""What was acknowledged over OTLP survives kill -9, and is scored once: books balance, sums included."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from scorers.testing import Fault
from tests.support.crashes import Crashes
from tests.support.crashing import POINTS
from tests.support.judge import JudgeServer
from tests.support.traces import body, rag_trace

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
