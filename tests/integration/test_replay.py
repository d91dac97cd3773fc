"""Recordings through the line again: every interaction found, marked, chosen as the sidecar would, nothing twice."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from collector.config import Config
from collector.extract.redaction import pseudonym
from collector.otlp.batch import Batch, Signal
from collector.otlp.model import Encoding
from collector.otlp.request import RequestReader
from collector.pipeline.kafka_client import KafkaUnusable
from collector.receivers.kafka_options import KafkaOptions
from collector.receivers.kafka_range import Place, read_range
from collector.records.found import Mark
from collector.records.settled import Settled
from collector.records.trace import Release, ReleasedTrace
from collector.replay import Replay, Unreplayable
from tests.support import recordings
from tests.support.judge import JudgeServer
from tests.support.kafka.cluster import KafkaCluster
from tests.support.sidecar import run_command
from tests.support.traces import FACT, body, rag_trace

LOGGER = logging.getLogger("test.replay")
ALL_JUDGED = {"policies": [{"name": "all", "type": "rate", "rate": 1.0}]}


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer() as server:
        yield server


def configuration(**sections: Any) -> Config:
    return Config.model_validate({"screening": {"workers": 0}, **sections})


def batches(*, every: int = 1) -> list[Batch]:
    """The recordings, or every so-manieth."""
    reader = RequestReader()
    return [
        reader.read(text, Signal(signal), Encoding.PROTO)
        for number, (_, signal, text) in enumerate(recordings.requests())
        if number % every == 0
    ]


def traces(count: int, *, context: str = FACT) -> list[Batch]:
    dice, reader = random.Random(3), RequestReader()
    made = (body(rag_trace(dice, contexts=(context,))) for _ in range(count))
    return [reader.read(one, Signal.TRACES, Encoding.PROTO) for one in made]


async def several(items: list[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


async def test_every_recorded_interaction_is_found_whatever_the_order_and_marked() -> None:
    found: list[dict[str, Settled]] = []
    shuffled = batches()
    random.Random(5).shuffle(shuffled)
    for order in (batches(), shuffled):
        settled: list[Settled] = []
        report = await Replay(configuration(), {}, logger=LOGGER, more=[settled.append]).run(several(order))
        assert report.interactions == len(settled) == len(recordings.rows())
        assert all(Mark.REPLAYED in one.found.marks for one in settled)
        found.append({one.found.interaction.id: one for one in settled})
    assert found[0].keys() == found[1].keys()
    assert len(found[0]) == len(recordings.rows())


async def test_the_sidecars_sample_is_judged_and_no_other(judge: JudgeServer) -> None:
    sampling = {"policies": [{"name": "some", "type": "rate", "rate": 0.3}]}
    config = configuration(judge=judge.section(), sampling=sampling)
    chosen: list[set[str]] = []
    for _ in range(2):
        settled: list[Settled] = []
        await Replay(config, {}, logger=LOGGER, more=[settled.append]).run(several(traces(60)))
        assert len(settled) == 60
        chosen.append({one.found.interaction.id for one in settled if one.judged})
        assert 5 < len(chosen[-1]) < 35
        assert all(one.decision.probability == 0.3 for one in settled)
    assert chosen[0] == chosen[1]
    settled = []
    asked = len(judge.chats)
    await Replay(config, {}, logger=LOGGER, judge=False, more=[settled.append]).run(several(traces(60)))
    assert len(judge.chats) == asked
    assert not any(one.judged for one in settled)


async def test_a_slow_judge_is_waited_for_and_nothing_is_shed(judge: JudgeServer) -> None:
    config = configuration(
        judge=judge.section(),
        sampling=ALL_JUDGED,
        judging={"concurrency": 2, "queue_jobs": 40, "canary_hours": 0},
        screening={"workers": 0, "batch_traces": 1, "queue_traces": 4},
    )
    settled: list[Settled] = []
    replay = Replay(config, {}, logger=LOGGER, more=[settled.append])
    report = await replay.run(several(traces(50)))
    assert report.fates == {"queued": 50}
    assert report.failed == 0
    assert all(one.judged and one.screening_probability == 1 for one in settled)


async def test_what_is_done_is_passed_over(judge: JudgeServer) -> None:
    first: list[Settled] = []
    config = configuration(judge=judge.section(), sampling=ALL_JUDGED)
    await Replay(config, {}, logger=LOGGER, more=[first.append]).run(several(traces(6)))
    asked = len(judge.chats)
    done = frozenset(one.found.interaction.id for one in first[:4])
    again: list[Settled] = []
    replay = Replay(config, {}, logger=LOGGER, more=[again.append], done=done)
    report = await replay.run(several(traces(6)))
    assert (report.skipped, report.interactions) == (4, 2)
    assert {one.found.interaction.id for one in again} == {one.found.interaction.id for one in first[4:]}
    assert len(judge.chats) - asked < asked


async def test_more_than_memory_holds_is_replayed_in_pieces() -> None:
    config = configuration(assembly={"max_bytes": 2**20, "max_trace_bytes": 2**20})
    recorded = traces(150, context=f"{FACT} " * 400)
    report = await Replay(config, {}, logger=LOGGER, more=[lambda _: None]).run(several(recorded))
    assert sum(len(item) for one in recorded for group in one.groups for item in group.items) > 2 * 2**20
    assert report.interactions == 150
    assert report.failed == 0
    dice = random.Random(1)
    huge = [span for _ in range(1_500) for span in rag_trace(dice)]
    one = RequestReader().read(body(huge), Signal.TRACES, Encoding.PROTO)
    with pytest.raises(Unreplayable, match=r"raise assembly\.max_bytes"):
        await Replay(config, {}, logger=LOGGER, more=[lambda _: None]).run(several([one]))


async def test_plain_records_need_no_assembly() -> None:
    settled: list[Settled] = []
    record = {"question": "q?", "contexts": ["It is closed on Fridays."], "response": "It is closed on Fridays."}
    item = ReleasedTrace("t/0/7", (), (), Release.QUIET, True, 0, record=json.dumps(record).encode())
    unreadable = ReleasedTrace("t/0/8", (), (), Release.QUIET, True, 0, record=b'{"question": 7}')
    report = await Replay(configuration(), {}, logger=LOGGER, more=[settled.append]).run(
        several([item, unreadable])
    )
    assert report.rejected == 1
    assert [one.found.interaction.question for one in settled] == ["q?"]
    assert Mark.REPLAYED in settled[0].found.marks


async def test_ids_are_hashed_with_the_key_of_the_sidecar() -> None:
    """So that a session's replayed interactions lie with its live ones, and an erasure by user finds both."""
    settled: list[Settled] = []
    record = {
        "question": "q?",
        "contexts": ["It is closed."],
        "response": "Closed.",
        "user": "u-1",
        "session": "s-1",
    }
    item = ReleasedTrace("t/0/7", (), (), Release.QUIET, True, 0, record=json.dumps(record).encode())
    await Replay(configuration(seed="our own"), {}, logger=LOGGER, more=[settled.append]).run(several([item]))
    assert [(one.found.user, one.found.session) for one in settled] == [
        (pseudonym("our own", "u-1"), pseudonym("our own", "s-1"))
    ]


async def test_a_replay_that_is_cut_off_replays_what_it_has_and_raises() -> None:
    settled: list[Settled] = []

    async def broken() -> AsyncIterator[Batch]:
        for item in traces(3):
            yield item
        raise OSError("the disk is gone")

    replay = Replay(configuration(), {}, logger=LOGGER, more=[settled.append])
    with pytest.raises(OSError, match="the disk is gone"):
        await replay.run(broken())
    assert len(settled) == replay.report.interactions == 3


async def test_a_replay_that_is_stopped_settles_what_is_under_way() -> None:
    settled: list[Settled] = []

    async def endless() -> AsyncIterator[ReleasedTrace]:
        number = 0
        while True:
            number += 1
            record = {"question": "q?", "contexts": ["It is closed on Fridays."], "response": "Closed."}
            yield ReleasedTrace(
                f"t/0/{number}", (), (), Release.QUIET, True, 0, record=json.dumps(record).encode()
            )

    replay = Replay(configuration(), {}, logger=LOGGER, per_second=1_000, more=[settled.append])
    running = asyncio.create_task(replay.run(endless()))
    async with asyncio.timeout(30):
        while len(settled) < 5:
            await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(settled) == replay.report.interactions == replay.report.traces


async def test_cases_for_review_are_marked_and_none_is_of_the_fair_share(tmp_path: Path) -> None:
    from collector.pipeline.clock import SystemClock
    from collector.review.query import Query
    from collector.review.sqlite import SqliteStore
    from collector.telemetry.instruments import Telemetry

    config = configuration(review={"path": str(tmp_path / "review.sqlite")})
    report = await Replay(config, {}, logger=LOGGER).run(several(batches(every=3)))
    assert report.lost["cases"] == 0
    assert report.written["cases"] > 0
    store = SqliteStore(tmp_path / "review.sqlite", config.review, clock=SystemClock(), telemetry=Telemetry())
    store.open()
    try:
        cases = list(store.each(Query()))
    finally:
        store.close()
    assert len(cases) == report.written["cases"]
    assert all("replayed" in case.marks and case.probability is None for case in cases)


def test_the_command_takes_up_an_interrupted_replay(tmp_path: Path) -> None:
    files = []
    for number, (_, _, text) in enumerate(list(recordings.requests())[:40]):
        files.append(tmp_path / f"{number}.pb")
        files[-1].write_bytes(text)
    output = tmp_path / "out.jsonl"
    code, _, told = run_command("replay", *map(str, files[:20]), "-o", str(output), "--no-progress")
    assert code == 0, told
    first = output.read_bytes()
    output.write_bytes(first[:-30])  # cut off in the last line
    bad = tmp_path / "bad.pb"
    bad.write_bytes(b"no request")
    code, _, told = run_command("replay", *map(str, files), str(bad), "-o", str(output), "--no-progress")
    assert code == 1, told
    assert "were passed over" in told
    assert "bad.pb: offset 0" in told
    lines = []
    for line in output.read_bytes().splitlines():
        with suppress(ValueError):
            lines.append(json.loads(line))
    assert len(lines) == len(output.read_bytes().splitlines()) - 1
    whole = [line["interaction_id"] for line in lines if all(r["outcome"] != "failed" for r in line["results"])]
    assert len(set(whole)) == len(whole) > 20  # only what failed was tried again
    assert all(line["replayed"] and line["content"] is None for line in lines)


# --- from a topic


async def fill(bootstrap: str, topic: str, messages: list[tuple[int, bytes, int]], *, partitions: int = 2) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, partitions, 1)])
    await admin.close()
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    for partition, value, time_ms in messages:
        await producer.send_and_wait(topic, value, partition=partition, timestamp_ms=time_ms)
    await producer.stop()


async def test_a_range_of_a_topic_by_offset_and_by_time(kafka: KafkaCluster) -> None:
    messages = [(n % 2, f"{n}".encode(), 1_000_000 + n * 1_000) for n in range(20)]
    await fill(kafka.bootstrap, "range", messages)
    options = KafkaOptions(brokers=kafka.bootstrap, topics=("range",))  # type: ignore[arg-type]  # pydantic splits them

    async def values(**more: Any) -> list[int]:
        found = read_range(options, "range", environ={}, **more)
        return sorted([int(message.value or b"") async for message in found])

    assert await values() == list(range(20))
    assert await values(partitions=[1]) == list(range(1, 20, 2))
    assert await values(start=Place(offset=8)) == [16, 17, 18, 19]
    assert await values(start=Place(offset=2), end=Place(offset=4)) == [4, 5, 6, 7]
    assert await values(start=Place(unix_ms=1_015_000)) == [15, 16, 17, 18, 19]
    assert await values(end=Place(unix_ms=1_003_000)) == [0, 1, 2]
    assert await values(start=Place(unix_ms=9_000_000)) == []
    assert await values(start=Place(offset=99)) == []
    with pytest.raises(KafkaUnusable, match="has no partition 7; it has 0 to 1"):
        await values(partitions=[7])
    with pytest.raises(KafkaUnusable, match="'nowhere' can not be read: UnknownTopic"):
        [_ async for _ in read_range(options, "nowhere", environ={})]
    nobody = KafkaOptions(brokers="127.0.0.1:1", topics=("range",))  # type: ignore[arg-type]  # pydantic splits them
    with pytest.raises(KafkaUnusable, match="connection refused"):
        [_ async for _ in read_range(nobody, "range", environ={})]


async def test_a_topic_is_replayed_into_the_results_topic(kafka: KafkaCluster, tmp_path: Path) -> None:
    from tests.integration.test_results_topic_kafka import create, read

    dice = random.Random(9)
    record = {"id": "r1", "question": "q?", "contexts": ["Closed on Fridays."], "response": "Closed on Fridays."}
    values = [*(body(rag_trace(dice)) for _ in range(8)), json.dumps(record).encode(), b"\xffno message"]
    await fill(kafka.bootstrap, "replayed", [(n % 2, value, 1_000_000 + n) for n, value in enumerate(values)])
    await create(kafka.bootstrap, "replay-results")
    config = tmp_path / "groundwatch.yaml"
    config.write_text(
        json.dumps(
            {
                "receivers": {"kafka": {"brokers": kafka.bootstrap, "topics": ["replayed"]}},
                "export": {"kafka": {"topic": "replay-results"}, "content": True},
            }
        ),
        encoding="utf-8",
    )
    command = ("replay", "--topic", "replayed", "-c", str(config), "--no-progress")
    code, _, told = await asyncio.to_thread(run_command, *command)
    assert code == 1  # for the message that is none
    assert "1 message(s) of topic replayed could not be read" in told
    assert "written: 9 results" in told
    found = [json.loads(m.value) for m in await read(kafka.bootstrap, "replay-results", 9)]
    assert len({one["interaction_id"] for one in found}) == 9
    assert "r1" in {one["interaction_id"] for one in found}
    assert all(one["replayed"] and one["content"]["response"] for one in found)
