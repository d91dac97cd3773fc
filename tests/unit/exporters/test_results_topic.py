"""The results topic's sink against a producer that does as it is told: nothing lost, nothing unbounded, all counted."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiokafka.errors import KafkaTimeoutError, MessageSizeTooLargeError, TopicAuthorizationFailedError

from collector.exporters.kafka import KafkaResults
from collector.exporters.kafka_options import KafkaResultsOptions
from collector.exporters.kafka_producer import Undeliverable
from collector.pipeline.clock import ManualClock
from collector.pipeline.receipt import Receipt
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.records.settled import Settled
from collector.telemetry import metrics
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction
from scorers.outcome import Result, Score
from scorers.scorer import Kind

TEXT = "a text of the application"


class Topic:
    """A topic that acknowledges when asked to. `refuses` says of a message with which error it fails, if any."""

    def __init__(self) -> None:
        self.acknowledges = True
        self.unreachable: str | None = None
        self.refuses: Callable[[bytes], Exception | None] = lambda _: None
        self.fails_at_once = False
        self.written: list[tuple[bytes, bytes]] = []
        self.open: list[tuple[bytes, bytes, asyncio.Future[None]]] = []
        self.connections = self.closed = 0

    async def connect(self) -> Topic:
        await asyncio.sleep(0)
        if self.unreachable is not None:
            raise Undeliverable(self.unreachable)
        self.connections += 1
        return self

    async def send(self, key: bytes, value: bytes) -> asyncio.Future[Any]:
        await asyncio.sleep(0)
        error = self.refuses(value)
        if error is not None and self.fails_at_once:
            raise error
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if error is not None:
            future.set_exception(error)
        else:
            self.open.append((key, value, future))
            if self.acknowledges:
                self.acknowledge()
        return future

    def acknowledge(self) -> None:
        for key, value, future in self.open:
            if not future.done():
                self.written.append((key, value))
                future.set_result(None)
        self.open.clear()

    async def close(self) -> None:
        self.closed += 1
        for *_, future in self.open:
            if not future.done():
                future.set_exception(ConnectionError())
        self.open.clear()

    @property
    def ids(self) -> list[str]:
        return [json.loads(value)["interaction_id"] for _, value in self.written]


class Rig:
    def __init__(self, *, content: bool = False, durable: bool = False, **options: Any) -> None:
        self.topic = Topic()
        self.clock = ManualClock()
        self.telemetry = Telemetry()
        self.states: list[str | None] = []
        self.results = KafkaResults(
            KafkaResultsOptions(
                brokers=("127.0.0.1:9092",), topic="results", **{"retry_seconds": 0.001, **options}
            ),
            connect=self.topic.connect,
            content=content,
            version="1",
            judge_model="m",
            durable=durable,
            clock=self.clock,
            telemetry=self.telemetry,
            events=Events(self.telemetry, self.clock, logging.getLogger("test.results")),
            on_state=self.states.append,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.results.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def count(self, outcome: str) -> float:
        return self.value(metrics.RESULTS_MESSAGES.name, outcome=outcome)

    def value(self, name: str, **labels: str) -> float:
        found = self.telemetry.registry.get_sample_value(name, labels)
        assert found is not None
        return found

    def settle(self, *ids: str, receipt: Receipt | None = None, fate: Fate = Fate.QUEUED) -> None:
        for ident in ids:
            self.results.settle(settled(ident, receipt=receipt, fate=fate))


def settled(ident: str, *, receipt: Receipt | None = None, fate: Fate = Fate.QUEUED, text: str = TEXT) -> Settled:
    result = Result(ident, "faithfulness", Kind.JUDGED, Score(0.5), "1", "f", evidence={"e": text})
    found = Found(Interaction(ident, text, (), text), trace_ids=("ab" * 16,), service="shop")
    return Settled(found, Decision(fate, 0.5, "floor"), (), (result,), receipt=receipt)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


class Source:
    """A delivery, and whether its source has been told that all of it is settled."""

    def __init__(self) -> None:
        self.settled = 0
        self.receipt = Receipt(self._settled)

    def _settled(self) -> None:
        self.settled += 1


async def test_a_message_is_keyed_by_the_interaction_and_holds_no_text_unless_it_may() -> None:
    rig = Rig()
    async with rig.running():
        rig.settle("one", "two")
        await rig.results.flush(10)
    assert [key for key, _ in rig.topic.written] == [b"one", b"two"]
    assert TEXT.encode() not in rig.topic.written[0][1]
    message = json.loads(rig.topic.written[0][1])
    assert message["results"][0]["score"] == 0.5
    assert (message["groundwatch_version"], message["judge_model"]) == ("1", "m")
    assert rig.count("sent") == 2

    rig = Rig(content=True)
    async with rig.running():
        rig.settle("one")
        await rig.results.flush(10)
    assert json.loads(rig.topic.written[0][1])["content"]["question"] == TEXT


async def test_filtered_interactions_are_written_only_where_asked_for() -> None:
    for filtered in (False, True):
        rig = Rig(filtered=filtered)
        async with rig.running():
            rig.settle("one", fate=Fate.FILTERED)
            rig.settle("two", fate=Fate.SAMPLED_OUT)
            await rig.results.flush(10)
        assert rig.topic.ids == (["one", "two"] if filtered else ["two"])


async def test_the_source_is_told_when_the_brokers_have_it_and_not_before() -> None:
    rig, source = Rig(), Source()
    rig.topic.acknowledges = False
    async with rig.running():
        rig.settle("one", receipt=source.receipt)
        source.receipt.release()  # as the flow does after the last sink
        await until(lambda: rig.topic.open)
        assert not source.settled
        rig.topic.acknowledge()
        await rig.results.flush(10)
    assert source.settled == 1
    assert rig.results.waiting == 0


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_failure_is_tried_again_on_a_new_connection_and_nothing_is_lost(at_once: bool) -> None:
    rig, source = Rig(), Source()
    failures = iter([TopicAuthorizationFailedError(), KafkaTimeoutError(), ConnectionError()])
    rig.topic.refuses = lambda _: next(failures, None)
    rig.topic.fails_at_once = at_once
    async with rig.running():
        rig.settle("one", "two", "three", receipt=source.receipt)
        source.receipt.release()
        await rig.results.flush(10)
    assert sorted(set(rig.topic.ids)) == ["one", "three", "two"]
    assert 2 <= rig.value(metrics.RESULTS_FAILURES.name) <= 3  # one of two that fail together is not waited for
    assert rig.count("sent") == 3
    assert rig.topic.connections == rig.topic.closed > 1
    assert source.settled == 1


async def test_what_was_under_way_when_a_connection_broke_is_sent_again() -> None:
    rig = Rig()
    rig.topic.acknowledges = False
    async with rig.running():
        rig.settle("one", "two")
        await until(lambda: len(rig.topic.open) == 2)
        rig.topic.refuses = lambda _: KafkaTimeoutError()
        rig.settle("three")
        await until(lambda: rig.topic.closed)
        rig.topic.refuses = lambda _: None
        rig.topic.acknowledges = True
        await rig.results.flush(10)
    assert sorted(rig.topic.ids) == ["one", "three", "two"]


async def test_readiness_waits_for_the_first_connection_and_says_why() -> None:
    rig = Rig()
    rig.topic.unreachable = "no broker answers: a:1 (connection refused)"
    async with rig.running():
        await until(lambda: rig.states[-1:] == ["results: no broker answers: a:1 (connection refused)"])
        assert rig.value(metrics.RESULTS_CONNECTED.name) == 0
        rig.topic.unreachable = None
        await until(lambda: rig.states[-1] is None)
        assert rig.value(metrics.RESULTS_CONNECTED.name) == 1


async def test_an_outage_makes_it_unready_only_when_the_queue_is_full() -> None:
    rig, source = Rig(queue_messages=2), Source()
    async with rig.running():
        await until(lambda: rig.topic.connections)
        rig.topic.unreachable = "gone"
        rig.topic.refuses = lambda _: KafkaTimeoutError()
        rig.settle("one", receipt=source.receipt)
        await until(lambda: rig.topic.closed)
        assert rig.states[-1] is None
        rig.settle("two", receipt=source.receipt)
        await until(lambda: rig.states[-1] is not None)
        assert rig.states[-1].startswith("results: ")
        rig.topic.unreachable, rig.topic.refuses = None, lambda _: None
        await rig.results.flush(10)
    assert rig.states[-1] is None


async def test_a_full_queue_drops_what_has_no_source_and_keeps_what_has_one() -> None:
    rig, source = Rig(queue_messages=2), Source()
    rig.settle("one", "two")
    assert rig.results.full
    rig.settle("three")
    rig.settle("four", receipt=source.receipt)
    source.receipt.release()
    assert rig.count("dropped_queue_full") == 1
    assert not source.settled
    async with rig.running():
        await rig.results.flush(10)
    assert rig.topic.ids == ["one", "two", "four"]
    assert source.settled == 1
    assert not rig.results.full


async def test_the_queue_is_bounded_in_bytes_too() -> None:
    rig = Rig(queue_bytes=2_000)
    for number in range(100):
        rig.settle(str(number))
    assert rig.value(metrics.RESULTS_WAITING_BYTES.name) < 4_000
    waiting = rig.value(metrics.RESULTS_WAITING.name)
    assert waiting + rig.count("dropped_queue_full") == 100


async def test_a_message_that_is_too_large_goes_without_content() -> None:
    rig = Rig(content=True, max_message_bytes=10_000)
    async with rig.running():
        rig.results.settle(settled("large", text=TEXT * 1_000))
        await rig.results.flush(10)
    message = json.loads(rig.topic.written[0][1])
    assert (message["content"], message["content_left_out"]) == (None, "too_large")
    assert rig.value(metrics.RESULTS_WITHOUT_CONTENT.name) == 1


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_message_that_the_brokers_find_too_large_goes_without_content(at_once: bool) -> None:
    rig, source = Rig(content=True), Source()
    rig.topic.refuses = lambda value: MessageSizeTooLargeError() if TEXT.encode() in value else None
    rig.topic.fails_at_once = at_once
    async with rig.running():
        rig.settle("one", receipt=source.receipt)
        source.receipt.release()
        await rig.results.flush(10)
    assert rig.topic.ids == ["one"]
    assert source.settled == 1
    assert rig.value(metrics.RESULTS_WAITING_BYTES.name) == 0


async def test_a_message_that_fits_nowhere_is_dropped_and_holds_nothing_up() -> None:
    rig, source = Rig(), Source()
    rig.topic.refuses = lambda value: MessageSizeTooLargeError() if b'"one"' in value else None
    async with rig.running():
        rig.settle("one", "two", receipt=source.receipt)
        source.receipt.release()
        await rig.results.flush(10)
    assert rig.topic.ids == ["two"]
    assert rig.count("dropped_too_large") == 1
    assert source.settled == 1
    rig.results.settle(settled("x" * 2_000_000))
    assert rig.count("dropped_too_large") == 2


async def test_what_another_replica_took_over_is_not_written_by_this_one() -> None:
    rig, source = Rig(), Source()
    rig.settle("one", receipt=source.receipt)
    source.receipt.release()
    source.receipt.lose()
    rig.settle("two")
    async with rig.running():
        await rig.results.flush(10)
    assert rig.topic.ids == ["two"]
    assert rig.count("moved") == 1
    assert source.settled == 1


async def test_brokers_that_never_acknowledge_are_told_of() -> None:
    rig = Rig(request_timeout_seconds=1)
    rig.topic.acknowledges = False
    async with rig.running():
        rig.settle("one")
        await until(lambda: rig.topic.open)
        rig.clock.advance(3)
        await until(lambda: rig.topic.closed)
        rig.topic.acknowledges = True
        await rig.results.flush(10)
    assert rig.topic.ids == ["one"]
    assert rig.value(metrics.RESULTS_OLDEST.name) == 0


async def test_the_end_waits_no_longer_than_it_may_and_counts_what_is_left() -> None:
    rig, source = Rig(), Source()
    rig.topic.unreachable = "gone"
    async with rig.running():
        rig.settle("one")
        rig.settle("two", receipt=source.receipt)
        source.receipt.release()
        await rig.results.flush(0)
    rig.results.close()
    rig.results.close()
    rig.settle("late")
    assert (rig.count("dropped_shutdown"), rig.count("kept")) == (2, 1)
    assert not source.settled  # so that its source gives it again


async def test_the_books_keep_what_waits_and_the_next_process_sends_it() -> None:
    rig = Rig(durable=True)
    rig.topic.acknowledges = False
    rows: dict[str, bytes] = {}
    async with rig.running():
        rig.settle("one", "two")
        await until(lambda: len(rig.topic.open) == 2)
        rows.update(rig.results.changed())
        assert not rig.results.changed()
        rig.topic.open[0][2].set_result(None)
        await until(lambda: rig.results.waiting == 1)
        rig.settle("three", "four")
        change = rig.results.changed()
        assert sum(not row for row in change.values()) == 1
        rows.update(change)
    rig.results.close()
    assert rig.count("kept") == 3

    after = Rig(durable=True)
    after.results.restore({name: row for name, row in rows.items() if row})
    after.settle("five")
    async with after.running():
        await after.results.flush(10)
    assert after.topic.ids == ["two", "three", "four", "five"]
    assert [key for key, _ in after.topic.written] == [b"two", b"three", b"four", b"five"]
    rows.update(after.results.changed())
    assert not any(rows.values())


async def test_a_kept_message_that_can_not_be_read_does_not_take_the_others_with_it() -> None:
    rig = Rig(durable=True)
    rig.settle("one")
    rows = {**rig.results.changed(), "7": b"\x09odd", "x": b"\x01", "8": b"\x01\x00\x00\xff\xffshort"}
    after = Rig(durable=True)
    with pytest.raises(ValueError, match="3 of 4 waiting messages"):
        after.results.restore(rows)
    assert after.results.waiting == 1
