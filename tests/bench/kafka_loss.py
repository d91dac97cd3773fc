"""What Kafka promises and what it costs nobody: count every trace through deaths, moves and restarts.

    python tests/bench/kafka_loss.py            three brokers, two consumers, then a third; 20,000 traces; minutes
    python tests/bench/kafka_loss.py --quick    one broker, two consumers, 300 traces
    python tests/bench/kafka_loss.py --collector PROGRAM    written by a real Collector (tests/support/otelcol)

Traces are written with their trace id as the key, as a Collector divides them, and every process writes what became of
each interaction to a results topic. While they run: one process is killed (kill -9) and started again, a broker is
killed and started again, a third process joins and leaves in good order, and the judge does not answer for longer than
max_poll_interval. In the end every trace must be in the results topic, with one interaction id each, and every offset
committed. What is there twice was settled within a commit interval before the kill, or was written twice: a Collector
writes again what a dying broker did not acknowledge. Counters of a process that ended are those read before its end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer

from scorers.testing import Fault
from tests.support import traces
from tests.support.judge import JudgeServer
from tests.support.kafka.clients import Sent, committed, ends, make_topics, produce
from tests.support.kafka.cluster import KafkaCluster
from tests.support.kafka.jars import NoKafka, jars
from tests.support.otelcol.process import Collector
from tests.support.sidecar import Metrics, Sidecar, quick_config
from tests.support.waiting import until

INPUT, RESULTS, GROUP = "spans", "results", "groundwatch"
COMMIT_SECONDS = 1.0
MAX_POLL_SECONDS = 3.0
BATCH = 100


class Results:
    """Reads the results topic on a thread of its own: how often each trace came out, and under which keys."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._leave = threading.Event()
        self.times: Counter[str] = Counter()
        self.keys: dict[str, set[str]] = {}
        self._thread = threading.Thread(target=lambda: asyncio.run(self._read()), daemon=True)

    def __enter__(self) -> Results:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave.set()
        self._thread.join(20)

    async def _read(self) -> None:
        consumer = AIOKafkaConsumer(RESULTS, bootstrap_servers=self._bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        try:
            while not self._leave.is_set():
                for messages in (await consumer.getmany(timeout_ms=300)).values():
                    for message in messages:
                        told = json.loads(message.value)
                        name = told["trace_ids"][0]
                        self.times[name] += 1
                        self.keys.setdefault(name, set()).add(told["interaction_id"])
        finally:
            await consumer.stop()


class Run:
    """The processes of one run, by name; each name's state stays over its restarts."""

    def __init__(
        self, directory: Path, cluster: KafkaCluster, judge: JudgeServer, collector: Collector | None
    ) -> None:
        self._directory = directory
        self._collector = collector
        self._cluster = cluster
        self._judge = judge
        self.alive: dict[str, Sidecar] = {}
        self._starts = 0
        self.ended: list[Metrics] = []
        self._dice = random.Random(11)
        self.sent: set[str] = set()

    def start(self, name: str) -> Sidecar:
        self._starts += 1
        config = quick_config(
            judge=self._judge.section(),
            sampling={"rate": 0.05, "budget": {"calls_per_day": 1_000_000, "usd_per_day": 1_000}},
            export={"kafka": {"topic": RESULTS}},
        )
        config["receivers"]["kafka"] = {
            "brokers": self._cluster.bootstrap,
            "topics": INPUT,
            "group_id": GROUP,
            "start": "earliest",
            "commit_seconds": COMMIT_SECONDS,
            "session_timeout_seconds": 6,
            "heartbeat_seconds": 1,
            "max_poll_interval_seconds": MAX_POLL_SECONDS,
            "request_timeout_seconds": 10,
        }
        self.alive[name] = sidecar = Sidecar(self._directory, config, name=f"{name}{self._starts}").ready()
        say(f"{name} has joined")
        return sidecar

    def kill(self, name: str) -> None:
        sidecar = self.alive.pop(name)
        self.ended.append(sidecar.metrics())
        sidecar.end()
        say(f"{name} was killed")

    def stop(self, name: str) -> None:
        sidecar = self.alive.pop(name)
        before = sidecar.metrics()
        code = sidecar.terminate(60)
        assert code == 0, sidecar.log
        self.ended.append(before)
        sidecar.end()
        say(f"{name} has left in good order")

    def produce(self, count: int) -> None:
        for first in range(0, count, BATCH):
            made = [
                traces.rag_trace(self._dice, response=f"{traces.FACT} {self._dice.random()}")
                for _ in range(min(BATCH, count - first))
            ]
            names = [spans[0].trace_id.hex() for spans in made]
            if self._collector is not None:
                self._collector.send("traces", "traces", traces.body(span for spans in made for span in spans))
            else:
                messages = [
                    Sent(INPUT, traces.body(spans), name.encode()) for name, spans in zip(names, made, strict=True)
                ]
                asyncio.run(produce(self._cluster.bootstrap, messages, compression_type="zstd"))
            self.sent.update(names)

    def end(self) -> None:
        for sidecar in self.alive.values():
            sidecar.end()


_STARTED = time.monotonic()


def say(text: str) -> None:
    print(f"  {time.monotonic() - _STARTED:6.1f} s  {text}", flush=True)


def run(count: int, brokers: int, partitions: int, program: str | None) -> dict[str, Any]:
    """One run; figures by name. `program` is the Collector that writes, where one is to."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        KafkaCluster(Path(scratch) / "kafka", jars(), brokers=brokers) as cluster,
        JudgeServer() as judge,
    ):
        copies = min(brokers, 3)
        asyncio.run(make_topics(cluster.bootstrap, {INPUT: partitions, RESULTS: 1}, copies=copies))
        say(f"{brokers} broker(s) run")
        with contextlib.ExitStack() as stack:
            collector = None
            if program is not None:
                exporter = {
                    "brokers": cluster.bootstrap.split(","),
                    "producer": {"required_acks": -1, "compression": "zstd"},
                    "partition_traces_by_id": True,
                    "traces": {"topic": INPUT},
                }
                log = Path(scratch) / "collector.log"
                collector = stack.enter_context(Collector(program, {"traces": exporter}, log))
            here = Run(Path(scratch), cluster, judge, collector)
            stack.callback(here.end)
            return play(here, cluster, judge, stack.enter_context(Results(cluster.bootstrap)), count)


def play(here: Run, cluster: KafkaCluster, judge: JudgeServer, results: Results, count: int) -> dict[str, Any]:
    part = count // 6
    here.produce(part)
    first = here.start("one")
    here.start("two")
    until(lambda: first.metrics().total("groundwatch_kafka_partitions") < 6, "they share", seconds=60)
    here.produce(part)
    until(lambda: len(results.times) > part // 2, "results come", seconds=300)
    here.kill("one")
    here.produce(part)
    here.start("one")
    if len(cluster.brokers) > 1:
        cluster.kill_broker(1)
        say("a broker was killed")
    else:
        cluster.stop_broker(1)
        cluster.start_broker(1)
        say("the broker was started again")
    here.produce(part)
    if len(cluster.brokers) > 1:
        cluster.start_broker(1)
        say("it was started again")
    here.start("three")
    judge.misbehave(*[Fault(delay_seconds=3 * MAX_POLL_SECONDS)] * 10_000)
    say("the judge hangs")
    here.produce(part)
    time.sleep(2 * MAX_POLL_SECONDS)
    rebalances = {
        name: one.metrics().total("groundwatch_kafka_rebalances_total") for name, one in here.alive.items()
    }
    time.sleep(MAX_POLL_SECONDS)
    for name, one in here.alive.items():
        now = one.metrics().total("groundwatch_kafka_rebalances_total")
        assert now == rebalances[name], f"{name} left its group while the judge hung"
    judge.judge.faults.clear()
    say("the judge answers again, and nobody has left the group")
    here.stop("three")
    here.produce(count - 5 * part)
    say("all is written")
    until(lambda: set(results.times) >= here.sent, "every trace has come out", seconds=900, step=1)
    say("all has come out")
    for sidecar in here.alive.values():
        sidecar.wait(
            lambda now: now.total("groundwatch_kafka_unsettled_messages") == 0, "nothing waits", seconds=300
        )
    living = [sidecar.metrics() for sidecar in here.alive.values()]
    for name in list(here.alive):
        here.stop(name)
    held = asyncio.run(committed(cluster.bootstrap, GROUP))
    everyone = [*here.ended[: -len(living)], *living]
    return {
        "traces written": len(here.sent),
        "traces lost": len(here.sent - set(results.times)),
        "interactions with more than one id": sum(len(keys) > 1 for keys in results.keys.values()),
        "results that came twice": sum(results.times.values()) - len(results.times),
        "interactions counted by all processes": sum(
            one.total("groundwatch_interactions_settled_total") for one in everyone
        ),
        "moved between processes while under way": sum(
            one.total("groundwatch_kafka_messages_moved_total") for one in everyone
        ),
        "settled by a former owner and passed over": sum(
            one.total("groundwatch_kafka_messages_total", outcome="settled_before") for one in everyone
        ),
        "shed or dropped by screening": sum(
            one.total("groundwatch_screening_traces_total", outcome=outcome)
            for one in everyone
            for outcome in ("shed", "dropped_full", "failed")
        ),
        "messages in the topic (a Collector may write one twice)": (
            messages := asyncio.run(ends(cluster.bootstrap, INPUT))
        ),
        "messages not committed": messages - sum(one.offset for one in held.values()),
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one broker and 300 traces")
    parser.add_argument("--traces", type=int, help="how many (default 20,000; quick 300)")
    parser.add_argument("--collector", metavar="PROGRAM", help="the Collector that writes the traces")
    arguments = parser.parse_args(argv)
    quick: bool = arguments.quick
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # what it says while brokers are away is expected
    try:
        jars()
    except NoKafka as error:
        print(f"skipped: {error}")
        return 0
    figures = run(arguments.traces or (300 if quick else 20_000), 1 if quick else 3, 6, arguments.collector)
    for name, value in figures.items():
        print(f"{name:57} {value:10,.0f}")
    lost = figures["traces lost"] or figures["interactions with more than one id"]
    if lost or figures["messages not committed"]:
        print("FAILED: something was lost, renamed, or left uncommitted")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
