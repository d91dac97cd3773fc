"""Offsets of a partition against a plain model: what is settled is never taken again, what is not always is."""

from __future__ import annotations

import zlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.pipeline.receipt import Receipt
from collector.receivers.kafka_offsets import Commit, Held, Progress, Taken, _text, settled_in


def receipt() -> Receipt:
    return Receipt(lambda: None)


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[int], set[int]]:
    """First offset, offsets that came (with gaps), and which of them were settled."""
    first = draw(st.integers(0, 2**40))
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, 7, 300]), max_size=200))
    offsets, at = [], first
    for step in steps:
        offsets.append(at)
        at += step
    settled = {offset for offset in offsets if draw(st.booleans())} if offsets else set()
    return first, offsets, settled


def run(first: int, offsets: list[int], settled: set[int]) -> Progress:
    progress = Progress(first)
    for offset in offsets:
        assert progress.take(offset) is Taken.NEW
        progress.hold(offset, Held(0.0, receipt()))
    for offset in settled:
        progress.settle(offset)
    return progress


@settings(deadline=None)
@given(histories(), st.integers(1, 4096))
def test_a_new_owner_takes_exactly_what_is_not_settled(
    history: tuple[int, list[int], set[int]], room: int
) -> None:
    first, offsets, settled = history
    progress = run(first, offsets, settled)
    commit = progress.commit(room)
    assert len(commit.text) <= room
    waiting = [offset for offset in offsets if offset not in settled]
    assert commit.offset == (waiting[0] if waiting else offsets[-1] + 1 if offsets else first)

    found = settled_in(commit)
    assert found is not None
    named = {offset for run_ in found for offset in run_}
    assert not named.intersection(waiting)
    owner = Progress(commit.offset, found)
    assert owner.offset == commit.offset
    assert owner.fetch_from == commit.offset
    for offset in offsets:
        if offset < commit.offset:
            continue
        taken = owner.take(offset)
        assert taken is (Taken.SETTLED if offset in named else Taken.NEW)
        if taken is Taken.NEW:
            owner.hold(offset, Held(0.0, receipt()))
        if commit.whole:
            assert (taken is Taken.SETTLED) == (offset in settled)
    assert owner.unsettled == len([o for o in offsets if o >= commit.offset and o not in named])


@settings(deadline=None)
@given(histories(), histories())
def test_what_a_former_owner_settled_outlives_a_second_move(
    history: tuple[int, list[int], set[int]], other: tuple[int, list[int], set[int]]
) -> None:
    """A commit of an owner that has fetched only a part names what it was told of the rest."""
    first, offsets, settled = history
    commit = run(first, offsets, settled).commit(100_000)
    second = Progress(commit.offset, settled_in(commit) or ())
    for offset in [o for o in offsets if o >= commit.offset][: len(other[1])]:
        if second.take(offset) is Taken.NEW:
            second.hold(offset, Held(0.0, receipt()))
    again = second.commit(100_000)
    third = Progress(again.offset, settled_in(again) or ())
    for offset in [o for o in offsets if o >= again.offset]:
        taken = third.take(offset)
        assert (taken is Taken.SETTLED) == (offset in settled)
        if taken is Taken.NEW:
            third.hold(offset, Held(0.0, receipt()))
    assert all(o in settled for o in offsets if o < again.offset)


@settings(deadline=None)
@given(histories(), st.integers(0, 2**40))
def test_a_text_of_another_offset_is_refused(history: tuple[int, list[int], set[int]], offset: int) -> None:
    commit = run(*history).commit(4096)
    if commit.text and offset != commit.offset:
        assert settled_in(Commit(offset, commit.text)) is None


@given(st.text(max_size=200), st.sampled_from(["", "gw1", "gw1r", "gw1R", "gw1b", "gw1B", "gw2r"]))
@settings(max_examples=300, deadline=None)
def test_no_text_breaks_the_reader(text: str, start: str) -> None:
    found = settled_in(Commit(7, start + text))
    assert found is None or all(run_.start >= 7 for run_ in found)


@given(st.binary(max_size=400), st.sampled_from("rRbB"))
@settings(max_examples=300, deadline=None)
def test_no_payload_with_a_right_checksum_costs_more_than_it_is_long(payload: bytes, kind: str) -> None:
    packed = zlib.compress(payload) if kind.isupper() else payload
    text = _text(7, kind, packed)
    found = settled_in(Commit(7, text))
    if found is not None:
        Progress(7, found)
        assert all(one.stop <= other.start for one, other in pairwise(found))


@pytest.mark.parametrize(
    "payload",
    [
        b"\xff\xff\xff\xff\xff\x7f\x01",  # four million million unsettled ones
        b"\xff" * 1000 + b"\x01\x01",
        b"\x01\x00",
        (b"\xff\xff\x03\x01" * 20),  # 65,535 twenty times
    ],
)
def test_claims_that_no_process_can_have_made(payload: bytes) -> None:
    assert settled_in(Commit(7, _text(7, "r", payload))) is None


def test_a_payload_that_unpacks_to_more_than_is_allowed_is_refused() -> None:
    bomb = zlib.compress(bytes(50_000_000))
    assert settled_in(Commit(7, _text(7, "B", bomb))) is None
