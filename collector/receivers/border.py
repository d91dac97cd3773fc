"""What both transports do with the bytes of a request once they have them: read, count, offer."""

from __future__ import annotations

from dataclasses import dataclass

from collector.otlp import schema
from collector.otlp.encode import encode_items
from collector.otlp.model import Encoding, RawItem
from collector.otlp.request import Interner, OverfullRequest, RequestReader, UnreadableRequest
from collector.pipeline.receipt import Receipt
from collector.pipeline.spool import Body, Entry, Spool
from collector.receivers.status import Reason, Refused
from collector.records.batch import Batch, Intake, Signal
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
        children = self._children[signal]
        try:
            batch = self._reader.read(body, signal, encoding)
        except OverfullRequest as error:
            return self.refuse(signal, Refused(Reason.TOO_LARGE, str(error)))
        except UnreadableRequest as error:
            return self.refuse(signal, Refused(Reason.UNREADABLE, str(error)))
        batch.receipt, batch.kept = receipt, kept
        count = len(batch)
        refusal = self._intake.offer(batch) if count else None
        children.received.inc(count + batch.rejected)
        if batch.rejected:
            children.malformed.inc(batch.rejected)
        if refusal is not None:
            children.items_refused.inc(count)
            return self.refuse(
                signal, Refused(Reason(refusal.reason), retry_after_seconds=refusal.retry_after_seconds)
            )
        return batch

    def _accept(self, batch: Batch, size: int) -> Accepted:
        children = self._children[batch.signal]
        children.bytes.inc(size)
        if batch.rejected:
            children.partial.inc()
            return Accepted(batch.rejected, batch.rejected_reason)
        children.accepted.inc()
        return _ALL

    def refuse(self, signal: Signal, refused: Refused) -> Refused:
        """Count a refusal."""
        self._children[signal].refused.inc()
        self._by_reason[refused.reason].inc()
        return refused


def _closed_by(spool: Spool) -> Refused | None:
    if spool.failing is not None:
        return Refused(Reason.SPOOL_FAILING, retry_after_seconds=spool.retry_seconds)
    return Refused(Reason.SPOOL_FULL, retry_after_seconds=spool.retry_seconds) if spool.full else None


def _written(body: bytes, batch: Batch, kept: list[RawItem], encoding: Encoding) -> list[Body]:
    """What is written of a request: the request itself, where all of it is kept as it is."""
    if len(kept) == len(batch) and not batch.rejected and not any(item.cut for item in kept):
        return [(batch.signal, encoding, body)]
    return [(batch.signal, form, cut_down) for form, cut_down in encode_items(kept, batch.signal)]
