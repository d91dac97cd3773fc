"""Splitting protobuf requests: what is kept, what is rejected, and that one never costs the other."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp import schema
from collector.otlp.batch import Signal
from collector.otlp.decode import Decoder
from collector.otlp.model import Encoding, RawItem
from collector.otlp.request import Interner, RequestReader, UnreadableRequest, decode_request

TRACE = bytes(range(1, 17))
SPAN = bytes(range(1, 9))
COLLECTOR = Path(__file__).parents[2] / "data" / "kafka" / "collector.jsonl"


def request_of(*ids: tuple[bytes, bytes], name: str = "x") -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "shop"
    scope = group.scope_spans.add()
    scope.scope.name = "lib"
    for trace_id, span_id in ids:
        scope.spans.add(trace_id=trace_id, span_id=span_id, name=name)
    return request


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def test_splits_into_the_bytes_that_were_sent() -> None:
    request = request_of((TRACE, SPAN), (TRACE, SPAN[::-1]))
    batch = decode_request(request.SerializeToString(), Signal.TRACES)
    (group,) = batch.groups
    sent = request.resource_spans[0]
    assert group.items == [span.SerializeToString() for span in sent.scope_spans[0].spans]
    assert group.resource == sent.resource.SerializeToString()
    assert group.scope == sent.scope_spans[0].scope.SerializeToString()
    assert group.trace_ids == [TRACE, TRACE]
    assert group.span_ids == [SPAN, SPAN[::-1]]
    assert (len(batch), batch.rejected, batch.rejected_reason) == (2, 0, "")


@pytest.mark.parametrize(
    ("trace_id", "span_id", "named"),
    [
        (b"", SPAN, "trace id"),
        (TRACE[:15], SPAN, "trace id"),
        (TRACE + b"x", SPAN, "trace id"),
        (bytes(16), SPAN, "trace id"),
        (TRACE, b"", "span id"),
        (TRACE, SPAN[:7], "span id"),
        (TRACE, SPAN * 2, "span id"),
        (TRACE, bytes(8), "span id"),
    ],
)
def test_a_span_with_an_unusable_id_costs_only_itself(trace_id: bytes, span_id: bytes, named: str) -> None:
    body = request_of((TRACE, SPAN), (trace_id, span_id), (TRACE, SPAN)).SerializeToString()
    batch = decode_request(body, Signal.TRACES)
    assert len(batch) == 2
    assert batch.rejected == 1
    assert named in batch.rejected_reason


def test_ids_are_found_wherever_the_sender_put_them() -> None:
    late_ids = field(5, b"name") + field(2, SPAN) + field(1, TRACE)
    body = field(1, field(2, field(2, late_ids)))
    (group,) = decode_request(body, Signal.TRACES).groups
    in_order = field(1, TRACE) + field(2, SPAN) + field(5, b"name")
    assert (group.trace_ids, group.span_ids, group.items) == ([TRACE], [SPAN], [in_order])
    assert (group.resource, group.scope) == (b"", b"")


def test_spans_as_a_collector_writes_them_mean_the_same_and_are_read_from_the_start() -> None:
    lines = [json.loads(line) for line in COLLECTOR.read_text(encoding="utf-8").splitlines()]
    decoder = Decoder()
    spans = 0
    for line in lines:
        if line["topic"] not in ("proto_traces", "shared") or line["headers"].get("otelcol.signal") == "logs":
            continue
        body = base64.b64decode(line["value"])
        batch = decode_request(body, Signal.TRACES)
        sent = [
            bytes(item)
            for of_resource in schema.Request.FromString(body).groups
            for of_scope in of_resource.scopes
            for item in of_scope.items
        ]
        read = [item for group in batch.groups for item in group.items]
        for one, other in zip(sent, read, strict=True):
            spans += 1
            assert not one.startswith(b"\x0a\x10")
            assert other.startswith(b"\x0a\x10")
            assert decoder.span(RawItem(one, b"", b"", Encoding.PROTO)) == decoder.span(
                RawItem(other, b"", b"", Encoding.PROTO)
            )
    assert spans == 12


def test_unknown_fields_are_passed_over_on_every_level() -> None:
    item = request_of((TRACE, SPAN)).resource_spans[0].scope_spans[0].spans[0].SerializeToString()
    unknown = field(15, b"later version")
    body = field(1, unknown + field(2, unknown + field(2, item))) + unknown
    assert len(decode_request(body, Signal.TRACES)) == 1


def test_a_resource_in_two_pieces_is_their_union() -> None:
    first, second = field(1, field(1, b"a")), field(1, field(1, b"b"))
    item = field(1, TRACE) + field(2, SPAN)
    body = field(1, field(1, first) + field(2, field(2, item)) + field(1, second))
    (group,) = decode_request(body, Signal.TRACES).groups
    assert group.resource == first + second


def test_an_unreadable_scope_or_resource_leaves_the_others() -> None:
    item = field(2, field(1, TRACE) + field(2, SPAN))
    broken = b"\x12\x7f"  # says 127 bytes, has none
    body = (
        field(1, field(2, item) + field(2, broken) + field(2, item)) + field(1, broken) + field(1, field(2, item))
    )
    batch = decode_request(body, Signal.TRACES)
    assert len(batch) == 3
    assert batch.rejected == 2
    assert "one scope" in batch.rejected_reason
    assert "one resource" in batch.rejected_reason


def test_a_span_that_can_not_be_read_is_rejected_when_its_ids_are_not_in_place() -> None:
    body = field(1, field(2, field(2, b"\x0a\x7f") + field(2, field(1, TRACE) + field(2, SPAN))))
    batch = decode_request(body, Signal.TRACES)
    assert (len(batch), batch.rejected, batch.rejected_reason) == (1, 1, "1 x unreadable span")


@pytest.mark.parametrize("body", [b"\x0a\x7f", b"hello", b"\xff" * 20, b"<html>"])
def test_a_body_that_is_something_else_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableRequest, match="Content-Type"):
        decode_request(body, Signal.TRACES)


def test_an_empty_body_is_an_empty_request() -> None:
    assert decode_request(b"", Signal.TRACES).groups == []


def test_an_item_over_the_limit_is_rejected_by_itself() -> None:
    request = request_of((TRACE, SPAN), (TRACE, SPAN))
    request.resource_spans[0].scope_spans[0].spans[0].name = "n" * 2000
    reader = RequestReader(max_item_bytes=1024)
    for encoding, body in (
        (Encoding.PROTO, request.SerializeToString()),
        (
            Encoding.JSON,
            b'{"resourceSpans":[{"scopeSpans":[{"spans":[%b,%b]}]}]}'
            % tuple(
                b'{"traceId":"%b","spanId":"%b","name":"%b"}'
                % (TRACE.hex().encode(), SPAN.hex().encode(), b"n" * size)
                for size in (2000, 2)
            ),
        ),
    ):
        batch = reader.read(body, Signal.TRACES, encoding)
        assert (len(batch), batch.rejected) == (1, 1)
        assert "limit of 1024 bytes" in batch.rejected_reason


def test_log_records_need_no_trace() -> None:
    request = ExportLogsServiceRequest()
    records = request.resource_logs.add().scope_logs.add().log_records
    records.add(trace_id=TRACE, span_id=SPAN)
    records.add(trace_id=TRACE)
    records.add()
    records.add(trace_id=bytes(16), span_id=bytes(8))
    records.add(trace_id=TRACE[:3])
    batch = decode_request(request.SerializeToString(), Signal.LOGS)
    (group,) = batch.groups
    assert group.trace_ids == [TRACE, TRACE, b"", b"", b""]
    assert group.span_ids == [SPAN, b"", b"", b"", b""]
    assert batch.rejected == 0


def test_resources_of_several_requests_are_one_object() -> None:
    reader = RequestReader()
    first = reader.read(request_of((TRACE, SPAN)).SerializeToString(), Signal.TRACES, Encoding.PROTO)
    second = reader.read(request_of((TRACE, SPAN), name="y").SerializeToString(), Signal.TRACES, Encoding.PROTO)
    assert first.groups[0].resource is second.groups[0].resource
    assert first.groups[0].scope is second.groups[0].scope


def test_the_interner_is_bounded() -> None:
    intern = Interner(max_bytes=100)
    kept = intern(b"a" * 60)
    assert intern(b"".join([b"a"] * 60)) is kept
    intern(b"b" * 60)  # does not fit beside it: the memory is emptied
    assert intern(b"".join([b"a"] * 60)) is not kept
    huge = b"c" * 101
    assert intern(huge) is huge
    assert intern(b"".join([b"c"] * 101)) is not huge
