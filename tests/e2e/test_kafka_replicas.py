"""A consumer group of two sidecars tells what one tells that saw all, through a real Kafka and a real Prometheus.

The two start at different times; one is restarted, and partitions move between them while traces are open and wait for
the judge. All sums that add up are then those of the one that saw all, to 1e-9. So they are after `kill -9` of one that
has a state directory and comes back as a static member, before its partitions move. After `kill -9` of one without
either, they are off by what KAFKA.md says, and by no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from collector.telemetry import metrics
from tests.conftest import Program
from tests.support.kafka.cluster import KafkaCluster
from tests.support.kafka.replicas import ONE, SHARED, Replicas
from tests.support.replicas import Sums, born, recorded, recorded_interval, still, unlike
from tests.support.waiting import until

pytestmark = pytest.mark.e2e

EARLY, LATE = "early", "late"


@dataclass(frozen=True)
class Run:
    """What Prometheus had seen, of the one and of those that share: after an orderly restart and rebalances, and after
    a kill; and what the rules had recorded then."""

    replicas: Replicas
    orderly: tuple[Sums, Sums]
    orderly_sent: int
    kept: tuple[Sums, Sums]
    recorded: dict[str, list[float]]


@pytest.fixture(scope="module")
def run(kafka: KafkaCluster, program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    directory = tmp_path_factory.mktemp("kafka-replicas")
    with Replicas(
        directory, kafka.bootstrap, program("prometheus"), shared=(EARLY, LATE), keep=[LATE], name="short"
    ) as replicas:
        prometheus = replicas.prometheus
        for name in (ONE, EARLY):
            replicas.start(name, ready=False)
        for name in (ONE, EARLY):
            replicas.alive[name].ready()
            until(lambda name=name: born(prometheus, replicas.address[name]), f"{name} was scraped at its start")
        replicas.in_the_middle(EARLY, 100)
        replicas.start(LATE)
        replicas.share(EARLY, LATE)
        replicas.in_the_middle(LATE, 100)
        replicas.stop(LATE)
        replicas.produce(30)
        replicas.start(LATE, static=True)
        replicas.share(EARLY, LATE)
        replicas.produce(30)
        replicas.settled()
        orderly = replicas.sums(ONE), replicas.sums(SHARED)
        orderly_sent = len(replicas.sent)

        replicas.in_the_middle(LATE, 100)
        replicas.kill(LATE)
        replicas.start(LATE, static=True)
        replicas.settled()
        kept = replicas.sums(ONE), replicas.sums(SHARED)
        ended = prometheus.number("vector(time())") or math.inf
        until(lambda: still(prometheus, ended), "the rules have seen the end", seconds=300, step=0.5)
        told = {job: recorded_interval(prometheus, job) for job in (ONE, SHARED)}
        yield Run(replicas, orderly, orderly_sent, kept, told)


def test_sums_over_a_restart_and_rebalances_are_those_of_one_that_saw_all(run: Run) -> None:
    one, two = run.orderly
    assert one.counted() == run.orderly_sent
    assert unlike(one, two) == []
    assert all(math.isfinite(number) for number in one.estimates())
    assert two.estimates() == pytest.approx(one.estimates(), rel=1e-9)


def test_one_with_a_state_directory_that_is_killed_and_comes_back_costs_nothing(run: Run) -> None:
    one, two = run.kept
    assert one.counted() > run.orderly_sent
    assert unlike(one, two) == []


def test_the_rules_tell_of_two_what_they_tell_of_one(run: Run) -> None:
    """Near, not equal: their windows are fifteen times shorter than in production and restarts are not, so that what
    was counted around those is missing in them, and the more of it the busier the machine is."""
    one, _ = run.kept
    exact = one.groups()
    mean, lower, upper = run.recorded[SHARED]
    assert float(exact.lower) < mean < float(exact.upper)
    assert lower < float(exact.mean) < upper
    assert recorded(run.replicas.prometheus, SHARED, "degrees") == [metrics.GROUPS - 1]
    assert run.replicas.prometheus.failed_rules() == []


def test_one_without_a_state_directory_that_is_killed_costs_what_is_said(run: Run) -> None:
    """Of the results nothing is lost. The sums lack at most what was counted after the last scrape, and have at most
    what was not committed twice."""
    replicas = run.replicas
    before = {name: replicas.counted(name) for name in (EARLY, LATE)}
    known = frozenset(replicas.sent)
    replicas.in_the_middle(EARLY, 100)
    again = replicas.kill(EARLY)
    replicas.share(LATE)
    replicas.produce(20)
    replicas.settled()
    sent = replicas.sent - known
    grown = {name: replicas.counted(name) - before[name] for name in (EARLY, LATE)}
    early = {one.trace_id: one.settled_at for one in replicas.results[EARLY] if one.trace_id in sent}
    late = {one.trace_id for one in replicas.results[LATE] if one.trace_id in sent}
    assert early.keys() | late == sent
    assert early.keys() & late <= again
    assert again <= late
    assert grown[LATE] == len(late)
    scraped = replicas.last_scrape(EARLY)
    assert grown[EARLY] >= sum(settled_at <= scraped for settled_at in early.values())
    assert grown[EARLY] <= len(early.keys() - late) + len(again)
    assert replicas.counted(ONE) == len(replicas.sent)
