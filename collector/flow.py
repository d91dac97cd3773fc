"""The way of one interaction from screening to its settlement. Wiring and counts, no scoring, no statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from collector.pipeline.receipt import Receipt
from collector.records.decision import Decision, Fate
from collector.records.diagnosis import Diagnosis
from collector.records.found import Found, Mark
from collector.records.settled import Screened, Settled
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from scorers.outcome import Failed, NotApplicable, Result, Score

Segments = tuple[tuple[str, str], ...]
Sink = Callable[[Settled], None]


class Decides(Protocol):
    def decide(self, found: Found, results: Sequence[Result], *, screening_probability: float) -> Decision: ...

    def segments(self, found: Found) -> Segments: ...


class Judges(Protocol):
    def offer(self, screened: Screened, decision: Decision, segments: Segments) -> None: ...


class Notes(Protocol):
    def note(self, trace_id: str, stage: str, text: str, **facts: object) -> None: ...


class Books(Protocol):
    def known(self, key: str) -> bool: ...

    def settled(self, key: str, receipt: Receipt | None) -> None: ...


class Flow:
    """Takes screened interactions, lets the sampler decide, and hands them to the judge or straight to settlement.

    `judges` is None where no judge is configured: then nothing is queued and the decision is settled as sampled
    out under the policy's own name. `sinks` get every settled interaction, in the order given; they must not
    block. `seen` is told of every interaction that counts when it is screened, `diagnose` tells its cause when it is
    settled. `books` know the interactions that were counted: such a one is counted as repeated, and nothing else is
    done about it. While it is in doubt whether an interaction is another replica's, it waits here, so that only one of
    them counts it; these are at most as many as the process holds anyway, since what is in doubt is not added to.
    Lives on the event loop.
    """

    def __init__(
        self,
        *,
        sampler: Decides,
        announce: Callable[[Segments], object],
        sinks: Sequence[Sink],
        notes: Notes,
        telemetry: Telemetry,
        seen: Callable[[Found], None] | None = None,
        diagnose: Callable[[Settled], Diagnosis] | None = None,
        books: Books | None = None,
    ) -> None:
        self._sampler = sampler
        self._announce = announce
        self._sinks = tuple(sinks)
        self._notes = notes
        self._telemetry = telemetry
        self._seen = seen
        self._diagnose = diagnose
        self._books = books
        self._in_doubt: list[Settled] = []
        self._found = telemetry.counter(metrics.INTERACTIONS_FOUND)
        self._moved = telemetry.counter(metrics.INTERACTIONS_MOVED)
        self.judges: Judges | None = None

    def screened(self, screened: Screened) -> None:
        """Downstream of screening. Takes over the hold on the receipt; what is another replica's now is dropped."""
        if screened.receipt is not None and screened.receipt.lost:
            screened.receipt.release()
            return
        if self._books is not None and self._books.known(screened.found.interaction.id):
            self._repeated(screened.found, "screened")
            if screened.receipt is not None:
                screened.receipt.release()
            return
        try:
            decision, segments = self._decide(screened)
        except BaseException:
            if screened.receipt is not None:
                screened.receipt.release()
            raise
        if decision.fate is Fate.QUEUED and self.judges is not None:
            self.judges.offer(screened, decision, segments)
            return
        self.settled(
            Settled(
                found=screened.found,
                decision=decision,
                local=screened.results,
                judged=(),
                segments=segments,
                screening_probability=screened.probability,
                receipt=screened.receipt,
            )
        )

    def _decide(self, screened: Screened) -> tuple[Decision, Segments]:
        found = screened.found
        self._found.inc()
        for mark in found.marks:
            self._telemetry.inc(metrics.INTERACTION_MARKS, mark=mark)
        self._note(found, "extraction", "interaction found", **_facts(found))
        decision = self._sampler.decide(found, screened.results, screening_probability=screened.probability)
        segments = self._sampler.segments(found)
        if decision.fate is not Fate.FILTERED:
            self._announce(segments)
            if self._seen is not None:
                self._seen(found)
        self._note(
            found,
            "sampling",
            str(decision.fate),
            policy=decision.policy,
            probability=round(decision.probability, 6),
        )
        return decision, segments

    def settled(self, settled: Settled) -> None:
        """Downstream of judging, and of every interaction that is not judged; releases the receipt after the last
        sink. What became another replica's meanwhile is settled there."""
        if settled.receipt is not None and settled.receipt.in_doubt and not settled.receipt.lost:
            self._in_doubt.append(settled)
            return
        try:
            if settled.receipt is not None and settled.receipt.lost:
                self._moved.inc()
            elif settled.decision.fate is Fate.FILTERED or self._books is None:
                self._settle(settled)
            elif self._books.known(settled.found.interaction.id):  # two of it were under way together
                self._repeated(settled.found, "settled")
            else:
                try:
                    self._settle(settled)
                finally:
                    self._books.settled(settled.found.interaction.id, settled.receipt)
        finally:
            if settled.receipt is not None:
                settled.receipt.release()

    def decided(self) -> None:
        """It is known of some interactions that waited whether they are another replica's: settle or drop those."""
        waited, self._in_doubt = self._in_doubt, []
        for settled in waited:
            self.settled(settled)

    def _settle(self, settled: Settled) -> None:
        if settled.decision.fate is not Fate.FILTERED:
            for result in (*settled.local, *settled.judged):
                self._note(settled.found, "scoring", f"{result.scorer} ({result.kind})", **_outcome(result))
            if self._diagnose is not None:
                diagnosis = self._diagnose(settled)
                settled = replace(settled, diagnosis=diagnosis)
                if diagnosis.cause is not None:
                    self._note(settled.found, "diagnosis", diagnosis.cause, kind=str(diagnosis.kind))
        for sink in self._sinks:
            sink(settled)

    def _repeated(self, found: Found, noticed: str) -> None:
        self._telemetry.inc(metrics.INTERACTIONS_REPEATED, noticed=noticed)
        self._note(found, "books", "was counted before; not counted again")

    def _note(self, found: Found, stage: str, text: str, **facts: object) -> None:
        for trace_id in found.trace_ids[:1]:
            self._notes.note(trace_id, stage, text, interaction=found.interaction.id, **facts)


def _facts(found: Found) -> dict[str, object]:
    contexts = found.interaction.contexts
    return {
        "convention": found.convention,
        "service": found.service,
        "contexts": len(contexts) if contexts is not None else "unknown",
        "question": "found" if found.interaction.question else "absent",
        "response": "found" if found.interaction.response else "absent",
        "marks": ",".join(sorted(found.marks)) or "none",
        "rag": Mark.NOT_RAG not in found.marks,
    }


def _outcome(result: Result) -> dict[str, object]:
    match result.outcome:
        case Score(value=value):
            return {"score": round(value, 4)}
        case NotApplicable(reason=reason):
            return {"not_applicable": str(reason)}
        case Failed(reason=failed):
            return {"failed": str(failed)}
