"""What a message of results costs the event loop, against the screening of the interaction that it tells of.

`python tests/bench/results_topic.py [--quick]`: CPU of `KafkaResults.settle` and of its sending, with and without
content, over a producer that acknowledges at once; the brokers' side of aiokafka is not in it.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from collector.exporters.kafka import KafkaResults
from collector.exporters.kafka_options import KafkaResultsOptions
from collector.pipeline.clock import SystemClock
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.records.settled import Settled
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction, Passage
from scorers.local import DEFAULT, build
from scorers.run import run_local
from scorers.scorer import Tier

_PASSAGE = "The hotel limit is 120 euros per night; a higher rate needs the consent of the head of department. "
_ROUNDS = 5


class _Acknowledges:
    """A producer that has everything at once."""

    def __init__(self) -> None:
        self.bytes = 0

    async def send(self, key: bytes, value: bytes) -> asyncio.Future[Any]:
        self.bytes += len(value)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    async def close(self) -> None:
        """Nothing to let go of."""


def _interactions(count: int) -> list[Interaction]:
    return [
        Interaction(
            f"id-{number}",
            "What is the hotel limit per night?",
            tuple(Passage(f"{number} {rank} {_PASSAGE * 10}", id=f"d{rank}") for rank in range(5)),
            f"The hotel limit is 120 euros per night, number {number}.",
        )
        for number in range(count)
    ]


async def _written(settled: Sequence[Settled], *, content: bool) -> tuple[float, float]:
    """Seconds of CPU and bytes of JSON for each interaction."""
    producer, clock, telemetry = _Acknowledges(), SystemClock(), Telemetry()

    async def connect() -> _Acknowledges:
        return producer

    results = KafkaResults(
        KafkaResultsOptions(brokers=("127.0.0.1:9092",), topic="results"),
        connect=connect,
        content=content,
        version="bench",
        judge_model=None,
        durable=False,
        clock=clock,
        telemetry=telemetry,
        events=Events(telemetry, clock, logging.getLogger("bench")),
        on_state=lambda _: None,
    )
    task = asyncio.create_task(results.run())
    started = time.process_time()
    for one in settled:
        results.settle(one)
    await results.flush(60)
    seconds = time.process_time() - started
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert results.waiting == 0
    return seconds / len(settled), producer.bytes / len(settled)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the figures; 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer interactions")
    args = parser.parse_args(argv)
    count = 100 if args.quick else 1_000
    interactions = _interactions(count)
    scorers = build(DEFAULT, Tier.FAST)
    run_local(scorers, interactions[:10])
    started = time.process_time()
    local = run_local(scorers, interactions)
    screening = (time.process_time() - started) / count
    settled = [
        Settled(
            Found(one, trace_ids=("ab" * 16,), service="shop"), Decision(Fate.QUEUED, 0.5, "floor"), tuple(own), ()
        )
        for one, own in zip(interactions, local, strict=True)
    ]
    sys.stdout.write(f"screening, fast tier: {screening * 1e6:.0f} us of CPU an interaction\n")
    for content in (False, True):
        rounds = [asyncio.run(_written(settled, content=content)) for _ in range(1 if args.quick else _ROUNDS)]
        seconds = statistics.median(one for one, _ in rounds)
        sys.stdout.write(
            f"message {'with' if content else 'without'} content: {seconds * 1e6:.0f} us, {rounds[0][1]:.0f} bytes; "
            f"{seconds / screening:.3f} of screening\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
