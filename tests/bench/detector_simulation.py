"""How well change detection keeps its promise and how soon it tells, in tables, with what platforms ship beside it.

    python -m tests.bench.detector_simulation [--months N] [--runs N] [--quick]

Every judged answer goes through the real path (settle, clusters, bets, alarm, acknowledgement). Scores are three
quarters exactly 1, mean 0.88, sd 0.23; 100 are judged an hour; a month of them is A. Naive alarms are thresholds on the
mean of a window, computed on the same scores.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script too

from collector.stats.interval import logit_interval
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
from tests.unit.estimates.estimates_simulator import MEAN, Floats, Random

PER_HOUR = 100
HOURS_A_MONTH = 720
MONTH = PER_HOUR * HOURS_A_MONTH
EVERY = 3_600 / PER_HOUR
BEFORE = 600
"""Answers before the change, so that M is what it mostly is."""
FAR = 40_000
"""Answers after which a run that has not alarmed is given up."""


def false_alarms(rng: Random, items: int) -> None:
    """At the boundary m = mean, where the promise is tightest: at most one alarm in A."""
    print("\nalarms in A answers, level = mean (the promise: at most 1; by chance alone +- ", end="")
    a = 1_000
    print(f"{1.96 * (a / items) ** 0.5:.2f})")
    print(f"{'':44}{'a bet a cluster':>18}{'a bet an answer':>18}")
    for name, make in (
        ("unrelated answers", independent),
        ("judged by score, good answers weigh 10", by_score),
        ("sessions of 6 that share a score", sessions),
        ("bad answers are asked again", asked_again),
    ):
        stream = make(rng, items)
        told = [_boundary(stream, a, by) for by in (("session",), ())]
        apart = f"{told[1]:18.2f}" if stream.session is not None else f"{'the same':>18}"
        print(f"{name:44}{told[0]:18.2f}{apart}", flush=True)


def _boundary(stream: Stream, a: float, by: tuple[str, ...]) -> float:
    weights = 1 / stream.p if stream.p is not None else np.ones(1)
    world = ready(MEAN, a, weight=float((weights**2).sum() / weights.sum()), least=stream.least, by=by)
    return len(alarms([world], stream, every=EVERY)) * a / len(stream)


def naive(y: Floats, window: float, below: float) -> int:
    """Windows whose mean falls below a threshold, of answers that come evenly."""
    size = max(1, round(window * PER_HOUR))
    whole = y[: len(y) // size * size].reshape(-1, size)
    return int((whole.mean(axis=1) < below).sum())


def tuned(rng: Random, hours: int = 40_000) -> float:
    """The threshold on an hour's mean that one hour in a month falls below."""
    means = independent(rng, hours * PER_HOUR).y.reshape(-1, PER_HOUR).mean(axis=1)
    return float(np.quantile(means, 1 / HOURS_A_MONTH))


def quiet(rng: Random, months: int) -> float:
    """False alarms in months without a change. Gives the tuned threshold."""
    y = independent(rng, months * MONTH)
    limit = tuned(rng)
    print(f"\nfalse alarms in {months} months without a change (mean {MEAN:.3f})")
    for name, count in (
        ("mean of 5 minutes below 0.85", naive(y.y, 1 / 12, 0.85)),
        ("mean of an hour below 0.85", naive(y.y, 1, 0.85)),
        (f"mean of an hour below {limit:.3f}, tuned on the true scores", naive(y.y, 1, limit)),
    ):
        print(f"{name:60}{count:8d}{count / months / 30:10.2f} a day", flush=True)
    for level in (0.87, 0.86):
        count = len(alarms([ready(level, MONTH)], y, every=EVERY))
        print(
            f"{f'detector, level {level}, A = a month':60}{count:8d}{count / months / 30:10.3f} a day", flush=True
        )
    return limit


def delays(limit: float, runs: int, seed: int) -> None:
    """Judged answers until the alarm, after a change."""
    print(f"\njudged answers until the alarm after a drop, mean of {runs} runs (standard error)")
    drops = (0.10, 0.05, 0.03)
    print(f"{'':60}" + "".join(f"{f'drop {drop:.2f}':>18}" for drop in drops))

    def row(name: str, delay: Callable[[Random, float], float]) -> None:
        print(f"{name:60}", end="")
        for drop in drops:
            _show([delay(np.random.default_rng([seed, run]), drop) for run in range(runs)])
        print(flush=True)

    row(
        f"mean of an hour below {limit:.3f}, tuned on the true scores", lambda rng, drop: _hourly(rng, drop, limit)
    )
    for level in (0.87, 0.86):
        row(f"detector, level {level}, A = a month", lambda rng, drop, level=level: _delay(rng, drop, level))
    row("detector, level learned from a week (16,800 answers)", _delay_learned)


def _hourly(rng: Random, drop: float, limit: float) -> float:
    """The change comes at any moment of an hour."""
    early = int(rng.integers(PER_HOUR))
    y = np.concatenate([independent(rng, early).y, independent(rng, FAR, drop).y])
    hours = y[: len(y) // PER_HOUR * PER_HOUR].reshape(-1, PER_HOUR).mean(axis=1)
    low = np.flatnonzero(hours < limit)
    return float((low[0] + 1) * PER_HOUR - early) if len(low) else float(FAR)


def _delay(rng: Random, drop: float, level: float) -> float:
    return _after(ready(level, MONTH), rng, drop)


def _delay_learned(rng: Random, drop: float) -> float:
    """The level that the baseline of a week gets, by the same formula."""
    y = independent(rng, 7 * 24 * PER_HOUR).y
    n, s, s2 = float(len(y)), float(y.sum()), float((y**2).sum())
    return _after(ready(float(logit_interval(n, n, s, s, s2).lower), MONTH), rng, drop)


def _after(world: World, rng: Random, drop: float) -> float:
    alarms([world], independent(rng, BEFORE), every=EVERY)
    found = alarms([world], independent(rng, FAR, drop), every=EVERY, first=True)
    return float(found[0] if found else FAR)


def replicas(runs: int, seed: int) -> None:
    """Evidence summed over processes that share the traffic."""
    print(f"\nthe same over several processes whose evidence is summed, drop 0.05, level 0.87, {runs} runs")
    for count in (1, 2, 4, 8):

        def delay(run: int, count: int = count) -> float:
            rng = np.random.default_rng([seed, run])
            worlds = [ready(0.87, MONTH / count) for _ in range(count)]
            alarms(worlds, independent(rng, BEFORE), every=EVERY)
            found = alarms(worlds, independent(rng, FAR, 0.05), every=EVERY, first=True)
            return float(found[0] if found else FAR)

        print(f"{f'{count} processes':60}", end="")
        _show([delay(run) for run in range(runs)])
        print(flush=True)


def restarts(runs: int, seed: int) -> None:
    """The process ends every so many answers, with its state or without."""
    print(f"\nthe same with restarts, drop 0.05, level 0.87, {runs} runs")
    for name, every, kept in (
        ("never restarted", FAR, True),
        ("restarted every 300 answers, state kept", 300, True),
        ("evidence lost every 2,400", 2_400, False),
        ("evidence lost every 900", 900, False),
        ("evidence lost every 300", 300, False),
    ):

        def delay(run: int, every: int = every, kept: bool = kept) -> float:
            rng = np.random.default_rng([seed, run])
            world = ready(0.87, MONTH)
            y = np.concatenate([independent(rng, BEFORE).y, independent(rng, FAR, 0.05).y])
            begin = int(rng.integers(every))  # the change comes at any moment between two restarts
            rows = dict(world.detection.changed())
            done = 0
            for at in (*range(begin, len(y), every), len(y)):
                while found := alarms([world], Stream(y[done:at]), every=EVERY, first=True):
                    done += found[0]
                    if done > BEFORE:
                        return float(done - BEFORE)
                    world.detection.acknowledge("faithfulness")
                done = at
                if kept:
                    rows |= world.detection.changed()
                    world = World(given(0.87, MONTH), kept=rows, at=world.clock.monotonic())
                else:
                    world.detection.reset("faithfulness")
            return float(FAR)

        print(f"{name:60}", end="")
        _show([delay(run) for run in range(runs)])
        print(flush=True)


def _show(found: Sequence[float]) -> None:
    cell = f"{np.mean(found):.0f} ({np.std(found) / len(found) ** 0.5:.0f})"
    print(f"{cell:>18}", end="")


def cost(rng: Random) -> None:
    """CPU of one settlement, least of three rounds."""
    stream = independent(rng, 5_000)
    best = []
    for world in (ready(0.87, MONTH), World({"enabled": False})):
        spent = []
        for _ in range(3):
            start = time.process_time()
            alarms([world], stream, every=EVERY)
            spent.append((time.process_time() - start) / len(stream) * 1e6)
        best.append(min(spent))
    print(
        f"\nCPU of one judged answer, one series: {best[0] - best[1]:.1f} us beside {best[1]:.1f} us to make it up"
    )


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="False alarms and delays of change detection.")
    parser.add_argument("--months", type=int, default=60, help="months without a change")
    parser.add_argument("--runs", type=int, default=200, help="runs for each delay")
    parser.add_argument("--quick", action="store_true", help="a few runs only")
    arguments = parser.parse_args(argv)
    months, runs, items = (1, 2, 3_000) if arguments.quick else (arguments.months, arguments.runs, 200_000)
    rng = np.random.default_rng(7)
    false_alarms(rng, items)
    limit = tuned(rng, 4_000) if arguments.quick else quiet(rng, months)
    delays(limit, runs, 11)
    replicas(max(2, runs // 2), 12)
    restarts(max(2, runs // 2), 13)
    cost(rng)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
