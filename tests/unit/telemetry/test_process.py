"""Loop lag, memory and build, each seen to move."""

from __future__ import annotations

import asyncio
import mmap

from collector.pipeline.clock import ManualClock
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from collector.telemetry.loop_lag import LoopLag
from collector.telemetry.process import describe_process, resident_bytes


async def test_lag_is_how_late_the_loop_woke_and_the_longest_of_a_minute_is_kept() -> None:
    telemetry, clock = Telemetry(), ManualClock()
    late = [0.0, 0.5, 0.1, 0.2, 60.0, 0.0, 0.0]

    async def sleep(seconds: float) -> None:
        clock.advance(seconds + late.pop(0))

    lag = LoopLag(telemetry, clock, sleep=sleep)
    seen = []
    for _ in range(4):
        await lag.sample()
        seen.append(round(telemetry.registry.get_sample_value(metrics.LOOP_LAG_MAX.name) or 0, 6))
    assert seen == [0.0, 0.5, 0.5, 0.5]
    await lag.sample()
    clock.advance(59)
    await lag.sample()
    assert telemetry.registry.get_sample_value(metrics.LOOP_LAG_MAX.name) == 60.0
    clock.advance(61)
    await lag.sample()
    assert telemetry.registry.get_sample_value(metrics.LOOP_LAG_MAX.name) == 0.0
    assert telemetry.registry.get_sample_value(metrics.LOOP_LAG.name + "_count") == 7


async def test_run_samples_until_cancelled() -> None:
    telemetry, clock = Telemetry(), ManualClock()
    task = asyncio.create_task(LoopLag(telemetry, clock, sleep=lambda _: asyncio.sleep(0)).run())
    for _ in range(10):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert (telemetry.registry.get_sample_value(metrics.LOOP_LAG.name + "_count") or 0) >= 2


def test_memory_is_read_at_each_scrape() -> None:
    telemetry = Telemetry()
    describe_process(telemetry, version="9.9", unclean_shutdown=False)
    before = resident_bytes()
    size = 64 * 1024 * 1024
    with mmap.mmap(-1, size) as held:  # fresh pages: what the allocator had free would not show
        for page in range(0, size, mmap.PAGESIZE):
            held[page] = 1
        after = telemetry.registry.get_sample_value(metrics.PROCESS_MEMORY.name) or 0
    assert after - before > size / 2
    assert telemetry.registry.get_sample_value(metrics.UNCLEAN_SHUTDOWN.name) == 0
