"""What requests gave to traces that are wanted: these hold their receipts until they are settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from collector.assembly.flat import Flat
from collector.assembly.heads import Clip, cut
from collector.assembly.hints import CONTENT
from collector.assembly.open_trace import OpenTrace
from collector.otlp.model import RawItem
from collector.pipeline.receipt import Receipt
from collector.records.batch import Batch


class Delivery:
    """One request, or several, whose source keeps count. `kept`, where given, takes the items that traces with a hint
    hold of it, cut as they hold them: what must be written down before the request is acknowledged."""

    __slots__ = ("_kept", "_receipt", "_receipts")

    def __init__(self, batch: Batch) -> None:
        self._receipt = (batch.receipt,) if batch.receipt is not None else ()
        self._receipts = batch.receipts
        self._kept = batch.kept

    @classmethod
    def of(cls, batch: Batch) -> Delivery | None:
        """None where the source of a batch keeps no count."""
        return cls(batch) if batch.receipt is not None or batch.receipts is not None else None

    def _hold(self, trace: OpenTrace) -> None:
        receipts = self._receipt if self._receipts is None else self._receipts.get(trace.trace_id, ())
        for receipt in receipts:
            trace.hold(receipt)

    def spans(
        self,
        flat: Flat,
        given: Sequence[tuple[int, Clip]],
        found: Mapping[int, int],
        touched: Mapping[bytes, OpenTrace],
        before: Sequence[int],
    ) -> None:
        """`given` are the spans, with their indices, that came to the `touched` traces, whose bytes were `before`. A
        trace that took nothing of them (all are repeats) holds nothing: an earlier delivery has them."""
        grown = {
            name
            for (name, trace), was in zip(touched.items(), before, strict=True)
            if trace.hinted and trace.bytes != was
        }
        for name in grown:
            self._hold(touched[name])
        if self._kept is None:
            return
        for index, clip in given:
            name = clip[0][2:18]
            if name in grown:
                whole = found.get(index, 0) & CONTENT
                self._kept.append(flat.raw(index) if whole else cut(name, clip, *flat.origins.cut_at(index)))

    def log(self, trace: OpenTrace, item: RawItem) -> None:
        """A log record came to a trace, which took it."""
        self._hold(trace)
        if self._kept is not None:
            self._kept.append(item)


class UnderWay:
    """Traces that were handed on with a receipt and are not settled: those whose delivery is lost will come again."""

    __slots__ = ("_names",)

    def __init__(self) -> None:
        self._names: dict[Receipt, bytes] = {}

    def receipt(self, trace: OpenTrace) -> Receipt | None:
        """One receipt for all that a trace holds, which it then holds no more; whoever takes the trace releases it."""
        parts, trace.receipts = trace.receipts, None
        if not parts:
            return None

        def settled() -> None:
            self._names.pop(receipt, None)
            for part in parts:
                part.release()

        receipt = Receipt(settled, parts=parts)
        self._names[receipt] = trace.trace_id
        return receipt

    def lost(self) -> list[bytes]:
        """The ids of those whose delivery is lost; they are under way no more."""
        lost = [receipt for receipt in self._names if receipt.lost]
        return [self._names.pop(receipt) for receipt in lost]
