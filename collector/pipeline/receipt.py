"""What a delivery still waits for: the way back from whoever held its content last to where it came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence


class Receipt:
    """Counts who still needs one delivery (a Kafka message, a spooled request, a released trace).

    It is born held once, by its maker, who lets go when the delivery has been handed on. Each holder that takes over
    a part of it calls `hold` before the giver calls `release`. When the last lets go, `settled` is called, once.
    Single-threaded: everything that holds lives on the event loop. It is never pickled; what goes to a worker
    process goes without.

    A delivery can be lost to somebody else, who is given it anew (a Kafka partition that moved): what was made of it
    here is then dropped by its holder, uncounted. Before that it may be in doubt whose it will be: what would be
    counted waits. It can be rejected by who finds out late that it can not be read.
    `parts` are the receipts that one receipt for several deliveries stands for.
    """

    __slots__ = ("_holders", "_in_doubt", "_lost", "_parts", "_settled", "rejected")

    def __init__(
        self,
        settled: Callable[[], None],
        *,
        parts: Sequence[Receipt] = (),
    ) -> None:
        self._holders = 1
        self._settled = settled
        self.rejected: Callable[[str], None] | None = None
        """Who is told that it can not be read; set by its maker, where somebody is."""
        self._parts = parts
        self._lost = False
        self._in_doubt = False

    @property
    def open(self) -> bool:
        """Whether somebody still needs the delivery."""
        return self._holders > 0

    @property
    def lost(self) -> bool:
        """Whether it, or a part of it, is somebody else's now."""
        return self._lost or any(part.lost for part in self._parts)

    def lose(self) -> None:
        """It is somebody else's from now on. Holders let go as always."""
        self._lost = True

    @property
    def in_doubt(self) -> bool:
        """Whether it is not known now if it, or a part of it, will be somebody else's."""
        return self._in_doubt or any(part.in_doubt for part in self._parts)

    def doubt(self, is_in_doubt: bool) -> None:
        """Say whether it is in doubt whose it will be."""
        self._in_doubt = is_in_doubt

    def reject(self, reason: str) -> None:
        """It can not be read, for a reason that is a constant of the code; tells its source, which counts it."""
        if self.rejected is not None:
            self.rejected(reason)

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
