"""The spool: kept before it is acknowledged, gone when it is settled, never deleted unread."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from pathlib import Path

import pytest

from collector.pipeline.options import MIB, SpoolOptions
from collector.pipeline.receipt import Receipt
from collector.pipeline.spool import Body, Entry, Spool
from tests.support.small_disk import small_disk
from tests.support.stores import Disk, Watched

SECRET = b"patient 4711 asked"


class World:
    def __init__(self, directory: Path) -> None:
        self.path = directory / "spool.sqlite"
        self.disk = Disk()
        self.watched = Watched()

    def open(self, *, max_bytes: int = MIB, full_sync: bool = False) -> Spool:
        spool = Spool(
            self.path,
            SpoolOptions(max_bytes=max_bytes),
            full_sync=full_sync,
            watcher=self.watched,
            reached=self.disk,
        )
        spool.open()
        return spool

    def content(self) -> bytes:
        """All bytes of the file and its log."""
        return b"".join(file.read_bytes() for file in sorted(self.path.parent.glob("spool.sqlite*")))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def body(content: bytes = SECRET) -> Body:
    return "traces", "proto", content


async def kept(spool: Spool, content: bytes = SECRET) -> Entry:
    entry = Entry(spool)
    assert await entry.keep([body(content)])
    return entry


async def read_again(spool: Spool) -> list[tuple[Body, Receipt]]:
    """All that an earlier process left, held."""
    found: list[tuple[Body, Receipt]] = []

    async def offer(one: Body, receipt: Receipt) -> None:
        receipt.hold()
        found.append((one, receipt))

    assert await spool.restore(offer) == len(found)
    return found


def failing(spool: Spool) -> bool:
    return spool.failing is not None


async def gone(spool: Spool, left: int) -> None:
    """Wait until no more requests than that are left."""
    async with asyncio.timeout(10):
        while spool.requests > left:
            await asyncio.sleep(0.01)


async def empty(spool: Spool) -> None:
    await gone(spool, 0)


@pytest.mark.parametrize("full_sync", [False, True])
async def test_what_was_kept_is_read_again_in_order_until_it_is_settled(world: World, full_sync: bool) -> None:
    spool = world.open(full_sync=full_sync)
    entries = [await kept(spool, b"%d" % number) for number in range(3)]
    entries[1].receipt.release()
    await asyncio.sleep(0)
    await spool.close()
    spool = world.open(full_sync=full_sync)
    assert (spool.requests, spool.bytes, spool.left) == (2, 2, 2)
    found = await read_again(spool)
    assert [one for one, _ in found] == [body(b"0"), body(b"2")]
    assert spool.left == 0
    for _, receipt in found:
        receipt.release()
    await empty(spool)
    later = await kept(spool, b"later")
    assert later.numbers == [4]  # numbers are not used twice while their requests are in the file
    await spool.close()
    assert world.watched.failures == world.watched.aside == world.watched.unread == []


async def test_what_is_settled_leaves_no_trace_in_the_file(world: World) -> None:
    spool = world.open()
    assert world.path.stat().st_mode & 0o777 == 0o600
    entry = await kept(spool, SECRET * 500)
    assert SECRET in world.content()
    entry.receipt.release()
    await empty(spool)
    assert spool.bytes == 0
    await spool.close()
    assert SECRET not in world.content()


async def test_what_nobody_holds_any_more_after_reading_is_deleted(world: World) -> None:
    spool = world.open()
    await kept(spool)
    await spool.close()
    spool = world.open()

    async def passed_over(_one: Body, _receipt: Receipt) -> None:
        """All of it is late, or repeated."""

    await spool.restore(passed_over)
    await empty(spool)
    await spool.close()


async def test_requests_that_come_together_are_one_transaction(world: World) -> None:
    spool = world.open()
    entries = [Entry(spool) for _ in range(50)]
    assert all(await asyncio.gather(*(entry.keep([body()]) for entry in entries)))
    assert world.disk.reached.count("spool.after_commit") <= 3
    assert world.disk.reached.count("spool.before_acknowledge") == 50
    await spool.close()


async def test_it_is_full_by_bytes(world: World) -> None:
    spool = world.open(max_bytes=MIB)
    first = await kept(spool, bytes(MIB - 1))
    assert spool.bytes < MIB
    await kept(spool, bytes(10))
    assert spool.full
    first.receipt.release()
    await gone(spool, 1)
    assert spool.bytes == 10
    await spool.close()


async def test_it_is_full_where_what_comes_behind_has_no_room(world: World) -> None:
    spool = world.open()
    assert not spool.full
    spool.no_room = lambda: True
    assert spool.full


async def test_a_disk_that_hangs_fills_no_memory(world: World) -> None:
    hangs = threading.Event()

    def reached(point: str) -> None:
        if point == "spool.before_commit":
            hangs.wait(10)

    spool = Spool(world.path, SpoolOptions(), full_sync=False, watcher=world.watched, reached=reached)
    spool.open()
    waiting = []
    while not spool.full:
        waiting.append(asyncio.ensure_future(Entry(spool).keep([body(bytes(8 * MIB))])))
        await asyncio.sleep(0)
        assert len(waiting) <= 8
    hangs.set()
    assert all(await asyncio.gather(*waiting))
    assert spool.bytes == len(waiting) * 8 * MIB
    await kept(spool)
    await spool.close()


async def test_what_could_not_be_written_is_written_when_it_can_be(world: World) -> None:
    spool = world.open()
    world.disk.full = True
    lost, held = Entry(spool), Entry(spool)
    assert not await lost.keep([body(b"lost")])
    assert not await held.keep([body(b"held")])
    assert failing(spool)
    assert "disk is full" in world.watched.failures[0]
    assert not await spool.written()
    lost.receipt.release()  # its traces were given up meanwhile
    world.disk.full = False
    async with asyncio.timeout(10):
        while failing(spool):  # it finds out by itself
            await asyncio.sleep(0.05)
    assert await spool.written()
    await spool.close()
    spool = world.open()
    assert [one for one, _ in await read_again(spool)] == [body(b"held")]
    await spool.close()


async def test_nothing_is_written_without_what_came_before_it(world: World) -> None:
    spool = world.open()
    world.disk.full = True
    first, second = Entry(spool), Entry(spool)
    writing = asyncio.ensure_future(first.keep([body(b"first")]))
    await asyncio.sleep(0)
    while "spool.before_commit" not in world.disk.reached:
        pass  # the writer's thread fails it; this thread does not know yet
    world.disk.full = False
    after = asyncio.ensure_future(second.keep([body(b"second")]))
    assert not any(await asyncio.gather(writing, after))
    await spool.close()


@pytest.mark.parametrize("kind", ["noise", "foreign", "newer", "torn"])
async def test_a_file_that_can_not_be_used_is_set_aside(world: World, kind: str) -> None:
    if kind == "noise":
        world.path.write_bytes(os.urandom(50_000))
    elif kind == "torn":
        spool = world.open()
        await kept(spool, bytes(100_000))
        await spool.close()
        world.path.write_bytes(world.path.read_bytes()[:9_000])
    else:
        with sqlite3.connect(world.path) as other:
            other.execute("CREATE TABLE theirs (one)")
            if kind == "newer":
                other.execute(f"PRAGMA application_id = {0x47574348}")
                other.execute("PRAGMA user_version = 99")
        other.close()
    before = world.path.read_bytes()
    spool = world.open()
    (sentence,) = world.watched.aside
    aside = next(world.path.parent.glob("spool.sqlite.bad-*"))
    assert str(world.path) in sentence
    assert aside.name in sentence
    assert aside.read_bytes() == before
    await kept(spool)
    await spool.close()


async def test_a_request_that_can_not_be_read_costs_itself_only(world: World) -> None:
    spool = world.open()
    await kept(spool, b"bad")
    await kept(spool, b"good")
    await spool.close()
    spool = world.open()
    given: list[bytes] = []

    async def offer(one: Body, _receipt: Receipt) -> None:
        if one[2] == b"bad":
            raise ValueError("no request")
        given.append(one[2])

    assert await spool.restore(offer) == 1
    assert given == [b"good"]
    assert "request 1" in world.watched.unread[0]
    await empty(spool)
    await spool.close()


async def test_a_full_disk_refuses_and_recovers_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 2) as place:
        world = World(place)
        spool = world.open(max_bytes=64 * MIB)
        (place / "ballast").write_bytes(bytes(1_400_000))
        entries: list[Entry] = []
        written = 0
        while not failing(spool):
            entries.append(Entry(spool))
            written += await entries[-1].keep([body(bytes(100_000))])
            assert written < 10
        assert "full" in world.watched.failures[0]
        (place / "ballast").unlink()
        async with asyncio.timeout(20):
            while failing(spool):
                await asyncio.sleep(0.05)
        await kept(spool)
        await spool.close()
        spool = world.open()
        assert len(await read_again(spool)) == len(entries) + 1
        await spool.close()
