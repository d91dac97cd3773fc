"""Screening beside ingest: does it keep the event loop free, and how many interactions a second come through?

    python -m tests.bench.screening [--workers N] [--seconds S] [--quick]

The loop is asked to wake up every 5 ms and to do a little work, as a receiver does; how late it is done is the
latency that screening could add to ingest. Measured first with an idle loop, then while a stage with worker
processes screens as fast as it can, in one run on one machine. Aim: the 99th percentile within 10 ms of the idle one.
The same load screened in this process (`workers: 0`) shows what the processes are for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script too

from collector.otlp.model import Encoding, RawItem
from collector.pipeline.clock import SystemClock
from collector.pipeline.workers import WorkerPool
from collector.records.found import Found
from collector.records.settled import Screened
from collector.records.trace import Release, ReleasedTrace
from collector.screening.options import Options
from collector.screening.screen import Examined, Screen, handler
from collector.screening.stage import Screening
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction, Passage
from tests.bench.local_speed import interactions

PERIOD = 0.005


@dataclass(frozen=True)
class Factory:
    """Makes a worker's handler; extraction is reduced to reading JSON, so that screening is what is measured."""

    options: Options

    def __call__(self) -> Callable[[list[ReleasedTrace]], list[Examined]]:
        return handler(_examine, Screen(self.options))


def _examine(trace: ReleasedTrace) -> tuple[Sequence[Found], str, int]:
    raw = json.loads(trace.spans[0].data)
    passages = tuple(Passage(text) for text in raw["contexts"])
    return [Found(Interaction(trace.trace_id, raw["question"], passages, raw["response"]))], "interactions", 0


def traces(count: int) -> list[ReleasedTrace]:
    found = []
    for one in interactions(count):
        raw = {
            "question": one.question,
            "contexts": [passage.text for passage in one.contexts or ()],
            "response": one.response,
        }
        item = RawItem(json.dumps(raw).encode(), b"", b"", Encoding.JSON)
        found.append(ReleasedTrace(f"{len(found):032x}", (item,), (), Release.QUIET, True, 0))
    return found


async def lateness(seconds: float) -> list[float]:
    """How late the loop finished each small piece of work, in milliseconds."""
    found: list[float] = []
    end = time.monotonic() + seconds
    due = time.monotonic() + PERIOD
    while time.monotonic() < end:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        sum(range(2_000))
        found.append((time.monotonic() - due) * 1000)
        due = max(due + PERIOD, time.monotonic())
    return found


async def under_load(workers: int, seconds: float, load: Sequence[ReleasedTrace]) -> tuple[list[float], float]:
    """Lateness while a stage screens as fast as it can, and the interactions a second that came out of it."""
    options = Options(workers=workers)
    done: list[Screened] = []
    pool: WorkerPool[ReleasedTrace, Examined] = WorkerPool(Factory(options), workers=workers)
    await pool.start()
    stage = Screening(
        options,
        pool=pool,
        clock=SystemClock(),
        telemetry=Telemetry(CollectorRegistry()),
        downstream=done.append,
    )
    await stage.start()

    async def feed() -> None:
        number = 0
        while True:
            while stage.waiting < 4 * options.batch_traces:
                stage.accept(load[number % len(load)])
                number += 1
            await asyncio.sleep(PERIOD)

    feeding = asyncio.create_task(feed())
    await asyncio.sleep(0.5)
    before = len(done)
    found = await lateness(seconds)
    rate = (len(done) - before) / seconds
    feeding.cancel()
    await stage.stop(0)
    await pool.stop(1)
    return found, rate


def _p99(found: Sequence[float]) -> float:
    return statistics.quantiles(found, n=100)[98] if len(found) > 2 else max(found)


async def run(workers: int, seconds: float) -> None:
    load = traces(64 if seconds < 1 else 256)
    idle = await lateness(seconds)
    print(f"idle loop:            median {statistics.median(idle):6.2f} ms, 99 % {_p99(idle):6.2f} ms late")
    for count in (workers, 0):
        found, rate = await under_load(count, seconds, load)
        name = f"{count} worker process(es)" if count else "in this process"
        print(
            f"{name:21} median {statistics.median(found):6.2f} ms, 99 % {_p99(found):6.2f} ms late "
            f"({_p99(found) - _p99(idle):+.2f} ms to idle), {rate:.0f} interactions/s"
        )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--quick", action="store_true", help="half a second of each")
    args = parser.parse_args(argv)
    asyncio.run(run(args.workers, 0.5 if args.quick else args.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
