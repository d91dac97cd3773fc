"""The judge watched while it works: a share of interactions judged twice for its noise, and planted cases.

Neither is part of any estimate. Their calls are calls like all others: they count in the budget and in the metrics
of calls, and they wait when the judge is down or behind.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from collector.judging.options import Options
from collector.pipeline.clock import Clock
from collector.telemetry import metrics
from collector.telemetry.events import Event, Events, Level
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction
from scorers.judge.canary import CanaryReport
from scorers.outcome import Result, Score

_TICK_SECONDS = 1.0
_RETRY_SECONDS = 900.0
"""Pause before a canary that nobody answered is tried again."""
_MOST_WAITING = 16
"""Interactions that wait to be judged a second time; they are held in memory."""


class Repeats(Protocol):
    def available(self) -> bool: ...

    async def score(
        self, interaction: Interaction, deadline_seconds: float | None = None, *, attempt: int = 0
    ) -> list[Result]: ...


class Sings(Protocol):
    def available(self) -> bool: ...

    async def canary(self) -> CanaryReport: ...


class Watch:
    """Asks `canaries` (by the name of their endpoint) about planted cases, and `judge` again about a share of what
    it judged, of which the stage tells. `names` are the metrics of `judge`.

    `chance` gives an interaction id its number in [0, 1), the same in every replica. `calm` is false while judging
    is behind: then nothing is judged twice. `repeated` is told of each that was, with the first try's
    scores by metric. `run` is a task of the application; used from one event loop.
    """

    def __init__(
        self,
        options: Options,
        judge: Repeats,
        *,
        canaries: Mapping[str, Sings],
        names: Sequence[str],
        chance: Callable[[str], float],
        calm: Callable[[], bool],
        repeated: Callable[[Interaction, Mapping[str, float], Sequence[Result]], None] | None = None,
        clock: Clock,
        telemetry: Telemetry,
        events: Events,
    ) -> None:
        self._options = options
        self._canaries = dict(canaries)
        self._judge = judge
        self._chance = chance
        self._calm = calm
        self._repeated = repeated
        self._clock = clock
        self._telemetry = telemetry
        self._events = events
        self._waiting: deque[tuple[Interaction, dict[str, float]]] = deque()
        self._due = dict.fromkeys(self._canaries, clock.monotonic() if options.canary_hours else math.inf)
        if options.repeat_rate:
            for name in names:
                telemetry.counter(metrics.JUDGE_NOISE_PAIRS, metric=name)
                telemetry.counter(metrics.JUDGE_NOISE_SQUARES, metric=name)
        for endpoint in self._canaries if options.canary_hours else ():
            telemetry.set(metrics.CANARY_TIME, 0, endpoint=endpoint)

    def judged(self, interaction: Interaction, results: Sequence[Result]) -> None:
        """An interaction was judged; it may be chosen to be judged once more. Never waits."""
        scores = {result.scorer: result.outcome.value for result in results if isinstance(result.outcome, Score)}
        if not scores or self._chance(interaction.id) >= self._options.repeat_rate:
            return
        if len(self._waiting) >= _MOST_WAITING or not self._calm():
            self._telemetry.inc(metrics.JUDGE_REPEATS, outcome="left_out")
        else:
            self._waiting.append((interaction, scores))

    async def run(self) -> None:
        """One thing after the other, until cancelled."""
        while True:
            if not await self.step():
                await asyncio.sleep(_TICK_SECONDS)

    def stop(self) -> None:
        """Nothing more is started; what waits is left out."""
        self._due = dict.fromkeys(self._due, math.inf)
        self._telemetry.inc(metrics.JUDGE_REPEATS, len(self._waiting), outcome="left_out")
        self._waiting.clear()

    async def step(self) -> bool:
        """Do one thing that is due; False when nothing is, or when the judge takes no calls."""
        now = self._clock.monotonic()
        for endpoint, judge in self._canaries.items():
            if now >= self._due[endpoint] and judge.available():
                self._due[endpoint] = now + _RETRY_SECONDS
                if self._tell(endpoint, await judge.canary()):
                    self._due[endpoint] = now + self._options.canary_hours * 3600
                return True
        if not self._waiting or not self._judge.available():
            return False
        interaction, first = self._waiting.popleft()
        second = await self._judge.score(interaction, self._options.deadline_seconds, attempt=1)
        self._telemetry.inc(metrics.JUDGE_REPEATS, outcome="judged")
        if self._repeated is not None:
            self._repeated(interaction, first, second)
        for result in second:
            if isinstance(result.outcome, Score) and result.scorer in first:
                square = (result.outcome.value - first[result.scorer]) ** 2
                self._telemetry.inc(metrics.JUDGE_NOISE_PAIRS, metric=result.scorer)
                self._telemetry.inc(metrics.JUDGE_NOISE_SQUARES, square, metric=result.scorer)
        return True

    def _tell(self, endpoint: str, report: CanaryReport) -> bool:
        """Publish a canary; False when nothing of it was answered."""
        for one in report.expectations:
            self._telemetry.inc(
                metrics.CANARY_RESULTS,
                endpoint=endpoint,
                kind=one.case.kind,
                language=one.case.language,
                result=one.verdict,
            )
        for (kind, language), accuracy in report.by_series().items():
            value = math.nan if accuracy is None else accuracy
            self._telemetry.set(metrics.CANARY_ACCURACY, value, endpoint=endpoint, kind=kind, language=language)
        if report.accuracy is None:
            answered = not report.expectations  # a judge of other metrics than the cases have is asked nothing
            if not answered:
                self._events.tell(
                    Event("canary_failed", Level.WARNING, "no planted case was answered", {"judge": endpoint})
                )
            return answered
        self._telemetry.set(metrics.CANARY_TIME, self._clock.unix_nano() / 1e9, endpoint=endpoint)
        self._events.tell(
            Event(
                "canary",
                Level.WARNING if report.wrong else Level.INFO,
                "planted cases were judged",
                {
                    "judge": endpoint,
                    "accuracy": round(report.accuracy, 3),
                    "wrong": ", ".join(report.wrong) or "none",
                    "failed": len(report.failed),
                },
            )
        )
        return True
