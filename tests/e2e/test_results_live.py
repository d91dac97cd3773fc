"""The results topic behind the installed command: every interaction once, over restarts and outages, and replayed."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import StartSidecar
from tests.integration.test_results_topic_kafka import create, read
from tests.support.kafka.clients import Sent, committed, everything, make_topics, produce
from tests.support.kafka.cluster import KafkaCluster
from tests.support.sidecar import Sidecar, run_command
from tests.support.traces import body, rag_trace
from tests.support.waiting import until

pytestmark = pytest.mark.e2e


def requests(seed: int, count: int) -> list[bytes]:
    dice = random.Random(seed)
    return [body(rag_trace(dice)) for _ in range(count)]


def address(sidecar: Sidecar) -> str:
    """Where it listens, though it may not be ready."""
    until(lambda: "is ready" in sidecar.log, "its ports are open", seconds=60)
    found = re.search(r"metrics +(http://\S+)/metrics", sidecar.log)
    assert found
    return found[1]


async def test_live_and_replayed_interactions_are_in_the_topic_once(
    kafka: KafkaCluster, start_sidecar: StartSidecar, tmp_path: Path
) -> None:
    await create(kafka.bootstrap, "live-results")
    results = {"brokers": kafka.bootstrap, "topic": "live-results"}
    sidecar = start_sidecar(export={"kafka": results}, process={"state_dir": str(tmp_path / "state")})
    for request in requests(1, 5):
        sidecar.send(request)
    until(
        lambda: sidecar.metrics().total("groundwatch_results_messages_total", outcome="sent") == 5,
        "five results are in the topic",
    )
    recorded = tmp_path / "recorded.pb"
    recorded.write_bytes(b"".join(requests(2, 3)))
    for _ in range(2):  # the second time nothing is counted anew: the state directory remembers
        code, _, told = run_command("replay", str(recorded), "--into-sums", sidecar.http, "--no-progress")
        assert code == 0, told
        until(
            lambda: sidecar.metrics().total("groundwatch_interactions_found_total") == 8,
            "three more were found",
        )
    assert sidecar.terminate() == 0
    found: dict[str, Any] = {}
    messages = await read(kafka.bootstrap, "live-results", 8)
    for message in messages:
        found[message.key.decode()] = json.loads(message.value)
    assert len(messages) == len(found) == 8
    assert sum(one["replayed"] for one in found.values()) == 3
    assert all(one["decision"]["policy"] == "no_judge" for one in found.values())


async def test_what_the_brokers_did_not_take_is_sent_by_the_next_process(
    kafka: KafkaCluster, start_sidecar: StartSidecar, tmp_path: Path
) -> None:
    """The topic does not exist while the first process runs, which is killed."""
    results = {"brokers": kafka.bootstrap, "topic": "late-results", "retry_seconds": 1}
    sections = {
        "export": {"kafka": results},
        "process": {"state_dir": str(tmp_path / "state")},
        "books": {"commit_seconds": 0.1},
    }
    sidecar = start_sidecar(raw=True, **sections)
    sidecar.http = address(sidecar)
    for request in requests(3, 4):
        sidecar.send(request)
    until(lambda: sidecar.metrics().total("groundwatch_results_waiting_messages") == 4, "four results wait")
    ready = sidecar.get("/readyz")
    assert ready.status_code == 503
    assert "late-results" in ready.text
    until(lambda: sidecar.metrics().total("groundwatch_state_commits_total", outcome="written") >= 1, "a commit")
    sidecar.metrics()  # what is shown has been committed
    sidecar.process.kill()
    sidecar.process.wait(10)
    await create(kafka.bootstrap, "late-results")
    again = start_sidecar(**sections)
    until(
        lambda: again.metrics().total("groundwatch_results_messages_total", outcome="sent") == 4,
        "the four that waited were sent",
    )
    messages = await read(kafka.bootstrap, "late-results", 4)
    assert len({message.key for message in messages}) == 4


async def test_an_offset_is_not_committed_before_the_brokers_have_the_result(
    kafka: KafkaCluster, start_sidecar: StartSidecar
) -> None:
    await make_topics(kafka.bootstrap, {"offsets-in": 1})
    await produce(kafka.bootstrap, [Sent("offsets-in", request) for request in requests(4, 3)])
    source = {
        "brokers": kafka.bootstrap,
        "topics": "offsets-in",
        "group_id": "offsets",
        "start": "earliest",
        "commit_seconds": 0.2,
    }
    receivers = {"http": {"port": 0}, "grpc": {"port": 0}, "kafka": source}
    sidecar = start_sidecar(
        raw=True, receivers=receivers, export={"kafka": {"topic": "offsets-out", "retry_seconds": 1}}
    )
    sidecar.http = address(sidecar)
    sidecar.wait(
        lambda now: now.total("groundwatch_results_waiting_messages") == 3, "three results wait", seconds=60
    )
    sidecar.wait(lambda now: now.total("groundwatch_kafka_unsettled_messages") == 3, "none is settled")
    held = await committed(kafka.bootstrap, "offsets")
    assert sum(max(0, one.offset) for one in held.values()) == 0
    await make_topics(kafka.bootstrap, {"offsets-out": 1})
    sidecar.wait(lambda now: now.total("groundwatch_kafka_unsettled_messages") == 0, "all are settled", seconds=60)
    assert sidecar.terminate() == 0
    held = await committed(kafka.bootstrap, "offsets")
    assert sum(one.offset for one in held.values()) == 3
    assert len(await everything(kafka.bootstrap, "offsets-out")) == 3
