"""The stages from the border to the sinks in one process, without ports: real ones, but for the judge, the workers
(the real handler, in this process) and the clock."""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Callable, Sequence

from collector.assembly.assembler import Assembler
from collector.assembly.options import Options as AssemblyOptions
from collector.config import Config
from collector.examine import Examination
from collector.extract.extractor import trace_hints
from collector.flow import Flow
from collector.judging.ledger import Ledger
from collector.judging.options import Options as JudgingOptions
from collector.judging.stage import Judging
from collector.otlp.model import Encoding
from collector.otlp.request import Interner
from collector.pipeline.books import Books
from collector.pipeline.clock import ManualClock
from collector.pipeline.receipt import Receipt
from collector.pipeline.workers import BatchFailedError, Loss
from collector.receivers.border import Accepted, Border
from collector.receivers.status import Refused
from collector.records.batch import Signal
from collector.records.ring import Ring
from collector.records.settled import Settled
from collector.records.trace import ReleasedTrace
from collector.sampling.options import Options as SamplingOptions
from collector.sampling.sampler import Sampler
from collector.screening.options import Options as ScreeningOptions
from collector.screening.screen import Examined
from collector.screening.stage import Screening
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction
from scorers.judge.service import JudgedMetric
from scorers.outcome import Failed, FailedReason, Result, Score
from scorers.scorer import Kind

Handle = Callable[[list[ReleasedTrace]], list[Examined]]


def handler() -> Handle:
    """What a worker does; slow to make, so make it once."""
    return Examination(Config().extract, Config().screening)()


class Workers:
    """Runs the handler here, over what a pipe would carry. `fails` says which batches break their worker."""

    workers = 1

    def __init__(self, handle: Handle, fails: Callable[[str], bool]) -> None:
        self._handle = handle
        self._fails = fails

    async def run(self, batch: Sequence[ReleasedTrace], /) -> list[Examined]:
        await asyncio.sleep(0)
        sent: list[ReleasedTrace] = pickle.loads(pickle.dumps(list(batch)))  # our own, just made
        if any(self._fails(trace.trace_id) for trace in sent):
            raise BatchFailedError(Loss.DIED)
        back: list[Examined] = pickle.loads(pickle.dumps(self._handle(sent)))  # our own, just made
        return back


class Judge:
    """Answers, hangs until it is cancelled, raises or is down, by what `mood` says of an interaction."""

    metrics = (JudgedMetric("faithfulness", "1", "print"),)

    def __init__(self, mood: Callable[[str], str]) -> None:
        self._mood = mood

    def available(self) -> bool:
        return True

    def capacity(self) -> int:
        return 1_000

    async def score(self, interaction: Interaction, deadline_seconds: float) -> list[Result]:
        mood = self._mood(interaction.id)
        await asyncio.sleep(0)
        if mood == "hangs":
            await asyncio.Event().wait()
        if mood == "raises":
            raise ValueError(mood)
        outcome = Failed(FailedReason.JUDGE_UNREACHABLE) if mood == "down" else Score(1.0)
        return [Result(interaction.id, "faithfulness", Kind.JUDGED, outcome, "1", "print")]


class Line:
    """The line, and what came to its end. Options are those of the stages."""

    def __init__(
        self,
        handle: Handle,
        *,
        worker_fails: Callable[[str], bool] = lambda _: False,
        mood: Callable[[str], str] = lambda _: "well",
        assembly: AssemblyOptions | None = None,
        screening: ScreeningOptions | None = None,
        sampling: SamplingOptions | None = None,
        judging: JudgingOptions | None = None,
        books: Books | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.telemetry = Telemetry()
        self.settled: list[Settled] = []
        events = Events(self.telemetry, self.clock, logging.getLogger("test.line"))
        ring = Ring(1000, clock=self.clock)
        ledger = Ledger(self.clock)
        sampler = Sampler(sampling or SamplingOptions(), seed="line", clock=self.clock, telemetry=self.telemetry)
        self.flow = Flow(
            sampler=sampler,
            announce=lambda _: None,
            sinks=[self.settled.append],
            notes=ring,
            telemetry=self.telemetry,
            books=books,
        )
        self.judging = Judging(
            judging or JudgingOptions(),
            Judge(mood),
            clock=self.clock,
            telemetry=self.telemetry,
            events=events,
            ledger=ledger,
            downstream=self.flow,
        )
        self.flow.judges = self.judging
        sampler.connect(pressure=self.judging.pressure, spent=ledger.spent)
        self.screening = Screening(
            screening or ScreeningOptions(),
            pool=Workers(handle, worker_fails),
            clock=self.clock,
            telemetry=self.telemetry,
            downstream=self.flow.screened,
            notes=ring,
        )
        self.assembler = Assembler(
            assembly or AssemblyOptions(),
            hints=trace_hints(Config().extract),
            clock=self.clock,
            telemetry=self.telemetry,
            downstream=self.screening.accept,
            notes=ring,
        )
        self.border = Border(
            transport="grpc",
            intake=self.assembler,
            telemetry=self.telemetry,
            max_item_bytes=100_000,
            intern=Interner(),
        )

    def take(self, body: bytes, receipt: Receipt, signal: Signal = Signal.TRACES) -> Accepted | Refused:
        """One delivery, as a receiver that keeps count makes it."""
        outcome = self.border.take(body, signal, Encoding.PROTO, receipt)
        receipt.release()
        return outcome

    async def pass_time(self, seconds: float) -> None:
        """Time passes, and everything that can run runs."""
        self.clock.advance(seconds)
        self.assembler.tick()
        self.judging.tick()
        await self.turn()

    async def turn(self) -> None:
        """Everything that can run now runs."""
        for _ in range(30):
            await asyncio.sleep(0)
