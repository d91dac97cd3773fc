"""A topic of results followed by a group: from the beginning, on from where it was, never without what is there."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from collector.demo.processes import environment
from collector.pipeline.kafka_client import KafkaClientOptions, KafkaUnusable
from collector.receivers.kafka_follow import follow_topic
from collector.records.result_json import encode, from_settled
from tests.integration.test_results_topic_kafka import create
from tests.support.kafka.cluster import KafkaCluster
from tests.support.review_settled import a_settled
from tests.support.sidecar import COMMAND, run_command
from tests.support.waiting import until


async def write(bootstrap: str, topic: str, *values: bytes | None) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    for number, value in enumerate(values):
        await producer.send_and_wait(topic, value, key=b"%d" % number)
    await producer.stop()


def options(bootstrap: str) -> KafkaClientOptions:
    return KafkaClientOptions(brokers=bootstrap)  # type: ignore[arg-type]  # pydantic splits it


async def values(bootstrap: str, topic: str, group: str) -> list[bytes]:
    found: list[bytes] = []
    async for batch in follow_topic(options(bootstrap), topic, group=group, environ={}, forever=False, batch=3):
        found += [value for _, value in batch]
    return sorted(found)


async def test_a_group_reads_on_from_where_it_was(kafka: KafkaCluster) -> None:
    await create(kafka.bootstrap, "followed", partitions=3)
    first = [b"a%d" % n for n in range(20)]
    await write(kafka.bootstrap, "followed", *first, None)
    assert await values(kafka.bootstrap, "followed", "one") == sorted(first)
    assert await values(kafka.bootstrap, "followed", "one") == []
    await write(kafka.bootstrap, "followed", b"b")
    assert await values(kafka.bootstrap, "followed", "one") == [b"b"]
    assert await values(kafka.bootstrap, "followed", "two") == sorted([*first, b"b"])


async def test_what_was_not_taken_whole_is_given_again(kafka: KafkaCluster) -> None:
    await create(kafka.bootstrap, "followed-again")
    await write(kafka.bootstrap, "followed-again", b"1", b"2", b"3", b"4")
    batches = follow_topic(
        options(kafka.bootstrap), "followed-again", group="g", environ={}, forever=True, batch=2
    )
    taken = 0
    async for batch in batches:
        taken += len(batch)
        if taken >= 4:
            break  # while the second batch is in hand
    await batches.aclose()  # type: ignore[attr-defined]  # it is a generator
    assert await values(kafka.bootstrap, "followed-again", "g") == [b"3", b"4"]


async def test_a_topic_that_can_not_be_read_is_told_of(kafka: KafkaCluster) -> None:
    with pytest.raises(KafkaUnusable, match="there is no topic 'nowhere'"):
        await values(kafka.bootstrap, "nowhere", "g")
    with pytest.raises(KafkaUnusable, match="connection refused"):
        await values("127.0.0.1:1", "nowhere", "g")


async def test_results_of_many_processes_become_cases_of_one_store(kafka: KafkaCluster, tmp_path: Path) -> None:
    await create(kafka.bootstrap, "to-review", partitions=2)
    low = [a_settled(f"low-{n}", judged={"faithfulness": 0.1}) for n in range(4)]
    good = [a_settled(f"good-{n}", judged={"faithfulness": 1.0}) for n in range(4)]
    messages = [from_settled(one, content=True, settled_unix_nano=time.time_ns()) for one in (*low, *good)]
    bare = from_settled(low[0], content=False)
    await write(kafka.bootstrap, "to-review", *map(encode, [*messages, bare]), b"no message")
    config = tmp_path / "groundwatch.yaml"
    config.write_text(
        json.dumps(
            {
                "export": {"kafka": {"brokers": kafka.bootstrap, "topic": "to-review"}},
                "review": {"path": str(tmp_path / "review.sqlite"), "max_age_days": 100_000},
            }
        ),
        encoding="utf-8",
    )
    command = ("review", "ingest", "--topic", "to-review", "-c", str(config), "--control", "judged")
    code, out, told = await asyncio.to_thread(run_command, *command)
    assert code == 1  # for the message that is none
    assert "from 8 interactions" in out
    assert "1 without content" in out
    assert "to-review/" in told
    kept = int(out.split(" cases from")[0].split()[-1])
    assert kept >= 2
    code, out, _ = await asyncio.to_thread(run_command, *command)
    assert (code, out.split(": ")[1].split(" are kept")[0]) == (0, f"0 cases from 0 interactions; {kept}")


async def test_a_follower_takes_what_comes_until_it_is_asked_to_stop(kafka: KafkaCluster, tmp_path: Path) -> None:
    await create(kafka.bootstrap, "to-follow")
    config = tmp_path / "groundwatch.yaml"
    config.write_text(
        json.dumps(
            {
                "export": {"kafka": {"brokers": kafka.bootstrap, "topic": "to-follow"}},
                "review": {"path": str(tmp_path / "review.sqlite"), "max_age_days": 100_000},
            }
        ),
        encoding="utf-8",
    )
    follower = subprocess.Popen(  # noqa: ASYNC220  # starting it takes no time, and the test waits otherwise
        [
            COMMAND,
            "review",
            "ingest",
            "--topic",
            "to-follow",
            "--follow",
            "--control",
            "judged",
            "-c",
            str(config),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment({}),
        text=True,
    )
    try:
        for number in range(2):
            low = from_settled(a_settled(f"low-{number}", judged={"faithfulness": 0.1}), content=True)
            await write(kafka.bootstrap, "to-follow", encode(low))
            await asyncio.to_thread(
                until, partial(cases, tmp_path / "review.sqlite", number + 1), "a case more", seconds=60
            )
        follower.terminate()
        out, _ = await asyncio.to_thread(follower.communicate, timeout=30)
    finally:
        follower.kill()
        follower.wait(10)
    assert follower.returncode == 0
    assert "2 cases from 2 interactions" in out


def cases(path: Path, count: int) -> bool:
    """Whether the store holds so many."""
    if not path.exists():
        return False
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection:
        return bool(connection.execute("SELECT count(*) FROM cases").fetchone()[0] == count)
    return False
