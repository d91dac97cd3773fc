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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from collector.demo.processes import free_port
from collector.stats.control import ControlSums, controlled_interval
from collector.stats.groups import group_interval
from collector.stats.interval import Interval, coverage, logit_interval
from collector.telemetry import metrics
from collector.telemetry.spec import MetricSpec
from dashboards import build
from dashboards.names import series
from dashboards.options import Options
from tests.conftest import Program
from tests.support import traces
from tests.support.judge import JudgeServer
from tests.support.prometheus import Prometheus
from tests.support.sidecar import Sidecar, quick_config
from tests.support.waiting import until

pytestmark = pytest.mark.e2e

SERVICES = ("rides", "meals")
INTERACTIONS = 300
OPTIONS = Options(time_scale=30, week_every=120)
"""The rules are evaluated every other second."""
WINDOW = "1d"
"""48 minutes long, so that it holds the whole run on any machine."""
SUMS = (
    *metrics.JUDGED_SUMS,
    metrics.JUDGED_WEIGHT,
    metrics.JUDGED_UNSCORED_WEIGHT,
    *metrics.JUDGED_GROUPS,
    metrics.SCORE_WEIGHT,
    *metrics.LOCAL_SUMS,
    metrics.LOCAL_WEIGHT,
    metrics.LOCAL_UNSCORED_WEIGHT,
    metrics.LOCAL_SCORE_WEIGHT,
    *metrics.CONTROL_SUMS,
    metrics.DIAGNOSIS_WEIGHT,
    metrics.SLO_WEIGHT,
    metrics.SLO_WEIGHT2,
    metrics.SLO_GOOD_WEIGHT,
    *metrics.JUDGED_VERSIONS,
    *metrics.LOCAL_VERSIONS,
)
CLUSTERS = (*metrics.JUDGED_CLUSTERS, *metrics.LOCAL_CLUSTERS)
Key = tuple[tuple[str, str], ...]
Sums = dict[str, dict[Key, float]]


@dataclass(frozen=True)
class Run:
    """What was counted over the lifetimes of all processes of a job, and the Prometheus that has seen it."""

    prometheus: Prometheus
    counted: dict[str, Sums]

    def values(self, job: str, specs: Sequence[MetricSpec], **labels: str) -> list[float]:
        """The sums of these counters over all series that carry the labels."""
        wanted = set(labels.items())
        return [
            math.fsum(v for key, v in self.counted[job][spec.name].items() if wanted <= set(key)) for spec in specs
        ]


@dataclass
class Job:
    """The processes of a job. Counters of what has ended are kept."""

    name: str
    prometheus: Prometheus
    ended: list[Sums] = field(default_factory=list)

    def now(self, instance: str = "") -> Sums:
        """What Prometheus has of each counter, over the running processes or of one."""
        only = f'job="{self.name}"' + (f',instance="{instance}"' if instance else "")
        names = "|".join(spec.name for spec in (*SUMS, *CLUSTERS))
        found: Sums = {spec.name: {} for spec in (*SUMS, *CLUSTERS)}
        for labels, value in self.prometheus.query(f'{{__name__=~"{names}",{only}}}'):
            name = labels.pop("__name__")
            key = tuple(sorted((k, v) for k, v in labels.items() if k not in ("job", "instance")))
            found[name][key] = found[name].get(key, 0.0) + value
        return found

    def whole(self) -> Sums:
        """What was counted over all lifetimes."""
        parts = [*self.ended, self.now()]
        return {
            name: {
                key: math.fsum(part[name].get(key, 0.0) for part in parts)
                for key in set().union(*(part[name] for part in parts))
            }
            for name in parts[0]
        }


def interactions() -> list[tuple[bytes, bytes]]:
    """(trace id, export request) of sessions whose answers are alike, so that clusters matter; some are made up."""
    dice = random.Random(17)
    made: list[tuple[bytes, bytes]] = []
    while len(made) < INTERACTIONS:
        invents = dice.random() < 0.3
        service = dice.choice(SERVICES)
        for turn in range(dice.randint(2, 6)):
            number, other = len(made), dice.randrange(20, 90)
            fact = f"Rule {number} allows {other} euros for every trip by taxi."
            invented = invents and dice.random() < 0.8
            trace_id = dice.randbytes(16)
            spans = traces.rag_trace(
                dice,
                question=f"How many euros does rule {number} allow for a trip?",
                contexts=[f"Meals cost up to {other + 1} euros a day.", fact],
                response="The admiral paints nine violins in the harbour every winter." if invented else fact,
                trace_id=trace_id,
                session=f"session-{number - turn}",
            )
            made.append((trace_id, traces.body(spans, service=service)))
    return made[:INTERACTIONS]


def second(trace_id: bytes) -> bool:
    """Whether the second replica gets it."""
    return trace_id[-1] % 2 == 1


@pytest.fixture(scope="module")
def run(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    directory = tmp_path_factory.mktemp("replicas")
    build.write(directory, build.generated(OPTIONS))
    rules = [directory / "prometheus/recording.yml"]
    sent = interactions()
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
            sidecar = Sidecar(directory, config(judge, fixed if name == "second" else 0), name=f"{name}{life}")
            ends.callback(sidecar.end)
            sidecar.ready()
            addresses[name] = sidecar.http.removeprefix("http://")
            return sidecar

        single, first = start("single"), start("first")
        jobs = {"one": [addresses["single"]], "two": [addresses["first"], addresses["second"]]}
        prometheus = Prometheus(program("prometheus"), directory, jobs=jobs, rules=rules)
        ends.callback(prometheus.end)
        prometheus.ready(targets=2)
        one, two = Job("one", prometheus), Job("two", prometheus)

        def feed(part: list[tuple[bytes, bytes]], late: Sidecar | None) -> None:
            """The same to the single sidecar and to the replicas; without the late one, its share waits."""
            for trace_id, body in part:
                single.send(body)
                if second(trace_id):
                    (waiting.append(body) if late is None else late.send(body))
                else:
                    first.send(body)

        def scraped(address: str, sidecar: Sidecar, expected: int) -> None:
            """Wait until all that was sent is settled and Prometheus has seen so."""
            final = sidecar.wait_for_interactions(expected, seconds=60)
            name = metrics.SETTLED.name
            until(
                lambda: prometheus.number(f'sum({name}{{instance="{address}"}})') == final.total(name),
                f"{address} was scraped after its end",
            )
            prometheus.scraped_once_more(f'{name}{{instance="{address}"}}')

        waiting: list[bytes] = []
        count = [sum(second(trace_id) for trace_id, _ in third) for third in thirds]
        feed(thirds[0], None)
        scraped(addresses["first"], first, len(thirds[0]) - count[0])

        late = start("second")
        born(prometheus, addresses["second"])
        for body in waiting:
            late.send(body)
        feed(thirds[1], late)
        scraped(addresses["second"], late, count[0] + count[1])
        two.ended.append(two.now(addresses["second"]))
        assert late.terminate() == 0

        again = start("second", 1)
        born(prometheus, addresses["second"])
        feed(thirds[2], again)
        scraped(addresses["second"], again, count[2])
        scraped(addresses["first"], first, INTERACTIONS - sum(count))
        scraped(addresses["single"], single, INTERACTIONS)
        counted = {job.name: job.whole() for job in (one, two)}
        ended = prometheus.number("vector(time())") or math.inf
        until(lambda: still(prometheus, ended), "the rules have seen the end", seconds=300, step=0.5)
        yield Run(prometheus, counted)


def config(judge: JudgeServer, port: int) -> dict[str, object]:
    return quick_config(
        receivers={"http": {"port": port}, "grpc": {"port": 0}},
        judge=judge.section(
            scorers=["faithfulness", "context_relevance", "noncommittal"],
            budget={"day": {"calls": None, "usd": None}},
        ),
        screening={"workers": 1},
        sampling={
            "rate": 0.6,
            "budget": {"calls_per_day": None, "usd_per_day": None},
            "segments": [{"name": "service", "attribute": "service", "values": list(SERVICES)}],
        },
        estimates={
            "objectives": [{"name": "grounded", "metric": "faithfulness", "threshold": 0.8, "target": 0.95}]
        },
    )


def born(prometheus: Prometheus, address: str) -> None:
    """Wait until Prometheus has seen the new process's zeros: `increase()` begins there."""
    name = metrics.ITEMS_RECEIVED.name
    until(
        lambda: (
            prometheus.number(f'sum({name}{{instance="{address}"}})') == 0
            and prometheus.number(f'count({metrics.LOCAL_SUMS[0].name}{{instance="{address}"}} == 0)')
        ),
        f"{address} was scraped at its start",
    )


def still(prometheus: Prometheus, ended: float) -> bool:
    """Whether the rules were evaluated after the end and the sums no longer grow."""
    grown = [series("segment", kind, "w", "increase5m") for kind in ("judged", "local")]
    return all(
        len(prometheus.query(f"max by (job) ({name}) == 0 and min by (job) (timestamp({name})) > {ended}")) == 2
        for name in grown
    )


def test_all_sums_are_those_of_one_process_that_saw_all(run: Run) -> None:
    one, two = run.counted["one"], run.counted["two"]
    for spec in SUMS:
        assert one[spec.name], spec.name
        assert two[spec.name].keys() == one[spec.name].keys(), spec.name
        for key, value in one[spec.name].items():
            assert two[spec.name][key] == pytest.approx(value, rel=1e-9, abs=1e-9), (spec.name, key)
    assert sum(run.values("one", [metrics.LOCAL_SUMS[0]], metric="faithfulness")) == pytest.approx(INTERACTIONS)
    judged = sum(run.values("one", [metrics.JUDGED_SUMS[0]], metric="faithfulness"))
    assert 0.75 * INTERACTIONS < judged < 1.25 * INTERACTIONS


def test_estimates_are_those_of_one_process_that_saw_all(run: Run) -> None:
    """Mean, effective n, item interval, coverage, control variate, and the interval by groups: all from exact sums."""

    def of(job: str) -> list[float]:
        five = run.values(job, metrics.JUDGED_SUMS, metric="faithfulness")
        items = logit_interval(*five)
        failed = run.values(job, [metrics.JUDGED_WEIGHT], metric="faithfulness", outcome="failed")[0]
        controls = controlled_interval(ControlSums(*run.values(job, metrics.CONTROL_SUMS, metric="faithfulness")))
        grouped = by_groups(run, job)
        numbers = [items.mean, items.n_eff, items.lower, items.upper, coverage(five[0], failed)]
        numbers += [controls.mean, controls.lower, controls.upper, controls.gain, grouped.lower, grouped.upper]
        return [float(number) for number in numbers]

    assert all(math.isfinite(number) for number in of("one"))
    assert of("two") == pytest.approx(of("one"), rel=1e-9)


def by_groups(run: Run, job: str) -> Interval:
    groups = [run.values(job, metrics.JUDGED_GROUPS, metric="faithfulness", group=g) for g in metrics.GROUP_LABELS]
    w2 = run.values(job, metrics.JUDGED_SUMS, metric="faithfulness")[1]
    return group_interval(w2, [w for w, _ in groups], [wy for _, wy in groups])


def test_clusters_that_are_split_are_why_totals_use_groups(run: Run) -> None:
    """A session of which each replica saw a part is two clusters: their sums miss what the parts have in common."""
    whole, split = (run.values(job, metrics.JUDGED_CLUSTERS, metric="faithfulness") for job in ("one", "two"))
    items = run.values("one", metrics.JUDGED_SUMS, metric="faithfulness")
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

    exact = run.values("one", metrics.JUDGED_SUMS, metric=metric)
    assert mean("one") == pytest.approx(exact[2] / exact[0], abs=1e-6)  # one target: all are stretched alike
    assert mean("two") == pytest.approx(mean("one"), abs=0.02)


def test_the_rules_take_clusters_for_one_process_and_groups_for_two(run: Run) -> None:
    """Of what they hold themselves: on a busy machine evaluations are left out, and with them a part of the sums."""

    def recorded(job: str, what: str, level: str = "total", window: str = WINDOW) -> list[float]:
        """The values of one name, by group where there are several."""
        name = series(level, "judged", what, window)
        rows = run.prometheus.query(f'{name}{{job="{job}",metric="faithfulness"}}')
        return [value for _, value in sorted(rows, key=lambda row: row[0].get("group", ""))]

    def interval(job: str) -> list[float]:
        return recorded(job, "mean") + recorded(job, "lower") + recorded(job, "upper")

    five, clusters = (
        [recorded("one", prefix + part, window=f"sum{WINDOW}")[0] for part in parts]
        for prefix, parts in (("", metrics.SUM_PARTS), ("cluster_", metrics.CLUSTER_PARTS))
    )
    alone = logit_interval(*five, clusters=(clusters[0], clusters[1], clusters[2]))
    assert interval("one") == pytest.approx([float(alone.mean), float(alone.lower), float(alone.upper)], rel=1e-6)
    w_g, wy_g = (recorded("two", part, "group", f"sum{WINDOW}") for part in ("w", "wy"))
    assert len(w_g) == len(wy_g) == metrics.GROUPS
    grouped = group_interval(recorded("two", "w2", window=f"sum{WINDOW}")[0], w_g, wy_g)
    assert recorded("two", "degrees") == [metrics.GROUPS - 1]
    # Each counter is extrapolated by itself, so the groups do not add up to the total's sums to the last digit.
    assert interval("two") == pytest.approx(
        [float(grouped.mean), float(grouped.lower), float(grouped.upper)], rel=0.02
    )


def test_no_rule_fails(run: Run) -> None:
    assert run.prometheus.failed_rules() == []
