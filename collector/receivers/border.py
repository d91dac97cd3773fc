"""What both transports do with the bytes of a request once they have them: read, count, offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collector.otlp import schema
from collector.otlp.encode import encode_items
from collector.otlp.model import Encoding, RawItem
from collector.otlp.request import Interner, OverfullRequest, RequestReader, UnreadableRequest
from collector.pipeline.receipt import Receipt
from collector.pipeline.spool import Body, Entry, Spool
from collector.receivers.status import Reason, Refused
from collector.records.batch import Batch, Group, Intake, Refusal, Signal
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry


@dataclass(frozen=True, slots=True)
class Accepted:
    """Safe downstream. `rejected` items were unusable; `reason` says why, for the sender."""

    rejected: int = 0
    reason: str = ""

    def proto_response(self) -> bytes:
        """As Export...ServiceResponse; those of traces and logs have the same field numbers."""
        if not self.rejected:
            return b""
        response = schema.Response()
        response.partial_success.rejected = self.rejected
        response.partial_success.error_message = self.reason.encode()
        return bytes(response.SerializeToString())


_ALL = Accepted()


class _Children:
    """The metric children of one transport and signal, looked up once."""

    def __init__(self, telemetry: Telemetry, transport: str, signal: Signal) -> None:
        self.accepted = telemetry.counter(metrics.REQUESTS, transport=transport, signal=signal, outcome="accepted")
        self.partial = telemetry.counter(metrics.REQUESTS, transport=transport, signal=signal, outcome="partial")
        self.refused = telemetry.counter(metrics.REQUESTS, transport=transport, signal=signal, outcome="refused")
        self.bytes = telemetry.counter(metrics.RECEIVED_BYTES, transport=transport, signal=signal)
        self.received = telemetry.counter(metrics.ITEMS_RECEIVED, signal=signal)
        self.malformed = telemetry.counter(metrics.ITEMS, signal=signal, outcome="malformed")
        self.items_refused = telemetry.counter(metrics.ITEMS, signal=signal, outcome="refused")


class Border:
    """The border of one transport ("grpc" or "http").

    With a `spool`, `receive` answers when what must survive of a request is written down.

    Counts, per `metrics`: requests by outcome, refusals by reason, bytes, items received, and of these what was
    malformed or refused; what becomes of the others is counted by the intake.
    """

    def __init__(
        self,
        *,
        transport: str,
        intake: Intake,
        telemetry: Telemetry,
        max_item_bytes: int,
        intern: Interner,
        spool: Spool | None = None,
    ) -> None:
        self._intake = intake
        self._reader = RequestReader(max_item_bytes=max_item_bytes, intern=intern)
        self._children = {signal: _Children(telemetry, transport, signal) for signal in Signal}
        self._by_reason = {
            reason: telemetry.counter(metrics.REQUESTS_REFUSED, transport=transport, reason=reason)
            for reason in Reason
        }
        self._spool = spool
        self._closed: Refused | None = None

    def close(self, retry_after_seconds: float, reason: Reason = Reason.SHUTTING_DOWN) -> None:
        """From now on refuse everything, with that hint."""
        self._closed = Refused(reason, retry_after_seconds=retry_after_seconds)

    def open(self) -> None:
        """Take requests again."""
        self._closed = None

    @property
    def closed(self) -> Refused | None:
        return self._closed

    def take(
        self,
        body: bytes,
        signal: Signal,
        encoding: Encoding,
        receipt: Receipt | None = None,
        kept: list[RawItem] | None = None,
    ) -> Accepted | Refused:
        """Read one body and offer it downstream, which holds `receipt` for what it keeps and adds that to `kept`. A
        returned `Refused` has been counted."""
        taken = self._take(body, signal, encoding, receipt, kept)
        return taken if isinstance(taken, Refused) else self._accept(taken, len(body))

    def take_spans(self, bodies: Sequence[tuple[bytes, Receipt]], encoding: Encoding) -> list[Accepted | Refused]:
        """The same for several requests of spans, each with its receipt, which costs less than one by one where they
        are small. Each is read by itself; those that can be are offered together, and taken or refused together."""
        if self._closed is not None:
            return [self.refuse(Signal.TRACES, self._closed) for _ in bodies]
        read = [self._read(body, Signal.TRACES, encoding) for body, _ in bodies]
        receipts: dict[bytes, list[Receipt]] = {}
        groups: list[Group] = []
        for (_, receipt), batch in zip(bodies, read, strict=True):
            if isinstance(batch, Batch):
                groups += batch.groups
                for name in {name for group in batch.groups for name in group.trace_ids}:
                    receipts.setdefault(name, []).append(receipt)
        refusal = self._intake.offer(Batch(Signal.TRACES, groups, receipts=receipts)) if groups else None
        answers: list[Accepted | Refused] = []
        taken: list[tuple[Batch, int]] = []
        for (body, _), batch in zip(bodies, read, strict=True):
            if isinstance(batch, Refused):
                answers.append(batch)
            elif refusal is not None and batch.groups:
                self._count_received([batch])
                answers.append(self._refuse_items(batch, refusal))
            else:
                taken.append((batch, len(body)))
                answers.append(_answer(batch))
        if taken:
            self._count_received([batch for batch, _ in taken])
            self._count_accepted(taken)
        return answers

    async def receive(self, body: bytes, signal: Signal, encoding: Encoding) -> Accepted | Refused:
        """The same for a client that is told when its request is safe."""
        spool = self._spool
        if spool is None:
            return self.take(body, signal, encoding)
        closed = self._closed or _closed_by(spool)
        if closed is not None:
            return self.refuse(signal, closed)
        entry = Entry(spool)
        try:
            kept: list[RawItem] = []
            taken = self._take(body, signal, encoding, entry.receipt, kept)
            if isinstance(taken, Refused):
                return taken
            safe = True
            if kept:
                safe = await entry.keep(_written(body, taken, kept, encoding))
            elif taken.repeated:  # what came before may still be on its way into the file
                safe = await spool.written()
            if safe:
                return self._accept(taken, len(body))
            # The spans are held all the same; when they come again, they are duplicates.
            return self.refuse(signal, Refused(Reason.SPOOL_FAILING, retry_after_seconds=spool.retry_seconds))
        finally:
            entry.receipt.release()

    def _take(
        self,
        body: bytes,
        signal: Signal,
        encoding: Encoding,
        receipt: Receipt | None,
        kept: list[RawItem] | None,
    ) -> Batch | Refused:
        if self._closed is not None:
            return self.refuse(signal, self._closed)
        batch = self._read(body, signal, encoding)
        if isinstance(batch, Refused):
            return batch
        batch.receipt, batch.kept = receipt, kept
        refusal = self._intake.offer(batch) if len(batch) else None
        self._count_received([batch])
        return batch if refusal is None else self._refuse_items(batch, refusal)

    def _read(self, body: bytes, signal: Signal, encoding: Encoding) -> Batch | Refused:
        try:
            return self._reader.read(body, signal, encoding)
        except OverfullRequest as error:
            return self.refuse(signal, Refused(Reason.TOO_LARGE, str(error)))
        except UnreadableRequest as error:
            return self.refuse(signal, Refused(Reason.UNREADABLE, str(error)))

    def _count_received(self, batches: Sequence[Batch]) -> None:
        """Count the items of requests of one signal, whatever becomes of them."""
        children = self._children[batches[0].signal]
        rejected = sum(batch.rejected for batch in batches)
        children.received.inc(sum(map(len, batches)) + rejected)
        if rejected:
            children.malformed.inc(rejected)

    def _refuse_items(self, batch: Batch, refusal: Refusal) -> Refused:
        self._children[batch.signal].items_refused.inc(len(batch))
        return self.refuse(
            batch.signal, Refused(Reason(refusal.reason), retry_after_seconds=refusal.retry_after_seconds)
        )

    def _accept(self, batch: Batch, size: int) -> Accepted:
        self._count_accepted([(batch, size)])
        return _answer(batch)

    def _count_accepted(self, taken: Sequence[tuple[Batch, int]]) -> None:
        """Count requests of one signal, and their bytes, that are safe downstream."""
        children = self._children[taken[0][0].signal]
        children.bytes.inc(sum(size for _, size in taken))
        partial = sum(batch.rejected > 0 for batch, _ in taken)
        if partial:
            children.partial.inc(partial)
        if partial < len(taken):
            children.accepted.inc(len(taken) - partial)

    def refuse(self, signal: Signal, refused: Refused) -> Refused:
        """Count a refusal."""
        self._children[signal].refused.inc()
        self._by_reason[refused.reason].inc()
        return refused


def _answer(batch: Batch) -> Accepted:
    return Accepted(batch.rejected, batch.rejected_reason) if batch.rejected else _ALL


def _closed_by(spool: Spool) -> Refused | None:
    if spool.failing is not None:
        return Refused(Reason.SPOOL_FAILING, retry_after_seconds=spool.retry_seconds)
    return Refused(Reason.SPOOL_FULL, retry_after_seconds=spool.retry_seconds) if spool.full else None


def _written(body: bytes, batch: Batch, kept: list[RawItem], encoding: Encoding) -> list[Body]:
    """What is written of a request: the request itself, where all of it is kept as it is."""
    if len(kept) == len(batch) and not batch.rejected and not any(item.cut for item in kept):
        return [(batch.signal, encoding, body)]
    return [(batch.signal, form, cut_down) for form, cut_down in encode_items(kept, batch.signal)]
