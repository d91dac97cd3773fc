"""The demo's terminal: a frame that is redrawn in place, or one line at a time where the output is no terminal."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from collector.demo.scrape import Estimate, Key

FIRST = ("faithfulness", "groundedness", "response_relevancy", "context_relevance", "noncommittal")
"""Metrics that stand on top, in this order; the others follow by name."""
MAX_ROWS = 12
OTHER_LINES = 8
"""Lines of a frame that are no rows, and the cursor's own."""
LINE_METRICS = 4
MIN_N_INTERVAL = 20.0
"""Under this effective n no interval is drawn."""
HISTORY = 24
_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.-=*#%@"


@dataclass(frozen=True, slots=True)
class Frame:
    """What the terminal shows at one moment."""

    elapsed: float
    duration: float | None
    release: str
    note: str
    page_url: str
    window_seconds: float
    interactions: int
    estimates: Sequence[Estimate]


def ordered(estimates: Iterable[Estimate]) -> list[Estimate]:
    """The four default metrics first."""
    rank = {metric: place for place, metric in enumerate(FIRST)}
    return sorted(estimates, key=lambda e: (rank.get(e.key[0], len(FIRST)), e.key))


class View:
    """Writes frames to `out`. `live` redraws in place with ANSI control sequences; else a line per frame."""

    def __init__(self, out: TextIO, *, live: bool, width: int = 100, height: int = 24) -> None:
        self._out = out
        self._live = live
        self._width = max(width, 40)
        # A frame that is higher than the terminal could not be drawn over: its top would have scrolled away.
        self._rows = max(1, min(MAX_ROWS, height - OTHER_LINES))
        self._drawn = 0
        encoding = (getattr(out, "encoding", None) or "ascii").lower()
        self._bars = _BARS if "utf" in encoding else _PLAIN_BARS
        self._history: dict[Key, deque[float]] = {}

    def say(self, text: str = "") -> None:
        """A line that stays."""
        self._drawn = 0
        self._out.write(text + "\n")
        self._out.flush()

    def show(self, frame: Frame) -> None:
        for estimate in frame.estimates:
            if not math.isnan(estimate.mean):
                self._history.setdefault(estimate.key, deque(maxlen=HISTORY)).append(estimate.mean)
        if self._live:
            self._redraw(self._lines(frame))
        else:
            self._out.write(self._line(frame) + "\n")
            self._out.flush()

    def _redraw(self, lines: list[str]) -> None:
        # Up to the first line of the last frame, then each line is cleared to its end before it is written.
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        body = "".join(f"\x1b[2K{line[: self._width]}\n" for line in lines)
        self._out.write(up + body + "\x1b[J")
        self._out.flush()
        self._drawn = len(lines)

    def _lines(self, frame: Frame) -> list[str]:
        rows = ordered(frame.estimates)
        of = f" of {_clock(frame.duration)}" if frame.duration is not None else ""
        lines = [
            f"{_clock(frame.elapsed)}{of}   release {frame.release}   {frame.note}",
            f"page {frame.page_url}/   metrics {frame.page_url}/metrics",
            "",
            f"{'last ' + format(frame.window_seconds, '.0f') + ' s':<38}{'mean':>6}  {'95 % interval':<14}{'n':>5}"
            f"  {'coverage':>8}",
        ]
        for e in rows[: self._rows]:
            lines.append(
                f"{e.label[:37]:<38}{_number(e.mean):>6}  {_interval(e):<14}{e.n_eff:>5.0f}"
                f"  {_percent(e.coverage):>8}  {self._spark(e.key)}"
            )
        if not rows:
            lines.append("waiting for the first scores: a trace is scored shortly after its last span")
        if len(rows) > self._rows:
            lines.append(f"... and {len(rows) - self._rows} more on the page")
        lines += ["", f"{frame.interactions} interactions found so far. Ctrl-C ends the demo."]
        return lines

    def _line(self, frame: Frame) -> str:
        scores = "  ".join(
            f"{e.key[0]} {_number(e.mean)} ({_interval(e) or 'too few'})"
            for e in ordered(frame.estimates)[:LINE_METRICS]
        )
        start = f"[{frame.elapsed:4.0f} s] release {frame.release}  {frame.interactions} interactions"
        return f"{start}  {scores or 'no scores yet'}"

    def _spark(self, key: Key) -> str:
        values = self._history.get(key, ())
        top = len(self._bars) - 1
        return "".join(self._bars[min(top, max(0, round(value * top)))] for value in values)


def _clock(seconds: float) -> str:
    whole = int(max(seconds, 0))
    return f"{whole // 60:02d}:{whole % 60:02d}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0%}"


def _interval(estimate: Estimate) -> str:
    if math.isnan(estimate.mean) or estimate.n_eff < MIN_N_INTERVAL:
        return ""
    return f"{estimate.lower:.2f} .. {estimate.upper:.2f}"
