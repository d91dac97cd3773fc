"""Spans and log records by trace: open, held, closed, released."""

from __future__ import annotations

from itertools import compress

from collector.assembly import heads
from collector.assembly.cold import Block, Cold
from collector.assembly.deliveries import Delivery, UnderWay
from collector.assembly.flat import Flat, Origin, Origins, flatten
from collector.assembly.hints import CONTENT, LOG_EVENTS, OWN, WANTED, HintSearch
from collector.assembly.open_trace import CUT_COST, ITEM_COST, OpenTrace
from collector.assembly.options import Options
from collector.assembly.own import OwnGroups
from collector.assembly.ports import Downstream, Notes, Tally
from collector.assembly.tombstones import Tombstones
from collector.assembly.wheel import Wheel
from collector.otlp.model import RawItem
from collector.pipeline.clock import Clock
from collector.records.batch import Batch, Refusal, Signal
from collector.records.hints import Hints
from collector.records.trace import Release
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry

# Below this distance to the memory limit the bytes of a request are counted before it is taken.
_NEAR_BYTES = 32 * 1024 * 1024
# Eviction goes on until this share of the limit is free, so that not every request evicts.
_FREE_SHARE = 0.05
_SHUTTING_DOWN_RETRY_SECONDS = 5.0
_RETRY_SECONDS = (1.0, 30.0)
_IN_TIME = (Release.QUIET, Release.DEADLINE)


class Assembler:
    """An `Intake` that groups items by trace and hands on the traces that are wanted: those in which a hint occurs
    that tells of something to be read.

    Synchronous, single-threaded: `offer` and `tick` are called from one thread; `tick` about every 0.25 to 1 s.

    Counts, per item taken, one outcome: held, duplicate, late, malformed, own_evaluation or unrelated. A request
    that it refuses whole is counted by who offered it.
    """

    def __init__(
        self,
        options: Options,
        *,
        hints: Hints,
        clock: Clock,
        telemetry: Telemetry,
        downstream: Downstream,
        notes: Notes | None = None,
    ) -> None:
        self._options = options
        self._search = HintSearch(hints)
        self._clock = clock
        self._downstream = downstream
        self._notes = notes
        self._cold = Cold(options.tombstones // 2)
        self._apart: dict[bytes, OpenTrace] = {}  # every trace that is held by itself
        self._unhinted: dict[bytes, OpenTrace] = {}  # those of them without a hint, in order of coming here
        self._oversize: dict[bytes, OpenTrace] = {}  # those of them over a cap
        self._apart_bytes = 0
        self._own_groups = OwnGroups()
        self._under_way = UnderWay()
        self._wheel = Wheel()
        self._closed = Tombstones(options.tombstones // 4, options.dedup_window_seconds)
        self._closed_unhinted = Tombstones(options.tombstones // 4, options.dedup_window_seconds)
        self._draining = False
        self._orphan_wait = options.quiet_seconds * options.orphan_quiet_factor
        # Whether a trace without a hint will be one with log events is not known yet: the longest wait.
        self._cold_wait = max(self._orphan_wait, options.quiet_log_events_seconds)
        self._outcomes = {
            signal: {
                outcome: telemetry.counter(metrics.ITEMS, signal=signal, outcome=outcome)
                for outcome in ("held", "duplicate", "late", "malformed", "own_evaluation", "unrelated")
            }
            for signal in Signal
        }
        self._opened = telemetry.counter(metrics.TRACES_OPENED)
        self._released = {reason: telemetry.counter(metrics.TRACES_RELEASED, reason=reason) for reason in Release}
        self._trimmed = telemetry.counter(metrics.SPANS_TRIMMED)
        self._open_gauge = telemetry.gauge(metrics.TRACES_OPEN)
        self._bytes_gauge = telemetry.gauge(metrics.ASSEMBLY_BYTES)

    # --- what there is

    @property
    def open_traces(self) -> int:
        return len(self._apart) + self._cold.open

    @property
    def waiting_traces(self) -> int:
        """Open traces in which a hint was seen and that nobody gives again: what a drain waits for."""
        return sum(trace.hinted and not trace.receipts for trace in self._apart.values())

    @property
    def hinted(self) -> tuple[int, int]:
        """Open traces in which a hint was seen, and their bytes: they will be handed on."""
        return len(self._apart) - len(self._unhinted), self._apart_bytes

    @property
    def held_bytes(self) -> int:
        """Memory that open traces are estimated to take, in bytes of growth of the process."""
        return int((self._apart_bytes + self._cold.bytes) * self._options.memory_factor)

    def explain(self, trace_id: str) -> str | None:
        """What is known of a trace here, as a sentence; None when nothing is."""
        try:
            name = bytes.fromhex(trace_id)
        except ValueError:
            return None  # anybody may ask for anything
        trace = self._apart.get(name)
        if trace is not None:
            return trace.described(self._clock.monotonic())
        if self._cold.is_open(name):
            return f"open for {self._clock.monotonic() - self._cold.opened_at(name):.0f} s, no hint seen"
        if name in self._closed:
            return "closed; later spans of it are counted late"
        if name in self._closed_unhinted or self._cold.is_closed(name):
            return "closed without a hint: no span held anything that a configured convention reads"
        return None

    # --- intake

    def offer(self, batch: Batch) -> Refusal | None:
        """Take the whole batch, or refuse it whole: "shutting_down", or "memory_full"."""
        if self._draining:
            return Refusal("shutting_down", _SHUTTING_DOWN_RETRY_SECONDS)
        now = self._clock.monotonic()
        if not self._make_room(batch, now):
            return Refusal("memory_full", self._retry_after(now))
        tally = Tally()
        groups, rows = batch.groups, batch.rows
        own = [self._own_groups.holds(group) for group in groups]
        if any(own):
            tally.own_evaluation = sum(len(group.items) for group in compress(groups, own))
            groups, rows = [group for group, of_ours in zip(groups, own, strict=True) if not of_ours], None
        take = self._take_spans if batch.signal is Signal.TRACES else self._take_logs
        delivery = Delivery.of(batch)
        for flat in flatten(groups, rows):
            take(flat, now, tally, delivery)
        batch.repeated = bool(tally.duplicate or tally.late)
        outcomes = self._outcomes[batch.signal]
        for outcome, counter in outcomes.items():
            count = getattr(tally, outcome)
            if count:
                counter.inc(count)
        self._set_gauges()
        return None

    def _take_spans(self, flat: Flat, now: float, tally: Tally, delivery: Delivery | None) -> None:
        read = heads.read(flat)
        found = self._search.find(flat.items, flat.rows, flat.encoding)
        gone = {index for index, says in found.items() if says & OWN}.union(read.malformed)
        if gone:
            tally.malformed += len(read.malformed)
            tally.own_evaluation += len(gone) - len(read.malformed)
            rest = flat.without(gone)
            if rest is None:
                return
            flat, read = rest, heads.read(rest)
            found = self._search.find(flat.items, flat.rows, flat.encoding)
        by_trace = heads.ByTrace(read.heads)
        spans = by_trace.spans
        known = self._cold.known(spans)
        late = self._closed.among(spans) + self._closed_unhinted.among(spans)
        if known:
            late += [name for name in known if self._cold.is_closed(name)]
        for name in late:
            tally.late += len(spans.pop(name)) // 8

        names = dict(zip(found, read.heads.trace_ids(list(found)), strict=True)) if found else {}
        apart = spans.keys() & self._apart.keys()
        apart.update(name for index, name in names.items() if found[index] & WANTED and name in spans)
        if apart:
            indices = by_trace.indices(apart)
            given = list(zip(indices, read.heads.clips(indices), strict=True))
            self._take_apart(flat, given, found, now=now, tally=tally, delivery=delivery)
            for name in apart:
                del spans[name]
        if spans:
            known = [name for name in known if name in spans]
            content = {index: name for index, name in names.items() if name in spans}
            self._take_cold(flat, read.heads, by_trace, known=known, content=content, now=now, tally=tally)

    def _take_apart(
        self,
        flat: Flat,
        given: list[tuple[int, heads.Clip]],
        found: dict[int, int],
        *,
        now: float,
        tally: Tally,
        delivery: Delivery | None,
    ) -> None:
        touched: dict[bytes, OpenTrace] = {}
        before: list[int] = []
        for index, clip in given:
            name = clip[0][2:18]
            trace = touched.get(name)
            if trace is None:
                trace = touched[name] = self._held_apart(name, now)
                before.append(trace.bytes)
            says = found.get(index, 0)
            if says & WANTED:
                self._mark_hinted(trace)
                if says & LOG_EVENTS:
                    trace.log_events = True
            if self._put(trace, clip, flat.origins, index, flat.items[index] if says & CONTENT else None):
                tally.held += 1
                trace.last = now
            else:
                tally.duplicate += 1
        if delivery is not None:
            delivery.spans(flat, given, found, touched, before)
        self._apart_bytes -= sum(before)
        for trace in touched.values():
            self._apart_bytes += trace.bytes
            self._wheel.plan(trace, self._due(trace))

    def _held_apart(self, name: bytes, now: float) -> OpenTrace:
        """The trace as one that is held by itself; opened, or taken out of the cold ones, where it is not."""
        trace = self._apart.get(name)
        if trace is not None:
            return trace
        if self._cold.is_open(name):
            trace = OpenTrace(name, self._cold.opened_at(name), now)
            for part in self._cold.take(name):
                trace.last = part.arrived
                for index, clip in part.clips:
                    self._put(trace, clip, part.origins, index, part.content.get(index))
        else:
            trace = OpenTrace(name, now, now)
            self._opened.inc()
        self._apart[name] = self._unhinted[name] = trace
        self._apart_bytes += trace.bytes
        return trace

    def _put(self, trace: OpenTrace, clip: heads.Clip, origins: Origins, index: int, item: bytes | None) -> bool:
        """Add a span, whole where its `item` is given; whether it is new."""
        options = self._options
        span_id = heads.span_id_of(clip)
        known = trace.spans.get(span_id)
        if known is not None:
            if item is not None:
                self._renew(trace, clip, known, RawItem(item, *origins.at(index), origins.encoding))
            return False
        if len(trace.spans) >= options.max_trace_spans:
            self._trim(trace)
        elif item is None:
            trace.add_clip(span_id, clip, origins.cut_at(index))
        elif trace.bytes + len(item) + ITEM_COST <= options.max_trace_bytes:
            trace.add_whole(span_id, clip, RawItem(item, *origins.at(index), origins.encoding))
        else:
            self._trim(trace)
            trace.add_clip(span_id, clip, origins.cut_at(index))
        return True

    def _renew(
        self, trace: OpenTrace, clip: heads.Clip, known: RawItem | tuple[heads.Clip, Origin], item: RawItem
    ) -> None:
        """Take another copy of a span, if it is the fuller one: some libraries export a span when it starts and
        again when it ends."""
        if isinstance(known, RawItem):
            if (len(item.data), item.data) <= (len(known.data), known.data):
                return
            freed = len(known.data) + ITEM_COST
        else:
            freed = CUT_COST
        if trace.bytes - freed + len(item.data) + ITEM_COST <= self._options.max_trace_bytes:
            trace.bytes -= freed
            trace.add_whole(heads.span_id_of(clip), clip, item)

    def _trim(self, trace: OpenTrace) -> None:
        trace.dropped += 1
        self._trimmed.inc()
        self._oversize[trace.trace_id] = trace

    def _mark_hinted(self, trace: OpenTrace) -> None:
        if not trace.hinted:
            trace.hinted = True
            self._unhinted.pop(trace.trace_id, None)

    def _take_cold(
        self,
        flat: Flat,
        taken: heads.Heads,
        by_trace: heads.ByTrace,
        *,
        known: list[bytes],
        content: dict[int, bytes],
        now: float,
        tally: Tally,
    ) -> None:
        """Hold spans of traces that are not wanted; `content` names the traces of those that keep their bytes."""
        cold, spans = self._cold, by_trace.spans
        with_content = set(content.values())
        if by_trace.repeats:
            for name, span_ids in spans.items():
                spans[name] = b"".join(dict.fromkeys(heads.split(span_ids)))
                tally.duplicate += (len(span_ids) - len(spans[name])) // 8
        renewed = []
        for name in known:
            repeated = cold.holds(name, heads.split(spans[name]))
            if repeated:
                tally.duplicate += len(repeated)
                spans[name] = b"".join(each for each in heads.split(spans[name]) if each not in repeated)
            if spans[name] or name in with_content:  # the repeat may be the fuller copy
                renewed.append(name)
            else:
                del spans[name]
        if not spans:
            return
        tally.held += sum(map(len, spans.values())) // 8
        # The heads of spans that went elsewhere stay in the block; nothing looks them up.
        kept = {index: flat.items[index] for index, name in content.items() if name in spans}
        block = Block(taken, spans, kept, origins=flat.origins, arrived=now)
        fresh = len(spans) - len(renewed)
        if fresh:
            self._opened.inc(fresh)
        for name in cold.add(block, renewed):
            trace = self._held_apart(name, now)
            self._wheel.plan(trace, self._due(trace))

    def _take_logs(self, flat: Flat, now: float, tally: Tally, delivery: Delivery | None) -> None:
        items = flat.items
        found = self._search.find(items, flat.rows, flat.encoding)
        # Most log records hold nothing that a convention reads, and nothing is kept of them.
        rows = sorted(row for row, says in found.items() if says & (WANTED | OWN))
        tally.unrelated += len(items) - len(rows)
        for row in rows:
            name, item = flat.ids(row)[0], items[row]
            if found[row] & OWN:
                tally.own_evaluation += 1
            elif not name:
                tally.unrelated += 1
            elif name in self._closed or name in self._closed_unhinted or self._cold.is_closed(name):
                tally.late += 1
            else:
                trace = self._held_apart(name, now)
                content = hash((item, *flat.origins.at(row)))
                if content in trace.logs:
                    tally.duplicate += 1
                    continue
                tally.held += 1
                before = trace.bytes
                self._mark_hinted(trace)
                trace.log_events = True
                if trace.bytes + len(item) + ITEM_COST > self._options.max_trace_bytes:
                    self._trim(trace)
                else:
                    raw = flat.raw(row)
                    trace.add_log(content, raw)
                    if delivery is not None:
                        delivery.log(trace, raw)
                self._apart_bytes += trace.bytes - before
                trace.last = now
                self._wheel.plan(trace, self._due(trace))

    # --- time

    def _due(self, trace: OpenTrace) -> float:
        """When to close a trace if nothing more comes."""
        options = self._options
        if not trace.hinted:
            wait = self._cold_wait
        else:
            wait = options.quiet_log_events_seconds if trace.log_events else options.quiet_seconds
            if not trace.root:
                wait = max(wait, self._orphan_wait)
        return min(trace.last + wait, trace.opened + options.deadline_seconds)

    def tick(self) -> int:
        """Close the traces whose time has come; how many. Call it about every 0.25 to 1 s."""
        now = self._clock.monotonic()
        closed = 0
        early: list[OpenTrace] = []
        for trace in self._wheel.due(now):
            if self._apart.get(trace.trace_id) is not trace:
                continue
            if self._due(trace) > now:
                early.append(trace)
                continue
            deadline = now >= trace.opened + self._options.deadline_seconds
            self._close(trace, Release.DEADLINE if deadline else Release.QUIET, now)
            closed += 1
        for trace in early:
            self._wheel.plan(trace, self._due(trace))
        quiet = self._cold.close_quiet(now - self._cold_wait)
        if quiet:
            self._released[Release.NO_HINT].inc(quiet)
        self._closed.age(now)
        self._closed_unhinted.age(now)
        self._cold.forget(now - self._options.dedup_window_seconds)
        self._set_gauges()
        return closed + quiet

    def _close(self, trace: OpenTrace, reason: Release, now: float) -> None:
        """Close one trace that is held by itself, and hand it on if it has a hint."""
        self._let_go(trace)
        if not trace.hinted:
            trace.empty()
            self._closed_unhinted.add((trace.trace_id,))
            self._released[Release.NO_HINT if reason in _IN_TIME else reason].inc()
            return
        self._closed.add((trace.trace_id,))
        self._released[reason].inc()
        opened_unix_nano = self._clock.unix_nano() - int((now - trace.opened) * 1e9)
        released = trace.released(reason, opened_unix_nano, self._under_way.receipt(trace))
        trace.empty()
        if self._notes is not None:
            self._notes.note(
                released.trace_id,
                "assembly",
                f"released ({reason}) with {len(released.spans)} spans and {len(released.logs)} log records, "
                f"{'complete' if released.complete else 'incomplete'}",
            )
        self._downstream(released)

    def _let_go(self, trace: OpenTrace) -> None:
        del self._apart[trace.trace_id]
        for those in (self._unhinted, self._oversize):
            those.pop(trace.trace_id, None)
        self._apart_bytes -= trace.bytes

    # --- memory

    def _make_room(self, batch: Batch, now: float) -> bool:
        limit = self._options.max_bytes
        if self.held_bytes + _NEAR_BYTES <= limit:
            return True
        needed = sum(
            sum(map(len, group.items)) + len(group.items) * max(ITEM_COST, CUT_COST) for group in batch.groups
        )
        needed = int(needed * self._options.memory_factor)
        if self.held_bytes + needed <= limit:
            return True
        self._evict(limit - needed - int(limit * _FREE_SHARE), now)
        self._set_gauges()
        return self.held_bytes + needed <= limit

    def _evict(self, target: int, now: float) -> None:
        """Close traces until `target` bytes are held: over a cap, longest without a hint, oldest."""
        for trace in list(self._oversize.values()):
            if self.held_bytes <= target:
                return
            self._close(trace, Release.EVICTED_OVERSIZE, now)
        for trace in list(self._unhinted.values()):
            if self.held_bytes <= target:
                return
            self._close(trace, Release.EVICTED_MEMORY, now)
        while self.held_bytes > target and (closed := self._cold.close_oldest()) is not None:
            self._released[Release.EVICTED_MEMORY].inc(closed)
        if self.held_bytes <= target:
            return
        limit = now - self._options.evict_after_seconds
        for trace in sorted((t for t in self._apart.values() if t.opened <= limit), key=lambda t: t.opened):
            if self.held_bytes <= target:
                return
            self._close(trace, Release.EVICTED_MEMORY, now)

    def _retry_after(self, now: float) -> float:
        due = self._wheel.next_due()
        shortest, longest = _RETRY_SECONDS
        return min(max(shortest, due - now if due is not None else shortest), longest)

    # --- the end

    def drop_lost(self) -> None:
        """Forget the traces of deliveries that are somebody else's now; they may come again, as if never seen."""
        for trace in [trace for trace in self._apart.values() if trace.lost]:
            self._let_go(trace)
            self._released[Release.MOVED].inc()
            trace.empty()
        self._closed.forget(self._under_way.lost())

    def begin_drain(self) -> None:
        """From now on refuse everything; `tick` goes on closing what is complete."""
        self._draining = True

    def drain(self) -> int:
        """Close all that is still open, as incomplete (`Release.DRAIN`); how many of them had a hint.

        Traces that hold receipts stay as they are: what they were made of is given again at the next start."""
        self._draining = True
        now = self._clock.monotonic()
        handed_on = self.waiting_traces
        for trace in [trace for trace in self._apart.values() if not trace.receipts]:
            self._close(trace, Release.DRAIN, now)
        while (closed := self._cold.close_oldest()) is not None:
            self._released[Release.DRAIN].inc(closed)
        self._set_gauges()
        return handed_on

    def _set_gauges(self) -> None:
        self._open_gauge.set(self.open_traces)
        self._bytes_gauge.set(self.held_bytes)
