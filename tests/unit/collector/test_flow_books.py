"""What was counted is not counted again: noticed when it is screened, or when two of it were under way together."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from collector.pipeline.books import Books
from collector.pipeline.clock import ManualClock
from collector.pipeline.options import BooksOptions
from collector.pipeline.receipt import Receipt
from collector.sampling.options import Options as SamplingOptions
from tests.support.line import Handle, Line, handler
from tests.support.stores import Disk, Watched
from tests.support.traces import body, rag_trace

ONE = body(rag_trace(random.Random(1)))


@pytest.fixture(scope="module")
def handle() -> Iterator[Handle]:
    yield handler()


@pytest.fixture
def disk() -> Disk:
    return Disk()


def books(directory: Path, disk: Disk) -> Books:
    made = Books(
        directory / "books.sqlite",
        BooksOptions(),
        full_sync=False,
        clock=ManualClock(),
        watcher=Watched(),
        reached=disk,
    )
    made.open()
    return made


def repeated(line: Line, noticed: str) -> float:
    value = line.telemetry.registry.get_sample_value(
        "groundwatch_interactions_repeated_total", {"noticed": noticed}
    )
    return value or 0.0


async def through(line: Line, receipt: Receipt) -> None:
    """One trace through the line, to its settlement."""
    await line.screening.start()
    line.take(ONE, receipt)
    await line.pass_time(20)


async def test_the_next_process_does_not_count_it_again(tmp_path: Path, handle: Handle, disk: Disk) -> None:
    settled: list[str] = []
    first = books(tmp_path, disk)
    line = Line(handle, books=first, sampling=SamplingOptions(rate=0.5))
    await through(line, Receipt(lambda: settled.append("first")))
    assert len(line.settled) == 1
    assert settled == []  # until it is written
    await first.close()
    assert settled == ["first"]
    await line.screening.stop(0)

    second = books(tmp_path, disk)
    again = Line(handle, books=second, sampling=SamplingOptions(rate=0.5))
    await through(again, Receipt(lambda: settled.append("second")))
    assert again.settled == []
    assert repeated(again, "screened") == 1
    assert settled == ["first", "second"]
    await again.screening.stop(0)
    await second.close()


async def test_two_of_it_under_way_together_are_counted_once(tmp_path: Path, handle: Handle, disk: Disk) -> None:
    released: list[str] = []
    line = Line(handle, sampling=SamplingOptions(rate=1.0))
    await through(line, Receipt(lambda: None))
    await line.screening.stop(0)
    (one,) = line.settled

    shared = books(tmp_path, disk)
    counted = Line(handle, books=shared)
    for name in ("first", "second"):
        counted.flow.settled(replace(one, receipt=Receipt(partial(released.append, name))))
    assert len(counted.settled) == 1
    assert repeated(counted, "settled") == 1
    assert released == ["second"]
    await shared.close()
    assert released == ["second", "first"]
