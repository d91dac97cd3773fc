"""Who looks at which case now, so that two people are not handed the same one."""

from __future__ import annotations

from collections import OrderedDict

from collector.pipeline.clock import Clock

LOOKING_SECONDS = 600.0
_MOST = 1_000


class Desk:
    """A courtesy, not a lock: labels are safe by revisions. Bounded; forgets after ten minutes, and at a restart."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looking: OrderedDict[tuple[str, str], float] = OrderedDict()

    def sit(self, case_id: str, author: str) -> None:
        """`author` looks at the case."""
        self._looking[case_id, author] = self._clock.monotonic() + LOOKING_SECONDS
        self._looking.move_to_end((case_id, author))
        while len(self._looking) > _MOST:
            self._looking.popitem(last=False)

    def leave(self, case_id: str, author: str) -> None:
        self._looking.pop((case_id, author), None)

    def others(self, case_id: str, author: str | None) -> list[str]:
        """Who else looks at it."""
        return sorted(who for case, who in self._now() if case == case_id and who != author)

    def taken(self, author: str | None) -> frozenset[str]:
        """Cases that others look at."""
        return frozenset(case for case, who in self._now() if who != author)

    def _now(self) -> list[tuple[str, str]]:
        now = self._clock.monotonic()
        while self._looking and next(iter(self._looking.values())) <= now:
            self._looking.popitem(last=False)
        return list(self._looking)
