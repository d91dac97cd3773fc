"""Which interactions become cases: the worst, the doubtful, the disagreeing, and a uniform part that is fair."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from collector.pipeline.clock import Clock
from collector.pipeline.receipt import Receipt
from collector.records.decision import Fate
from collector.records.found import Mark
from collector.records.settled import Settled
from collector.review.build import Builder
from collector.review.case import Case, Feedback, Pick, Reason
from collector.review.options import PickOptions
from collector.review.query import Subject
from collector.review.quotas import ControlRate, Quotas
from collector.review.recent import Recent
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction
from scorers.outcome import Result, Score

Segments = tuple[tuple[str, str], ...]

_LATEST_SCORES = 200
_ENOUGH_SCORES = 20
"""Latest scores of a segment from which a share of them is spoken of."""


class Puts(Protocol):
    def put(self, case: Case, ended: Callable[[], None] | None = None) -> bool: ...


class Picker:
    """A sink of settled interactions that hands cases to a store.

    Only the control part has a probability: what is picked for its score, its cause or a user's word is there
    because of what it is, and no estimate may use it. An interaction may fit several reasons. `chance` gives an
    interaction id its number in [0, 1), the same in every replica, for this purpose only; `judging` tells that a
    judge is configured: then the control part is drawn from judged interactions, else from all. Never waits; what
    came with a receipt holds it until its case is written. Lives on the event loop.
    """

    def __init__(
        self,
        options: PickOptions,
        *,
        store: Puts,
        builder: Builder,
        chance: Callable[[str], float],
        judging: bool,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._options = options
        self._store = store
        self._builder = builder
        self._chance = chance
        self._judging = judging
        self._clock = clock
        self._quotas = Quotas(clock, max_keys=options.max_segments * len(Reason))
        self._rate = ControlRate(clock, rate=options.control.rate, per_day=options.control.per_day)
        self._latest = _Latest(options)
        self._recent = Recent(max_items=options.recent_interactions, max_bytes=options.recent_bytes)
        self._picked = {one: telemetry.counter(metrics.REVIEW_PICKED, reason=one.value) for one in Reason}
        self._over = {one: telemetry.counter(metrics.REVIEW_OVER_QUOTA, reason=one.value) for one in Reason}
        self._feedback = {
            outcome: telemetry.counter(metrics.REVIEW_FEEDBACK, outcome=outcome)
            for outcome in metrics.REVIEW_FEEDBACK_OUTCOMES
        }

    def settle(self, settled: Settled) -> None:
        if settled.decision.fate is Fate.FILTERED:
            return
        picks = [pick for pick in self._picks(settled) if pick is not None]
        if picks:
            self._keep(self._builder.case(settled, picks), settled.receipt)
        self._recent.add(settled, kept=bool(picks))

    def _keep(self, case: Case, receipt: Receipt | None) -> None:
        if receipt is None:
            self._store.put(case)
            return
        receipt.hold()
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.call_soon_threadsafe(receipt.release)

        if not self._store.put(case, ended):
            receipt.release()

    def repeated(self, interaction: Interaction, first: Mapping[str, float], second: Sequence[Result]) -> None:
        """An interaction was judged twice: `first` are the scores of its settlement by metric."""
        gaps = {
            one.scorer: abs(one.outcome.value - first[one.scorer])
            for one in second
            if isinstance(one.outcome, Score) and one.scorer in first
        }
        remembered = self._recent.find(case_id=interaction.id)
        metric = max(gaps, key=lambda name: gaps[name], default=None)
        if remembered is None or metric is None or gaps[metric] < self._options.noise:
            return
        settled = remembered.settled
        pick = self._pick(Reason.JUDGE_NOISE, settled.segments, self._options.noise_per_day, metric)
        if pick is not None:
            self._store.put(self._builder.case(settled, [pick], again=second))
            remembered.kept = True

    def feedback(
        self, feedback: Feedback, *, case_id: str = "", trace_id: str = "", response_id: str = ""
    ) -> str | None:
        """What a user said of an interaction, by one of its ids: one of `metrics.REVIEW_FEEDBACK_OUTCOMES`, or None
        where it is not remembered (it may still be in the store; `attached` counts what was found there)."""
        remembered = self._recent.find(case_id=case_id, trace_id=trace_id, response_id=response_id)
        if remembered is None:
            return None
        settled = remembered.settled
        pick = None
        if self.complains(feedback):
            pick = self._pick(Reason.FEEDBACK, settled.segments, self._options.feedback_per_day, feedback.name)
        if pick is None and not remembered.kept:
            return self.count_feedback("content")
        self._store.put(self._builder.case(settled, [pick] if pick else [], feedback=[feedback]))
        remembered.kept = True
        return self.count_feedback("picked" if pick else "attached")

    def complains(self, feedback: Feedback) -> bool:
        """Whether it is a reason to look at the answer; what has no score may be one."""
        return feedback.score is None or feedback.score <= self._options.feedback_score

    def forget(self, subject: Subject) -> None:
        """Drop what is remembered of a subject that is to be erased; from any thread."""
        self._recent.forget(subject)

    def count_feedback(self, outcome: str) -> str:
        self._feedback[outcome].inc()
        return outcome

    def _picks(self, settled: Settled) -> list[Pick | None]:
        return [self._control(settled), self._low(settled), self._disagreeing(settled), self._caused(settled)]

    def _control(self, settled: Settled) -> Pick | None:
        if (self._judging and settled.decision.fate is not Fate.QUEUED) or Mark.REPLAYED in settled.found.marks:
            return None  # a replay's traffic is not a draw from the traffic
        rate = self._rate.next()
        place = self._chance(settled.found.interaction.id)
        if place >= rate:
            return None
        self._picked[Reason.CONTROL].inc()
        # Given that it is under the rate, its number divided by the rate is uniform again: an order to label in.
        return Pick(
            Reason.CONTROL,
            self._now(),
            probability=rate,
            order=place / rate,
            detail="of judged" if self._judging else "of screened",
        )

    def _low(self, settled: Settled) -> Pick | None:
        scored = [
            (one.outcome.value, one.scorer)
            for one in settled.judged or settled.local
            if isinstance(one.outcome, Score) and self._builder.tells_quality(one.scorer)
        ]
        if not scored:
            return None
        value, metric = min(scored)
        kind = "judged" if settled.judged else "local"
        if not self._latest.among_lowest(value, (settled.segments, kind)) or value > self._options.low_score:
            return None
        return self._pick(Reason.LOW_SCORE, settled.segments, self._options.low_per_day, metric, part=kind)

    def _disagreeing(self, settled: Settled) -> Pick | None:
        if not settled.judged:
            return None
        local = {one.scorer: one.outcome.value for one in settled.local if isinstance(one.outcome, Score)}
        gaps = [
            (abs(one.outcome.value - local[one.scorer]), one.scorer)
            for one in settled.judged
            if isinstance(one.outcome, Score) and one.scorer in local
        ]
        gap, metric = max(gaps, default=(0.0, ""))
        if gap < self._options.disagreement:
            return None
        return self._pick(Reason.DISAGREEMENT, settled.segments, self._options.disagreement_per_day, metric)

    def _caused(self, settled: Settled) -> Pick | None:
        cause = settled.diagnosis.cause if settled.diagnosis is not None else None
        if cause is None or cause not in self._options.causes:
            return None
        return self._pick(
            Reason.DIAGNOSIS, settled.segments, self._options.cause_per_day, cause.value, part=cause.value
        )

    def _pick(
        self, reason: Reason, segments: Segments, per_day: int, detail: str, *, part: str = ""
    ) -> Pick | None:
        if not self._quotas.take((reason, part, segments), per_day):
            self._over[reason].inc(per_day > 0)
            return None
        self._picked[reason].inc()
        return Pick(reason, self._now(), detail=detail)

    def _now(self) -> float:
        return self._clock.unix_nano() / 1e9


class _Latest:
    """The latest scores of each segment and kind, to know which are the lowest share."""

    def __init__(self, options: PickOptions) -> None:
        self._share = options.low_share
        self._max = options.max_segments
        self._scores: dict[tuple[Segments, str], tuple[deque[float], list[float]]] = {}

    def among_lowest(self, value: float, key: tuple[Segments, str]) -> bool:
        """Whether it is among the lowest share of those before it; few before it tell nothing. It is remembered."""
        if key not in self._scores and len(self._scores) >= self._max:
            key = ((), key[1])
        order, ranked = self._scores.setdefault(key, (deque(), []))
        place = bisect_left(ranked, value)
        lowest = len(ranked) < _ENOUGH_SCORES or place <= self._share * len(ranked)
        order.append(value)
        insort(ranked, value)
        if len(order) > _LATEST_SCORES:
            del ranked[bisect_left(ranked, order.popleft())]
        return lowest
