"""Which traces were closed, bounded in number and age."""

from __future__ import annotations

from collections.abc import Collection, Sequence


class Tombstones:
    """Remembers the last closed traces in two generations: the young one becomes the old one, and the old one is
    forgotten, when the young one holds half of `capacity` or is half of `window_seconds` old. So at least half of
    the capacity is remembered, without an order to keep up."""

    __slots__ = ("_half", "_half_window", "_old", "_since", "_young")

    def __init__(self, capacity: int, window_seconds: float) -> None:
        self._half = max(1, capacity // 2)
        self._half_window = window_seconds / 2
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()
        self._since = 0.0

    def add(self, trace_ids: Sequence[bytes]) -> None:
        # In steps, so that many at once can not pass the bound.
        for first in range(0, len(trace_ids), self._half):
            part = trace_ids[first : first + self._half]
            if len(self._young) + len(part) > self._half:
                self._turn()
            self._young.update(part)

    def _turn(self) -> None:
        self._old = self._young
        self._young = set()

    def forget(self, trace_ids: Sequence[bytes]) -> None:
        """These are not closed any more."""
        self._young.difference_update(trace_ids)
        self._old.difference_update(trace_ids)

    def age(self, now: float) -> None:
        """Forget what is older than the window; `now` in monotonic seconds."""
        if now - self._since >= self._half_window:
            self._since = now
            self._turn()

    def among(self, names: Collection[bytes]) -> list[bytes]:
        """Those of `names` that are remembered."""
        if self._young.isdisjoint(names) and self._old.isdisjoint(names):
            return []
        return [name for name in names if name in self._young or name in self._old]

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._young or trace_id in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
