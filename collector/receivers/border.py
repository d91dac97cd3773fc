"""What both transports do with the bytes of a request once they have them: read, count, offer."""

from __future__ import annotations

from dataclasses import dataclass

from collector.otlp import schema
from collector.otlp.model import Encoding, RawItem
from collector.otlp.request import Interner, OverfullRequest, RequestReader, UnreadableRequest
from collector.pipeline.receipt import Receipt
from collector.receivers.status import Reason, Refused
from collector.records.batch import Intake, Signal
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

    Counts, per `metrics`: requests by outcome, refusals by reason, bytes, items received, and of these what was
    malformed or refused; what becomes of the others is counted by the intake.
    """

    def __init__(
        self, *, transport: str, intake: Intake, telemetry: Telemetry, max_item_bytes: int, intern: Interner
    ) -> None:
        self._intake = intake
        self._reader = RequestReader(max_item_bytes=max_item_bytes, intern=intern)
        self._children = {signal: _Children(telemetry, transport, signal) for signal in Signal}
        self._by_reason = {
            reason: telemetry.counter(metrics.REQUESTS_REFUSED, transport=transport, reason=reason)
            for reason in Reason
        }
        self._closed: Refused | None = None

    def close(self, retry_after_seconds: float) -> None:
        """From now on refuse everything, as shutting down, with that hint."""
        self._closed = Refused(Reason.SHUTTING_DOWN, retry_after_seconds=retry_after_seconds)

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
        children.bytes.inc(len(body))
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
