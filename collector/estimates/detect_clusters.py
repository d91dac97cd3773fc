"""Clusters of scored interactions whose bet is not placed yet."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator


class Held:
    """What one open cluster holds for one watched series. `highest` is the highest weight that any of its items could
    have had; `era` the series' era in which it was begun: a later one does not want it."""

    __slots__ = ("era", "highest", "items", "w", "wy")

    def __init__(self, era: int) -> None:
        self.era = era
        self.items = 0
        self.w = 0.0
        self.wy = 0.0
        self.highest = 0.0

    def add(self, w: float, y: float, highest: float) -> None:
        self.items += 1
        self.w += w
        self.wy += w * y
        self.highest = max(self.highest, highest)


Content = dict[int, Held]
"""What a cluster holds, by the number of the series."""


class OpenClusters:
    """Open until idle for `idle` seconds, or `longest` seconds old, or until there are more than `most`.

    When a cluster closes depends on arrivals alone, never on scores.
    """

    def __init__(self, *, idle: float, longest: float, most: int) -> None:
        self._idle = idle
        self._longest = longest
        self._most = most
        self._open: OrderedDict[int, tuple[float, list[float], Content]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def of(self, key: int, now: float) -> Content:
        """The open content of a cluster; call `due` first, which closes what is too old to be added to."""
        known = self._open.get(key)
        if known is None:
            known = self._open[key] = (now, [now], {})
        known[1][0] = now
        self._open.move_to_end(key)
        return known[2]

    def due(self, now: float, key: int | None = None) -> Iterator[Content]:
        """Takes out what has been idle for too long or is over the bound on number, and the cluster `key` if it is too
        old. One that is in steady use closes at the first use after its time, an idle one by its idleness."""
        clusters = self._open
        if key is not None and key in clusters and now - clusters[key][0] >= self._longest:
            yield clusters.pop(key)[2]
        while clusters:
            first = next(iter(clusters))
            if now - clusters[first][1][0] < self._idle and len(clusters) <= self._most:
                return
            yield clusters.pop(first)[2]

    def all(self) -> Iterator[Content]:
        """Takes out everything."""
        while self._open:
            yield self._open.popitem(last=False)[1][2]
