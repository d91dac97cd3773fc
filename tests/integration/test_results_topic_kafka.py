"""The results topic against a real Kafka: written whole and once, whatever the brokers do."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from collector.cli import main
from collector.exporters.kafka import KafkaResults
from collector.exporters.kafka_options import KafkaResultsOptions
from collector.exporters.kafka_producer import connect
from collector.pipeline.clock import SystemClock
from collector.pipeline.kafka_client import SaslOptions, Secret
from collector.pipeline.receipt import Receipt
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.records.result_json import decode, to_settled
from collector.records.settled import Settled
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction, Passage
from scorers.outcome import Result, Score
from scorers.scorer import Kind
from tests.support.kafka.cluster import PASSWORD, USER, KafkaCluster


class Rig:
    def __init__(self, bootstrap: str, topic: str, **options: Any) -> None:
        settings = {"retry_seconds": 0.5, "linger_seconds": 0.01, "request_timeout_seconds": 5, **options}
        self.options = KafkaResultsOptions(brokers=bootstrap, topic=topic, **settings)  # type: ignore[arg-type]  # pydantic splits it
        self.states: list[str | None] = []
        telemetry = Telemetry()
        clock = SystemClock()
        self.results = KafkaResults(
            self.options,
            connect=lambda: connect(self.options, {}),
            content=True,
            version="1",
            judge_model=None,
            durable=False,
            clock=clock,
            telemetry=telemetry,
            events=Events(telemetry, clock, logging.getLogger("test.results")),
            on_state=self.states.append,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[KafkaResults]:
        task = asyncio.create_task(self.results.run())
        try:
            yield self.results
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def settled(ident: str, *, text: str = "text", receipt: Receipt | None = None) -> Settled:
    return Settled(
        Found(Interaction(ident, "q", (Passage(text),), "r"), trace_ids=("ab" * 16,), service="shop"),
        Decision(Fate.QUEUED, 0.5, "floor"),
        (),
        (Result(ident, "faithfulness", Kind.JUDGED, Score(0.5), "1", "f"),),
        receipt=receipt,
    )


async def create(bootstrap: str, topic: str, *, partitions: int = 1, **config: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=config)])
    finally:
        await admin.close()


async def read(bootstrap: str, topic: str, count: int) -> list[Any]:
    """At least `count` messages, from the beginning."""
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    found: list[Any] = []
    try:
        async with asyncio.timeout(20):
            while len(found) < count:
                for messages in (await consumer.getmany(timeout_ms=200)).values():
                    found += messages
    finally:
        await consumer.stop()
    return found


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_what_is_read_from_the_topic_is_what_was_settled(kafka: KafkaCluster, compression: str) -> None:
    topic = f"results-{compression}"
    await create(kafka.bootstrap, topic, partitions=3)
    done: list[int] = []
    rig = Rig(kafka.bootstrap, topic, compression=compression)
    sent = [settled(f"i{n}") for n in range(200)]
    async with rig.running() as results:
        for number, one in enumerate(sent):
            receipt = Receipt(lambda number=number: done.append(number))  # type: ignore[misc]  # bound at once
            results.settle(settled(one.found.interaction.id, receipt=receipt))
            receipt.release()
        await results.flush(20)
        assert results.waiting == 0
    assert sorted(done) == list(range(200))
    assert rig.states[-1] is None
    messages = await read(kafka.bootstrap, topic, 200)
    assert len(messages) == 200
    assert {m.partition for m in messages} == {0, 1, 2}
    by_id = {m.key.decode(): to_settled(decode(m.value)) for m in messages}
    assert by_id == {one.found.interaction.id: one for one in sent}
    assert all(m.headers == (("x-groundwatch-evaluation", b"1"),) for m in messages)


async def test_a_topic_that_is_missing_is_named_and_its_making_noticed(kafka: KafkaCluster) -> None:
    rig = Rig(kafka.bootstrap, "not-made-yet", request_timeout_seconds=1)
    async with rig.running() as results:
        results.settle(settled("one"))
        await until(lambda: "'not-made-yet' does not exist" in (rig.states[-1] or ""))
        await create(kafka.bootstrap, "not-made-yet")
        await results.flush(20)
        assert results.waiting == 0
    assert rig.states[-1] is None


async def test_a_wrong_password_is_told_apart_from_a_missing_broker(kafka: KafkaCluster, tmp_path: Path) -> None:
    await create(kafka.bootstrap, "results-sasl")
    secret = tmp_path / "password"
    secret.write_text("wrong", encoding="utf-8")
    sasl = SaslOptions(username=USER, password=Secret(file=secret))
    rig = Rig(kafka.sasl_bootstrap, "results-sasl", sasl=sasl)
    async with rig.running() as results:
        await until(lambda: "refuses user name or password" in (rig.states[-1] or ""))
        secret.write_text(PASSWORD, encoding="utf-8")
        results.settle(settled("one"))
        await results.flush(20)
        assert results.waiting == 0
    rig = Rig("127.0.0.1:1", "results-sasl")
    async with rig.running():
        await until(lambda: "connection refused" in (rig.states[-1] or ""))


async def test_a_message_over_the_topics_limit_goes_without_content(kafka: KafkaCluster) -> None:
    await create(kafka.bootstrap, "results-small", **{"max.message.bytes": "20000"})
    rig = Rig(kafka.bootstrap, "results-small", compression="none", batch_bytes=10_000)
    async with rig.running() as results:
        results.settle(settled("small"))
        results.settle(settled("large", text="x" * 50_000))
        await results.flush(20)
        assert results.waiting == 0
    found = {m.key.decode(): json.loads(m.value) for m in await read(kafka.bootstrap, "results-small", 2)}
    assert found["small"]["content"] is not None
    assert found["large"]["content_left_out"] == "too_large"


async def test_brokers_that_are_killed_and_come_back_cost_nothing(kafka: KafkaCluster) -> None:
    await create(kafka.bootstrap, "results-kill", partitions=2)
    done: list[int] = []
    rig = Rig(kafka.bootstrap, "results-kill", request_timeout_seconds=1)
    async with rig.running() as results:
        for number in range(600):
            if number == 100:
                await until(lambda: done)
                await asyncio.to_thread(kafka.kill_broker, 1)
            if number == 500:
                await asyncio.to_thread(kafka.start_broker, 1)  # takes longer than the client's own patience
            receipt = Receipt(lambda number=number: done.append(number))  # type: ignore[misc]  # bound at once
            results.settle(settled(f"i{number}", receipt=receipt))
            receipt.release()
            await asyncio.sleep(0)
        await results.flush(30)
        assert results.waiting == 0
    assert sorted(done) == list(range(600))
    messages = await read(kafka.bootstrap, "results-kill", 600)
    assert {m.key.decode() for m in messages} == {f"i{number}" for number in range(600)}


async def test_check_says_whether_the_topic_can_be_written(
    kafka: KafkaCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await create(kafka.bootstrap, "results-checked")
    config = tmp_path / "groundwatch.yaml"

    async def check(topic: str) -> tuple[int, str]:
        ports = {"http": {"port": 0}, "grpc": {"port": 0}}
        export = {"kafka": {"brokers": kafka.bootstrap, "topic": topic, "request_timeout_seconds": 1}}
        config.write_text(json.dumps({"receivers": ports, "export": export}), encoding="utf-8")
        return await asyncio.to_thread(main, ["check", "-c", str(config)]), capsys.readouterr().out

    code, told = await check("results-checked")
    assert code == 0, told
    assert "topic 'results-checked' is there" in told
    code, told = await check("results-absent")
    assert code == 1
    assert "topic 'results-absent' does not exist" in told
