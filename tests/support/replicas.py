"""Several sidecars against one that saw all: what they are given, how they are set up, and their sums, read through a
real Prometheus."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.stats.control import ControlSums, controlled_interval
from collector.stats.groups import group_interval
from collector.stats.interval import Interval, coverage, logit_interval
from collector.telemetry import metrics
from collector.telemetry.spec import MetricSpec
from dashboards.names import series
from dashboards.options import Options
from tests.support import traces
from tests.support.judge import JudgeServer
from tests.support.prometheus import Prometheus
from tests.support.sidecar import quick_config

SERVICES = ("rides", "meals")
RULES = Options(time_scale=15, week_every=120)
"""The rules are evaluated every four seconds: more often a busy machine does not get through them."""
WINDOW = "1d"
"""96 minutes long, so that it holds the whole run on any machine."""
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
"""What adds up over replicas, whoever sees which trace."""
CLUSTERS = (*metrics.JUDGED_CLUSTERS, *metrics.LOCAL_CLUSTERS)
"""What does not: a session of which two processes see a part is two clusters."""
Key = tuple[tuple[str, str], ...]
_ALL = "3h"
"""Longer than any run."""


@dataclass(frozen=True)
class Exchange:
    """One trace with one interaction."""

    trace_id: bytes
    spans: list[Span]
    service: str

    @property
    def body(self) -> bytes:
        """All of it in one export request."""
        return traces.body(self.spans, service=self.service)


def exchanges(count: int, dice: random.Random, *, name: str = "session") -> list[Exchange]:
    """Sessions whose answers are alike, so that clusters matter; some of the answers are made up. Their ids begin with
    `name`."""
    made: list[Exchange] = []
    while len(made) < count:
        invents = dice.random() < 0.3
        service = dice.choice(SERVICES)
        first = len(made)
        for _ in range(dice.randint(2, 6)):
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
                session=f"{name}-{first}",
            )
            made.append(Exchange(trace_id, spans, service))
    return made[:count]


def config(judge: JudgeServer, **sections: Any) -> dict[str, Any]:
    """Three judged metrics on 60 %, without a budget, in two segments, with a service level."""
    base: dict[str, Any] = {
        "judge": judge.section(
            scorers=["faithfulness", "context_relevance", "noncommittal"],
            budget={"day": {"calls": None, "usd": None}},
        ),
        "screening": {"workers": 1},
        "sampling": {
            "rate": 0.6,
            "budget": {"calls_per_day": None, "usd_per_day": None},
            "segments": [{"name": "service", "attribute": "service", "values": list(SERVICES)}],
        },
        "estimates": {
            "objectives": [{"name": "grounded", "metric": "faithfulness", "threshold": 0.8, "target": 0.95}]
        },
    }
    return quick_config(**base, **sections)


@dataclass
class Sums:
    """Sums by counter and labels."""

    of: dict[str, dict[Key, float]] = field(default_factory=lambda: {spec.name: {} for spec in (*SUMS, *CLUSTERS)})

    def add(self, name: str, key: Key, value: float) -> None:
        self.of[name][key] = self.of[name].get(key, 0.0) + value

    def values(self, specs: Sequence[MetricSpec], **labels: str) -> list[float]:
        """Of each counter, the sum over all series that carry the labels."""
        wanted = set(labels.items())
        return [math.fsum(v for key, v in self.of[spec.name].items() if wanted <= set(key)) for spec in specs]

    def counted(self) -> float:
        """Interactions that are in the sums, where none weighs more than 1 for upstream sampling: the weight of all
        outcomes of one local metric."""
        return self.values([metrics.LOCAL_WEIGHT], metric="faithfulness")[0]

    def items(self, metric: str = "faithfulness") -> Interval:
        """The judged mean with its interval by single interactions."""
        return logit_interval(*self.values(metrics.JUDGED_SUMS, metric=metric))

    def groups(self, metric: str = "faithfulness") -> Interval:
        """The judged mean with its interval by the sixteen random groups."""
        groups = [self.values(metrics.JUDGED_GROUPS, metric=metric, group=g) for g in metrics.GROUP_LABELS]
        w2 = self.values(metrics.JUDGED_SUMS, metric=metric)[1]
        return group_interval(w2, [w for w, _ in groups], [wy for _, wy in groups])

    def estimates(self, metric: str = "faithfulness") -> list[float]:
        """Mean, effective n, item interval, coverage, control variate, interval by groups: from sums that add up."""
        five = self.values(metrics.JUDGED_SUMS, metric=metric)
        failed = self.values([metrics.JUDGED_WEIGHT], metric=metric, outcome="failed")[0]
        items, grouped = self.items(metric), self.groups(metric)
        controls = controlled_interval(ControlSums(*self.values(metrics.CONTROL_SUMS, metric=metric)))
        numbers = [items.mean, items.n_eff, items.lower, items.upper, coverage(five[0], failed)]
        numbers += [controls.mean, controls.lower, controls.upper, controls.gain, grouped.lower, grouped.upper]
        return [float(number) for number in numbers]


def unlike(one: Sums, two: Sums, *, tolerance: float = 1e-9) -> list[str]:
    """The sums that differ, of those that add up; a sentence each."""
    found = []
    for spec in SUMS:
        mine, theirs = one.of[spec.name], two.of[spec.name]
        if not mine:
            found.append(f"{spec.name} has no series")
        for key in mine.keys() | theirs.keys():
            a, b = mine.get(key), theirs.get(key)
            if a is None or b is None or not math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance):
                found.append(f"{spec.name}{dict(key)}: {a} is not {b}")
    return found


def grown(samples: Sequence[float]) -> float:
    """What a counter counted over these samples, from 0 on, whatever its resets: what grew from one to the next, and
    after a fall all that is there. What was counted between the last sample before a reset and it is not seen."""
    return math.fsum(
        now - before if now >= before else now for before, now in zip([0.0, *samples], samples, strict=False)
    )


def sums_of(prometheus: Prometheus, job: str, instance: str = "") -> Sums:
    """What all processes of a job, or one instance, have counted over their lifetimes, from the samples that Prometheus
    has of them."""
    only = f'job="{job}"' + (f',instance="{instance}"' if instance else "")
    names = [spec.name for spec in (*SUMS, *CLUSTERS)]
    whole = Sums()

    def add(labels: dict[str, str], value: float) -> None:
        key = tuple(sorted((k, v) for k, v in labels.items() if k not in ("__name__", "job", "instance")))
        whole.add(labels["__name__"], key, value)

    began_anew = {name: prometheus.number(f"sum(resets({name}{{{only}}}[{_ALL}]))") for name in names}
    plain, reset = (
        "|".join(name for name in names if bool(began_anew[name]) is wanted) for wanted in (False, True)
    )
    for labels, value in prometheus.query(f'last_over_time({{__name__=~"{plain}",{only}}}[{_ALL}])'):
        add(labels, value)
    for labels, samples in prometheus.samples(f'{{__name__=~"{reset}",{only}}}[{_ALL}]') if reset else ():
        add(labels, grown([value for _, value in samples]))
    return whole


def born(prometheus: Prometheus, address: str) -> bool:
    """Whether Prometheus has seen the zeros of a new process at this address: `increase()` begins there."""
    name = metrics.ITEMS_RECEIVED.name
    return bool(
        prometheus.number(f'sum({name}{{instance="{address}"}})') == 0
        and prometheus.number(f'count({metrics.LOCAL_SUMS[0].name}{{instance="{address}"}} == 0)')
    )


def still(prometheus: Prometheus, since: float) -> bool:
    """Whether the rules were evaluated after this time and the sums no longer grow, of both jobs."""
    growing = [series("segment", kind, "w", "increase5m") for kind in ("judged", "local")]
    return all(
        len(prometheus.query(f"max by (job) ({name}) == 0 and min by (job) (timestamp({name})) > {since}")) == 2
        for name in growing
    )


def recorded(
    prometheus: Prometheus, job: str, what: str, *, level: str = "total", window: str = WINDOW
) -> list[float]:
    """What the rules recorded of judged faithfulness under one name, by group where there are several."""
    name = series(level, "judged", what, window)
    rows = prometheus.query(f'{name}{{job="{job}",metric="faithfulness"}}')
    return [value for _, value in sorted(rows, key=lambda row: row[0].get("group", ""))]


def recorded_interval(prometheus: Prometheus, job: str) -> list[float]:
    """Mean, lower and upper bound, as the rules recorded them."""
    return [value for what in ("mean", "lower", "upper") for value in recorded(prometheus, job, what)]
