"""The same span and log record from protobuf and from OTLP/JSON, for any content.

The JSON is written here, from the mapping's rules, and by protobuf's own writer where the two agree (it writes
ids as base64); the protobuf side by the official generated code.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue, KeyValueList

from collector.otlp import encode
from collector.otlp.batch import Signal
from collector.otlp.decode import Decoder
from collector.otlp.model import Encoding
from collector.otlp.request import decode_request

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
UINT32 = st.integers(0, 2**32 - 1)
UINT64 = st.integers(0, 2**64 - 1)
TRACE_IDS = st.binary(min_size=16, max_size=16).filter(any)
SPAN_IDS = st.binary(min_size=8, max_size=8).filter(any)


def _array(values: list[AnyValue]) -> AnyValue:
    message = AnyValue()
    message.array_value.values.extend(values)
    return message


def _kvlist(pairs: list[KeyValue]) -> AnyValue:
    return AnyValue(kvlist_value=KeyValueList(values=pairs))


def _pairs(values: st.SearchStrategy[AnyValue]) -> st.SearchStrategy[list[KeyValue]]:
    return st.lists(st.builds(lambda k, v: KeyValue(key=k, value=v), TEXT, values), max_size=4)


VALUES: st.SearchStrategy[AnyValue] = st.recursive(
    st.one_of(
        st.just(AnyValue()),
        st.builds(lambda v: AnyValue(string_value=v), TEXT),
        st.builds(lambda v: AnyValue(bool_value=v), st.booleans()),
        st.builds(lambda v: AnyValue(int_value=v), st.integers(-(2**63), 2**63 - 1)),
        st.builds(lambda v: AnyValue(double_value=v), st.floats()),
        st.builds(lambda v: AnyValue(bytes_value=v), st.binary(max_size=10)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(_array),
        _pairs(inner).map(_kvlist),
    ),
    max_leaves=5,
)
PAIRS = _pairs(VALUES)


@st.composite
def trace_requests(draw: st.DrawFn) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    for _ in range(draw(st.integers(1, 2))):
        group = request.resource_spans.add()
        group.resource.attributes.extend(draw(PAIRS))
        group.resource.dropped_attributes_count = draw(UINT32)
        for _ in range(draw(st.integers(1, 2))):
            scope = group.scope_spans.add()
            scope.scope.name = draw(TEXT)
            scope.scope.attributes.extend(draw(PAIRS))
            for _ in range(draw(st.integers(1, 2))):
                span = scope.spans.add(
                    trace_id=draw(TRACE_IDS),
                    span_id=draw(SPAN_IDS),
                    parent_span_id=draw(st.one_of(st.just(b""), SPAN_IDS)),
                    name=draw(TEXT),
                    kind=draw(st.integers(0, 5)),
                    start_time_unix_nano=draw(UINT64),
                    end_time_unix_nano=draw(UINT64),
                    attributes=draw(PAIRS),
                    trace_state=draw(TEXT),
                    flags=draw(UINT32),
                    dropped_attributes_count=draw(UINT32),
                    dropped_events_count=draw(UINT32),
                )
                for _ in range(draw(st.integers(0, 2))):
                    span.events.add(name=draw(TEXT), time_unix_nano=draw(UINT64), attributes=draw(PAIRS))
                for _ in range(draw(st.integers(0, 1))):
                    span.links.add(trace_id=draw(TRACE_IDS), span_id=draw(SPAN_IDS), attributes=draw(PAIRS))
                span.status.code = draw(st.integers(0, 2))
                span.status.message = draw(TEXT)
    return request


@st.composite
def log_requests(draw: st.DrawFn) -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    group = request.resource_logs.add()
    group.resource.attributes.extend(draw(PAIRS))
    scope = group.scope_logs.add()
    for _ in range(draw(st.integers(1, 3))):
        scope.log_records.add(
            trace_id=draw(st.one_of(st.just(b""), TRACE_IDS)),
            span_id=draw(st.one_of(st.just(b""), SPAN_IDS)),
            time_unix_nano=draw(UINT64),
            observed_time_unix_nano=draw(UINT64),
            body=draw(VALUES),
            attributes=draw(PAIRS),
            flags=draw(UINT32),
            event_name=draw(TEXT),
        )
    return request


def otlp_json(message: Any, *, enum_numbers: bool, original_names: bool, escape: bool) -> bytes:
    document = MessageToDict(
        message, use_integers_for_enums=enum_numbers, preserving_proto_field_name=original_names
    )
    return json.dumps(_hex_ids(document), ensure_ascii=escape).encode()


def _hex_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_hex_ids(v) for v in value]
    if not isinstance(value, dict):
        return value
    ids = {"traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id"}
    return {
        k: base64.b64decode(v).hex() if k in ids and isinstance(v, str) else _hex_ids(v) for k, v in value.items()
    }


@settings(max_examples=20, deadline=None)
@given(trace_requests(), st.booleans(), st.booleans(), st.booleans())
def test_spans(request: ExportTraceServiceRequest, enum_numbers: bool, names: bool, escape: bool) -> None:
    text = otlp_json(request, enum_numbers=enum_numbers, original_names=names, escape=escape)
    one = decode_request(request.SerializeToString(), Signal.TRACES, Encoding.PROTO)
    two = decode_request(text, Signal.TRACES, Encoding.JSON)
    assert one.rejected == two.rejected == 0
    assert [g.trace_ids for g in one.groups] == [g.trace_ids for g in two.groups]
    assert [g.span_ids for g in one.groups] == [g.span_ids for g in two.groups]
    decoder = Decoder()
    for proto_item, json_item in zip(encode.items(one), encode.items(two), strict=True):
        # repr, because NaN equals nothing
        assert repr(decoder.span(proto_item)) == repr(decoder.span(json_item))


@settings(max_examples=40, deadline=None)
@given(log_requests(), st.booleans())
def test_log_records(request: ExportLogsServiceRequest, names: bool) -> None:
    text = otlp_json(request, enum_numbers=True, original_names=names, escape=True)
    one = decode_request(request.SerializeToString(), Signal.LOGS, Encoding.PROTO)
    two = decode_request(text, Signal.LOGS, Encoding.JSON)
    assert one.rejected == two.rejected == 0
    assert [(g.trace_ids, g.span_ids) for g in one.groups] == [(g.trace_ids, g.span_ids) for g in two.groups]
    decoder = Decoder()
    for proto_item, json_item in zip(encode.items(one), encode.items(two), strict=True):
        assert repr(decoder.log_record(proto_item)) == repr(decoder.log_record(json_item))
