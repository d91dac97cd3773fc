"""Recorded telemetry through the line again, in a process of its own: composed like the sidecar, without ports,
without sums, and slower rather than shedding."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from collector.assembly.assembler import Assembler
from collector.config import Config
from collector.estimates.estimates import Estimates
from collector.examine import Examination
from collector.exporters.otlp_events import EvaluationEvents
from collector.flow import Flow, Sink
from collector.judging.judges import endpoint_names, make_judge
from collector.judging.ledger import Ledger
from collector.judging.observer import JudgeTelemetry
from collector.judging.stage import Judging
from collector.otlp.batch import Batch
from collector.parts import (
    StartError,
    evaluation_events_of,
    hints_of,
    judged_measures,
    kafka_results_of,
    local_measures,
)
from collector.pipeline.clock import Clock, SystemClock
from collector.pipeline.workers import WorkerPool
from collector.records.found import Mark
from collector.records.ring import Ring
from collector.records.settled import Screened, Settled
from collector.records.trace import ReleasedTrace
from collector.review.options import ControlOptions
from collector.reviewing import Reviewing, reviewing_of
from collector.sampling.sampler import Sampler
from collector.screening.screen import Examined
from collector.screening.stage import Screening
from collector.telemetry import metrics
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from scorers.errors import ScorerError
from scorers.judge.client import Runtime
from scorers.judge.service import Judge
from scorers.outcome import Failed

_LOOK_SECONDS = 0.02
_TICK_SECONDS = 0.25
_AHEAD = 2
"""Traces and interactions under way for each worker's batch and each of the judge's slots: enough to keep both busy."""
_QUIET_SHARE = 0.25
"""A trace counts as quiet when this share of assembly.max_bytes was read without news of it."""
_FULL = 0.5
"""Fill of a queue of results from which traces are held back; what is under way still fits behind it."""
_INTERRUPTED_SECONDS = 5.0


class Unreplayable(Exception):
    """A part of a recording can not be taken at all; the text says why and what to change."""


Item = Batch | ReleasedTrace
"""A request, or what needs no assembly: a plain record."""


@dataclass(slots=True)
class Report:
    """What became of a replay. `rejected` are spans, log records and plain records that could not be read, `lost`
    messages, events and cases that were not written."""

    requests: int = 0
    rejected: int = 0
    traces: int = 0
    interactions: int = 0
    skipped: int = 0
    failed: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    written: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)


class ReplayClock:
    """Time as assembly is to see it: it passes with what is read, so that a replay may be slow or quick."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def unix_nano(self) -> int:
        return self._clock.unix_nano()

    def advance(self, seconds: float) -> None:
        self._now += seconds


class Replay:
    """One replay. `done` are ids of interactions that are passed over; `more` are further sinks, such as a file.

    All is exported as by the sidecar, with the mark `replayed`: events, results topic, review store. Nothing is
    added to its sums. The sampling hashes are the sidecar's, so the same interactions are chosen at the same rates;
    the budget is counted anew, beside the sidecar's.
    """

    def __init__(
        self,
        config: Config,
        environment: Mapping[str, str],
        *,
        logger: logging.Logger,
        judge: bool = True,
        per_second: float | None = None,
        done: frozenset[str] = frozenset(),
        more: Sequence[Sink] = (),
        step: Callable[[bool, bool], object] = lambda _failed, _skipped: None,
    ) -> None:
        """`per_second` is how many interactions go in a second, those that are passed over not counted. `step` hears
        of every interaction whether something failed and whether it was passed over. Raises StartError."""
        if not judge:
            config = config.model_copy(update={"judge": None})
        self._config = config
        self._done = done
        self._step = step
        self._period = 0.0 if per_second is None else 1 / per_second
        self._next_at = 0.0
        self.report = Report()
        self._clock = SystemClock()
        self._telemetry = telemetry = Telemetry()
        events = Events(telemetry, self._clock, logger)
        self._time = ReplayClock(self._clock)
        self._waiting: deque[ReleasedTrace] = deque()
        self._ticked = 0.0
        ledger = Ledger(self._clock)
        self._judge = _judge_of(config, environment, clock=self._clock, telemetry=telemetry, ledger=ledger)
        sampler = Sampler(config.sampling, seed=config.seed, clock=self._clock, telemetry=telemetry)
        estimates = self._causes(sampler.segment_names)
        ring = Ring(0, clock=self._clock)
        self._events: EvaluationEvents | None = evaluation_events_of(config, self._clock, telemetry)
        self._results = kafka_results_of(
            config,
            environment,
            health=lambda _part, _reason: None,
            clock=self._clock,
            telemetry=telemetry,
            events=events,
            durable=False,
        )
        self._review = self._review_of(config, events)
        self._unflushed = 0
        sinks: list[Sink] = [*more]
        sinks += [part.settle for part in (self._events, self._results) if part is not None]
        if self._review is not None:
            sinks.append(self._review.picker.settle)
        self.outputs = len(sinks)
        self._flow = Flow(
            sampler=sampler,
            announce=lambda _: None,
            sinks=[*sinks, self._settled],
            notes=ring,
            telemetry=telemetry,
            diagnose=estimates.diagnose,
        )
        self._judging: Judging | None = None
        if self._judge is not None:
            self._judging = Judging(
                config.judging,
                self._judge,
                clock=self._clock,
                telemetry=telemetry,
                events=events,
                ledger=ledger,
                downstream=self._flow,
            )
            self._flow.judges = self._judging
            sampler.connect(pressure=self._judging.pressure, spent=ledger.spent)
        self._pool: WorkerPool[ReleasedTrace, Examined] = WorkerPool(
            Examination(config.extract, config.screening, config.seed),
            workers=config.screening.workers,
            deadline_seconds=config.screening.deadline_seconds,
        )
        self._screening = Screening(
            config.screening,
            pool=self._pool,
            clock=self._clock,
            telemetry=telemetry,
            downstream=self._screened,
            notes=ring,
        )
        self._assembler = Assembler(
            config.assembly,
            hints=hints_of(config),
            clock=self._time,
            telemetry=telemetry,
            downstream=self._waiting.append,
            notes=ring,
        )

    def _causes(self, segment_names: Sequence[str]) -> Estimates:
        """What tells the cause of an interaction; its sums are nobody's."""
        infos, declared = local_measures(self._config)
        infos += [scorer.info for scorer in self._judge.scorers] if self._judge else []
        self._directions = {metric: info.direction for info in infos for metric in info.gives}
        return Estimates(
            self._config.estimates,
            declared=[*declared, *judged_measures(self._judge)],
            segment_names=segment_names,
            clock=self._clock,
            telemetry=Telemetry(),
            seed=self._config.seed,
        )

    def _review_of(self, config: Config, events: Events) -> Reviewing | None:
        """The review without its uniform part: this is not the traffic that the part is a fair share of."""
        pick = config.review.pick.model_copy(update={"control": ControlOptions(rate=0)})
        return reviewing_of(
            config.model_copy(update={"review": config.review.model_copy(update={"pick": pick})}),
            directions=self._directions,
            beside=(),
            clock=self._clock,
            telemetry=self._telemetry,
            events=events,
        )

    # --- the life of a replay

    async def run(self, items: AsyncIterator[Item]) -> Report:
        """Feed everything, wait until it has an outcome and has been written. What `items` raises is raised when all
        that it gave before has been replayed. When cancelled, what is under way gets five seconds. Raises Unreplayable,
        StartError and OSError."""
        tasks = await self._start()
        failure: Exception | None = None
        try:
            while True:
                try:
                    item = await anext(items)
                except StopAsyncIteration:
                    break
                except Exception as error:  # noqa: BLE001  # of whatever kind: it is raised, later
                    failure = error
                    break
                await self._take(item)
            await self._end_of_recording()
        except BaseException:
            await self._stop(tasks, _INTERRUPTED_SECONDS)
            raise
        await self._stop(tasks, self._config.process.grace_seconds)
        if failure is not None:
            raise failure
        return self.report

    async def _start(self) -> list[asyncio.Task[None]]:
        if self._review is not None:
            await self._review.start()
        if self._events is not None:
            self._events.start()
        await self._pool.start()
        await self._screening.start()
        runs = [part.run for part in (self._judging, self._results) if part is not None]
        return [asyncio.create_task(run()) for run in runs]

    async def _take(self, item: Item) -> None:
        self.report.requests += 1
        if isinstance(item, ReleasedTrace):
            self._waiting.append(item)
            await self._feed()
            return
        self.report.rejected += item.rejected
        size = sum(map(len, (one for group in item.groups for one in group.items)))
        tries = 0
        while len(item) and self._assembler.offer(item) is not None:
            # No room: the oldest traces are taken for ended.
            self._pass(self._config.assembly.quiet_seconds)
            await self._feed()
            tries += 1
            if tries > self._config.assembly.deadline_seconds / self._config.assembly.quiet_seconds + 1:
                raise Unreplayable(
                    f"a request with {size} bytes of spans does not fit into memory; raise assembly.max_bytes "
                    f"({self._config.assembly.max_bytes})"
                )
        self._pass(self._config.assembly.quiet_seconds * size / (self._config.assembly.max_bytes * _QUIET_SHARE))
        await self._feed()

    def _pass(self, seconds: float) -> None:
        """Let time pass for assembly."""
        self._time.advance(seconds)
        if self._time.monotonic() - self._ticked >= _TICK_SECONDS:
            self._ticked = self._time.monotonic()
            self._assembler.tick()

    async def _end_of_recording(self) -> None:
        """All has been read: every trace gets its quiet period, then its deadline."""
        while self._assembler.open_traces:
            self._pass(self._config.assembly.quiet_seconds)
            await self._feed()
        await self._until(lambda: not self._under_way())

    async def _feed(self) -> None:
        """Hand on what assembly released, at the asked pace, as fast as the stages take it without shedding."""
        while self._waiting:
            await self._until(self._has_room)
            early = self._next_at - self._clock.monotonic()
            if early > 0:
                await asyncio.sleep(early)
            self.report.traces += 1
            self._screening.accept(self._waiting.popleft())
        await asyncio.sleep(0)

    def _has_room(self) -> bool:
        screening = max(1, self._config.screening.workers) * self._config.screening.batch_traces * _AHEAD
        room = self._screening.waiting < screening and self._screening.fill < self._config.screening.shed_from
        if self._judging is not None:
            room = room and self._judging.waiting < self._config.judging.concurrency * _AHEAD
            room = room and self._judging.pressure() >= 1
        queues = [part.fill for part in (self._events, self._results) if part is not None]
        return room and all(fill < _FULL for fill in queues)

    def _under_way(self) -> bool:
        return bool(self._screening.waiting or (self._judging is not None and self._judging.waiting))

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110  # it depends on four stages, none of which has an event for it
            await asyncio.sleep(_LOOK_SECONDS)
        if self._review is not None and self._unflushed >= self._config.review.queue_cases * _FULL:
            self._unflushed = 0
            await asyncio.to_thread(self._review.store.flush)

    async def _stop(self, tasks: Sequence[asyncio.Task[None]], seconds: float) -> None:
        await self._screening.stop(seconds)
        await self._pool.stop(0)
        if self._judging is not None and self._judge is not None:
            await self._judging.drain(seconds)
            await self._judge.close()
        if self._results is not None:
            await self._results.flush(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._results is not None:
            self._results.close()
        if self._events is not None:
            await self._events.stop(seconds)
        if self._review is not None:
            await self._review.stop(seconds)
        self._count()

    # --- what comes out

    def _screened(self, screened: Screened) -> None:
        found = screened.found
        if found.interaction.id in self._done:
            self.report.skipped += 1
            self._step(False, True)
            return
        self._next_at = max(self._clock.monotonic(), self._next_at) + self._period
        marked = replace(found, marks=found.marks | {Mark.REPLAYED})
        self._flow.screened(replace(screened, found=marked))

    def _settled(self, settled: Settled) -> None:
        failed = has_failed(settled)
        self.report.interactions += 1
        self.report.failed += failed
        self.report.fates[str(settled.decision.fate)] += 1
        self._unflushed += 1
        self._step(failed, False)

    def _count(self) -> None:
        later = self._telemetry.registry.get_sample_value(metrics.ITEMS_MALFORMED_LATER.name)
        self.report.rejected += int(later or 0)
        if self._results is not None:
            self._written("results", metrics.RESULTS_MESSAGES.name, ("sent",))
        if self._events is not None:
            self._written("events", metrics.EVENTS_EXPORTED.name, ("sent",))
        if self._review is not None:
            self._written("cases", metrics.REVIEW_CASES.name, ("stored", "merged", "erased"))

    def _written(self, what: str, name: str, good: Sequence[str]) -> None:
        counts: Counter[bool] = Counter()
        for family in self._telemetry.registry.collect():
            for sample in family.samples:
                if sample.name == name:
                    counts[sample.labels["outcome"] in good] += int(sample.value)
        self.report.written[what] = counts[True]
        self.report.lost[what] = counts[False]


def has_failed(settled: Settled) -> bool:
    """Whether a scorer could not measure; another replay may."""
    return any(isinstance(one.outcome, Failed) for one in (*settled.local, *settled.judged))


def _judge_of(
    config: Config, environment: Mapping[str, str], *, clock: Clock, telemetry: Telemetry, ledger: Ledger
) -> Judge | None:
    if config.judge is None:
        return None
    observer = JudgeTelemetry(telemetry, ledger, endpoint_names(config.judge))
    runtime = Runtime(observer, monotonic=clock.monotonic, unix_seconds=lambda: clock.unix_nano() / 1e9)
    try:
        return make_judge(config.judge, config.judge.scorers, environ=environment, runtime=runtime)[0]
    except (ScorerError, OSError, ValueError) as error:
        raise StartError(f"judge: {error}") from error
