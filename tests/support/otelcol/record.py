"""Record what a real Collector writes to a real Kafka: `python -m tests.support.otelcol.record RECORDER`.

RECORDER is what build.sh makes. Writes tests/data/kafka/collector.jsonl, one message a line.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from tests.support import traces
from tests.support.kafka.clients import make_topics
from tests.support.kafka.cluster import KafkaCluster
from tests.support.kafka.jars import jars
from tests.support.otelcol.process import Collector

TARGET = Path(__file__).parents[2] / "data" / "kafka" / "collector.jsonl"
ENDED = 1_760_000_000_000_000_000
"""A fixed time, so that a new recording differs in little."""
EXPORTERS: dict[str, dict[str, Any]] = {
    "proto": {"partition_traces_by_id": True, "partition_logs_by_trace_id": True},
    "json": {"partition_traces_by_id": True, "partition_logs_by_trace_id": True, "encoding": "otlp_json"},
    "shared": {"signal_header": True},
}
"""Options of the exporter by the prefix of its topics."""


def requests() -> dict[str, bytes]:
    """A request of two RAG traces, and one of their log records and of one without a trace."""
    dice = random.Random(7)
    exchanges = [traces.rag_trace(dice, question=f"What is limit {number}?") for number in range(2)]
    for number, spans in enumerate(exchanges):
        for place, span in enumerate(spans):
            span.end_time_unix_nano = ENDED + number * 10**9 + place * 10**6
            span.start_time_unix_nano = span.end_time_unix_nano - 50_000_000
    logs = ExportLogsServiceRequest()
    group = logs.resource_logs.add()
    group.resource.attributes.append(KeyValue(key="service.name", value=AnyValue(string_value="rides")))
    scope = group.scope_logs.add()
    for spans in exchanges:
        scope.log_records.append(
            LogRecord(
                time_unix_nano=ENDED,
                trace_id=spans[0].trace_id,
                span_id=spans[0].span_id,
                event_name="gen_ai.client.inference.operation.details",
                body=AnyValue(string_value="a model was called"),
            )
        )
    scope.log_records.append(LogRecord(time_unix_nano=ENDED, body=AnyValue(string_value="of no trace")))
    return {
        "traces": traces.body(span for spans in exchanges for span in spans),
        "logs": logs.SerializeToString(),
    }


def exporters(bootstrap: str) -> dict[str, dict[str, Any]]:
    """Their options in full."""
    found = {}
    for name, options in EXPORTERS.items():
        encoding = options.get("encoding", "otlp_proto")
        rest = {key: value for key, value in options.items() if key != "encoding"}
        shared = name == "shared"
        found[name] = {
            "brokers": bootstrap.split(","),
            "producer": {"required_acks": -1},
            **rest,
            "traces": {"topic": name if shared else f"{name}_traces", "encoding": encoding},
            "logs": {"topic": name if shared else f"{name}_logs", "encoding": encoding},
        }
    return found


async def consume(bootstrap: str, topics: list[str], count: int) -> list[dict[str, object]]:
    consumer = AIOKafkaConsumer(*topics, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    found = []
    try:
        async with asyncio.timeout(60):
            while len(found) < count:
                for messages in (await consumer.getmany(timeout_ms=1000)).values():
                    found += [
                        {
                            "topic": one.topic,
                            "key": None if one.key is None else one.key.decode(),
                            "headers": {name: value.decode() for name, value in one.headers},
                            "value": base64.b64encode(one.value or b"").decode(),
                        }
                        for one in messages
                    ]
    finally:
        await consumer.stop()
    return sorted(found, key=lambda one: (one["topic"], str(one["key"]), one["value"]))


def main(recorder: str) -> None:
    topics = ["proto_traces", "proto_logs", "json_traces", "json_logs", "shared"]
    with tempfile.TemporaryDirectory() as scratch, KafkaCluster(Path(scratch) / "kafka", jars()) as cluster:
        asyncio.run(make_topics(cluster.bootstrap, dict.fromkeys(topics, 1)))
        with Collector(recorder, exporters(cluster.bootstrap), Path(scratch) / "recorder.log") as collector:
            for name in EXPORTERS:
                for signal, body in requests().items():
                    collector.send(name, signal, body)
            # By trace: 2 messages of traces and 3 of logs (one for each trace, one for the record without).
            found = asyncio.run(consume(cluster.bootstrap, topics, 2 * (2 + 3) + 2))
    TARGET.write_text("".join(json.dumps(one) + "\n" for one in found), encoding="utf-8")
    print(f"{TARGET}: {len(found)} messages")


if __name__ == "__main__":
    main(sys.argv[1])
