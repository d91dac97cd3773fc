"""Interactions that belong together: those of one session, or one question asked by many."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b

from collector.estimates.measures import Places, Sums3, Term, moved
from collector.records.found import Found
from collector.telemetry.metrics import GROUPS

_MAX_CHARACTERS = 2_000
_INITIAL_PLACES = 16

Segment = tuple[str, ...]
Kept = tuple[float, Segment, list[float], list[tuple[Segment, list[float]]]]
"""A cluster as it outlives the process: when it was opened, its first segment, and its sums in all and in each."""


class ClusterKeys:
    """A keyed hash for each interaction: of its session, else of its question without case and spacing.

    Replicas share the seed, so that they agree on the groups. An interaction with neither is a cluster of its own.
    """

    def __init__(self, by: Sequence[str], seed: str) -> None:
        self._by = tuple(by)
        key = blake2b(seed.encode(), digest_size=32, person=b"clusters").digest()
        self._keyed = blake2b(key=key, digest_size=8)

    def of(self, found: Found) -> tuple[int, bool]:
        """The hash, and whether others can share it."""
        for name in self._by:
            if name == "session" and found.session:
                return self._hash("s" + found.session), True
            if name == "question" and found.interaction.question:
                return self._hash(
                    "q" + " ".join(found.interaction.question[:_MAX_CHARACTERS].casefold().split())
                ), True
        return self._hash("i" + found.interaction.id), False

    def _hash(self, text: str) -> int:
        keyed = self._keyed.copy()
        keyed.update(text.encode("utf-8", "surrogatepass"))
        return int.from_bytes(keyed.digest(), "little")


def group_of(key: int) -> int:
    """The random group, 0 to 15, of a cluster."""
    return key % GROUPS


class _Cluster:
    """Sums of weight and of weight x score, by measure: over all segments, and in each where there are several."""

    __slots__ = ("more", "opened", "segment", "total")

    def __init__(self, opened: float, segment: Segment) -> None:
        self.opened = opened
        self.segment = segment
        self.total = array("d", bytes(16 * _INITIAL_PLACES))
        self.more: dict[Segment, array[float]] | None = None

    def own(self, segment: Segment) -> array[float]:
        """The sums of one segment; those of all while there is only one."""
        if self.more is None:
            if segment == self.segment:
                return self.total
            self.more = {self.segment: array("d", self.total)}
        return self.more.setdefault(segment, array("d", bytes(8 * len(self.total))))


class Clusters:
    """The clusters that are open, bounded in number and age; the one not seen for the longest is forgotten first.

    Forgetting makes the next interaction of a cluster a new cluster: variance then misses what it has in common with
    the forgotten ones. `evicted` counts those that were forgotten before `max_age_seconds` for lack of room.
    """

    def __init__(self, *, most: int, max_age_seconds: float) -> None:
        self._most = most
        self._max_age = max_age_seconds
        self._open: OrderedDict[int, _Cluster] = OrderedDict()
        self._dirty: set[int] | None = None
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._open)

    def keep_track(self) -> None:
        """From now on remember which clusters changed, for `kept`."""
        self._dirty = set(self._open)

    def kept(self) -> list[tuple[int, Kept | None]]:
        """For the next process: the clusters that changed since the last call, None for those that were forgotten."""
        dirty, self._dirty = self._dirty or set(), set()
        return [(key, self._kept(key)) for key in dirty]

    def _kept(self, key: int) -> Kept | None:
        cluster = self._open.get(key)
        if cluster is None:
            return None
        own = [] if cluster.more is None else [(segment, list(sums)) for segment, sums in cluster.more.items()]
        return cluster.opened, cluster.segment, list(cluster.total), own

    def go_on(self, key: int, kept: Kept, places: Places) -> None:
        """Take over a cluster of an earlier process, as the one seen last. Over the bound the stalest is forgotten."""
        opened, segment, total, own = kept
        self._open[key] = cluster = _Cluster(opened, segment)
        cluster.total = _numbered_anew(total, places)
        cluster.more = {one: _numbered_anew(sums, places) for one, sums in own} or None
        if len(self._open) > self._most:
            self._open.popitem(last=False)

    def add(self, terms: Sequence[Term], key: int, segment: Segment, now: float, *, shared: bool) -> None:
        """Fill in what each scored term adds to the cluster sums; `shared` as `ClusterKeys.of` says."""
        if not shared:
            for term in terms:
                if term.value is not None:
                    wy = term.weight * term.value
                    term.own = term.total = (term.weight * term.weight, term.weight * wy, wy * wy)
            return
        cluster = self._cluster(key, segment, now)
        own = cluster.own(segment)
        total = cluster.total
        for term in terms:
            if term.value is None:
                continue
            wy = term.weight * term.value
            term.own = term.total = _grow(total, term.place, term.weight, wy)
            if own is not total:
                term.own = _grow(own, term.place, term.weight, wy)

    def _cluster(self, key: int, segment: Segment, now: float) -> _Cluster:
        clusters = self._open
        if self._dirty is not None:
            self._dirty.add(key)
        cluster = clusters.get(key)
        if cluster is not None and now - cluster.opened < self._max_age:
            clusters.move_to_end(key)
            return cluster
        clusters[key] = cluster = _Cluster(now, segment)
        clusters.move_to_end(key)
        if len(clusters) > self._most:
            forgotten, stalest = clusters.popitem(last=False)
            if self._dirty is not None:
                self._dirty.add(forgotten)
            if now - stalest.opened < self._max_age:
                self.evicted += 1
        return cluster


def _numbered_anew(sums: Sequence[float], places: Places) -> array[float]:
    there = [0.0] * max(2 * _INITIAL_PLACES, 2 + 2 * max((new for new in places if new is not None), default=0))
    moved(sums, 2, places, there)
    return array("d", there)


def _grow(sums: array[float], place: int, w: float, wy: float) -> Sums3:
    """Add an item to its cluster's (a, b); what a^2, a b and b^2 grow by."""
    at = 2 * place
    if at >= len(sums):
        sums.extend([0.0] * (at + 2 - len(sums)))
    a, b = sums[at], sums[at + 1]
    sums[at] = a + w
    sums[at + 1] = b + wy
    return w * (a + a + w), a * wy + b * w + w * wy, wy * (b + b + wy)
