"""One partition: what waits, what is committed, what is lost."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from collector.receivers.kafka_offsets import Commit, Taken, settled_in
from collector.receivers.kafka_partition import Partition


@dataclass(frozen=True)
class One:
    """A message."""

    offset: int
    topic: str = "t"
    partition: int = 0
    timestamp: int = 0
    key: bytes | None = None
    value: bytes | None = b"x"
    headers: tuple[tuple[str, bytes], ...] = ()


def partition(committed: Commit | None = None, start: int = 0) -> Partition:
    return Partition("t", 0, committed, committed.offset if committed is not None else start)


def messages(*offsets: int) -> list[One]:
    return [One(offset) for offset in offsets]


def settle(one: Partition, *offsets: int) -> None:
    for waiting in list(one.waiting):
        if waiting.message.offset in offsets:
            one.waiting.remove(waiting)
            waiting.receipt.release()


def test_the_prefix_is_committed_and_what_is_settled_behind_it_is_named() -> None:
    one = partition(start=10)
    assert one.to_commit(4096) == Commit(10, "")  # a group without an offset gets one at once
    one.sent(Commit(10, ""))
    assert one.to_commit(4096) is None
    one.fetched(messages(10, 11, 12, 13), now=5.0)
    assert (one.offset, one.unsettled, one.oldest, one.fetch_from) == (10, 4, 5.0, 14)
    settle(one, 11, 13)
    commit = one.to_commit(4096)
    assert commit is not None
    assert commit.offset == 10
    assert settled_in(commit) == [range(11, 12), range(13, 14)]
    settle(one, 10)
    assert one.to_commit(4096) == Commit(12, one.to_commit(4096).text)  # type: ignore[union-attr]  # it changed
    settle(one, 12)
    assert one.to_commit(4096) == Commit(14, "")
    assert one.oldest is None


def test_a_new_owner_passes_over_what_was_settled_and_says_so() -> None:
    first = partition(start=0)
    first.fetched(messages(0, 1, 2, 3), now=0.0)
    settle(first, 1, 3)
    commit = first.to_commit(4096)
    assert commit is not None
    second = partition(commit)
    assert not second.foreign
    told = second.fetched(messages(0, 1, 2, 3, 4), now=0.0)
    assert told == Counter({Taken.NEW: 3, Taken.SETTLED: 2})
    assert [one.message.offset for one in second.waiting] == [0, 2, 4]


def test_a_message_that_comes_twice_waits_once() -> None:
    one = partition()
    one.fetched(messages(0, 1), now=0.0)
    settle(one, 1)
    assert one.fetched(messages(0, 1), now=1.0) == Counter({Taken.REPEATED: 1, Taken.SETTLED: 1})
    assert len(one.waiting) == 1


def test_a_text_that_is_not_ours_is_noticed_and_ignored() -> None:
    one = partition(Commit(5, "somebody else's"))
    assert one.foreign
    assert one.fetch_from == 5


def test_it_is_ours_while_the_coordinator_holds_what_we_sent() -> None:
    one = partition(Commit(0, ""))
    one.fetched(messages(0, 1), now=0.0)
    settle(one, 0)
    commit = one.to_commit(4096)
    assert commit is not None
    one.sending(commit)  # the answer is lost: the coordinator may hold either
    assert one.is_mine(Commit(0, ""))
    assert one.is_mine(commit)
    one.sent(commit)
    assert not one.is_mine(Commit(0, ""))
    assert not one.is_mine(Commit(2, ""))
    assert not one.is_mine(None)


def test_a_commit_that_had_to_leave_something_out_is_known_again() -> None:
    """The coordinator does not know that the text was cut."""
    one = partition()
    one.fetched(messages(*range(4000)), now=0.0)
    settle(one, *random.Random(1).sample(range(1, 4000), 1300))
    commit = one.to_commit(64)
    assert commit is not None
    assert not commit.whole
    one.sending(commit)
    assert one.is_mine(Commit(commit.offset, commit.text))


def test_it_is_full_when_a_commit_can_hardly_say_more_and_eases_late() -> None:
    one = partition()
    one.fetched(messages(*range(2000)), now=0.0)
    room = 240
    settle(one, *random.Random(2).sample(range(1, 1300), 250))
    assert one.to_commit(room) is not None
    assert one.full
    settle(one, *range(1200))
    commit = one.to_commit(room)
    assert commit is not None
    assert len(commit.text) < room * 0.6
    assert not one.full


def test_all_that_is_unsettled_is_in_doubt_while_nobody_knows_whose_it_will_be() -> None:
    one = partition()
    one.fetched(messages(0, 1, 2), now=0.0)
    receipts = [waiting.receipt for waiting in one.waiting]
    settle(one, 2)
    one.doubt(True)
    assert [receipt.in_doubt for receipt in receipts] == [True, True, False]
    one.doubt(False)
    assert not any(receipt.in_doubt for receipt in receipts)


def test_what_is_lost_says_so_to_whoever_holds_it() -> None:
    one = partition()
    one.fetched(messages(0, 1, 2), now=0.0)
    held = [waiting.receipt for waiting in one.waiting]
    held[0].hold()  # handed on: somebody holds it
    one.waiting[0].receipt.release()
    one.waiting.popleft()
    settle(one, 2)
    assert one.lose() == 2
    assert [receipt.lost for receipt in held] == [True, True, False]
    assert not one.waiting
    held[0].release()  # and lets go later, which is of no consequence
    assert not held[0].open
