"""The books: keys and rows together or not at all, receipts after, everything tried again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from collector.pipeline.books import Books
from collector.pipeline.clock import ManualClock
from collector.pipeline.options import BooksOptions
from collector.pipeline.receipt import Receipt
from tests.support.stores import Disk, Watched


class Sums:
    """A durable part of two rows."""

    name = "sums"

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}
        self.dirty: dict[str, bytes] = {}
        self.broken = False

    def put(self, key: str, value: bytes) -> None:
        self.dirty[key] = value

    def changed(self) -> Mapping[str, bytes]:
        dirty, self.dirty = self.dirty, {}
        return dirty

    def restore(self, rows: Mapping[str, bytes]) -> None:
        if self.broken:
            raise ValueError("rows of another world")
        self.rows = dict(rows)


class World:
    """Books in a directory, which may be opened again and again."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "books.sqlite"
        self.clock = ManualClock()
        self.disk = Disk()
        self.watched = Watched()
        self.settled: list[str] = []

    def open(self, part: Sums, **options: float) -> Books:
        books = Books(
            self.path,
            BooksOptions.model_validate(options),
            full_sync=False,
            clock=self.clock,
            watcher=self.watched,
            reached=self.disk,
        )
        books.register(part)
        books.open()
        return books

    def receipt(self, name: str) -> Receipt:
        return Receipt(lambda: self.settled.append(name))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_keys_and_rows_outlive_the_process(world: World) -> None:
    part = Sums()
    books = world.open(part)
    part.put("a", b"1")
    part.put("b", b"2")
    books.settled("i1")
    assert books.known("i1")
    assert await books.commit()
    assert books.known("i1")
    assert not books.known("i2")
    part.put("a", b"3")
    part.put("b", b"")  # taken away
    await books.close()
    again = Sums()
    books = world.open(again)
    assert again.rows == {"a": b"3"}
    assert books.known("i1")
    await books.close()
    assert world.path.stat().st_mode & 0o777 == 0o600
    assert world.watched.aside == world.watched.failures == world.watched.unread == []


async def test_a_receipt_is_released_when_its_key_is_written(world: World) -> None:
    books = world.open(Sums())
    receipt = world.receipt("one")
    books.settled("i1", receipt)
    receipt.release()
    assert world.settled == []
    assert await books.commit()
    assert world.settled == ["one"]
    points = ["books.before_commit", "books.after_commit", "books.before_release", "books.after_release"]
    assert world.disk.reached == points
    await books.close()


async def test_what_is_kept_elsewhere_is_waited_for_before_the_key_is_written(world: World) -> None:
    books = world.open(Sums())
    reached: list[list[str]] = []

    async def kept_elsewhere() -> None:
        reached.append(list(world.disk.reached))

    books.after(kept_elsewhere)
    books.settled("i1")
    assert await books.commit()
    assert reached == [[]], "before anything was written"
    assert world.disk.reached
    await books.close()


async def test_what_can_not_be_written_is_kept_and_tried_again(world: World) -> None:
    part = Sums()
    books = world.open(part)
    world.disk.full = True
    part.put("a", b"1")
    part.put("b", b"1")
    receipt = world.receipt("one")
    books.settled("i1", receipt)
    receipt.release()
    moments: list[str] = []
    assert not await books.commit(lambda: moments.append("unwritten"))
    assert not await books.commit()
    assert "disk is full" in world.watched.failures[0]
    assert books.known("i1")
    assert world.settled == []
    part.put("a", b"2")  # the last write of a row counts
    world.disk.full = False
    assert await books.commit(lambda: moments.append("written"))
    assert books.failing is None
    assert world.settled == ["one"]
    assert moments == ["unwritten", "written"]
    await books.close()
    again = Sums()
    books = world.open(again)
    assert again.rows == {"a": b"2", "b": b"1"}
    assert books.known("i1")
    await books.close()


@pytest.mark.parametrize("where", ["a row", "elsewhere"])
async def test_nothing_is_lost_by_an_error_of_another_kind(world: World, where: str) -> None:
    """A row whose name no file can hold, a store beside the books that raises: told, kept, and not the books' end."""
    part = Sums()
    books = world.open(part)
    part.put("a", b"1")
    receipt = world.receipt("one")
    books.settled("i1", receipt)
    receipt.release()
    troubled = True

    async def elsewhere() -> None:
        if troubled:
            raise KeyError("no such case")

    if where == "a row":
        part.put("half \ud83d", b"1")
    else:
        books.after(elsewhere)
    assert not await books.commit()
    assert not await books.commit()
    assert books.failing is not None
    assert len(world.watched.failures) == 2
    assert world.settled == []
    if where == "elsewhere":
        troubled = False
        assert await books.commit()
        assert world.settled == ["one"]
    await books.close()


async def test_nothing_is_written_of_a_group_that_fails(world: World) -> None:
    part = Sums()
    books = world.open(part)
    world.disk.full = True
    part.put("a", b"1")
    books.settled("i1")
    await books.close()
    again = Sums()
    world.disk.full = False
    books = world.open(again)
    assert again.rows == {}
    assert not books.known("i1")
    await books.close()


async def test_keys_are_forgotten_by_age_and_by_number(world: World) -> None:
    books = world.open(Sums(), window_seconds=100, max_keys=1_000)
    books.settled("old")
    await books.commit()
    world.clock.advance(101)
    for number in range(1_500):
        books.settled(f"i{number}")
    await books.commit()
    assert not books.known("old")
    assert not books.known("i0")
    assert books.known("i1499")
    assert sum(books.known(f"i{number}") for number in range(1_500)) == 1_000
    await books.close()


async def test_a_part_that_can_not_read_its_rows_begins_anew(world: World) -> None:
    part = Sums()
    books = world.open(part)
    part.put("a", b"1")
    await books.close()
    again = Sums()
    again.broken = True
    books = world.open(again)
    assert "sums can not be read" in world.watched.unread[0]
    await books.close()


async def test_a_damaged_file_is_set_aside_and_named(world: World) -> None:
    world.path.write_bytes(b"not a database, and longer than a header of one, so that it is read as one " * 3)
    books = world.open(Sums())
    (sentence,) = world.watched.aside
    aside = next(world.path.parent.glob("books.sqlite.bad-*"))
    assert str(world.path) in sentence
    assert aside.name in sentence
    assert aside.read_bytes().startswith(b"not a database")
    books.settled("i1")
    assert await books.commit()
    await books.close()


async def test_without_open_it_knows_nothing_and_closes(world: World) -> None:
    books = Books(
        world.path, BooksOptions(), full_sync=True, clock=world.clock, watcher=world.watched, reached=world.disk
    )
    receipt = world.receipt("one")
    books.settled("i1", receipt)
    assert not books.known("i1")
    assert await books.commit()
    await books.close()
    assert receipt.open
    with pytest.raises(ValueError, match="share a name"):
        books.register(Sums(), Sums())


async def test_a_place_that_can_not_hold_a_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "books.sqlite").mkdir()
    with pytest.raises(OSError, match=r"books\.sqlite"):
        World(tmp_path).open(Sums())
