"""The spool: CPU of taking requests with it beside the CPU of taking them in memory, in one run.

    python -m tests.bench.spool [--quick] [--directory DIR]

The same requests of 512 spans (1 % and 100 % of their traces RAG, with 5 KB of contexts) go through the real border and
assembler, eight at a time: in memory, then with a spool that writes them before they are acknowledged and deletes them
when their traces are settled, which here is when they are released. CPU is that of all threads. With `--screened` the
released traces are examined and scored as well (in this process), which is what a sidecar does with them.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time

from collector.assembly.assembler import Assembler
from collector.assembly.options import Options
from collector.config import Config
from collector.examine import Examination
from collector.otlp.model import Encoding
from collector.otlp.request import Interner
from collector.pipeline.clock import ManualClock
from collector.pipeline.options import SpoolOptions
from collector.pipeline.spool import Spool
from collector.receivers.border import Accepted, Border
from collector.records.batch import Signal
from collector.records.trace import ReleasedTrace
from collector.telemetry.instruments import Telemetry
from tests.bench.assembly import BATCH, HINTS, requests
from tests.support.stores import Watched

AT_A_TIME = 8
PAUSE = AT_A_TIME * BATCH / 15_000
"""Of the assembler's clock: 15,000 spans a second."""


class Run:
    """One pass over the requests; `cpu` and `wall` in seconds."""

    def __init__(self, spool: Spool | None, *, screen: bool) -> None:
        self._clock = ManualClock()
        self._released: list[ReleasedTrace] = []
        telemetry = Telemetry()
        self._assembler = Assembler(
            Options(), hints=HINTS, clock=self._clock, telemetry=telemetry, downstream=self._released.append
        )
        self._border = Border(
            transport="grpc",
            intake=self._assembler,
            telemetry=telemetry,
            max_item_bytes=4 * 1024 * 1024,
            intern=Interner(),
            spool=spool,
        )
        self._spool = spool
        self._handle = Examination(Config().extract, Config().screening)() if screen else None
        self.traces = 0

    async def over(self, bodies: Sequence[bytes]) -> tuple[float, float]:
        start, wall = process_time(), perf_counter()
        for first in range(0, len(bodies), AT_A_TIME):
            answers = await asyncio.gather(
                *(
                    self._border.receive(body, Signal.TRACES, Encoding.PROTO)
                    for body in bodies[first : first + AT_A_TIME]
                )
            )
            assert all(isinstance(answer, Accepted) for answer in answers)
            self._pass_time(PAUSE)
        self._pass_time(1000)
        while self._spool is not None and self._spool.requests:
            await asyncio.sleep(0.01)
        return process_time() - start, perf_counter() - wall

    def _pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)
        self._assembler.tick()
        released, self._released[:] = list(self._released), []
        self.traces += len(released)
        receipts = [trace.receipt for trace in released]
        if self._handle is not None:
            self._handle([replace(trace, receipt=None) for trace in released])
        for receipt in receipts:
            if receipt is not None:
                receipt.release()


async def _measured(bodies: Sequence[bytes], directory: Path | None, *, screen: bool) -> tuple[float, float, int]:
    if directory is None:
        run = Run(None, screen=screen)
        return *await run.over(bodies), run.traces
    spool = Spool(directory / "spool.sqlite", SpoolOptions(max_bytes=2**31), full_sync=False, watcher=Watched())
    spool.open()
    run = Run(spool, screen=screen)
    cost = await run.over(bodies)
    await spool.close()
    return *cost, run.traces


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of the work")
    parser.add_argument("--directory", type=Path, help="where to spool; a temporary directory by default")
    parser.add_argument("--screened", action="store_true", help="with screening of what is released")
    args = parser.parse_args(argv)
    for share, count in ((0.01, 400), (1.0, 64)):
        bodies = requests(count // 5 if args.quick else count, share)
        spans = len(bodies) * BATCH
        rounds = []
        for _ in range(3 if args.quick else 5):
            with tempfile.TemporaryDirectory(dir=args.directory) as directory:
                memory = asyncio.run(_measured(bodies, None, screen=args.screened))
                spooled = asyncio.run(_measured(bodies, Path(directory), screen=args.screened))
            assert memory[2] == spooled[2]
            rounds.append((memory, spooled))
        print(f"{share:.0%} RAG: {spans} spans, {sum(map(len, bodies)) / spans:.0f} bytes a span, best of rounds")
        in_memory = min(memory[0] for memory, _ in rounds)
        for what, cpu, wall in (
            ("memory", in_memory, min(memory[1] for memory, _ in rounds)),
            ("spool", min(spooled[0] for _, spooled in rounds), min(spooled[1] for _, spooled in rounds)),
        ):
            print(
                f"  {what:8s} {cpu / spans * 1e6:8.3f} us of CPU a span = {cpu / in_memory:.2f} x memory; "
                f"{spans / wall:9.0f} spans a second"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
