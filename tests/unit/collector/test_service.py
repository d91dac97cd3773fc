"""Starting, draining and forcing, in the promised order."""

from __future__ import annotations

import asyncio
import logging
import signal

import pytest
from prometheus_client import CollectorRegistry

from collector.pipeline.clock import SystemClock
from collector.service import Part, Service
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.service: Service | None = None

    def part(self, name: str, *, start_fails: bool = False, stop_fails: bool = False, hang: bool = False) -> Part:
        async def start() -> None:
            self.lines.append(f"start {name}")
            if start_fails:
                raise OSError(name)

        async def stop(seconds: float) -> None:
            self.lines.append(f"stop {name}")
            if stop_fails:
                raise ValueError(name)
            if hang:
                await asyncio.Event().wait()

        return Part(name, start, stop)


def _service(log: Log, *parts: Part, on_ready: bool = True) -> Service:
    clock = SystemClock()
    events = Events(Telemetry(CollectorRegistry()), clock, logging.getLogger("test"))

    def ready() -> None:
        log.lines.append("ready")
        if on_ready:
            service.ask_to_stop()

    service = Service(
        start_order=parts,
        stop_order=tuple(reversed(parts)),
        grace_seconds=30,
        clock=clock,
        events=events,
        on_state=lambda reason: log.lines.append(f"state {reason}"),
        on_ready=ready,
        on_reload=lambda: log.lines.append("reload"),
    )
    return service


async def test_starts_downstream_first_and_stops_upstream_first() -> None:
    log = Log()
    code = await _service(log, log.part("sink"), log.part("source")).run()
    assert code == 0
    assert log.lines == [
        "start sink",
        "start source",
        "state None",
        "ready",
        "state shutting down",
        "stop source",
        "stop sink",
    ]


async def test_a_part_that_can_not_start_stops_the_others_and_its_error_is_kept() -> None:
    log = Log()
    with pytest.raises(OSError, match="source"):
        await _service(log, log.part("sink"), log.part("source", start_fails=True)).run()
    assert log.lines[-1] == "stop sink"


async def test_a_part_that_fails_to_stop_does_not_keep_the_others() -> None:
    log = Log()
    code = await _service(log, log.part("sink"), log.part("source", stop_fails=True)).run()
    assert code == 0
    assert log.lines[-1] == "stop sink"


async def test_a_second_request_forces_the_end_of_a_drain_that_hangs() -> None:
    log = Log()
    service = _service(log, log.part("sink"), log.part("source", hang=True))
    run = asyncio.create_task(service.run())
    while "stop source" not in log.lines:
        await asyncio.sleep(0)
    service.ask_to_stop()
    assert await run == 1
    assert "stop sink" not in log.lines


async def test_a_hangup_asks_to_read_the_configuration_again() -> None:
    log = Log()
    service = _service(log, log.part("sink"), on_ready=False)
    run = asyncio.create_task(service.run())
    while "ready" not in log.lines:
        await asyncio.sleep(0)
    signal.raise_signal(signal.SIGHUP)
    while "reload" not in log.lines:
        await asyncio.sleep(0)
    service.ask_to_stop()
    assert await run == 0
