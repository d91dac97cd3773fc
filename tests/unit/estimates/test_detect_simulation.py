"""The promise of change detection on the real path, seeded: alarms at the boundary, delays, restarts, replicas."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.estimates.detect_simulator import (
    Stream,
    World,
    alarms,
    asked_again,
    by_score,
    given,
    independent,
    ready,
    sessions,
)
from tests.unit.estimates.estimates_simulator import MEAN, Floats

A = 200
ITEMS = 24_000
CHANCE = 1 + 3 * (A / ITEMS) ** 0.5
"""Most alarms in A answers that three standard deviations of their number allow."""
EVERY = 36.0


def rate(stream: Stream, by: tuple[str, ...] = ("session",)) -> float:
    """Alarms in A answers at the boundary, level = mean."""
    weights = 1 / stream.p if stream.p is not None else np.ones(1)
    mean_weight = float((weights**2).sum() / weights.sum())
    world = ready(MEAN, A, weight=mean_weight, least=stream.least, by=by)
    return len(alarms([world], stream, every=EVERY)) * A / len(stream)


@pytest.mark.parametrize("make", [independent, by_score, sessions, asked_again])
def test_at_the_boundary_there_is_at_most_one_alarm_in_a_answers(make) -> None:  # type: ignore[no-untyped-def]  # parametrised
    found = rate(make(np.random.default_rng(2), ITEMS))
    assert found < CHANCE
    assert found > 0.3, "the promise is kept without giving up all power"


@pytest.mark.parametrize("make", [sessions, asked_again])
def test_a_bet_an_answer_would_break_it_where_answers_belong_together(make) -> None:  # type: ignore[no-untyped-def]  # parametrised
    assert rate(make(np.random.default_rng(2), ITEMS // 4), by=()) > 2


def delays(level: float, drop: float, runs: int, worlds: int = 1, threshold: float = 72_000) -> Floats:
    """Answers until the alarm, after 300 without a change."""
    found = []
    for run in range(runs):
        rng = np.random.default_rng([5, run])
        replicas = [ready(level, threshold / worlds) for _ in range(worlds)]
        alarms(replicas, independent(rng, 300), every=EVERY)
        found += alarms(replicas, independent(rng, 6_000, drop), every=EVERY, first=True) or [6_000]
    return np.array(found, float)


def test_a_fall_of_five_hundredths_is_told_after_some_five_hundred_answers() -> None:
    found = delays(0.87, 0.05, 12)
    assert 380 < found.mean() < 700
    assert delays(0.87, 0.10, 6).mean() < found.mean() / 1.5


def test_evidence_of_two_replicas_is_summed() -> None:
    """It takes longer than in one process, and far less than twice as long as each would take alone."""
    one, two = delays(0.87, 0.05, 8), delays(0.87, 0.05, 8, worlds=2)
    assert one.mean() < two.mean() < 2 * one.mean()


def test_two_replicas_together_keep_the_promise() -> None:
    stream = sessions(np.random.default_rng(3), ITEMS // 2)
    replicas = [ready(MEAN, A / 2) for _ in range(2)]
    assert 0.3 < len(alarms(replicas, stream, every=EVERY)) * A / len(stream) < CHANCE


def test_a_restart_with_its_state_is_as_none_and_without_it_costs_delay_and_no_promise() -> None:
    def delay(run: int, *, kept: bool) -> int:
        y = independent(np.random.default_rng([6, run]), 4_000, 0.05).y
        world = ready(0.87, 72_000)
        rows = dict(world.detection.changed())
        for at in range(0, len(y), 250):
            found = alarms([world], Stream(y[at : at + 250]), every=EVERY, first=True)
            if found:
                return at + found[0]
            if kept:
                rows |= world.detection.changed()
                world = World(given(0.87, 72_000), kept=rows, at=world.clock.monotonic())
            else:
                world.detection.reset("faithfulness")
        return len(y)

    runs = range(6)
    straight = []
    for run in runs:
        y = independent(np.random.default_rng([6, run]), 4_000, 0.05)
        straight += alarms([ready(0.87, 72_000)], y, every=EVERY, first=True)
    assert [delay(run, kept=True) for run in runs] == straight
    assert np.mean([delay(run, kept=False) for run in runs]) > np.mean(straight)
