"""How well the estimates keep their promises, in tables: coverage, bias and width over many simulated windows.

    python -m tests.bench.estimates_simulation [--runs N] [--quick]

Each window is sent through the real path (settle, sums, formulas). Beside our intervals stand what others show: the
plain mean of what happened to be judged with its standard error, and Wald's interval of the weighted mean. Bias is
in standard errors of one window. The last table is the cost of one settlement.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script too

from tests.unit.estimates.estimates_simulator import (
    SCHEMES,
    Random,
    Seen,
    Traffic,
    clustered,
    independent,
    make,
    settlements,
    simulate,
    uniform,
)

_METHODS = ("shown", "item", "cluster", "groups", "control", "wald", "naive")


def header(title: str) -> None:
    print(f"\n{title}\n{'':26}{'n_eff':>7}{'gain':>6}{'ratio':>6}", end="")
    print("".join(f"{method:>22}" for method in _METHODS))


def row(name: str, seen: Seen) -> None:
    """One line: for each method coverage in %, bias in standard errors, mean width."""
    ratios = np.array(seen.ratio)
    ratio = float(np.nanmean(ratios)) if np.isfinite(ratios).any() else float("nan")
    print(f"{name:26}{np.mean(seen.n_eff):7.0f}{np.mean(seen.gain):6.2f}{ratio:6.2f}", end="")
    for method in _METHODS:
        if len(seen.inside.get(method, ())) < 20:
            print(f"{'-':>22}", end="")
        else:
            cell = f"{seen.coverage(method):.1%} {seen.bias(method):+.2f} {seen.width(method):.3f}"
            print(f"{cell:>22}", end="")
    print(flush=True)


def unscored(rng: Random, size: int) -> Traffic:
    """35 % of perfect and 10 % of other answers have no claims; none fails."""
    made = independent(rng, size, uniform)
    made.not_applicable = rng.random(size) < np.where(made.y < 1, 0.1, 0.35)
    return made


def truth_of_unscored() -> float:
    perfect = 0.75 * 0.65 / (0.75 * 0.65 + 0.25 * 0.9)
    return perfect + (1 - perfect) * 2.0 / 3.85


def microseconds(make_traffic: Callable[[Random], Traffic]) -> float:
    """CPU time of one settlement, least of three rounds."""
    rng = np.random.default_rng(1)
    best = float("inf")
    for _ in range(3):
        settled = list(settlements(rng, make_traffic(rng)))
        estimates = make()
        start = time.process_time()
        for item in settled:
            estimates.settle(item)
        best = min(best, (time.process_time() - start) / len(settled) * 1e6)
    return best


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description="Coverage, bias and width of the estimates over simulated windows."
    )
    parser.add_argument("--runs", type=int, default=1_000, help="windows for each line")
    parser.add_argument("--quick", action="store_true", help="60 windows a line")
    arguments = parser.parse_args(argv)
    runs = 60 if arguments.quick else arguments.runs
    print("each cell: coverage of the 95 % interval, bias in standard errors, mean width")
    print(f"by chance alone, over {runs} windows: coverage +- {1.96 * (0.95 * 0.05 / runs) ** 0.5:.1%}, ", end="")
    print(f"bias +- {1.96 / runs**0.5:.2f}; the control variate's table has a third of the windows")
    header("sampling schemes, 125 / 250 / 500 unrelated interactions a window")
    for name, scheme in SCHEMES.items():
        for size in (125, 250, 500):

            def traffic(rng: Random, size: int = size, scheme: object = scheme) -> Traffic:
                assert callable(scheme)
                return independent(rng, size, scheme, local=False)

            row(f"{name}, {size}", simulate(traffic, runs=runs, seed=size))
    header("clusters of 6 on average, half of the interactions judged")
    for by in ("session", "question"):
        for clusters in (60, 120):

            def bursts(rng: Random, clusters: int = clusters, by: str = by) -> Traffic:
                return clustered(rng, clusters, by=by, local=False)

            row(f"{by}, {clusters} clusters", simulate(bursts, runs=runs, seed=clusters))
    header("with the local score as control variate, one in five judged")
    few = max(runs // 3, 60)
    for size in (500, 1_000):

        def screened(rng: Random, size: int = size) -> Traffic:
            return independent(rng, size, uniform)

        row(f"unrelated, {size}", simulate(screened, runs=few, seed=size + 2))
    row(
        "28 % not applicable, 1000",
        simulate(lambda rng: unscored(rng, 1_000), runs=few, seed=3, truth=truth_of_unscored()),
    )
    row(
        "session, 300 of 2.5",
        simulate(lambda rng: clustered(rng, 300, by="session", mean_size=2.5, share=0.6), runs=few, seed=4),
    )
    row("session, 600 clusters", simulate(lambda rng: clustered(rng, 600, by="session"), runs=few // 2, seed=5))
    print("\nCPU of one settlement (one local, one judged measure)")
    plain = microseconds(lambda rng: independent(rng, 3_000, uniform, local=False))
    for name, time_us in (
        ("judged only", plain),
        ("with local scores, one in five judged", microseconds(lambda rng: independent(rng, 3_000, uniform))),
        ("in sessions, half of them judged", microseconds(lambda rng: clustered(rng, 500, by="session"))),
    ):
        print(f"{name:40}{time_us:8.1f} us   {time_us / plain:.2f} of the first")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
