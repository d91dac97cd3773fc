"""What one message is: an export request of traces or logs, a plain record, or nothing that is read here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from collector.otlp.batch import Signal
from collector.otlp.model import Encoding
from collector.otlp.surrogates import mend_surrogates
from collector.receivers.files import proto_signal
from collector.receivers.kafka_options import TopicEncoding, TopicOptions, TopicSignal
from scorers.judge.marker import HEADER

SIGNAL_HEADER = "otelcol.signal"
"""Header by which the Collector's exporter tells the signals of a shared topic apart (its option `signal_header`)."""


class Content(StrEnum):
    """What a message holds."""

    REQUEST = "request"
    RECORD = "record"
    UNWANTED = (
        "unwanted"  # metrics, profiles, results of ours, or no value at all (a tombstone of a compacted topic)
    )
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Kind:
    """`signal` and `encoding` are of a request."""

    content: Content
    signal: Signal = Signal.TRACES
    encoding: Encoding = Encoding.PROTO


_RECORD = Kind(Content.RECORD)
_UNWANTED = Kind(Content.UNWANTED)
_UNREADABLE = Kind(Content.UNREADABLE)
_REQUESTS = {
    (signal, encoding): Kind(Content.REQUEST, signal, encoding) for signal in Signal for encoding in Encoding
}
_BLANK = b" \t\r\n\xef\xbb\xbf"


class _Keys(msgspec.Struct):
    """By which keys an object is a request. Reading them checks that the whole is JSON."""

    spans: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resourceSpans")
    spans_2: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resource_spans")
    logs: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resourceLogs")
    logs_2: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resource_logs")
    metrics: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resourceMetrics")
    metrics_2: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resource_metrics")
    profiles: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resourceProfiles")
    profiles_2: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="resource_profiles")


_KEYS = msgspec.json.Decoder(_Keys)


def kind_of(value: bytes | None, headers: Sequence[tuple[str, bytes | None]], topic: TopicOptions) -> Kind:
    """What a message of this topic is; what the topic's options leave open is told by its header or its content."""
    if not value or (headers and any(name == HEADER for name, _ in headers)):
        return _UNWANTED
    encoding = topic.encoding
    if encoding is TopicEncoding.AUTO:
        encoding = TopicEncoding.OTLP_JSON if value.lstrip(_BLANK)[:1] == b"{" else TopicEncoding.OTLP_PROTO
        looks_json = encoding is TopicEncoding.OTLP_JSON
        # A protobuf request starts with 0x0A, which is a line feed too: "\n{" may be both.
        if looks_json and value[0] == 0x0A and (signal := proto_signal(value)) is not None:
            return _REQUESTS[signal, Encoding.PROTO]
    if encoding is TopicEncoding.RECORDS:
        return _RECORD if _keys(value) is not None else _UNREADABLE
    signal = _signal(topic, headers)
    if signal is None and headers and any(name == SIGNAL_HEADER for name, _ in headers):
        return _UNWANTED
    if encoding is TopicEncoding.OTLP_PROTO:
        signal = signal or proto_signal(value)
        return _REQUESTS[signal, Encoding.PROTO] if signal is not None else _UNREADABLE
    if signal is not None and topic.encoding is not TopicEncoding.AUTO:
        return _REQUESTS[signal, Encoding.JSON]
    return _json(value, signal, records=topic.encoding is TopicEncoding.AUTO)


def _signal(topic: TopicOptions, headers: Iterable[tuple[str, bytes | None]]) -> Signal | None:
    if topic.signal is not TopicSignal.AUTO:
        return Signal(topic.signal)
    for name, text in headers:
        if name == SIGNAL_HEADER:
            return next((signal for signal in Signal if signal.encode() == text), None)
    return None


def _json(value: bytes, signal: Signal | None, *, records: bool) -> Kind:
    keys = _keys(value)
    if keys is None:
        return _UNREADABLE
    for found, parts in (
        (Signal.TRACES, (keys.spans, keys.spans_2)),
        (Signal.LOGS, (keys.logs, keys.logs_2)),
    ):
        if signal in (found, None) and any(bytes(part) for part in parts):
            return _REQUESTS[found, Encoding.JSON]
    others = (keys.metrics, keys.metrics_2, keys.profiles, keys.profiles_2)
    if any(bytes(part) for part in others):
        return _UNWANTED
    return _RECORD if records else _UNREADABLE


def _keys(value: bytes) -> _Keys | None:
    try:
        return _KEYS.decode(mend_surrogates(value.removeprefix(b"\xef\xbb\xbf")))
    except (msgspec.DecodeError, RecursionError):
        return None
