"""Many items in one piece, for work on all of them at once by arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SEPARATOR = b"\xff"
"""Stands between two items: a byte that UTF-8 never holds, so that no text is found over their border."""
WINDOW = 128
"""How many bytes of an item its window shows; those after its end are of what follows it."""

_TAIL = 8
_PAD = bytes(WINDOW + _TAIL)
_TRACE_ID_TAG, _SPAN_ID_TAG = 0x100A, 0x0812
_IDS_BYTES = 28


class Rows:
    """The bytes of some items, joined by `SEPARATOR`, and where each starts and how long it is.

    `windows` holds the first `WINDOW` bytes of each item, one row each; `ids_inside` tells whether `all_have_ids` was
    asked, and held.
    """

    __slots__ = ("ids_inside", "joined", "lengths", "starts", "windows")

    def __init__(self, items: Sequence[bytes]) -> None:
        size = len(items)
        self.ids_inside = False
        self.lengths: NDArray[np.int64] = np.fromiter(map(len, items), np.int64, size)
        self.starts: NDArray[np.int64] = np.arange(size)
        self.starts[1:] += self.lengths[:-1].cumsum()
        self.joined = joined = SEPARATOR.join([*items, _PAD])
        everywhere = np.ndarray((len(joined) - WINDOW,), f"V{WINDOW}", joined, 0, (1,))
        self.windows: NDArray[np.uint8] = everywhere[self.starts].view(np.uint8).reshape(size, WINDOW)

    def __len__(self) -> int:
        return len(self.lengths)

    def tails(self) -> NDArray[np.uint64]:
        """The last 8 bytes of each item as a little-endian word; of an item that is shorter, something else."""
        words = np.ndarray((len(self.joined) - _TAIL,), "<u8", self.joined, 0, (1,))
        tails: NDArray[np.uint64] = words[np.maximum(self.starts + self.lengths - _TAIL, 0)]
        return tails

    def column(self, offset: int, kind: str = "<u8") -> NDArray[np.uint64]:
        """A number at a fixed offset of each window, as a view."""
        return np.ndarray((len(self.lengths),), kind, self.windows, offset, (WINDOW,))

    def all_have_ids(self) -> bool:
        """Whether `have_ids` holds for every item."""
        tags = self.column(0, "<u2") ^ _TRACE_ID_TAG
        tags |= self.column(18, "<u2") ^ _SPAN_ID_TAG
        self.ids_inside = not tags.any() and bool(
            (self.column(2) | self.column(10)).all()
            and self.column(20).all()
            and int(self.lengths.min(initial=_IDS_BYTES)) >= _IDS_BYTES
        )
        return self.ids_inside

    def have_ids(self) -> NDArray[np.bool_]:
        """Whether each item starts as all known exporters write a span: tag 0x0A, length 16, trace id; tag 0x12,
        length 8, span id; and neither id is all zero."""
        good: NDArray[np.bool_] = self.lengths >= _IDS_BYTES
        good &= self.column(0, "<u2") == _TRACE_ID_TAG
        good &= self.column(18, "<u2") == _SPAN_ID_TAG
        good &= (self.column(2) | self.column(10)) != 0
        good &= self.column(20) != 0
        return good
