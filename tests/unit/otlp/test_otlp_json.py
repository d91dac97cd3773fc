"""The proto3 JSON mapping of OTLP, rule by rule."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from collector.otlp.batch import Signal
from collector.otlp.decode import MalformedItem, log_record, resource, scope, span
from collector.otlp.model import Encoding, RawItem, Span, Status
from collector.otlp.request import UnreadableRequest, decode_request
from collector.otlp.surrogates import mend_surrogates

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
IDS = {"traceId": TRACE, "spanId": SPAN}


def body_of(*items: Any) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(items)}]}]}).encode()


def read(**fields: Any) -> Span:
    return span(RawItem(json.dumps({**IDS, **fields}).encode(), b"", b"", Encoding.JSON))


def value_of(value: Any) -> Any:
    return read(attributes=[{"key": "k", "value": value}]).attributes["k"]


def test_original_names_and_camel_case_are_one() -> None:
    camel = {
        "resourceSpans": [
            {"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "s"}, "spans": [dict(IDS)]}]}
        ]
    }
    snake = {
        "resource_spans": [
            {
                "resource": {"attributes": []},
                "scope_spans": [{"scope": {"name": "s"}, "spans": [{"trace_id": TRACE, "span_id": SPAN}]}],
            }
        ]
    }
    one, two = (decode_request(json.dumps(d).encode(), Signal.TRACES, Encoding.JSON) for d in (camel, snake))
    assert one.groups[0].trace_ids == two.groups[0].trace_ids == [bytes.fromhex(TRACE)]
    assert one.groups[0].span_ids == two.groups[0].span_ids == [bytes.fromhex(SPAN)]
    logs = {"resource_logs": [{"scope_logs": [{"log_records": [{"trace_id": TRACE}]}]}]}
    batch = decode_request(json.dumps(logs).encode(), Signal.LOGS, Encoding.JSON)
    assert batch.groups[0].trace_ids == [bytes.fromhex(TRACE)]


def test_items_stay_the_text_that_was_sent() -> None:
    item = b'{ "traceId" : "%b", "spanId":"%b" ,"name" : "\\u00e9" }' % (TRACE.encode(), SPAN.encode())
    batch = decode_request(
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[%b]}]}]}' % item, Signal.TRACES, Encoding.JSON
    )
    assert batch.groups[0].items == [item]
    assert batch.groups[0].encoding is Encoding.JSON


def test_hex_ids_in_any_case() -> None:
    batch = decode_request(
        body_of({"traceId": TRACE.upper(), "spanId": SPAN.upper()}), Signal.TRACES, Encoding.JSON
    )
    assert batch.groups[0].trace_ids == [bytes.fromhex(TRACE)]
    assert read(traceId=TRACE.upper()).trace_id == TRACE


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"traceId": "CvdlGRbNQ92ESOshHIAxnA==", "spanId": SPAN}, "base64"),
        ({"traceId": "CvdlGRbNQ92ESOshHIAxnA", "spanId": SPAN}, "base64"),
        ({"traceId": TRACE, "spanId": "t61rcWkgMzE="}, "base64"),
        ({"traceId": "g" * 32, "spanId": SPAN}, "traceId"),
        ({"traceId": TRACE[:-1], "spanId": SPAN}, "traceId"),
        ({"traceId": "0" * 32, "spanId": SPAN}, "traceId"),
        ({"traceId": None, "spanId": SPAN}, "traceId"),
        ({"spanId": SPAN}, "traceId"),
        ({"traceId": TRACE}, "spanId"),
        ({"traceId": TRACE, "spanId": "0" * 16}, "spanId"),
        ({"traceId": TRACE, "spanId": "xyz"}, "spanId"),
        ({"traceId": 5, "spanId": SPAN}, "unreadable"),
        (None, "unreadable"),
        ([], "unreadable"),
    ],
)
def test_a_span_with_unusable_ids_costs_only_itself(bad: Any, named: str) -> None:
    batch = decode_request(body_of(IDS, bad, IDS), Signal.TRACES, Encoding.JSON)
    assert (len(batch), batch.rejected) == (2, 1)
    assert named in batch.rejected_reason


def test_base64_ids_are_named_with_the_cure() -> None:
    batch = decode_request(
        body_of({"traceId": "CvdlGRbNQ92ESOshHIAxnA==", "spanId": SPAN}), Signal.TRACES, Encoding.JSON
    )
    assert "use an OTLP/JSON encoder" in batch.rejected_reason


def test_log_records_without_ids_and_with_bad_ones() -> None:
    records: list[Any] = [
        {"traceId": TRACE, "spanId": SPAN},
        {"traceId": TRACE},
        {},
        {"traceId": "", "spanId": None},
        {"traceId": "CvdlGRbNQ92ESOshHIAxnA=="},
        {"traceId": "zz"},
    ]
    body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).encode()
    batch = decode_request(body, Signal.LOGS, Encoding.JSON)
    trace, of_span = bytes.fromhex(TRACE), bytes.fromhex(SPAN)
    assert batch.groups[0].trace_ids == [trace, trace, b"", b""]
    assert batch.groups[0].span_ids == [of_span, b"", b"", b""]
    assert batch.rejected == 2


def test_null_is_the_default_everywhere() -> None:
    body = b'{"resourceSpans":[{"resource":null,"scopeSpans":[{"scope":null,"spans":null}]},{"scopeSpans":null}]}'
    assert decode_request(body, Signal.TRACES, Encoding.JSON).groups == []
    assert decode_request(b'{"resourceSpans":null}', Signal.TRACES, Encoding.JSON).groups == []
    ids_and_numbers = (
        "parentSpanId kind startTimeUnixNano endTimeUnixNano flags droppedAttributesCount droppedEventsCount"
    )
    others = "name attributes events links status traceState"
    nulls = dict.fromkeys(f"{ids_and_numbers} {others}".split())
    assert read(**nulls) == read() == Span(TRACE, SPAN)


def test_parts_of_the_wrong_shape_leave_the_others() -> None:
    good = {"scopeSpans": [{"spans": [IDS]}]}
    document = {
        "resourceSpans": [good, 5, {"scopeSpans": [7, {"spans": [IDS]}, {"spans": {}}]}, {"scopeSpans": "x"}]
    }
    batch = decode_request(json.dumps(document).encode(), Signal.TRACES, Encoding.JSON)
    assert (len(batch), batch.rejected) == (2, 4)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"hello", b'{"resourceSpans":{}}', b"[" * 200_000, b'{"a":' * 200_000]
)
def test_a_body_that_is_something_else_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableRequest, match="OTLP/JSON"):
        decode_request(body, Signal.TRACES, Encoding.JSON)


def test_a_byte_order_mark_is_passed_over() -> None:
    assert len(decode_request(b"\xef\xbb\xbf" + body_of(IDS), Signal.TRACES, Encoding.JSON)) == 1


@pytest.mark.parametrize(
    ("given", "read_as"),
    [
        ({"stringValue": "é"}, "é"),
        ({"string_value": "a"}, "a"),
        ({"boolValue": False}, False),
        ({"intValue": "-9223372036854775808"}, -(2**63)),
        ({"intValue": 5}, 5),
        ({"intValue": "5.0"}, 5),
        ({"intValue": 1e3}, 1000),
        ({"int_value": "7"}, 7),
        ({"doubleValue": 1.5}, 1.5),
        ({"doubleValue": 2}, 2.0),
        ({"doubleValue": "2.5"}, 2.5),
        ({"doubleValue": "Infinity"}, math.inf),
        ({"doubleValue": "-Infinity"}, -math.inf),
        ({"bytesValue": "+/8="}, b"\xfb\xff"),
        ({"bytesValue": "-_8"}, b"\xfb\xff"),
        ({"arrayValue": {"values": [{"intValue": 1}, {}, {"stringValue": ""}]}}, [1, None, ""]),
        ({"arrayValue": {}}, []),
        (
            {"kvlistValue": {"values": [{"key": "a", "value": {"boolValue": True}}, {"key": "b"}]}},
            {"a": True, "b": None},
        ),
        ({}, None),
        (None, None),
        ({"stringValue": None}, None),
        ({"laterValue": 3}, None),
    ],
)
def test_values(given: Any, read_as: Any) -> None:
    assert value_of(given) == read_as
    assert type(value_of(given)) is type(read_as)


def test_not_a_number_is_a_double() -> None:
    assert math.isnan(value_of({"doubleValue": "NaN"}))


@pytest.mark.parametrize(
    "given",
    [
        {"intValue": "9223372036854775808"},
        {"intValue": "1.5"},
        {"intValue": " 1"},
        {"intValue": "1_0"},
        {"intValue": "١"},
        {"intValue": True},
        {"intValue": "9" * 5000},
        {"doubleValue": "nan"},
        {"doubleValue": "1e999"},
        {"doubleValue": 10**400},
        {"boolValue": "true"},
        {"stringValue": 5},
        {"bytesValue": "a"},
        {"arrayValue": []},
        {"kvlistValue": {"values": {}}},
        "text",
    ],
)
def test_values_of_the_wrong_kind_are_malformed(given: Any) -> None:
    with pytest.raises(MalformedItem, match=r"span of \d+ bytes: "):
        value_of(given)


@pytest.mark.parametrize(
    ("given", "kind"), [(3, 3), ("SPAN_KIND_CLIENT", 3), ("SPAN_KIND_LATER", 0), (99, 99), ("2", 2), (None, 0)]
)
def test_enums_as_numbers_and_names(given: Any, kind: int) -> None:
    assert read(kind=given).kind == kind


@pytest.mark.parametrize(
    ("given", "status"),
    [(2, Status.ERROR), ("STATUS_CODE_ERROR", Status.ERROR), ("STATUS_CODE_OK", Status.OK), (9, Status.UNSET)],
)
def test_status_codes(given: Any, status: Status) -> None:
    assert read(status={"code": given, "message": "m"}).status is status


@pytest.mark.parametrize("given", ["1700000000123456789", 1700000000123456789])
def test_times_as_strings_and_numbers(given: Any) -> None:
    found = read(startTimeUnixNano=given, end_time_unix_nano=given, events=[{"timeUnixNano": given, "name": "e"}])
    assert found.start_unix_nano == found.end_unix_nano == found.events[0].time_unix_nano == 1700000000123456789


def test_out_of_range_and_negative_times_are_malformed() -> None:
    for given in ("-1", str(2**64), {}):
        with pytest.raises(MalformedItem, match="startTimeUnixNano"):
            read(startTimeUnixNano=given)


def test_halves_of_surrogate_pairs_do_not_cost_the_request() -> None:
    body = body_of({**IDS, "name": "cut \ud83d"}, {**IDS, "name": "whole \U0001f600 \\ud83d"})
    assert b"\\ud83d" in body
    batch = decode_request(body, Signal.TRACES, Encoding.JSON)
    names = [span(RawItem(item, b"", b"", Encoding.JSON)).name for item in batch.groups[0].items]
    assert names == ["cut \ufffd", "whole \U0001f600 \\ud83d"]


def test_mending_leaves_sound_text_alone() -> None:
    for sound in (b'"\\ud83d\\ude00"', b'"\\\\ud83d"', b'"plain"', b'"\\n\\u00e9"'):
        assert mend_surrogates(sound) is sound
    assert mend_surrogates(b'"\\ude00\\ud83d"') == b'"\\ufffd\\ufffd"'


def test_bytes_that_are_not_utf8_do_not_cost_the_span() -> None:
    item = b'{"traceId":"%b","spanId":"%b","name":"a\xffb"}' % (TRACE.encode(), SPAN.encode())
    batch = decode_request(
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[%b]}]}]}' % item, Signal.TRACES, Encoding.JSON
    )
    assert span(RawItem(batch.groups[0].items[0], b"", b"", Encoding.JSON)).name == "a\ufffdb"


def test_deep_values_are_malformed_and_allowed_ones_are_not() -> None:
    def nested(depth: int) -> Any:
        value: Any = {"intValue": 1}
        for _ in range(depth):
            value = {"arrayValue": {"values": [value]}}
        return value

    value_of(nested(45))
    for depth in (60, 300):
        with pytest.raises(MalformedItem, match="deep"):
            value_of(nested(depth))
    bomb = b'{"attributes":' + b"[" * 100_000
    with pytest.raises(MalformedItem, match="deep"):
        span(RawItem(bomb, b"", b"", Encoding.JSON))


def test_resource_and_scope() -> None:
    text = b'{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}],"droppedAttributesCount":2}'
    assert resource(text, Encoding.JSON).service_name == "shop"
    assert resource(text, Encoding.JSON).dropped_attributes_count == 2
    found = scope(b'{"name":"lib","version":"1"}', Encoding.JSON)
    assert (found.name, found.version) == ("lib", "1")
    for bad in (b"5", b"{", b'{"attributes":5}', b'{"attributes":[5]}'):
        with pytest.raises(MalformedItem, match="resource"):
            resource(bad, Encoding.JSON)
        with pytest.raises(MalformedItem, match="scope"):
            scope(bad, Encoding.JSON)


def test_log_record_with_structured_body() -> None:
    text = {
        "traceId": TRACE,
        "observedTimeUnixNano": "9",
        "body": {"kvlistValue": {"values": [{"key": "role", "value": {"stringValue": "user"}}]}},
        "attributes": [{"key": "event.name", "value": {"stringValue": "gen_ai.choice"}}],
    }
    found = log_record(RawItem(json.dumps(text).encode(), b"", b"", Encoding.JSON))
    assert (found.trace_id, found.span_id, found.time_unix_nano) == (TRACE, "", 9)
    assert found.body == {"role": "user"}
    assert found.event_name == "gen_ai.choice"
    named = log_record(RawItem(json.dumps({**text, "eventName": "own"}).encode(), b"", b"", Encoding.JSON))
    assert named.event_name == "own"
    with pytest.raises(MalformedItem, match="log record"):
        log_record(RawItem(b"[1]", b"", b"", Encoding.JSON))
