"""The judging stage: a bounded queue, slots, deadlines, and a result for every metric whatever happens."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from collector.judging.counts import Counts
from collector.judging.ledger import Ledger
from collector.judging.options import Options
from collector.judging.own import is_own_evaluation
from collector.pipeline.clock import Clock
from collector.records.decision import Decision, Fate
from collector.records.settled import Screened, Settled
from collector.telemetry import metrics
from collector.telemetry.events import Count, Event, Events, Level
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason, Outcome, Result, Score
from scorers.scorer import Kind

_TICK_SECONDS = 1.0
_JUDGE_DOWN = frozenset(
    {
        FailedReason.JUDGE_AUTH,
        FailedReason.JUDGE_QUOTA,
        FailedReason.JUDGE_MODEL_UNKNOWN,
        FailedReason.JUDGE_OVERLOADED,
        FailedReason.JUDGE_UNREACHABLE,
    }
)
"""Failures that say nothing about the interaction: it waits and is tried again."""
_JOB_OVERHEAD_BYTES = 4_096


class Instrument(Protocol):
    """One judged metric with the version and fingerprint of its scorer."""

    @property
    def metric(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...


class JudgePort(Protocol):
    """What judges. `score` returns a result for each of `metrics` within the deadline; it may be cancelled."""

    @property
    def metrics(self) -> Sequence[Instrument]: ...

    def available(self) -> bool:
        """False while no endpoint takes calls (breaker open): jobs wait instead of failing."""
        ...

    def capacity(self) -> int:
        """How many interactions keep it busy now. Further ones wait in the queue, which sheds with known probability:
        begun all at once they would wait for each other's calls until none of them is done within its deadline."""
        ...

    async def score(self, interaction: Interaction, deadline_seconds: float) -> list[Result]: ...


class Downstream(Protocol):
    def settled(self, settled: Settled) -> None:
        """Takes an interaction whose judging ended, or that was not to be judged. Must not block."""
        ...


@dataclass(slots=True, eq=False)
class _Job:
    screened: Screened
    decision: Decision
    segments: tuple[tuple[str, str], ...]
    offered: float
    bytes: int
    not_before: float = 0.0
    started: float = 0.0
    partial: list[Result] | None = None
    cancelled: FailedReason | None = None
    settled: bool = False
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class Judging:
    """Judges what the sampler chose.

    Every offered interaction is settled downstream exactly once, with one result for every judged metric: scored,
    not applicable, or failed with the reason. Used from one event loop; `run` is a task of the application.
    `beside` names metrics whose failures say nothing of the judge (those of a shadow). `judged` is told of each
    interaction that the judge answered about.
    """

    def __init__(
        self,
        options: Options,
        judge: JudgePort,
        *,
        clock: Clock,
        telemetry: Telemetry,
        events: Events,
        ledger: Ledger,
        downstream: Downstream,
        beside: Collection[str] = (),
        judged: Callable[[Interaction, Sequence[Result]], None] | None = None,
    ) -> None:
        self._options = options
        self._judge = judge
        self._clock = clock
        self._telemetry = telemetry
        self._events = events
        self._ledger = ledger
        self._downstream = downstream
        self._beside = frozenset(beside)
        self._judged = judged
        self._instruments = tuple(judge.metrics)
        self._counts = Counts(telemetry, [instrument.metric for instrument in self._instruments])
        self._fresh: deque[_Job] = deque()
        self._again: deque[_Job] = deque()
        self._running: set[_Job] = set()
        self._abandoned: set[asyncio.Task[None]] = set()
        self._bytes = 0
        self._age = 0.0
        self._draining = False
        self._wake = asyncio.Event()
        self._wait_time = telemetry.histogram(metrics.JUDGING_WAIT)
        self._judging_time = telemetry.histogram(metrics.JUDGING_TIME)

    @property
    def waiting(self) -> int:
        """Interactions that are queued or being judged."""
        return len(self._fresh) + len(self._again) + len(self._running)

    @property
    def stuck(self) -> bool:
        """True when as many judge calls ignore their cancellation as there are slots: not ready, restart."""
        return len(self._abandoned) >= self._options.concurrency

    def offer(self, screened: Screened, decision: Decision, segments: tuple[tuple[str, str], ...]) -> None:
        """Take one interaction; never waits. What is not to be judged is settled at once.

        Over the queue's limits (the sampler did not heed `pressure`) it is settled as failed: queue_full. While
        draining it is failed: shutdown, or, where its source gives it again to the next process, left as it is.
        """
        if decision.fate is not Fate.QUEUED:
            self._downstream.settled(_settled(screened, decision, segments, ()))
            return
        job = _Job(screened, decision, segments, self._clock.monotonic(), _size(screened))
        self._counts.queued()
        if self._draining:
            self._shut_down(job)
        elif self._jobs >= self._options.queue_jobs or self._bytes + job.bytes > self._options.queue_bytes:
            self._fail(job, FailedReason.QUEUE_FULL)
            self._events.tell(
                Event(
                    "judge_queue_full",
                    Level.ERROR,
                    "the judge queue is full; interactions are lost with an unknown probability",
                    {"jobs": self._jobs, "bytes": self._bytes},
                )
            )
        else:
            self._enter(self._fresh, job)
            self._start_what_fits()

    def pressure(self) -> float:
        """Keep probability for the sampler, in (0, 1]: 1 while the queue is at ease, falling with its fill.

        The fill is that of jobs, of bytes or of age (oldest / max_age), whichever is fullest, so that a judge that
        is down leads to fewer interactions of known probability instead of many that expire. The age is that of
        the last tick.
        """
        options = self._options
        fill = max(
            self._jobs / options.queue_jobs,
            self._bytes / options.queue_bytes,
            self._age / options.max_age_seconds,
        )
        if fill <= options.shed_from:
            return 1.0
        return max(options.min_keep_probability, (1 - fill) / (1 - options.shed_from))

    async def run(self) -> None:
        """Look after ages, slots and gauges once a second, until `drain` has ended."""
        while not (self._draining and not self.waiting):
            self.tick()
            self._wake.clear()
            try:
                async with asyncio.timeout(_TICK_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def tick(self) -> None:
        """Expire what waited too long, end what runs too long, start what can start, set the gauges."""
        now = self._clock.monotonic()
        for queue in (self._fresh, self._again):
            for job in [job for job in queue if now - job.offered > self._options.max_age_seconds]:
                self._leave(queue, job)
                self._give_up(job, FailedReason.EXPIRED)
        for job in list(self._running):
            held = now - job.started
            if held > self._options.deadline_seconds + self._options.cancel_grace_seconds:
                self._abandon(job, held)
            elif held > self._options.deadline_seconds and job.cancelled is None and job.task is not None:
                job.cancelled = FailedReason.DEADLINE
                job.task.cancel()
        self._start_what_fits()
        self._age = self._oldest_age(now)
        slots = [now - job.started for job in self._running]
        for spec, value in (
            (metrics.JUDGING_QUEUE_JOBS, self._jobs),
            (metrics.JUDGING_QUEUE_BYTES, self._bytes),
            (metrics.JUDGING_RUNNING, len(self._running)),
            (metrics.JUDGING_OLDEST_JOB, self._age),
            (metrics.JUDGING_OLDEST_SLOT, max(slots, default=0.0)),
            (metrics.JUDGING_KEEP_PROBABILITY, self.pressure()),
        ):
            self._telemetry.set(spec, value)

    async def drain(self, deadline_seconds: float) -> None:
        """Judge what waits for at most `deadline_seconds`; the rest is failed: shutdown. New offers are too.

        Whatever happens to the drain itself (a second signal cancels it), every job is settled when it ends, but for
        those whose receipt is open: these are given again to the next process, which judges them.
        """
        self._draining = True
        self._wake.set()
        try:
            async with asyncio.timeout(deadline_seconds):
                while self.waiting:
                    self._start_what_fits()
                    await self._one_end()
        except TimeoutError:
            self._events.tell(
                Event("judge_drain_deadline", Level.WARNING, "not all was judged in time", {"jobs": self.waiting})
            )
        finally:
            tasks = self._end_all()
            self._wake.set()
        if tasks:
            await asyncio.wait(tasks, timeout=1)

    def drop_lost(self) -> None:
        """End the jobs that wait and are another replica's now, without a result. Those that run end by themselves."""
        for queue in (self._fresh, self._again):
            for job in [job for job in queue if job.screened.receipt is not None and job.screened.receipt.lost]:
                self._leave(queue, job)
                job.settled = True
                self._counts.moved()
                self._downstream.settled(_settled(job.screened, job.decision, job.segments, ()))

    def _end_all(self) -> set[asyncio.Task[None]]:
        """Settle or leave every job, at once. Returns the tasks that were cancelled."""
        for queue in (self._fresh, self._again):
            for job in list(queue):
                self._leave(queue, job)
                self._shut_down(job)
        tasks = set(self._abandoned)
        for job in self._running:
            self._shut_down(job)
            if job.task is not None:
                job.task.cancel()
                tasks.add(job.task)
        self._running.clear()
        return tasks

    def _shut_down(self, job: _Job) -> None:
        if job.screened.receipt is None:
            self._give_up(job, FailedReason.SHUTDOWN)
        else:
            job.settled = True

    async def _one_end(self) -> None:
        tasks = [job.task for job in self._running if job.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=_TICK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(_TICK_SECONDS / 10)  # the judge is down, or a retry is not yet due

    @property
    def _jobs(self) -> int:
        return len(self._fresh) + len(self._again)

    def _oldest_age(self, now: float) -> float:
        heads = [self._fresh[0].offered] if self._fresh else []
        return now - min([*heads, *(job.offered for job in self._again)], default=now)

    def _enter(self, queue: deque[_Job], job: _Job) -> None:
        queue.append(job)
        self._bytes += job.bytes

    def _leave(self, queue: deque[_Job], job: _Job) -> None:
        queue.remove(job)
        self._bytes -= job.bytes

    def _start_what_fits(self) -> None:
        now = self._clock.monotonic()
        capacity, free = self._judge.capacity(), self._options.concurrency - len(self._abandoned)
        while len(self._running) < min(capacity, free) and self._jobs:
            due = bool(self._again) and self._again[0].not_before <= now
            queue = self._again if due else self._fresh
            if not queue or not self._judge.available():
                return
            job = queue[0]
            self._leave(queue, job)
            if is_own_evaluation(job.screened.found):
                self._finish(job, self._all(job, NotApplicable(NotApplicableReason.OWN_EVALUATION)))
                continue
            job.started = now
            job.cancelled = None
            self._wait_time.observe(now - job.offered)
            self._running.add(job)
            job.task = asyncio.create_task(self._judge_one(job))

    async def _judge_one(self, job: _Job) -> None:
        interaction = job.screened.found.interaction
        task = asyncio.current_task()
        try:
            results = await self._judge.score(interaction, self._options.deadline_seconds)
        except asyncio.CancelledError:
            # Not by us: the loop is closing down around us, or something inside the judge cancelled itself.
            outside = (
                FailedReason.SHUTDOWN if task is not None and task.cancelling() else FailedReason.SCORER_ERROR
            )
            results = self._all(job, Failed(job.cancelled or outside))
        except Exception as error:  # noqa: BLE001  # a bug in a scorer costs one interaction, not the worker; it is logged
            self._events.tell(
                Event(
                    "judge_error",
                    Level.ERROR,
                    "judging one interaction raised",
                    {"interaction_id": interaction.id},
                ),
                error,
            )
            results = self._all(job, Failed(FailedReason.SCORER_ERROR, type(error).__name__))
        finally:
            if task is not None:
                self._abandoned.discard(task)
            self._running.discard(job)
        if not job.settled:
            self._judging_time.observe(self._clock.monotonic() - job.started)
            results = self._completed(job, results)
            if self._worth_waiting(job, results) and not self._draining:
                self._put_back(job, results)
            else:
                self._ledger.judged()
                self._finish(job, results)
                if self._judged is not None:
                    self._judged(interaction, results)
        self._start_what_fits()

    def _worth_waiting(self, job: _Job, results: Sequence[Result]) -> bool:
        """Something failed for the judge's own sake, and a later try may find the judge well.

        It is final when the try before had scored something by a call, and this one scored no less: then the judge
        works, and a part of it does not (say, its embeddings). One such try is not enough: when a judge comes back,
        the first call is a probe, and those of the same interaction beside it fail.
        """
        results = [r for r in results if r.scorer not in self._beside]
        if not any(isinstance(r.outcome, Failed) and r.outcome.reason in _JUDGE_DOWN for r in results):
            return False
        before = [r for r in job.partial or () if r.scorer not in self._beside]
        return not _answered(before) or _scored(results) < _scored(before) or not self._judge.available()

    def _put_back(self, job: _Job, results: list[Result]) -> None:
        job.partial = results
        job.not_before = self._clock.monotonic() + self._options.retry_seconds
        self._enter(self._again, job)
        self._telemetry.inc(metrics.JUDGING_RETRIED)

    def _give_up(self, job: _Job, reason: FailedReason) -> None:
        """A job that waited ends: what an earlier try found stands, the rest is failed."""
        if job.partial is None:
            self._fail(job, reason)
            return
        self._finish(
            job, [replace(r, outcome=Failed(reason)) if isinstance(r.outcome, Failed) else r for r in job.partial]
        )

    def _abandon(self, job: _Job, held: float) -> None:
        """The task ignores its cancellation. Its metrics fail now; the slot stays taken until the task ends, so a
        judge that hangs for good can not pile up tasks."""
        assert job.task is not None
        self._running.discard(job)
        self._abandoned.add(job.task)
        self._fail(job, FailedReason.DEADLINE)
        self._events.tell(
            Event(
                "judge_slot_abandoned",
                Level.ERROR,
                "a judge call does not end though it was cancelled",
                {"held_seconds": round(held, 1), "abandoned": len(self._abandoned)},
                Count(metrics.JUDGING_ABANDONED),
            )
        )

    def _completed(self, job: _Job, results: list[Result]) -> list[Result]:
        """One result for every metric, a failed one for each that the judge left out."""
        given: dict[str, Result] = {}
        for result in results:
            given.setdefault(result.scorer, result)
        missing = [each for each in self._instruments if each.metric not in given]
        if missing:
            self._events.tell(
                Event(
                    "judge_result_missing",
                    Level.ERROR,
                    "the judge gave no result for a metric",
                    {"metrics": len(missing)},
                )
            )
        outcome = Failed(FailedReason.SCORER_ERROR, "no result")
        return [*given.values(), *(_result(job, instrument, outcome) for instrument in missing)]

    def _all(self, job: _Job, outcome: Outcome) -> list[Result]:
        return [_result(job, instrument, outcome) for instrument in self._instruments]

    def _fail(self, job: _Job, reason: FailedReason) -> None:
        self._finish(job, self._all(job, Failed(reason)))

    def _finish(self, job: _Job, results: list[Result]) -> None:
        if job.settled:
            return
        job.settled = True
        self._counts.ended(results)
        self._downstream.settled(_settled(job.screened, job.decision, job.segments, tuple(results)))


def _answered(results: Sequence[Result]) -> bool:
    """Whether the judge works: a score that took no call (a rule decided, or the cache) does not tell."""
    return any(isinstance(r.outcome, Score) and r.usage is not None and r.usage.calls for r in results)


def _scored(results: Sequence[Result]) -> int:
    return sum(isinstance(r.outcome, Score) for r in results)


def _settled(
    screened: Screened, decision: Decision, segments: tuple[tuple[str, str], ...], judged: tuple[Result, ...]
) -> Settled:
    return Settled(
        found=screened.found,
        decision=decision,
        local=screened.results,
        judged=judged,
        segments=segments,
        screening_probability=screened.probability,
        receipt=screened.receipt,
    )


def _result(job: _Job, instrument: Instrument, outcome: Outcome) -> Result:
    return Result(
        interaction_id=job.screened.found.interaction.id,
        scorer=instrument.metric,
        kind=Kind.JUDGED,
        outcome=outcome,
        version=instrument.version,
        fingerprint=instrument.fingerprint,
    )


def _size(screened: Screened) -> int:
    """Estimated memory of a queued job in bytes: its texts as they lie in memory, and an overhead."""
    interaction = screened.found.interaction
    texts = [interaction.question, interaction.response, interaction.reference]
    texts += [passage.text for passage in (*(interaction.contexts or ()), *screened.found.unused_passages)]
    texts += [turn.text for turn in interaction.history]
    return _JOB_OVERHEAD_BYTES + sum(sys.getsizeof(text) for text in texts if text) + 1_024 * len(screened.results)
