"""Whether agreement with people and the quality in people's terms keep their promise, with a judge who is wrong.

    python -m tests.bench.agreement_simulation [--runs N] [--quick]

Each run draws traffic, judges some of it, keeps a control, has people label it in the order drawn (5 % are skipped),
and reads the report of `groundwatch agreement`. Each cell is the coverage of the 95 % interval, and the mean distance
from the truth. Beside the corrected mean stand the judge's own mean and the plain mean of all labels, picked ones
included, as a dashboard without weights shows them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script too

from collector.review.figures import Agreement
from scorers.judge.figures import Figure
from tests.unit.review.agreement_simulator import Truth, World, one, truth

WORLDS = {
    "uniform": World(),
    "score-dependent judging": World(judged=0.2),
    "poor judge": World(lenient=0.3, noise=0.3, flips=0.15),
    "poor, score-dependent": World(lenient=0.3, noise=0.3, flips=0.15, judged=0.2),
    "sessions of 3": World(session_size=3),
}
AGREEMENT = ("accuracy", "balanced_accuracy", "auroc", "kappa")


def read(report: Agreement) -> dict[str, Figure | None]:
    """The figures of one run by name."""
    drawn = next(row for row in report.compared if row.second == "people" and row.weighted)
    found: dict[str, Figure | None] = {name: getattr(drawn, name) for name in AGREEMENT}
    quality = report.corrected[0]
    return found | {"mean": quality.mean, "share": quality.share}


def covers(figure: Figure, true: float) -> bool:
    return (figure.low is None or figure.low <= true) and (figure.high is None or true <= figure.high)


def simulate(
    world: World, true: Truth, *, labels: int, runs: int, seed: int
) -> dict[str, tuple[float, float, int]]:
    """By figure: coverage, bias, runs that had it. `judge` and `naive` have a bias only."""
    inside: dict[str, list[bool]] = {}
    apart: dict[str, list[float]] = {}
    dice = np.random.default_rng(seed)
    for _ in range(runs):
        report = one(dice, world, labels=labels)
        for name, figure in read(report).items():
            if figure is not None:
                inside.setdefault(name, []).append(covers(figure, getattr(true, name)))
                apart.setdefault(name, []).append(figure.value - getattr(true, name))
        apart.setdefault("judge", []).append(report.corrected[0].first_mean - true.mean)
        picked = next(row for row in report.compared if row.second == "people" and not row.weighted)
        plain = report.corrected[0].naive_mean * report.corrected[0].labels
        plain += sum(part.right.value * part.n for part in picked.calibration)
        total = report.corrected[0].labels + picked.n
        apart.setdefault("naive", []).append(plain / total - true.mean)
    return {
        name: (float(np.mean(inside.get(name, [False]))), float(np.mean(values)), len(values))
        for name, values in apart.items()
    }


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Coverage of agreement figures and of the corrected quality.")
    parser.add_argument("--runs", type=int, default=300, help="runs for each line")
    parser.add_argument("--quick", action="store_true", help="12 runs a line, two lines")
    arguments = parser.parse_args(argv)
    runs = 12 if arguments.quick else arguments.runs
    chance = 1.96 * (0.95 * 0.05 / runs) ** 0.5
    print(f"coverage of the 95 % intervals and bias; by chance alone over {runs} runs coverage +- {chance:.1%}")
    names = ("mean", "share", *AGREEMENT)
    print(f"{'':34}" + "".join(f"{name:>19}" for name in names) + f"{'judge':>8}{'naive':>8}")
    started = time.monotonic()
    for name, world in list(WORLDS.items())[: 2 if arguments.quick else None]:
        true = truth(world)
        for labels in (60,) if arguments.quick else (60, 120, 240):
            found = simulate(world, true, labels=labels, runs=runs, seed=labels)
            line = "".join(f"{found[key][0]:11.1%} {found[key][1]:+.3f}" for key in names)
            print(
                f"{name + f', {labels} in order':34}{line}{found['judge'][1]:+8.3f}{found['naive'][1]:+8.3f}",
                flush=True,
            )
    print(f"{time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
