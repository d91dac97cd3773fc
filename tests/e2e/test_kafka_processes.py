"""Installed processes in one consumer group: killed, replaced, stopped; counted by what reached the results topic."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from typing import Any

import pytest

from tests.e2e.conftest import StartSidecar
from tests.support import traces
from tests.support.judge import JudgeServer
from tests.support.kafka.clients import Sent, committed, everything, make_topics, produce
from tests.support.kafka.cluster import KafkaCluster
from tests.support.laws import broken
from tests.support.waiting import until

pytestmark = pytest.mark.e2e
PARTITIONS = 4


class Topics:
    """The topics of one test, and what was written and came out."""

    def __init__(self, kafka: KafkaCluster, name: str) -> None:
        self.kafka = kafka
        self.input, self.results, self.group = f"{name}-in", f"{name}-out", f"{name}-group"
        self.sent: set[str] = set()
        self._dice = random.Random(name)
        asyncio.run(make_topics(kafka.bootstrap, {self.input: PARTITIONS, self.results: 1}))

    def produce(self, count: int) -> None:
        messages = []
        for _ in range(count):
            spans = traces.rag_trace(self._dice, response=f"{traces.FACT} {self._dice.random()}")
            name = spans[0].trace_id.hex()
            self.sent.add(name)
            messages.append(Sent(self.input, traces.body(spans), name.encode()))
        asyncio.run(produce(self.kafka.bootstrap, messages, compression_type="zstd"))

    def seen(self) -> Counter[str]:
        """How often each trace's interaction came out."""
        found = asyncio.run(everything(self.kafka.bootstrap, self.results))
        return Counter(json.loads(one.value)["trace_ids"][0] for one in found)

    def sections(self) -> dict[str, Any]:
        return {
            "receivers": {
                "http": {"port": 0},
                "grpc": {"port": 0},
                "kafka": {
                    "brokers": self.kafka.bootstrap,
                    "topics": self.input,
                    "group_id": self.group,
                    "start": "earliest",
                    "commit_seconds": 0.5,
                    "session_timeout_seconds": 6,
                    "heartbeat_seconds": 0.5,
                },
            },
            "export": {"kafka": {"topic": self.results}},
            "sampling": {"rate": 1.0},
        }


@pytest.fixture
def topics(kafka: KafkaCluster, request: pytest.FixtureRequest) -> Topics:
    return Topics(kafka, f"{request.node.name}-{random.getrandbits(24):06x}")


def test_a_killed_process_loses_nothing_and_an_orderly_end_repeats_nothing(
    topics: Topics, start_sidecar: StartSidecar, judge: JudgeServer
) -> None:
    sections = topics.sections() | {"judge": judge.section()}
    topics.produce(40)
    first = start_sidecar(**sections)
    second = start_sidecar(**sections)
    until(
        lambda: first.metrics().total("groundwatch_kafka_partitions") == 2, "they share the partitions", seconds=60
    )
    topics.produce(80)
    first.wait(
        lambda now: now.total("groundwatch_interactions_settled_total") >= 5,
        "the first has settled some",
        seconds=60,
    )
    first.process.kill()
    first.process.wait(10)
    second.wait(lambda now: now.total("groundwatch_kafka_partitions") == 4, "the second has all", seconds=60)
    third = start_sidecar(**sections)
    topics.produce(20)
    until(lambda: set(topics.seen()) == topics.sent, "every trace has come out", seconds=90, step=0.5)

    for sidecar in (second, third):
        sidecar.wait(
            lambda now: now.total("groundwatch_kafka_unsettled_messages") == 0, "nothing waits", seconds=60
        )
        assert broken(sidecar.metrics()) == []
    before = topics.seen()
    assert second.terminate() == third.terminate() == 0
    held = asyncio.run(committed(topics.kafka.bootstrap, topics.group))
    assert sum(one.offset for one in held.values()) == len(topics.sent)
    assert {one.metadata for one in held.values()} == {""}

    fourth = start_sidecar(**sections)
    topics.produce(5)
    fourth.wait_for_interactions(5)
    until(lambda: set(topics.seen()) == topics.sent, "the new ones have come out", step=0.5)
    after = topics.seen()
    assert {name: after[name] for name in before} == before  # an orderly end: nothing came out again
