"""The receiver against a real Kafka, with the stages behind it in this process."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

from collector.judging.options import Options as JudgingOptions
from collector.receivers.kafka_offsets import Commit, settled_in
from collector.sampling.options import Options as SamplingOptions
from collector.telemetry import metrics
from tests.support import traces
from tests.support.kafka.clients import Sent, committed, everything, make_topics, produce
from tests.support.kafka.cluster import PASSWORD, USER, KafkaCluster
from tests.support.kafka.member import Member, until
from tests.support.line import Handle, Line, handler

RECORDED = Path(__file__).parents[1] / "data" / "kafka" / "collector.jsonl"


@pytest.fixture(scope="module")
def handle() -> Handle:
    return handler()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for topics and groups that no other test has."""
    return f"{request.node.name}-{random.getrandbits(24):06x}".replace("[", "-").replace("]", "")


class Join(Protocol):
    async def __call__(self, topics: Any, **options: Any) -> Member: ...


@pytest.fixture
async def join(kafka: KafkaCluster, handle: Handle, name: str) -> AsyncIterator[Join]:
    """Members of one group, stopped at the end."""
    members: list[Member] = []

    async def start(topics: Any, *, bootstrap: str = "", group: str = name, **options: Any) -> Member:
        member = Member(bootstrap or kafka.bootstrap, topics, group, handle=handle, **options)
        members.append(member)
        return await member.start()

    yield start
    for member in members:
        await member.stop()


def rag(dice: random.Random, topic: str) -> Sent:
    spans = traces.rag_trace(dice)
    return Sent(topic, traces.body(spans), spans[0].trace_id.hex().encode())


def record(topic: str, name: str) -> Sent:
    value = {"id": name, "question": traces.QUESTION, "contexts": [traces.FACT], "response": traces.FACT}
    return Sent(topic, json.dumps(value).encode(), name.encode())


async def test_what_a_collector_wrote_is_found_in_every_compression(
    kafka: KafkaCluster, join: Join, name: str
) -> None:
    recorded = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    topics = sorted({line["topic"] for line in recorded})
    await make_topics(kafka.bootstrap, {f"{name}-{topic}": 2 for topic in topics} | {f"{name}-records": 2})
    for topic, compression in zip(topics, ("gzip", "snappy", "lz4", "zstd", None), strict=True):
        messages = [
            Sent(
                f"{name}-{topic}",
                base64.b64decode(line["value"]),
                line["key"].encode() if line["key"] else None,
                tuple((key, value.encode()) for key, value in line["headers"].items()),
            )
            for line in recorded
            if line["topic"] == topic
        ]
        await produce(kafka.bootstrap, messages, compression_type=compression)
    await produce(kafka.bootstrap, [record(f"{name}-records", "mine")], compression_type="zstd")
    member = await join([f"{name}-{topic}" for topic in topics] + [f"{name}-records"])
    # Two traces, the same in three topics: spans that come again are duplicates.
    await member.until(lambda: len(member.ids) == 3, "three interactions are settled")
    assert "mine" in member.ids
    assert member.count(metrics.KAFKA_MESSAGES, outcome="taken") == len(recorded) + 1
    assert member.count(metrics.KAFKA_MESSAGES, outcome="poison") == 0
    assert member.count(metrics.ITEMS, signal="traces", outcome="duplicate") == 12
    assert not member.reasons


async def test_a_restart_goes_on_where_the_last_one_ended(kafka: KafkaCluster, join: Join, name: str) -> None:
    """What is open at the stop is read again; what is settled, before or behind it, is not."""
    await make_topics(kafka.bootstrap, {name: 1})
    await produce(kafka.bootstrap, [record(name, "a"), rag(random.Random(1), name), record(name, "b")])
    first = await join(name)
    await until(
        [first],
        lambda: len(first.ids) == 2 and first.line.assembler.hinted[0] == 1,
        "records are settled",
        step=0.1,
    )
    await first.stop()
    held = (await committed(kafka.bootstrap, name))[TopicPartition(name, 0)]
    assert held.offset == 1
    assert settled_in(Commit(held.offset, held.metadata)) == [range(2, 3)]

    second = await join(name)
    await produce(kafka.bootstrap, [record(name, "c")])
    await second.until(lambda: len(second.ids) == 2, "the open trace and the new record are settled")
    assert sorted(first.ids) == ["a", "b"]
    assert "c" in second.ids
    assert second.count(metrics.KAFKA_MESSAGES, outcome="settled_before") == 1
    await second.stop()
    held = (await committed(kafka.bootstrap, name))[TopicPartition(name, 0)]
    assert (held.offset, held.metadata) == (4, "")


async def test_latest_begins_at_the_end_and_a_crash_before_the_first_message_skips_none(
    kafka: KafkaCluster, join: Join, name: str
) -> None:
    await make_topics(kafka.bootstrap, {name: 1})
    await produce(kafka.bootstrap, [record(name, "old")])
    first = await join(name, start="latest")
    await first.until(lambda: first.receiver._group.placed, "the partition is ours")
    await first.until(lambda: first.count(metrics.KAFKA_COMMITS, outcome="ok"), "the place is committed")
    await first.crash()
    await produce(kafka.bootstrap, [record(name, "new")])
    second = await join(name, start="latest")
    await second.until(lambda: second.ids, "the new record is settled")
    assert second.ids == ["new"]


async def test_partitions_move_and_come_back(kafka: KafkaCluster, join: Join, name: str) -> None:
    """A second member takes half, with traces open and jobs waiting at the first; then it leaves again."""
    await make_topics(kafka.bootstrap, {name: 4})
    dice = random.Random(3)
    everyone = SamplingOptions(rate=1.0)
    hangs = Line(handler(), sampling=everyone, mood=lambda _: "hangs", judging=JudgingOptions(concurrency=2))
    first = await join(name, line=hangs)
    await produce(kafka.bootstrap, [rag(dice, name) for _ in range(40)])
    await first.until(lambda: first.line.judging.waiting == 40, "all wait for the judge")
    await produce(kafka.bootstrap, [rag(dice, name) for _ in range(40)])
    await until([first], lambda: first.line.assembler.hinted[0] == 40, "forty are open", step=0.0)

    second = await join(name)
    both = [first, second]
    await until(
        both,
        lambda: len(first.receiver._group.placed) == len(second.receiver._group.placed) == 2,
        "each has two",
        step=0.0,
    )
    moved = first.count(metrics.KAFKA_MOVED)
    assert 20 < moved < 60
    assert first.line.assembler.hinted[0] + first.line.judging.waiting == pytest.approx(80 - moved, abs=2)
    await second.until(lambda: len(second.ids) == moved, "what moved is settled there")
    assert first.ids == []

    await second.stop()
    await until([first], lambda: len(first.receiver._group.placed) == 4, "the first has all again", step=0.0)
    first.line.judging._judge._mood = lambda _: "well"  # the judge wakes up
    await first.until(lambda: len(first.ids) + len(second.ids) >= 80, "the rest is settled", seconds=60)
    ids = first.ids + second.ids
    assert len(ids) == len(set(ids)) == 80
    assert first.count(metrics.KAFKA_REBALANCES) == first.settles >= 2
    assert first.count(metrics.ITEMS, signal="traces", outcome="late") == 0


class Slow(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Once it hesitates, lets go of its partitions when it may. A group that forms may rebalance more than once."""

    def __init__(self) -> None:
        self.hesitates = False
        self.may = asyncio.Event()

    async def on_partitions_revoked(self, revoked: Any) -> None:
        if revoked and self.hesitates:
            await self.may.wait()

    async def on_partitions_assigned(self, assigned: Any) -> None:
        """Reads nothing."""


async def test_what_ends_while_partitions_are_nobodys_is_counted_once(
    kafka: KafkaCluster, join: Join, name: str
) -> None:
    """A third member comes; the first has let go of its partitions, and the second takes its time to do so. What the
    judge answers meanwhile is counted by whoever has its partition afterwards."""
    await make_topics(kafka.bootstrap, {name: 6})
    line = Line(handler(), sampling=SamplingOptions(rate=1.0), mood=lambda _: "down")
    first = await join(name, line=line)
    second = AIOKafkaConsumer(
        bootstrap_servers=kafka.bootstrap,
        group_id=name,
        enable_auto_commit=False,
        heartbeat_interval_ms=300,
        partition_assignment_strategy=(RangePartitionAssignor,),
    )
    slow = Slow()
    second.subscribe([name], listener=slow)
    await second.start()
    try:
        placed = lambda *members: [len(one.receiver._group.placed) for one in members]  # noqa: E731  # said three times
        await until([first], lambda: placed(first) == [3], "it shares the partitions", step=0.0)
        slow.hesitates = True
        dice = random.Random(4)
        await produce(kafka.bootstrap, [rag(dice, name) for _ in range(60)])
        await until([first], lambda: line.judging.waiting >= 20, "they wait for the judge", step=0.5)

        before = first.count(metrics.KAFKA_REBALANCES)
        third = await join(name)
        await until([first], lambda: first.count(metrics.KAFKA_REBALANCES) > before, "it let go", step=0.0)
        line.judging._judge._mood = lambda _: "well"  # the judge is back
        await until([first], lambda: line.judging.waiting == 0, "the judge has answered", step=1.0)
        assert placed(first, third) == [0, 0]  # still nobody's
        assert first.ids == []
    finally:
        slow.may.set()
        await second.stop()

    both = [first, third]
    await until(both, lambda: placed(*both) == [3, 3], "each has three", step=0.0)
    owned = lambda: [one for member in both for one in member.receiver._group.partitions.values()]  # noqa: E731  # said in one place
    await until(both, lambda: sum(one.offset for one in owned()) == 60, "all are settled")
    ids = first.ids + third.ids
    assert len(ids) == len(set(ids)) == 60


async def test_a_killed_members_messages_are_settled_by_another(
    kafka: KafkaCluster, join: Join, name: str
) -> None:
    await make_topics(kafka.bootstrap, {name: 3})
    dice = random.Random(4)
    await produce(kafka.bootstrap, [rag(dice, name) for _ in range(30)])
    first = await join(name, commit_seconds=100)
    await first.until(lambda: len(first.ids) == 30, "thirty are settled, and not committed")
    await produce(kafka.bootstrap, [rag(dice, name) for _ in range(30)])
    await first.crash()
    second = await join(name)
    await second.until(lambda: len(second.ids) == 60, "all are settled again", seconds=40)
    assert set(first.ids) <= set(second.ids)
    assert len(set(second.ids)) == 60


async def test_while_there_is_no_room_partitions_are_paused_and_the_member_stays(
    kafka: KafkaCluster, join: Join, name: str
) -> None:
    """Longer than max_poll_interval: a member that does not poll is put out of its group."""
    await make_topics(kafka.bootstrap, {name: 2})
    room = [0.0]
    dice = random.Random(5)
    member = await join(name, fill=lambda: room[0], max_poll_interval_seconds=1, poll_messages=5)
    await produce(kafka.bootstrap, [rag(dice, name) for _ in range(20)])
    await member.until(lambda: member.ids, "the first is settled")
    room[0] = 1.0
    await produce(kafka.bootstrap, [rag(dice, name) for _ in range(20)])
    await member.until(lambda: len(member.receiver._consumer.paused()) == 2, "both partitions are paused")
    await asyncio.sleep(3)
    taken = member.count(metrics.KAFKA_MESSAGES, outcome="taken")
    assert taken < 40
    assert member.count(metrics.KAFKA_REBALANCES) == 0
    assert member.count(metrics.KAFKA_PAUSES, cause="room") == 1
    room[0] = 0.9  # not enough of a change
    await asyncio.sleep(0.3)
    assert member.count(metrics.KAFKA_MESSAGES, outcome="taken") == taken
    room[0] = 0.0
    await member.until(lambda: len(member.ids) == 40, "all are settled")
    assert len(set(member.ids)) == 40
    assert member.count(metrics.KAFKA_REBALANCES) == 0


async def test_what_the_assembler_refuses_is_kept_and_tried_again(
    kafka: KafkaCluster, join: Join, name: str
) -> None:
    from collector.assembly.options import Options as AssemblyOptions

    await make_topics(kafka.bootstrap, {name: 1})
    big = "x" * 60_000
    small = Line(
        handler(), assembly=AssemblyOptions(max_bytes=1_048_576, max_trace_bytes=1_000_000, quiet_seconds=5)
    )
    dice = random.Random(6)
    sent = []
    for _ in range(30):
        spans = traces.rag_trace(dice, contexts=[traces.FACT, big])
        sent.append(Sent(name, traces.body(spans), spans[0].trace_id.hex().encode()))
    await produce(kafka.bootstrap, sent)
    member = await join(name, line=small)
    await until([member], lambda: member.count(metrics.KAFKA_PAUSES, cause="memory_full"), "it is full", step=0.0)
    await member.until(lambda: len(member.ids) == 30, "all are settled", seconds=60)
    assert len(set(member.ids)) == 30


async def test_more_out_of_order_than_a_commit_can_say_pauses_that_partition(
    kafka: KafkaCluster, join: Join, name: str
) -> None:
    await make_topics(kafka.bootstrap, {name: 1})
    dice = random.Random(7)
    # One in three is a trace, which stays open; the others are records, which are settled at once.
    sent = [rag(dice, name) if dice.random() < 0.3 else record(name, f"r{number}") for number in range(400)]
    await produce(kafka.bootstrap, sent)
    member = await join(name, offset_metadata_bytes=64, poll_messages=50)
    await until(
        [member], lambda: member.count(metrics.KAFKA_PAUSES, cause="offsets_full"), "it is paused", step=0.0
    )
    await until([member], member.receiver._consumer.paused, "it does not fetch", step=0.0)
    await produce(kafka.bootstrap, [record(name, "later")])
    await asyncio.sleep(0.5)
    assert "later" not in member.ids
    await member.until(lambda: len(member.ids) == 401, "all are settled")
    assert "later" in member.ids
    await member.stop()
    held = (await committed(kafka.bootstrap, name))[TopicPartition(name, 0)]
    assert (held.offset, held.metadata) == (401, "")


async def test_messages_that_can_not_be_read_are_told_and_hold_nothing_up(
    kafka: KafkaCluster, join: Join, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    dead = f"{name}-dead"
    await make_topics(kafka.bootstrap, {name: 1, dead: 1})
    secret = b'{"question": "my secret'
    unreadable = json.dumps({"question": {"my": "secret"}}).encode()
    large = json.dumps({"question": "q", "response": "my secret" * 1000}).encode()
    values = [secret, unreadable, large, None, b"\xff\xff"]
    await produce(kafka.bootstrap, [Sent(name, value, b"key") for value in values] + [record(name, "good")])
    member = await join(name, dead_letter={"topic": dead}, max_message_bytes=5000)
    written = lambda: member.count(metrics.KAFKA_DEAD_LETTERS, outcome="written")  # noqa: E731  # said three times
    await member.until(lambda: member.ids and written() == 4, "four letters are written")
    assert member.ids == ["good"]
    letters = [json.loads(one.value) for one in await everything(kafka.bootstrap, dead)]
    assert {(one["offset"], one["reason"]) for one in letters} == {
        (0, "unreadable"),
        (1, "unreadable_record"),
        (2, "too_large"),
        (4, "unreadable"),
    }
    assert {one["topic"] for one in letters} == {name}
    assert not any("payload_base64" in one for one in letters)
    assert "secret" not in caplog.text
    assert member.count(metrics.KAFKA_MESSAGES, outcome="unwanted") == 1
    await member.stop()
    assert (await committed(kafka.bootstrap, name))[TopicPartition(name, 0)].offset == 6


async def test_the_payload_is_written_only_where_that_is_asked_for(
    kafka: KafkaCluster, join: Join, name: str
) -> None:
    dead = f"{name}-dead"
    await make_topics(kafka.bootstrap, {name: 1, dead: 1})
    await produce(kafka.bootstrap, [Sent(name, b"{"), Sent(name, b'{"question": 1}')])
    member = await join(name, dead_letter={"topic": dead, "payload": True})
    await member.until(
        lambda: member.count(metrics.KAFKA_DEAD_LETTERS, outcome="written") == 2, "both are written"
    )
    letters = [json.loads(one.value) for one in await everything(kafka.bootstrap, dead)]
    assert {base64.b64decode(one["payload_base64"]) for one in letters} == {b"{", b'{"question": 1}'}


async def test_a_dead_letter_topic_that_is_not_there_holds_nothing_up(
    kafka: KafkaCluster, join: Join, name: str
) -> None:
    await make_topics(kafka.bootstrap, {name: 1})
    await produce(kafka.bootstrap, [Sent(name, b"{"), record(name, "good")])
    member = await join(name, dead_letter={"topic": f"{name}-none"}, request_timeout_seconds=1)
    await member.until(lambda: member.count(metrics.KAFKA_DEAD_LETTERS, outcome="failed") == 1, "it failed")
    await member.until(lambda: member.ids, "the good one is settled")


async def test_a_topic_that_is_created_later(kafka: KafkaCluster, join: Join, name: str) -> None:
    member = await join(name)
    await member.until(lambda: "has no topic" in member.reasons.get("kafka", ""), "it says so")
    assert name in member.reasons["kafka"]
    await make_topics(kafka.bootstrap, {name: 1})
    await produce(kafka.bootstrap, [record(name, "a")])
    await member.until(lambda: member.ids == ["a"], "the record is settled")
    assert not member.reasons
    assert len(member.said) == 2  # connecting, and that: once a change, however often it tried


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_password_that_is_wrong_and_then_right(
    kafka: KafkaCluster, join: Join, name: str, tmp_path: Path, mechanism: str
) -> None:
    await make_topics(kafka.bootstrap, {name: 1})
    await produce(kafka.bootstrap, [record(name, "a")])
    secret = tmp_path / "password"
    secret.write_text("wrong")
    sasl = {"mechanism": mechanism, "username": USER, "password": {"file": str(secret)}}
    member = await join(name, bootstrap=kafka.sasl_bootstrap, sasl=sasl)
    await member.until(lambda: "refuses user name or password" in member.reasons.get("kafka", ""), "it says so")
    assert "wrong" not in str(member.said)
    secret.write_text(PASSWORD)
    await member.until(lambda: member.ids == ["a"], "the record is settled")
    assert not member.reasons


async def test_several_members_and_messages_without_keys(kafka: KafkaCluster, join: Join, name: str) -> None:
    await make_topics(kafka.bootstrap, {name: 2})
    dice = random.Random(8)
    first = await join(name)
    await produce(kafka.bootstrap, [rag(dice, name)._replace(key=None, partition=n % 2) for n in range(10)])
    await first.until(lambda: len(first.ids) == 10, "alone it is well")
    assert not first.reasons
    second = await join(name)
    await until([first, second], lambda: "kafka keys" in first.reasons, "it says so")
    assert "partition_traces_by_id" in first.reasons["kafka keys"]
    await second.stop()
    await first.until(lambda: not first.reasons, "alone again it is well")


async def test_messages_that_retention_deleted_are_counted(kafka: KafkaCluster, join: Join, name: str) -> None:
    from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

    await make_topics(kafka.bootstrap, {name: 1})
    first = await join(name)
    await produce(kafka.bootstrap, [record(name, "a")])
    await first.until(lambda: first.ids, "one is settled")
    await first.stop()
    await produce(kafka.bootstrap, [record(name, f"b{number}") for number in range(5)])
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    await admin.delete_records({TopicPartition(name, 0): RecordsToDelete(before_offset=4)})
    await admin.close()
    second = await join(name)
    await second.until(lambda: len(second.ids) == 2, "what is left is settled")
    assert second.ids == ["b3", "b4"]
    assert second.count(metrics.KAFKA_PASSED_OVER) == 3


async def test_lag_is_shown_of_a_bounded_number_of_partitions(kafka: KafkaCluster, join: Join, name: str) -> None:
    await make_topics(kafka.bootstrap, {name: 4})
    await produce(kafka.bootstrap, [Sent(name, record(name, f"{n}").value, partition=n % 4) for n in range(8)])
    room = [0.0]
    member = await join(name, max_shown_partitions=2, fill=lambda: room[0])
    await member.until(lambda: len(member.ids) == 8, "all are settled")
    room[0] = 1.0
    await produce(kafka.bootstrap, [Sent(name, record(name, f"x{n}").value, partition=n % 4) for n in range(8)])

    def lag() -> dict[tuple[str, ...], float]:
        member.receiver.refresh()
        return dict(member.receiver.families()[0].samples)

    await member.until(lambda: sum(lag().values()) == 8, "the new ones lag")
    assert lag() == {(name, "0"): 2.0, (name, "1"): 2.0, ("other", "other"): 4.0}
    assert member.count(metrics.KAFKA_PARTITIONS) == 4


async def test_a_broker_that_restarts(kafka: KafkaCluster, join: Join, name: str) -> None:
    await make_topics(kafka.bootstrap, {name: 2})
    dice = random.Random(9)
    member = await join(name, request_timeout_seconds=5)
    await produce(kafka.bootstrap, [rag(dice, name) for _ in range(10)])
    await member.until(lambda: len(member.ids) == 10, "ten are settled")
    await produce(kafka.bootstrap, [rag(dice, name) for _ in range(10)])
    await until([member], lambda: member.line.assembler.hinted[0] == 10, "ten are open", step=0.0)
    await asyncio.to_thread(kafka.stop_broker, 1)
    await asyncio.to_thread(kafka.start_broker, 1)
    await produce(kafka.bootstrap, [rag(dice, name) for _ in range(10)])
    await member.until(lambda: len(set(member.ids)) == 30, "all are settled", seconds=60)
    assert len(member.ids) == 30  # what was open is neither lost nor counted twice
    await member.until(lambda: not member.reasons, "it is connected")
    await member.stop()
    held = await committed(kafka.bootstrap, name)
    assert sum(one.offset for one in held.values()) == 30


async def test_a_static_member_that_restarts_moves_no_partition(
    kafka: KafkaCluster, join: Join, name: str
) -> None:
    await make_topics(kafka.bootstrap, {name: 4})
    other = await join(name, group_instance_id="other", session_timeout_seconds=20)
    first = await join(name, group_instance_id="mine", session_timeout_seconds=20)
    both = [other, first]
    await until(both, lambda: [len(one.receiver._group.placed) for one in both] == [2, 2], "they share")
    rebalances = other.count(metrics.KAFKA_REBALANCES)
    mine = set(first.receiver._group.placed)
    await first.stop()
    second = await join(name, group_instance_id="mine", session_timeout_seconds=20)
    await until([other, second], lambda: len(second.receiver._group.placed) == 2, "it is back")
    assert second.receiver._group.placed == mine
    await produce(kafka.bootstrap, [record(name, f"{number}") for number in range(12)])
    await until([other, second], lambda: len(other.ids) + len(second.ids) == 12, "all are settled")
    assert other.count(metrics.KAFKA_REBALANCES) == rebalances


async def test_a_backlog_is_worked_off_and_not_shed(kafka: KafkaCluster, join: Join, name: str) -> None:
    from collector.screening.options import Options as ScreeningOptions

    await make_topics(kafka.bootstrap, {name: 2})
    dice = random.Random(10)
    await produce(kafka.bootstrap, [rag(dice, name) for _ in range(300)])
    line = Line(handler(), screening=ScreeningOptions(queue_traces=60))  # sheds from 30 on

    def fill() -> float:
        return (line.assembler.hinted[0] + line.screening.waiting) / 27

    member = await join(name, line=line, fill=fill, most=27)
    await member.until(lambda: len(member.ids) == 300, "all are settled", seconds=90)
    assert len(set(member.ids)) == 300
    for outcome in ("shed", "dropped_full"):
        assert member.count(metrics.SCREENING_TRACES, outcome=outcome) == 0
    assert member.count(metrics.KAFKA_PAUSES, cause="room") > 3
