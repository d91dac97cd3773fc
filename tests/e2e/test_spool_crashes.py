"""What was acknowledged over OTLP survives kill -9, and is scored once: books balance, sums included."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crashes import Crashes
from tests.support.crashing import POINTS
from tests.support.judge import JudgeServer

pytestmark = pytest.mark.e2e
KILLS = 5


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer() as judge:
        yield judge


def test_killed_at_every_boundary(tmp_path: Path, judge: JudgeServer) -> None:
    crashes = Crashes(tmp_path, judge)
    for number, point in enumerate(POINTS):
        crashes.die_at(point, 1 + 2 * number if point.startswith("spool") else 1 + number % 2)
    assert crashes.wrong() == []


def test_killed_at_random_instants(tmp_path: Path, judge: JudgeServer) -> None:
    crashes = Crashes(tmp_path, judge, seed=2)
    for _ in range(KILLS):
        crashes.die_some_time()
    assert crashes.wrong() == []
