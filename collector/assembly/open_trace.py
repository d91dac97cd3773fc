"""An open trace that is held by itself: a hint was seen in it, or it lasts long."""

from __future__ import annotations

from collector.assembly.flat import Origin
from collector.assembly.heads import Clip, cut, local_parent
from collector.otlp.model import RawItem
from collector.pipeline.receipt import Receipt
from collector.records.trace import Release, ReleasedTrace

# Bytes that a trace and each of its items take beside their content, as measured (see cold.py).
TRACE_COST = 1_100
ITEM_COST = 330
CUT_COST = 450
RECEIPT_COST = 250


class OpenTrace:
    """Spans by span id, log records by the hash of their content."""

    __slots__ = (
        "bucket",
        "bytes",
        "dropped",
        "hinted",
        "last",
        "log_events",
        "logs",
        "opened",
        "parents",
        "receipts",
        "root",
        "spans",
        "trace_id",
    )

    def __init__(self, trace_id: bytes, opened: float, last: float) -> None:
        self.trace_id = trace_id
        self.opened = opened
        self.last = last
        self.spans: dict[bytes, RawItem | tuple[Clip, Origin]] = {}
        self.logs: dict[int, RawItem] = {}
        self.parents: set[bytes] = set()
        self.root = False
        self.hinted = False
        self.log_events = False
        self.dropped = 0
        self.receipts: list[Receipt] | None = None
        self.bytes = TRACE_COST
        self.bucket = -1  # the wheel's bucket in which it is looked at next

    def add_clip(self, span_id: bytes, clip: Clip, origin: Origin) -> None:
        """A span without a hint, or over a cap: only its head is kept."""
        self.spans[span_id] = (clip, origin)
        self.bytes += CUT_COST
        self._place(clip)

    def add_whole(self, span_id: bytes, clip: Clip, item: RawItem) -> None:
        self.spans[span_id] = item
        self.bytes += len(item.data) + ITEM_COST
        self._place(clip)

    def add_log(self, content_hash: int, item: RawItem) -> None:
        self.logs[content_hash] = item
        self.bytes += len(item.data) + ITEM_COST

    def hold(self, receipt: Receipt) -> None:
        """Hold the receipt of the delivery that is being taken, once."""
        if self.receipts is None:
            self.receipts = []
        elif self.receipts[-1] is receipt:
            return
        receipt.hold()
        self.receipts.append(receipt)
        self.bytes += RECEIPT_COST

    @property
    def lost(self) -> bool:
        """Whether a delivery that it is made of is somebody else's now."""
        return self.receipts is not None and any(receipt.lost for receipt in self.receipts)

    def described(self, now: float) -> str:
        """As a sentence, for people."""
        hint = "a hint was seen" if self.hinted else "no hint seen"
        return (
            f"open for {now - self.opened:.0f} s with {len(self.spans)} spans and {len(self.logs)} log records, "
            f"{hint}, {'local root seen' if self.root else 'no local root yet'}"
        )

    def _place(self, clip: Clip) -> None:
        parent = local_parent(clip)
        if parent:
            self.parents.add(parent)
        else:
            self.root = True

    def orphaned(self) -> bool:
        """Whether some span's parent has not been seen."""
        return not self.parents <= self.spans.keys()

    def empty(self) -> None:
        """Let go of the content: the wheel may hold the trace for a while after it was closed."""
        self.spans, self.logs, self.parents = {}, {}, set()
        receipts, self.receipts = self.receipts or (), None
        for receipt in receipts:
            receipt.release()

    def released(self, reason: Release, opened_unix_nano: int, receipt: Receipt | None) -> ReleasedTrace:
        """As it is handed on, with the receipt that stands for those that it held."""
        # A parent that was not seen makes a local root only when the quiet period ended (rule 3).
        has_root = self.root or (reason is Release.QUIET and self.orphaned())
        return ReleasedTrace(
            trace_id=self.trace_id.hex(),
            spans=tuple(
                span if isinstance(span, RawItem) else cut(self.trace_id, span[0], *span[1])
                for span in self.spans.values()
            ),
            logs=tuple(self.logs.values()),
            reason=reason,
            has_root=has_root,
            opened_unix_nano=opened_unix_nano,
            dropped_spans=self.dropped,
            receipt=receipt,
        )
