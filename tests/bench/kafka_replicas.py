"""Do sidecars in a consumer group tell what one tells that saw all, whatever happens to them? Read through a real
Prometheus.

    python tests/bench/kafka_replicas.py            three brokers, 6 partitions, 4,000 traces; ten minutes
    python tests/bench/kafka_replicas.py --quick    one broker, 400 traces

Traces come all the time, through a real Kafka, to one sidecar in a group of its own and to a group of others, of which

    stateless    has no state directory
    kept         has one, and is a static member
    moved        has one, and is not
    guest        has none, joins later, and leaves

First everything is done in good order: late starts, restarts, a guest that comes and goes. Then `kept` is killed
(kill -9) and comes back before its partitions move; then `moved`, which comes back after they did; then `stateless`,
which does not come back. After each, what was counted twice or not at all is told, and of when it was: a trace is
counted twice that was settled and not committed when its process died, and not at all one that was committed, and not
yet scraped, where no state directory keeps it. More, or anything at all before the first kill that moved partitions, is
a failure.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from collector.stats.interval import Interval
from dashboards.options import Options
from tests.support.kafka.cluster import KafkaCluster
from tests.support.kafka.jars import NoKafka, jars
from tests.support.kafka.replicas import ONE, SHARED, Replicas
from tests.support.replicas import born, recorded_interval, still, unlike
from tests.support.waiting import until

STATELESS, KEPT, MOVED, GUEST = "stateless", "kept", "moved", "guest"
CHUNK = 20
RULES = Options(time_scale=10, week_every=120)
"""The rules are evaluated every six seconds, over windows of half a minute: longer than a restart takes."""
_STARTED = time.monotonic()


def say(text: str) -> None:
    print(f"  {time.monotonic() - _STARTED:6.1f} s  {text}", flush=True)


@dataclass(frozen=True)
class Death:
    """A process that was killed: when, and which traces the group's commit did not name as settled."""

    name: str
    at: float
    again: set[str]


class Play:
    """The phases, one after the other; `failures` are sentences."""

    def __init__(self, replicas: Replicas, count: int, per_second: float) -> None:
        self._replicas = replicas
        self._part = count // 4
        self._pause = CHUNK / per_second
        self._known: frozenset[str] = frozenset()
        self._off = 0.0
        self.failures: list[str] = []

    @contextmanager
    def _stream(self) -> Iterator[None]:
        """A quarter of the traces are written while something else happens."""

        def write() -> None:
            for _ in range(0, self._part, CHUNK):
                self._replicas.produce(CHUNK)
                time.sleep(self._pause)

        self._known = frozenset(self._replicas.sent)
        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield
        finally:
            thread.join()

    def start(self) -> None:
        for name in (ONE, STATELESS):
            self._replicas.start(name)
            address = self._replicas.address[name]
            until(lambda address=address: born(self._replicas.prometheus, address), "it was scraped at its start")

    def orderly(self) -> None:
        here = self._replicas
        with self._stream():
            here.in_the_middle(STATELESS, CHUNK)
            here.start(MOVED)
            here.share(STATELESS, MOVED)
            here.in_the_middle(MOVED, CHUNK)
            here.stop(MOVED)
            here.start(KEPT, static=True)
            here.start(MOVED)
            here.share(STATELESS, KEPT, MOVED)
            here.in_the_middle(MOVED, CHUNK)
            here.start(GUEST)
            here.share(STATELESS, KEPT, MOVED, GUEST)
            here.in_the_middle(KEPT, CHUNK)
            here.stop(KEPT)
            here.start(KEPT, static=True)
            here.share(STATELESS, KEPT, MOVED, GUEST)
            here.in_the_middle(GUEST, CHUNK)
            here.stop(GUEST)
            here.share(STATELESS, KEPT, MOVED)
        self.compare("all in good order", exact=True, death=None)

    def die(self, name: str, *, comes_back: bool, static: bool) -> None:
        here = self._replicas
        with self._stream():
            here.in_the_middle(name, CHUNK)
            again = here.kill(name)
            death = Death(name, time.time(), again)
            say(f"{name} was killed")
            others = [other for other in (STATELESS, KEPT, MOVED) if other in here.alive]
            if comes_back and static:
                here.start(name, static=True)
            elif comes_back:
                here.share(*others)
                say("its partitions have moved")
                here.start(name)
                here.share(name, *others)
            else:
                here.share(*others)
        self.compare(f"{name} was killed", exact=static, death=death)

    def compare(self, what: str, *, exact: bool, death: Death | None) -> None:
        here = self._replicas
        here.settled()
        ended = time.time()
        until(lambda: still(here.prometheus, ended), "the rules have seen the end", seconds=300, step=0.5)
        one, two = here.sums(ONE), here.sums(SHARED)
        before, self._off = self._off, two.counted() - one.counted()
        new = here.sent - self._known
        say(f"{what}: {len(here.sent)} traces, {len(new)} of them new")
        print(f"    counted by the one {one.counted():,.0f}, by the others {two.counted():,.0f}")
        differ = unlike(one, two)
        print(f"    sums that differ by more than 1e-9: {len(differ)}")
        for job, sums in ((ONE, one), (SHARED, two)):
            told = recorded_interval(here.prometheus, job)
            print(f"    {job}: {_said(sums.groups())}; recorded {' '.join(f'{value:.4f}' for value in told)}")
        if one.counted() != len(here.sent):
            self.failures.append(f"{what}: the one that saw all did not count all")
        if exact and self._off != before:
            self.failures.append(f"{what}: {self._off - before:+.0f} were counted by the others")
        if exact and not before and differ:
            self.failures += [f"{what}: {sentence}" for sentence in differ[:3]]
        if death is not None:
            self._account(what, death, new, self._off - before)

    def _account(self, what: str, death: Death, new: frozenset[str], off: float) -> None:
        """What of the difference was twice, what was missing, and of when."""
        here = self._replicas
        told = here.results[death.name]
        mine = {one.trace_id: one.settled_at for one in told if one.trace_id in new and one.settled_at <= death.at}
        later = {one.trace_id for one in told if one.settled_at > death.at}
        others = (name for name in here.results if name not in (ONE, death.name))
        elsewhere = later.union(*({one.trace_id for one in here.results[name]} for name in others)) & new
        twice = mine.keys() & elsewhere
        scraped = here.last_scrape(death.name, before=death.at)
        unseen = [trace for trace, at in mine.items() if at > scraped and trace not in twice]
        print(f"    read again: {len(death.again)}; settled before by {death.name} and by another: {len(twice)}")
        if twice:
            print(f"    settled at most {death.at - min(mine[trace] for trace in twice):.2f} s before the kill")
        print(f"    settled after its last scrape, and not by another: {len(unseen)}")
        print(f"    counted too often (+) or not at all (-): {off:+.0f}")
        if new - mine.keys() - elsewhere:
            self.failures.append(f"{what}: results were lost")
        if not twice <= death.again:
            self.failures.append(f"{what}: something came twice that had been committed")
        missing = len(unseen) if death.name == STATELESS else 0
        if not -missing <= off <= len(death.again):
            self.failures.append(f"{what}: {off:+.0f} is more than is said")


def _said(one: Interval) -> str:
    return f"{float(one.mean):.6f} in {float(one.lower):.6f} .. {float(one.upper):.6f}"


def run(program: str, count: int, brokers: int, partitions: int, per_second: float) -> list[str]:
    """One run; what went wrong."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        KafkaCluster(Path(scratch) / "kafka", jars(), brokers=brokers) as cluster,
        Replicas(
            Path(scratch),
            cluster.bootstrap,
            program,
            shared=(STATELESS, KEPT, MOVED, GUEST),
            keep=(KEPT, MOVED),
            partitions=partitions,
            copies=min(3, brokers),
            rules=RULES,
            scrapes="2s",
        ) as replicas,
    ):
        say(f"{brokers} broker(s) and Prometheus run")
        play = Play(replicas, count, per_second)
        play.start()
        play.orderly()
        play.die(KEPT, comes_back=True, static=True)
        play.die(MOVED, comes_back=True, static=False)
        play.die(STATELESS, comes_back=False, static=False)
        failed = replicas.prometheus.failed_rules()
        return play.failures + [f"a rule failed: {one}" for one in failed]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one broker and 400 traces")
    parser.add_argument("--traces", type=int, help="how many (default 4,000; quick 400)")
    parser.add_argument("--per-second", type=float, default=20.0, help="how many are written a second (20)")
    arguments = parser.parse_args(argv)
    quick: bool = arguments.quick
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # what it says while members come and go is expected
    program = shutil.which("prometheus")
    try:
        jars()
    except NoKafka as error:
        print(f"skipped: {error}")
        return 0
    if program is None:
        print("skipped: program 'prometheus' is not installed")
        return 0
    failures = run(
        program, arguments.traces or (400 if quick else 4_000), 1 if quick else 3, 6, arguments.per_second
    )
    for sentence in failures:
        print(f"FAILED: {sentence}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
