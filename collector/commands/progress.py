"""A progress line on standard error: drawn over itself on a terminal, one line every ten seconds elsewhere."""

from __future__ import annotations

import time
from typing import IO

_EVERY_SECONDS = {True: 0.2, False: 10.0}


class Progress:
    """`step` for each record; `total` None where it is not known. Shows rate, failures, and the time left."""

    def __init__(self, stream: IO[str], *, total: int | None, shown: bool) -> None:
        self._stream = stream
        self._total = total
        self._shown = shown
        self._terminal = stream.isatty()
        self._started = time.monotonic()
        self._drawn = self._started
        self._done = self._failed = self._skipped = 0

    def step(self, *, failed: bool = False, skipped: bool = False) -> None:
        self._done += 1
        self._failed += failed
        self._skipped += skipped
        now = time.monotonic()
        if self._shown and now - self._drawn >= _EVERY_SECONDS[self._terminal]:
            self._drawn = now
            self._draw(now)

    def close(self) -> None:
        """The last state, for good."""
        if self._shown and self._done:
            self._draw(time.monotonic())
            if self._terminal:
                self._stream.write("\n")

    def _draw(self, now: float) -> None:
        seconds = max(now - self._started, 1e-6)
        fresh = self._done - self._skipped
        rate = fresh / seconds
        parts = [f"{self._done}" if self._total is None else f"{self._done}/{self._total}", f"{rate:.1f}/s"]
        if self._skipped:
            parts.append(f"{self._skipped} had results already")
        if self._failed:
            parts.append(f"{self._failed} with failures")
        if self._total and fresh and self._done < self._total:
            parts.append(f"{(self._total - self._done) / rate:.0f} s left")
        line = "  ".join(parts)
        self._stream.write(f"\r\x1b[K{line}" if self._terminal else f"{line}\n")
        self._stream.flush()
