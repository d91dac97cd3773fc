"""Which items of a request hold a hint: one pass of a vectorised multi-literal search over all their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import ahocorasick_rs
import numpy as np
from numpy.typing import NDArray

OWN_MARKERS = (b"groundwatch.evaluation", b"groundwatch-evaluation")
"""What our own evaluation traffic carries: in a span attribute, and in the header and first line of a prompt."""

# The search engine uses its SIMD routine only where it can not get by with three rare or three first bytes, and
# those of our hints ("." and "_") are not rare in telemetry: 2 us a span instead of 0.1. Four literals of bytes
# that UTF-8 never holds rule both out. A match of one is no hint.
_MOST_LITERALS = 40
"""Literals in one pass. Over 64 the engine gives its SIMD routine up; two passes of 40 cost 0.26 us a span."""
_DECOYS = tuple(bytes([byte]) * 8 for byte in (0xF8, 0xF9, 0xFA, 0xFB))


def minimal(hints: Iterable[bytes]) -> list[bytes]:
    """The hints without those that hold another one: where a longer one occurs, so does the shorter."""
    unique = sorted({hint for hint in hints if hint}, key=lambda hint: (len(hint), hint))
    kept: list[bytes] = []
    for hint in unique:
        if not any(shorter in hint for shorter in kept):
            kept.append(hint)
    return kept


class HintSearch:
    """Finds the items in whose bytes a hint, or one of our own markers, occurs.

    `hints` are literals (attribute keys or their prefixes) as they stand in the bytes of either encoding.
    """

    def __init__(self, hints: Sequence[bytes], log_event_hints: Sequence[bytes] = ()) -> None:
        self._hints = minimal(hints)
        if not self._hints:
            raise ValueError("no hints: assembly would drop every trace; pass what the conventions look for")
        self._log_events = minimal(log_event_hints)
        self._wanted = minimal([*self._hints, *self._log_events])
        literals = minimal([*self._wanted, *OWN_MARKERS])
        passes = -(-len(literals) // _MOST_LITERALS)
        self._searches: list[tuple[int, Any]] = []
        for first in range(passes):
            part = literals[first::passes]
            automaton = ahocorasick_rs.BytesAhoCorasick(
                [*part, *_DECOYS], matchkind=ahocorasick_rs.MatchKind.LeftmostFirst
            )
            self._searches.append((len(part), automaton.find_matches_as_indexes))

    def rows(self, items: Sequence[bytes], joined: bytes, ends: NDArray[np.int64]) -> list[int]:
        """Indices of the items that hold a hint or marker, rising. `joined` holds all items, ending at `ends`."""
        found: set[int] = set()
        for real, find in self._searches:
            matches: list[tuple[int, int, int]] = find(joined)
            if matches:
                self._add(found, matches, real, items, ends)
        return sorted(found)

    def _add(
        self,
        found: set[int],
        matches: list[tuple[int, int, int]],
        real: int,
        items: Sequence[bytes],
        ends: NDArray[np.int64],
    ) -> None:
        starts = np.fromiter((match[1] for match in matches), np.int64, len(matches))
        rows: list[int] = ends.searchsorted(starts, side="right").tolist()
        last = len(items) - 1
        for row, (literal, _, end) in zip(rows, matches, strict=True):
            if row in found or row > last:
                continue
            if literal < real and end <= ends[row]:
                found.add(row)
                continue
            # A decoy, or a match over the border of two items, may hide a true one that overlaps it.
            found.update(near for near in (row, row + 1) if near < len(items) and self._either(items[near]))

    def _either(self, item: bytes) -> bool:
        return self.wanted(item) or is_own(item)

    def wanted(self, item: bytes) -> bool:
        """Whether a hint occurs in this one item."""
        return any(hint in item for hint in self._wanted)

    def log_events(self, item: bytes) -> bool:
        """Whether the item follows a convention whose content may come in log events."""
        return any(hint in item for hint in self._log_events)


def is_own(data: bytes) -> bool:
    """Whether one of our own markers occurs: traffic of our own evaluation, never to be evaluated."""
    return any(marker in data for marker in OWN_MARKERS)
