"""Kills at random instants: what was acknowledged with a spool is scored once, sums included.

    python -m tests.bench.spool_crash [--kills 50] [--seed 1] [--quick]

A client sends RAG traces, in requests that hold whole traces and parts of others, and remembers what was acknowledged.
The product under it is killed with SIGKILL again and again, at random instants, one of five while it starts, and
started anew over the same state directory. In the end every counter of the estimates must be what a process says that
got the same traces once, and the books must know as many interactions as there were traces.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.crashes import Crashes
from tests.support.judge import JudgeServer


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="three kills")
    args = parser.parse_args(argv)
    kills = 3 if args.quick else args.kills
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory, JudgeServer() as judge:
        crashes = Crashes(Path(directory), judge, seed=args.seed)
        for number in range(kills):
            crashes.die_some_time()
            print(f"kill {number + 1}: {crashes.client.traces} traces sent so far", flush=True)
        wrong = crashes.wrong()
        requests, traces = len(crashes.client.acknowledged), crashes.client.traces
    print(
        f"{kills} kills in {time.monotonic() - started:.0f} s, {requests} requests acknowledged, {traces} traces"
    )
    print("\n".join(wrong) or "every trace was scored once: all sums and keys are those of a run without a crash")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
