"""The state directory put together: what is read again, when, and what is said meanwhile."""

from __future__ import annotations

import asyncio
import logging
import random
from pathlib import Path

import pytest
from pydantic import ValidationError

from collector.config import Config
from collector.durability import State
from collector.otlp.request import Interner
from collector.pipeline.clock import ManualClock
from collector.pipeline.spool import Entry
from collector.pipeline.store import pass_by
from collector.receivers.border import Border
from collector.records.batch import Batch, Refusal
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from tests.support.traces import body, rag_trace

ONE = body(rag_trace(random.Random(1)))


class Intake:
    """Refuses while it has no room, then takes and holds."""

    def __init__(self) -> None:
        self.room = False
        self.asked = 0
        self.taken: list[Batch] = []

    def offer(self, batch: Batch) -> Refusal | None:
        self.asked += 1
        if not self.room:
            return Refusal("memory_full", 0.01)
        assert batch.receipt is not None
        batch.receipt.hold()
        self.taken.append(batch)
        return None


class World:
    """One process over the directory; `reasons` says why it is not ready."""

    def __init__(self, directory: Path, durability: str = "spool") -> None:
        self.telemetry = Telemetry()
        self.reasons: dict[str, str | None] = {}
        clock = ManualClock()
        config = Config.model_validate({"process": {"state_dir": directory / "state", "durability": durability}})
        self.state = State(
            config,
            clock=clock,
            telemetry=self.telemetry,
            events=Events(self.telemetry, clock, logging.getLogger("test.durability")),
            reason=self.reasons.__setitem__,
            reached=pass_by,
        )
        self.intake = Intake()
        self.border = Border(
            transport="http",
            intake=self.intake,
            telemetry=self.telemetry,
            max_item_bytes=100_000,
            intern=Interner(),
            spool=self.state.keeps,
        )

    def closed(self) -> str:
        """Why the border refuses everything; "" when it does not."""
        return self.border.closed.reason if self.border.closed is not None else ""

    def value(self, name: str, **labels: str) -> float:
        return self.telemetry.registry.get_sample_value(name, labels) or 0.0


async def left_behind(directory: Path) -> None:
    """A process that acknowledged a request and ended."""
    world = World(directory)
    world.state.open()
    assert world.state.keeps is not None
    assert await Entry(world.state.keeps).keep([("traces", "proto", ONE)])
    await world.state.close()


async def test_nothing_new_is_taken_until_the_spool_has_been_read_again(tmp_path: Path) -> None:
    await left_behind(tmp_path)
    world = World(tmp_path)
    world.state.open()
    reading = asyncio.create_task(world.state.read_again(world.intake, [world.border]))
    async with asyncio.timeout(10):
        while world.intake.asked < 2:
            await asyncio.sleep(0.01)
    assert world.closed() == "starting"
    assert world.reasons.get("spool") == "reading the spool again: 1 requests left"
    world.intake.room = True
    await reading
    assert world.closed() == ""
    assert world.reasons.get("spool") is None
    assert [len(batch) for batch in world.intake.taken] == [3]
    assert world.value("groundwatch_items_received_total", signal="traces") == 3
    assert world.value("groundwatch_spool_restored_total") == 1
    await world.state.close()


async def test_a_border_that_closed_meanwhile_stays_closed(tmp_path: Path) -> None:
    await left_behind(tmp_path)
    world = World(tmp_path)
    world.state.open()
    reading = asyncio.create_task(world.state.read_again(world.intake, [world.border]))
    async with asyncio.timeout(10):
        while not world.intake.asked:
            await asyncio.sleep(0.01)
    world.border.close(5)
    world.intake.room = True
    await reading
    assert world.closed() == "shutting_down"
    await world.state.close()


async def test_an_end_while_reading_leaves_the_rest_in_the_spool(tmp_path: Path) -> None:
    await left_behind(tmp_path)
    world = World(tmp_path)
    world.state.open()
    reading = asyncio.create_task(world.state.read_again(world.intake, [world.border]))
    async with asyncio.timeout(10):
        while not world.intake.asked:
            await asyncio.sleep(0.01)
    await world.state.close()
    await reading
    again = World(tmp_path)
    again.state.open()
    assert again.state.spool is not None
    assert again.state.spool.left == 1
    await again.state.close()


async def test_a_process_in_memory_reads_what_an_earlier_one_spooled_and_spools_nothing(tmp_path: Path) -> None:
    await left_behind(tmp_path)
    world = World(tmp_path, "memory")
    world.intake.room = True
    world.state.open()
    assert world.state.keeps is None
    await world.state.read_again(world.intake, [world.border])
    assert len(world.intake.taken) == 1
    await world.state.close()


async def test_a_damaged_spool_is_named_in_metrics_and_the_start_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await left_behind(tmp_path)
    spool = tmp_path / "state" / "spool.sqlite"
    spool.write_bytes(b"torn" * 5_000)
    world = World(tmp_path)
    world.state.open()
    assert world.value("groundwatch_state_files_set_aside", store="spool") == 1
    (line,) = [record for record in caplog.records if getattr(record, "event", "") == "state_set_aside"]
    assert str(spool) in str(line.__dict__["fields"]["reason"])
    await world.state.close()


def test_a_spool_needs_a_directory() -> None:
    with pytest.raises(ValidationError, match="durability: spool needs a directory"):
        Config.model_validate({"process": {"durability": "spool"}})
