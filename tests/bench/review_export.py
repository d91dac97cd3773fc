"""Exports of a large review store: cases a second, and whether memory grows with the number of cases.

    python -m tests.bench.review_export [--cases N] [--quick]

Each export is a process of its own over a store of a tenth of the cases, and of all; its highest resident memory is
compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script too

from collector.pipeline.clock import SystemClock
from collector.review.case import Reason
from collector.review.options import Options
from collector.review.sqlite import SqliteStore
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction, Passage
from tests.support.review_cases import a_case

FORMATS = ("jsonl", "csv", "parquet", "ragas")


def fill(path: Path, count: int) -> float:
    """A store of so many cases, about 3 kB of text each. Returns the seconds that it took."""
    store = SqliteStore(path, Options(max_cases=10**9), clock=SystemClock(), telemetry=Telemetry())
    store.open()
    now = time.time()
    started = time.monotonic()
    base = a_case(
        scores={"faithfulness": 0.5}, local={"faithfulness": 0.4}, reasons=(Reason.CONTROL,), probability=0.1
    )
    for number in range(count):
        name = f"case-{number}"
        passages = tuple(
            Passage(f"passage {place} of {number}: " + "some words of text " * 25) for place in range(5)
        )
        interaction = Interaction(name, f"Question {number}?", passages, f"Answer {number}, in some words. " * 10)
        while not store.put(replace(base, id=name, interaction=interaction, ended_unix=now - number)):
            store.flush()
    store.flush(600)
    store.close()
    return time.monotonic() - started


def export(store: Path, form: str, out: Path) -> tuple[float, float]:
    """Seconds, and the highest resident memory in MiB."""
    command = [
        sys.executable,
        "-m",
        "collector.cli",
        "export",
        "--store",
        str(store),
        "--format",
        form,
        "-o",
        str(out),
    ]
    started = time.monotonic()
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # our own command
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"export ended with {child.returncode}")
    return time.monotonic() - started, usage.ru_maxrss / 1024


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Speed and memory of exports.")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--quick", action="store_true", help="500 cases, two formats")
    arguments = parser.parse_args(argv)
    cases = 500 if arguments.quick else arguments.cases
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.sqlite", Path(folder) / "large.sqlite"
        fill(small, cases // 10)
        print(f"{cases} cases stored at {cases / fill(large, cases):.0f} a second")
        for form in FORMATS[:2] if arguments.quick else FORMATS:
            out = Path(folder) / f"out.{form}"
            _, few = export(small, form, out)
            seconds, many = export(large, form, out)
            print(
                f"{form:8} {cases / seconds:8.0f} cases a second, {out.stat().st_size / 2**20:8.1f} MiB; highest "
                f"memory {many:6.0f} MiB, {many / few:.2f} times that of a tenth of the cases",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
