"""What a delivery still waits for: the way back from whoever held its content last to where it came from."""

from __future__ import annotations

from collections.abc import Callable


class Receipt:
    """Counts who still needs one delivery (a Kafka message, a spooled request, a released trace).

    It is born held once, by its maker, who lets go when the delivery has been handed on. Each holder that takes over
    a part of it calls `hold` before the giver calls `release`. When the last lets go, `settled` is called, once.
    Single-threaded: everything that holds lives on the event loop. It is never pickled; what goes to a worker
    process goes without.
    """

    __slots__ = ("_holders", "_settled")

    def __init__(self, settled: Callable[[], None]) -> None:
        self._holders = 1
        self._settled = settled

    @property
    def open(self) -> bool:
        """Whether somebody still needs the delivery."""
        return self._holders > 0

    def hold(self) -> None:
        """One more needs it. Raises RuntimeError when it has been settled: it can not be unsettled."""
        if not self._holders:
            raise RuntimeError("a receipt was held after it had been settled")
        self._holders += 1

    def release(self) -> None:
        """One less needs it. Raises RuntimeError when nobody held it: somebody let go twice."""
        if not self._holders:
            raise RuntimeError("a receipt was released more often than it was held")
        self._holders -= 1
        if not self._holders:
            self._settled()
