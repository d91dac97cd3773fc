"""What a scrape costs, and how long it holds up the event loop.

Run `python tests/bench/scrape.py [--quick] [--series N]`. Prints CPU milliseconds a scrape for our exporter and,
as the baseline of the same run, for prometheus_client's own rendering of as many counters; and the longest gap
between turns of the event loop while scrapes run beside a loop that only yields, and of that loop without scrapes.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.openmetrics.exposition import generate_latest

from collector.estimates.estimates import Estimates
from collector.estimates.measures import Measure
from collector.estimates.options import Options
from collector.exporters.prometheus import PrometheusExporter
from collector.pipeline.clock import SystemClock
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.records.settled import Settled
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction
from scorers.outcome import Result, Score
from scorers.scorer import Kind, Tier

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
JUDGED = [
    Measure(name, Kind.JUDGED) for name in ("faithfulness", "groundedness", "context_relevance", "noncommittal")
]
LOCAL = [Measure(name, Kind.LOCAL, Tier.FAST) for name in ("faithfulness", "groundedness", "context_relevance")]


def filled(series: int) -> tuple[Estimates, Telemetry]:
    """Estimates with about `series` time series, every one moved."""
    telemetry = Telemetry()
    estimates = Estimates(
        Options(series_budget=series),
        declared=JUDGED + LOCAL,
        segment_names=["service"],
        clock=SystemClock(),
        telemetry=telemetry,
    )
    service = 0
    while True:
        before = estimates.series
        results = tuple(Result("i", m.metric, m.kind, Score(0.73), "1", "f", tier=m.tier) for m in LOCAL)
        judged = tuple(Result("i", m.metric, m.kind, Score(0.31), "1", "f") for m in JUDGED)
        segments = (("service", f"service-{service}"),)
        estimates.settle(
            Settled(Found(Interaction("i")), Decision(Fate.QUEUED, 0.07, "rate"), results, judged, segments)
        )
        if estimates.series == before:
            return estimates, telemetry
        service += 1


def plain_registry(series: int) -> CollectorRegistry:
    """As many counters with labels, made and rendered by prometheus_client alone."""
    registry = CollectorRegistry()
    counter = Counter("groundwatch_plain", "A counter.", ["metric", "service", "outcome"], registry=registry)
    for n in range(series):
        counter.labels("faithfulness", f"service-{n}", "scored").inc(0.1 * n)
    return registry


async def longest_gap(seconds: float, exporter: PrometheusExporter | None) -> float:
    """Longest time in seconds between two turns of the loop, with or without scrapes beside it."""
    done = False

    async def scrapes() -> None:
        while exporter is not None and not done:
            await exporter.render(OPENMETRICS, "gzip")

    task = asyncio.create_task(scrapes())
    longest, last, end = 0.0, time.perf_counter(), time.perf_counter() + seconds
    while last < end:
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    done = True
    await task
    return longest


async def measure(series: int, rounds: int, seconds: float) -> None:
    estimates, telemetry = filled(series)
    exporter = PrometheusExporter(telemetry.registry, [estimates])
    registry = plain_registry(estimates.series)
    ours, theirs = [], []
    for _ in range(rounds):
        start = time.process_time()
        body, _ = await exporter.render(OPENMETRICS)
        ours.append(time.process_time() - start)
        start = time.process_time()
        generate_latest(registry)  # type: ignore[no-untyped-call]  # prometheus_client leaves it untyped
        theirs.append(time.process_time() - start)
    samples = sum(1 for line in body.splitlines() if not line.startswith(b"#"))
    own, baseline = statistics.median(ours), statistics.median(theirs)
    print(f"series of the sums      {estimates.series}")
    print(f"samples in the scrape   {samples} ({len(body):,} bytes)")
    print(f"CPU a scrape            {own * 1e3:.1f} ms (all samples)")
    print(f"prometheus_client alone {baseline * 1e3:.1f} ms for as many counters; ratio {own / baseline:.2f}")
    quiet = min([await longest_gap(seconds, None) for _ in range(3)])
    busy = min([await longest_gap(seconds, exporter) for _ in range(3)])
    print(
        f"longest loop gap        {busy * 1e3:.1f} ms with scrapes, {quiet * 1e3:.1f} ms without (least of 3 runs)"
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Cost of a scrape.")
    parser.add_argument("--series", type=int, default=2_000, help="time series of the weighted sums")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    arguments = parser.parse_args(argv)
    rounds, seconds = (5, 0.3) if arguments.quick else (30, 2.0)
    asyncio.run(measure(arguments.series, rounds, seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
