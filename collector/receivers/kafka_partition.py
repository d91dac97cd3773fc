"""One partition that this process consumes: what was fetched, what waits, what was committed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, Protocol

from collector.pipeline.receipt import Receipt
from collector.receivers.kafka_offsets import Commit, Held, Progress, Taken, settled_in

_FULL, _EASY = 0.8, 0.6
"""Share of the room in a commit from which the partition is paused, and down to which it stays so."""
_CHARS_EACH = 2.5
"""What one unsettled message among settled ones adds to the text of a commit, at most, where runs are short."""


class Message(Protocol):
    """What is read of aiokafka's ConsumerRecord."""

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...

    @property
    def offset(self) -> int: ...

    @property
    def timestamp(self) -> int: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...

    @property
    def headers(self) -> Sequence[tuple[str, bytes]]: ...


class Waiting(NamedTuple):
    """A message that was fetched and not handed on, with its receipt, which is held once."""

    message: Message
    receipt: Receipt


class Partition:
    """`committed` is what the group's coordinator is known to hold, None where it holds nothing."""

    def __init__(self, topic: str, number: int, committed: Commit | None, start: int) -> None:
        self.topic = topic
        self.number = number
        settled = settled_in(committed) if committed is not None and committed.offset == start else []
        self.foreign = settled is None
        """Whether the commit carries a text that is not ours, or is damaged."""
        self._progress = Progress(start, settled or ())
        self._known: set[Commit | None] = {committed}
        self._sent: Commit | None = committed
        self.waiting: deque[Waiting] = deque()
        self.full = False
        self.highwater = start

    @property
    def fetch_from(self) -> int:
        """The first message that was not fetched."""
        return self._progress.fetch_from

    @property
    def offset(self) -> int:
        """The first message that is not settled."""
        return self._progress.offset

    @property
    def unsettled(self) -> int:
        return self._progress.unsettled

    @property
    def oldest(self) -> float | None:
        """Since when the first unsettled message is here, in monotonic seconds."""
        return self._progress.oldest()

    def fetched(self, messages: Sequence[Message], now: float) -> Counter[Taken]:
        """Take what was fetched, in order; what is new waits. How many were what to us."""
        told: Counter[Taken] = Counter()
        for message in messages:
            offset = message.offset
            taken = self._progress.take(offset)
            told[taken] += 1
            if taken is Taken.NEW:
                receipt = Receipt(partial(self._progress.settle, offset))
                self._progress.hold(offset, Held(now, receipt))
                self.waiting.append(Waiting(message, receipt))
        return told

    def look(self, room: int) -> None:
        """Set `full`, where so much waits that it may be: between commits many messages may come."""
        if self.unsettled * _CHARS_EACH > room * _FULL:
            self.to_commit(room)

    def to_commit(self, room: int) -> Commit | None:
        """What to commit, None where nothing changed; sets `full`."""
        commit = self._progress.commit(room)
        self.full = not commit.whole or len(commit.text) > room * (_EASY if self.full else _FULL)
        return None if commit._replace(whole=True) == self._sent else commit

    def sending(self, commit: Commit) -> None:
        """A commit is sent: from now on the coordinator may hold it, whether its answer arrives or not."""
        self._known.add(commit._replace(whole=True))

    def sent(self, commit: Commit) -> None:
        """The coordinator holds it."""
        self._sent = commit._replace(whole=True)
        self._known = {self._sent}

    def is_mine(self, committed: Commit | None) -> bool:
        """Whether what the coordinator holds was written by this process: then nobody else had the partition."""
        return committed in self._known

    def doubt(self, is_in_doubt: bool) -> None:
        """Say whether it is in doubt whose it will be: as long as it is, nothing is counted of its messages."""
        for held in self._progress.held():
            held.receipt.doubt(is_in_doubt)

    def lose(self) -> int:
        """It is somebody else's: what was made of its messages is to be dropped. How many were unsettled."""
        lost = list(self._progress.held())
        for held in lost:
            held.receipt.lose()
        for waiting in self.waiting:
            waiting.receipt.release()
        self.waiting.clear()
        return len(lost)
