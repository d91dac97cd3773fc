"""Interactions that belong together: those of one session, or one question asked by many."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b

from collector.estimates.measures import Sums3, Term
from collector.records.found import Found
from collector.telemetry.metrics import GROUPS

_MAX_CHARACTERS = 2_000
_INITIAL_PLACES = 16

Segment = tuple[str, ...]


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
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._open)

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
        cluster = clusters.get(key)
        if cluster is not None and now - cluster.opened < self._max_age:
            clusters.move_to_end(key)
            return cluster
        clusters[key] = cluster = _Cluster(now, segment)
        clusters.move_to_end(key)
        if len(clusters) > self._most:
            _, stalest = clusters.popitem(last=False)
            if now - stalest.opened < self._max_age:
                self.evicted += 1
        return cluster


def _grow(sums: array[float], place: int, w: float, wy: float) -> Sums3:
    """Add an item to its cluster's (a, b); what a^2, a b and b^2 grow by."""
    at = 2 * place
    if at >= len(sums):
        sums.extend([0.0] * (at + 2 - len(sums)))
    a, b = sums[at], sums[at + 1]
    sums[at] = a + w
    sums[at + 1] = b + wy
    return w * (a + a + w), a * wy + b * w + w * wy, wy * (b + b + wy)
