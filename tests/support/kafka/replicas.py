"""Sidecars that share topics as one consumer group, beside one that reads all in a group of its own: started, stopped,
killed and started again while messages come, and read through a real Prometheus."""

from __future__ import annotations

import asyncio
import json
import math
import random
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from aiokafka import TopicPartition

from collector.demo.processes import free_port
from collector.receivers.kafka_offsets import Commit, settled_in
from collector.telemetry import metrics
from dashboards import build
from dashboards.options import Options
from tests.support import traces
from tests.support.judge import JudgeServer
from tests.support.kafka.clients import Sent, committed, everything, make_topics, produce
from tests.support.prometheus import Prometheus
from tests.support.replicas import RULES, Sums, config, exchanges, sums_of
from tests.support.sidecar import Sidecar
from tests.support.waiting import until

ONE, SHARED = "one", "two"
"""Jobs of Prometheus, and groups: of the one that sees all, and of those that share."""
_PARTITIONS = "groundwatch_kafka_partitions"
_UNSETTLED = "groundwatch_kafka_unsettled_messages"
_LAG = "groundwatch_kafka_lag_messages"


class Result(NamedTuple):
    """What a process told of an interaction."""

    trace_id: str
    settled_at: float


class Replicas:
    """The processes by name. `one` sees all; the others share, each at its own address, which stays over restarts, and
    with a results topic of its own. `keep` names those that have a state directory."""

    def __init__(
        self,
        directory: Path,
        bootstrap: str,
        prometheus: str,
        *,
        shared: Sequence[str],
        keep: Sequence[str] = (),
        partitions: int = 4,
        copies: int = 1,
        session_seconds: float = 10.0,
        commit_seconds: float = 1.0,
        name: str = "replicas",
        rules: Options = RULES,
        scrapes: str = "1s",
    ) -> None:
        self._directory = directory
        self._bootstrap = bootstrap
        self._keep = frozenset(keep)
        self._session_seconds = session_seconds
        self._commit_seconds = commit_seconds
        self._rules = rules
        self._scrapes = scrapes
        self._name = f"{name}-{random.getrandbits(24):06x}"
        self._dice = random.Random(17)
        self._ends = ExitStack()
        self._lives = 0
        self._program = prometheus
        self._partitions = partitions
        self._copies = copies
        self._shared = tuple(shared)
        taken: set[int] = set()
        while len(taken) < len(shared) + 1:  # not ports that the system hands out meanwhile
            taken.add(free_port(random.randrange(20_000, 30_000)))
        self.address = dict(zip((ONE, *shared), (f"127.0.0.1:{port}" for port in taken), strict=True))
        self.alive: dict[str, Sidecar] = {}
        self.sent: set[str] = set()
        """Traces that were written."""
        self._messages = 0
        self._producing = threading.Lock()
        self.results: dict[str, list[Result]] = {}

    def __enter__(self) -> Replicas:
        try:
            self._open()
        except BaseException:
            self._ends.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.close()

    def _open(self) -> None:
        topics = {self.topic: self._partitions} | {self._results(name): 1 for name in self.address}
        asyncio.run(make_topics(self._bootstrap, topics, copies=self._copies))
        self.judge = self._ends.enter_context(JudgeServer())
        build.write(self._directory, build.generated(self._rules))
        self.prometheus = Prometheus(
            self._program,
            self._directory,
            jobs={ONE: [self.address[ONE]], SHARED: [self.address[name] for name in self._shared]},
            interval=self._scrapes,
            rules=[self._directory / "prometheus/recording.yml"],
        )
        self._ends.callback(self.prometheus.end)

    @property
    def topic(self) -> str:
        return f"{self._name}-in"

    def _group(self, name: str) -> str:
        return f"{self._name}-{ONE if name == ONE else SHARED}"

    def _results(self, name: str) -> str:
        return f"{self._name}-results-{name}"

    # --- processes

    def start(self, name: str, *, static: bool = False, ready: bool = True) -> Sidecar:
        """Start a process, for the first time or again. `static`: as a static member, which keeps its partitions while
        it is away for less than a minute."""
        self._lives += 1
        sections: dict[str, Any] = {
            "receivers": {
                "http": {"port": int(self.address[name].rpartition(":")[2])},
                "grpc": {"enabled": False},
                "kafka": {
                    "brokers": self._bootstrap,
                    "topics": self.topic,
                    "group_id": self._group(name),
                    "start": "earliest",
                    "commit_seconds": self._commit_seconds,
                    "session_timeout_seconds": 60 if static else self._session_seconds,
                    "heartbeat_seconds": 0.5,
                },
            },
            "export": {"kafka": {"topic": self._results(name)}},
        }
        if static:
            sections["receivers"]["kafka"]["group_instance_id"] = name
        if name in self._keep:
            sections["process"] = {"state_dir": str(self._directory / f"state-{name}")}
        sidecar = Sidecar(self._directory, config(self.judge, **sections), name=f"{name}{self._lives}")
        self._ends.callback(sidecar.end)
        self.alive[name] = sidecar
        return sidecar.ready() if ready else sidecar

    def stop(self, name: str) -> None:
        """An orderly end."""
        sidecar = self.alive.pop(name)
        assert sidecar.terminate(60) == 0, sidecar.log

    def kill(self, name: str) -> set[str]:
        """kill -9. Returns the traces in its partitions that the group's commit does not name as settled: those are
        read again."""
        sidecar = self.alive.pop(name)
        lag = sidecar.metrics().series(_LAG)
        mine = {TopicPartition(self.topic, int(dict(labels)["partition"])) for labels in lag}
        sidecar.process.kill()
        sidecar.process.wait(10)
        return self._not_settled(mine)

    def _not_settled(self, places: set[TopicPartition]) -> set[str]:
        held = asyncio.run(committed(self._bootstrap, self._group(SHARED)))
        settled = {}
        for place in places:
            commit = Commit(held[place].offset, held[place].metadata)
            settled[place] = (commit.offset, settled_in(commit) or [])
        found = set()
        for message in asyncio.run(everything(self._bootstrap, self.topic)):
            place = TopicPartition(message.topic, message.partition)
            if place in settled:
                before, runs = settled[place]
                if message.offset >= before and not any(message.offset in run for run in runs):
                    found.add(message.key.decode())
        return found

    # --- messages

    def produce(self, count: int) -> None:
        """Write so many traces, a third of them in two messages. From any thread."""
        messages = []
        with self._producing:
            for one in exchanges(count, self._dice, name=f"session-{len(self.sent)}"):
                name = one.trace_id.hex()
                self.sent.add(name)
                parts = [one.spans[:1], one.spans[1:]] if self._dice.random() < 1 / 3 else [one.spans]
                bodies = [traces.body(part, service=one.service) for part in parts]
                messages += [Sent(self.topic, body, name.encode()) for body in bodies]
            asyncio.run(produce(self._bootstrap, messages, compression_type="zstd"))
            self._messages += len(messages)

    # --- waiting

    def share(self, *names: str, seconds: float = 90.0) -> None:
        """Wait until these have the partitions, each at least one."""

        def shared() -> bool:
            counts = [self.alive[name].metrics().total(_PARTITIONS) for name in names]
            return all(counts) and sum(counts) == self._partitions

        until(shared, f"{', '.join(names)} share the partitions", seconds=seconds, step=0.1)

    def in_the_middle(self, name: str, count: int = 0, *, seconds: float = 90.0) -> None:
        """Wait until this process has settled something more and has more under way; write so many traces whenever it
        has nothing to do."""
        before = self.alive[name].metrics().total(metrics.SETTLED.name)

        def busy() -> bool:
            now = self.alive[name].metrics()
            if now.total(metrics.SETTLED.name) > before and now.total(_UNSETTLED) > 0:
                return True
            if count and now.total(_UNSETTLED) == 0:
                self.produce(count)
            return False

        until(busy, f"{name} has settled something and has more under way", seconds=seconds, step=0.1)

    def settled(self, *, seconds: float = 120.0) -> None:
        """Wait until all that was written is settled everywhere, and Prometheus has seen it."""
        for group in (self._group(ONE), self._group(SHARED)):
            until(
                lambda group=group: self._committed(group) == self._messages,
                f"{group} has settled and committed all",
                seconds=seconds,
                step=0.3,
            )
        for name in self.alive:
            # Two scrapes that began after all was settled: the first may have begun before.
            for _ in range(2):
                self.prometheus.scraped_once_more(f'{metrics.SETTLED.name}{{instance="{self.address[name]}"}}')
        for name in self.address:
            found = asyncio.run(everything(self._bootstrap, self._results(name)))
            told = [json.loads(one.value) for one in found]
            self.results[name] = [Result(one["trace_ids"][0], one["settled_unix_nano"] / 1e9) for one in told]

    def _committed(self, group: str) -> int:
        """Messages up to the first that is not settled, over all partitions."""
        held = asyncio.run(committed(self._bootstrap, group))
        return sum(one.offset for place, one in held.items() if place.topic == self.topic)

    # --- what Prometheus has

    def sums(self, job: str) -> Sums:
        """Of all lifetimes of all processes of a job."""
        return sums_of(self.prometheus, job)

    def counted(self, name: str) -> float:
        """Interactions that Prometheus has seen counted by one process, over its lifetimes."""
        return sums_of(self.prometheus, ONE if name == ONE else SHARED, self.address[name]).counted()

    def last_scrape(self, name: str, *, before: float = math.inf) -> float:
        """When the last scrape of a process began that succeeded, before a moment; both in Unix time."""
        ((_, samples),) = self.prometheus.samples(f'up{{instance="{self.address[name]}"}}[3h]')
        return max(at for at, up in samples if up and at <= before)
