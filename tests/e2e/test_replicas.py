"""Two replicas, started at different times and one restarted in between, tell what one process tells that saw all.

The same interactions, with fixed ids, go once to a single sidecar (job `one`) and once, split by trace id, to two
others (job `two`), one of which starts late and is later stopped and started again. Everything is read through one
real Prometheus.

Exact to 1e-9 is every sum but those of clusters, so the means, the effective n of items, coverage, the control
variate and the interval by the sixteen random groups: which interaction is judged hangs on its id and the shared
seed, which group it is in on its session, and sums add up. Not exact are the cluster sums, by nature: a session split
over two replicas, or over a restart, is two clusters; totals of several processes use the groups instead. What
`increase()` gives over replicas is near and not exact, since it extrapolates each counter to the ends of its window by
up to half of the time between two scrapes, and the replicas' scrapes do not coincide.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from collector.demo.processes import free_port
from collector.stats.groups import group_interval
from collector.stats.interval import logit_interval
from collector.telemetry import metrics
from dashboards import build
from tests.conftest import Program
from tests.support.judge import JudgeServer
from tests.support.prometheus import Prometheus
from tests.support.replicas import (
    RULES,
    WINDOW,
    Exchange,
    Sums,
    born,
    config,
    exchanges,
    recorded,
    recorded_interval,
    still,
    sums_of,
    unlike,
)
from tests.support.sidecar import Sidecar
from tests.support.waiting import until

pytestmark = pytest.mark.e2e

INTERACTIONS = 300


@dataclass(frozen=True)
class Run:
    """What was counted over the lifetimes of all processes of a job, and the Prometheus that has seen it."""

    prometheus: Prometheus
    counted: dict[str, Sums]


def second(trace_id: bytes) -> bool:
    """Whether the second replica gets it."""
    return trace_id[-1] % 2 == 1


@pytest.fixture(scope="module")
def run(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    directory = tmp_path_factory.mktemp("replicas")
    build.write(directory, build.generated(RULES))
    rules = [directory / "prometheus/recording.yml"]
    sent = exchanges(INTERACTIONS, random.Random(17))
    thirds = [
        sent[: INTERACTIONS // 3],
        sent[INTERACTIONS // 3 : 2 * INTERACTIONS // 3],
        sent[2 * INTERACTIONS // 3 :],
    ]
    with ExitStack() as ends:
        judge = ends.enter_context(JudgeServer())
        # The second replica's address is known before it starts, and is its own again after the restart: not one
        # of the ports that the system hands out meanwhile.
        fixed = free_port(random.randrange(20_000, 30_000))
        addresses = {"second": f"127.0.0.1:{fixed}"}

        def start(name: str, life: int = 0) -> Sidecar:
            ports = {"http": {"port": fixed if name == "second" else 0}, "grpc": {"port": 0}}
            sidecar = Sidecar(directory, config(judge, receivers=ports), name=f"{name}{life}")
            ends.callback(sidecar.end)
            sidecar.ready()
            addresses[name] = sidecar.http.removeprefix("http://")
            return sidecar

        single, first = start("single"), start("first")
        jobs = {"one": [addresses["single"]], "two": [addresses["first"], addresses["second"]]}
        prometheus = Prometheus(program("prometheus"), directory, jobs=jobs, rules=rules)
        ends.callback(prometheus.end)
        prometheus.ready(targets=2)

        def feed(part: list[Exchange], late: Sidecar | None) -> None:
            """The same to the single sidecar and to the replicas; without the late one, its share waits."""
            for one in part:
                single.send(one.body)
                if second(one.trace_id):
                    (waiting.append(one.body) if late is None else late.send(one.body))
                else:
                    first.send(one.body)

        def scraped(address: str, sidecar: Sidecar, expected: int) -> None:
            """Wait until all that was sent is settled and Prometheus has seen so."""
            final = sidecar.wait_for_interactions(expected, seconds=60)
            name = metrics.SETTLED.name
            until(
                lambda: prometheus.number(f'sum({name}{{instance="{address}"}})') == final.total(name),
                f"{address} was scraped after its end",
            )
            prometheus.scraped_once_more(f'{name}{{instance="{address}"}}')

        def zeros_seen(address: str) -> None:
            until(lambda: born(prometheus, address), f"{address} was scraped at its start")

        waiting: list[bytes] = []
        count = [sum(second(one.trace_id) for one in third) for third in thirds]
        feed(thirds[0], None)
        scraped(addresses["first"], first, len(thirds[0]) - count[0])

        late = start("second")
        zeros_seen(addresses["second"])
        for body in waiting:
            late.send(body)
        feed(thirds[1], late)
        scraped(addresses["second"], late, count[0] + count[1])
        assert late.terminate() == 0

        again = start("second", 1)
        zeros_seen(addresses["second"])
        feed(thirds[2], again)
        scraped(addresses["second"], again, count[2])
        scraped(addresses["first"], first, INTERACTIONS - sum(count))
        scraped(addresses["single"], single, INTERACTIONS)
        counted = {job: sums_of(prometheus, job) for job in jobs}
        ended = prometheus.number("vector(time())") or math.inf
        until(lambda: still(prometheus, ended), "the rules have seen the end", seconds=300, step=0.5)
        yield Run(prometheus, counted)


def test_all_sums_are_those_of_one_process_that_saw_all(run: Run) -> None:
    one, two = run.counted["one"], run.counted["two"]
    assert unlike(one, two) == []
    assert one.values([metrics.LOCAL_SUMS[0]], metric="faithfulness") == [pytest.approx(INTERACTIONS)]
    judged = one.values([metrics.JUDGED_SUMS[0]], metric="faithfulness")[0]
    assert 0.75 * INTERACTIONS < judged < 1.25 * INTERACTIONS


def test_estimates_are_those_of_one_process_that_saw_all(run: Run) -> None:
    """Mean, effective n, item interval, coverage, control variate, and the interval by groups: all from exact sums."""
    one, two = run.counted["one"].estimates(), run.counted["two"].estimates()
    assert all(math.isfinite(number) for number in one)
    assert two == pytest.approx(one, rel=1e-9)


def test_clusters_that_are_split_are_why_totals_use_groups(run: Run) -> None:
    """A session of which each replica saw a part is two clusters: their sums miss what the parts have in common."""
    whole, split = (
        run.counted[job].values(metrics.JUDGED_CLUSTERS, metric="faithfulness") for job in ("one", "two")
    )
    items = run.counted["one"].values(metrics.JUDGED_SUMS, metric="faithfulness")
    for cluster, parts, item in zip(whole, split, (items[1], items[3], items[4]), strict=True):
        assert item < parts < cluster


@pytest.mark.parametrize("metric", ["faithfulness", "context_relevance", "noncommittal"])
def test_increases_are_nearly_the_same_of_both(run: Run, metric: str) -> None:
    def mean(job: str) -> float:
        w, wy = (
            f'sum(increase({spec.name}{{job="{job}",metric="{metric}"}}[1h]))'
            for spec in (metrics.JUDGED_SUMS[0], metrics.JUDGED_SUMS[2])
        )
        value = run.prometheus.number(f"{wy} / {w}")
        assert value is not None
        return value

    exact = run.counted["one"].values(metrics.JUDGED_SUMS, metric=metric)
    assert mean("one") == pytest.approx(exact[2] / exact[0], abs=1e-6)  # one target: all are stretched alike
    assert mean("two") == pytest.approx(mean("one"), abs=0.02)


def test_the_rules_take_clusters_for_one_process_and_groups_for_two(run: Run) -> None:
    """Of what they hold themselves: on a busy machine evaluations are left out, and with them a part of the sums."""
    prometheus = run.prometheus
    five, clusters = (
        [recorded(prometheus, "one", prefix + part, window=f"sum{WINDOW}")[0] for part in parts]
        for prefix, parts in (("", metrics.SUM_PARTS), ("cluster_", metrics.CLUSTER_PARTS))
    )
    alone = logit_interval(*five, clusters=(clusters[0], clusters[1], clusters[2]))
    told = [float(alone.mean), float(alone.lower), float(alone.upper)]
    assert recorded_interval(prometheus, "one") == pytest.approx(told, rel=1e-6)
    w_g, wy_g = (recorded(prometheus, "two", part, level="group", window=f"sum{WINDOW}") for part in ("w", "wy"))
    assert len(w_g) == len(wy_g) == metrics.GROUPS
    grouped = group_interval(recorded(prometheus, "two", "w2", window=f"sum{WINDOW}")[0], w_g, wy_g)
    assert recorded(prometheus, "two", "degrees") == [metrics.GROUPS - 1]
    # Each counter is extrapolated by itself, so the groups do not add up to the total's sums to the last digit.
    told = [float(grouped.mean), float(grouped.lower), float(grouped.upper)]
    assert recorded_interval(prometheus, "two") == pytest.approx(told, rel=0.02)


def test_no_rule_fails(run: Run) -> None:
    assert run.prometheus.failed_rules() == []
