"""Whether messages are divided so that all of a trace's come to one replica. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import blake2b

from collector.otlp.batch import Signal

_FIRST = 50
_ONE_IN = 50
_GOOD_IN_A_ROW = 100
_REMEMBERED = 20_000

PARTITION_BY_TRACE = {
    Signal.TRACES: "set `partition_traces_by_id: true` in the Collector's Kafka exporter",
    Signal.LOGS: "set `partition_logs_by_trace_id: true` in the Collector's Kafka exporter",
}


class KeyWatch:
    """Looks at sampled messages of several topics.

    The Collector's exporter, told to divide by trace, writes one message per trace and batch, whose key is the trace
    id as 32 hex digits. A message that holds another trace than its key says, or the same key in two partitions, means
    that a trace may come to two replicas.
    """

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._good: dict[str, int] = {}  # sampled messages in a row that were well, of topics that had a bad one
        self._what: dict[str, str] = {}
        self._places: dict[bytes, tuple[str, int]] = {}
        self._signals: dict[str, set[Signal]] = {}

    def wants(self, topic: str) -> bool:
        """Whether the next message of a topic is to be looked at: the first ones, then one in so many."""
        count = self._seen.get(topic, 0)
        self._seen[topic] = count + 1
        return count < _FIRST or count % _ONE_IN == 0

    def saw(
        self, topic: str, partition: int, signal: Signal, *, key: bytes | None, trace_ids: Collection[bytes]
    ) -> None:
        """A message was looked at; `trace_ids` are those of its items that belong to a trace."""
        self._signals.setdefault(topic, set()).add(signal)
        if not trace_ids:
            return
        name = next(iter(trace_ids)).hex().encode()
        if len(set(trace_ids)) > 1 or key is None or key.lower() != name:
            self._bad(topic, f"messages in topic {topic} are not keyed by trace: {PARTITION_BY_TRACE[signal]}")
            return
        digest = blake2b(key, digest_size=8).digest()
        where, there = self._places.get(digest, (topic, partition))
        if there != partition:
            same = where == topic
            self._bad(
                topic,
                f"messages of one trace are in two partitions of topic {topic}: use a partitioner that goes by the "
                "key (`record_partitioner: sticky_key`), and do not add partitions while traces are open"
                if same
                else f"messages of one trace are in partitions of different numbers of the topics {where} and "
                f"{topic}: give both as many partitions and one partitioner",
            )
            return
        if len(self._places) >= _REMEMBERED:
            self._places.clear()
        self._places[digest] = topic, partition
        if topic in self._what:
            self._good[topic] = self._good.get(topic, 0) + 1
            if self._good[topic] >= _GOOD_IN_A_ROW:
                del self._what[topic], self._good[topic]

    def _bad(self, topic: str, what: str) -> None:
        self._what[topic] = what
        self._good[topic] = 0

    def problem(self, partitions: Mapping[str, int], mine: int) -> str | None:
        """Why traces may be torn apart, as a sentence; None where they are not, or there is nobody to share with.

        `partitions` says how many each topic has, `mine` how many of all this process has.
        """
        if not 0 < mine < sum(partitions.values()):
            return None
        kept = "; or set receivers.kafka.keys_checked: false where you know that traces stay whole"
        for what in self._what.values():
            return f"several replicas share the topics, and {what}{kept}"
        by_signal = {
            signal: {
                partitions[t]: t for t, signals in self._signals.items() if signal in signals and t in partitions
            }
            for signal in Signal
        }
        counts = {*by_signal[Signal.TRACES], *by_signal[Signal.LOGS]}
        if by_signal[Signal.TRACES] and by_signal[Signal.LOGS] and len(counts) > 1:
            told = ", ".join(
                f"{topic} has {count}"
                for count, topic in sorted({**by_signal[Signal.TRACES], **by_signal[Signal.LOGS]}.items())
            )
            return (
                "several replicas share the topics, and topics of traces and of their log records have different "
                f"numbers of partitions ({told}): give all as many{kept}"
            )
        return None
