"""A client that remembers what was acknowledged, and a product that is killed under it again and again."""

from __future__ import annotations

import random
import sqlite3
import sys
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from collector.telemetry.metrics import table
from collector.telemetry.spec import Type
from tests.support import laws
from tests.support.judge import JudgeServer
from tests.support.sidecar import COMMAND, Labels, Metrics, Sidecar, quick_config
from tests.support.traces import FACT, body, rag_trace, span

SENDERS = 3
RATE = 0.5
QUIET_SECONDS = 1.5
"""Longer than it takes a client to go on where a killed process ended, once the next has read the spool again."""
_ANSWERS = (FACT, "It is 999 euros.", "I do not know.", "Between 100 and 120 euros, as far as I can see.")


class Client:
    """Sends requests that hold whole traces, and parts of two of them; what was not acknowledged it sends again, until
    it is."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self.traces = 0
        self.acknowledged: list[bytes] = []
        self._waiting: deque[bytes] = deque()

    def more(self) -> None:
        """Two traces more, in three requests: one request has something of both."""
        dice = self._dice
        self.traces += 2
        first, second = (rag_trace(dice, response=dice.choice(_ANSWERS)) for _ in range(2))
        first.append(
            span(first[0].trace_id, dice.randbytes(8), first[-1].span_id, "SELECT", {"db.system.name": "sqlite"})
        )
        # The roots come last: what is quiet too early without its root waits longer.
        requests = [first[:1], first[1:2] + second[:2], first[2:] + second[2:]]
        self._waiting.extend(body(spans) for spans in requests)

    def send(self, sidecar: Sidecar) -> bool:
        """Send one request; whether all went well or nothing waits. What failed waits again, in front."""
        try:
            request = self._waiting.popleft()
        except IndexError:
            return True
        try:
            reply = sidecar.client.post(
                f"{sidecar.http}/v1/traces",
                content=request,
                headers={"content-type": "application/x-protobuf"},
            )
        except httpx.TransportError:
            self._waiting.appendleft(request)
            return False
        if reply.status_code == 200:
            self.acknowledged.append(request)
            return True
        assert reply.status_code in (429, 503), reply.text
        self._waiting.appendleft(request)
        time.sleep(0.05)
        return True

    def flush(self, sidecar: Sidecar) -> bool:
        """Send all that waits; False when the process is gone."""
        with ThreadPoolExecutor(SENDERS) as senders:
            while self._waiting:
                if not all(senders.map(lambda _: self.send(sidecar), range(len(self._waiting)))):
                    return False
        return True


class Crashes:
    """One state directory under processes that are killed, one after the other."""

    def __init__(self, directory: Path, judge: JudgeServer, *, seed: int = 1, **process: Any) -> None:
        self._directory = directory
        self._judge = judge
        self._dice = random.Random(seed)
        self._process = process
        self.client = Client(seed)
        self._number = 0

    def _config(self, process: Mapping[str, Any]) -> dict[str, Any]:
        return quick_config(
            assembly={"quiet_seconds": QUIET_SECONDS},
            screening={"workers": 1},
            sampling={"rate": RATE, "budget": {"calls_per_day": None, "usd_per_day": None}},
            judge=self._judge.section(scorers=["faithfulness"], budget={"day": {"calls": None}}),
            process=process,
            books={"commit_seconds": 0.2},
        )

    def start(self, *command: str) -> Sidecar:
        """The next process; with a command, that one."""
        self._number += 1
        process = {"state_dir": str(self._directory / "state"), "durability": "spool", **self._process}
        return Sidecar(
            self._directory,
            self._config(process),
            name=f"process-{self._number}",
            command=command or (COMMAND, "run"),
        )

    def die_at(self, point: str, times: int) -> None:
        """Run a process that dies by itself at a boundary, sending until it does."""
        sidecar = self.start(sys.executable, "-m", "tests.support.crashing", point, str(times))
        try:
            if not self._ready(sidecar):
                return
            until = time.monotonic() + 30
            while sidecar.process.poll() is None:
                assert time.monotonic() < until, f"{point} was not reached {times} times:\n{sidecar.log}"
                self.client.more()
                self.client.flush(sidecar)
                time.sleep(0.05)
            assert sidecar.process.returncode == -9, sidecar.log
        finally:
            sidecar.end()

    @staticmethod
    def _ready(sidecar: Sidecar) -> bool:
        """Whether it came to serve; it may reach its end by what it reads again at the start."""
        try:
            sidecar.ready()
        except (AssertionError, httpx.TransportError):
            assert sidecar.process.wait(10) == -9, sidecar.log
            assert "draining" not in sidecar.log, sidecar.log
            return False
        return True

    def die_some_time(self, longest_seconds: float = 3.0) -> None:
        """Kill a process at a random instant, while requests are on their way; one of five while it starts."""
        sidecar = self.start()
        try:
            if self._dice.random() < 0.2:
                self._kill_after(sidecar, self._dice.uniform(0, longest_seconds))
                return
            sidecar.ready()
            with ThreadPoolExecutor(1) as killer:
                killing = killer.submit(self._kill_after, sidecar, self._dice.uniform(0, longest_seconds))
                while not killing.done():
                    self.client.more()
                    self.client.flush(sidecar)
                    time.sleep(0.02)
        finally:
            sidecar.end()

    @staticmethod
    def _kill_after(sidecar: Sidecar, seconds: float) -> None:
        time.sleep(seconds)
        sidecar.process.kill()
        sidecar.process.wait(10)

    def finish(self) -> Metrics:
        """Let one more process do what is left; its metrics when nothing is left, and it has ended in order."""
        sidecar = self.start()
        try:
            sidecar.ready()
            assert self.client.flush(sidecar), sidecar.log
            sidecar.wait(
                lambda now: now.total("groundwatch_spool_requests") == 0, "the spool is empty", seconds=60
            )
            now = sidecar.metrics()  # the gauge may be younger than the sums that it was read with
            assert laws.broken(now) == []
            assert sidecar.terminate() == 0, sidecar.log
            return now
        finally:
            sidecar.end()

    def without_crashes(self) -> Metrics:
        """What a process in memory says that got all that was acknowledged, once."""
        sidecar = Sidecar(self._directory, self._config({}), name="reference")
        try:
            sidecar.ready()
            for request in self.client.acknowledged:
                sidecar.send(request)
            sidecar.wait_for_interactions(self.client.traces, seconds=60)
            return sidecar.metrics()
        finally:
            sidecar.end()

    def keys(self) -> int:
        """How many interactions the books know."""
        with sqlite3.connect(self._directory / "state" / "books.sqlite") as books:
            count: int = books.execute("SELECT count(*) FROM keys").fetchone()[0]
        books.close()
        return count

    def wrong(self) -> list[str]:
        """What does not say in the end that every acknowledged trace was scored once: sums, and the number of keys."""
        found = differences(sums(self.finish()), sums(self.without_crashes()))
        if self.keys() != self.client.traces:
            found.append(f"the books know {self.keys()} interactions, and {self.client.traces} were sent")
        return found


Sums = dict[tuple[str, Labels], float]


def sums(now: Metrics) -> Sums:
    """Every counter of the estimates that is not 0."""
    collected = [spec for spec in table() if spec.collected and spec.group == "estimates"]
    names = [spec.name for spec in collected if spec.type is Type.COUNTER]
    return {(name, labels): value for name in names for labels, value in now.series(name).items() if value}


def differences(told: Sums, truth: Sums) -> list[str]:
    """What is not the same but for rounding, a sentence each."""
    return [
        f"{name} {dict(labels)}: {told.get((name, labels), 0.0)} is not {truth.get((name, labels), 0.0)}"
        for name, labels in sorted(told.keys() | truth.keys())
        if told.get((name, labels), 0.0) != pytest.approx(truth.get((name, labels), 0.0), rel=1e-6)
    ]
