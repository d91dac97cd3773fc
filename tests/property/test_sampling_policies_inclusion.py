"""Every policy keeps as often as it says, alone and in mixes with budget, shedding and upstream sampling; and means
weighted by what it says are unbiased."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from collector.estimates.estimates import Estimates
from collector.estimates.measures import Measure
from collector.estimates.options import Options as EstimateOptions
from collector.estimates.window import Window
from collector.records.decision import Decision, Fate
from collector.records.found import Found, Mark
from collector.records.settled import Settled
from scorers.outcome import Result, Score
from scorers.scorer import Kind, Tier
from tests.unit.sampling.sampling_builders import Bench, found, screened

N = 6_000
TENANTS = {"name": "tenant", "attribute": "app.tenant", "values": ["gold", "free"]}
POLICIES: dict[str, dict[str, object]] = {
    "rate": {"type": "rate", "rate": 0.1},
    "rules": {
        "type": "rules",
        "rules": [
            {"match": {"attribute": "release", "equals": "canary"}, "probability": 0.6},
            {"segments": {"tenant": "gold"}, "probability": 0.2},
        ],
        "otherwise": 0.02,
    },
    "stratified": {
        "type": "stratified",
        "segment": "tenant",
        "values": {"gold": {"per_hour": 1_200}, "free": 0.04},
        "otherwise": {"per_hour": 600},
    },
    "scores": {
        "type": "scores",
        "metric": "faithfulness",
        "steps": [{"below": 0.5, "probability": 0.5}, {"below": 0.7, "probability": 0.2}],
        "otherwise": 0.05,
    },
    "marks": {"type": "marks", "errors": 0.3, "marks": {"truncated": 0.15}},
}
MIXES = {
    **{name: (name,) for name in POLICIES},
    "rate and scores": ("rate", "scores"),
    "rules, strata, marks": ("rules", "stratified", "marks"),
    "all": tuple(POLICIES),
}
NO_BUDGET = {"calls_per_day": None, "usd_per_day": None}


@dataclass(frozen=True)
class Item:
    """An interaction with its score, known to nobody but the test, and what is known when it is released."""

    y: float
    found: Found
    results: list[Result]


def traffic(seed: int, size: int = N, *, threshold: int = 0) -> list[Item]:
    """Interactions whose quality depends on everything that policies look at. With a `threshold` only those whose
    trace's randomness reaches it; bad ones are as likely to as good ones."""
    rng = np.random.default_rng(seed)
    randomness = rng.integers(1 << 56, size=size)
    tenants = rng.choice(["gold", "free", "someone"], size, p=[0.1, 0.6, 0.3])
    canary, failed, cut, screens = (rng.random(size) < share for share in (0.05, 0.04, 0.1, 0.95))
    good = 0.85 - 0.3 * canary - 0.3 * failed + 0.1 * (tenants == "gold")
    y = np.where(rng.random(size) < good, 1.0, rng.beta(2, 1.85, size))
    local = np.clip(0.15 + 0.6 * y + rng.normal(0, 0.12, size), 0, 1)
    return [
        Item(
            float(y[i]),
            found(
                f"{seed}-{i}",
                trace_id=f"{i:018x}{int(randomness[i]):014x}",
                state=f"ot=th:{threshold:014x}" if threshold else "",
                attributes={"app.tenant": str(tenants[i])},
                resource={"release": "canary" if canary[i] else "stable"},
                marks=frozenset({Mark.TRUNCATED}) if cut[i] else frozenset(),
                error="timeout" if failed[i] else None,
            ),
            [screened(float(local[i]))] if screens[i] else [],
        )
        for i in np.flatnonzero(randomness >= threshold)
    ]


def bench(mix: str, **options: object) -> Bench:
    given = {"segments": [TENANTS], "budget": NO_BUDGET, "floor": 0.01, **options}
    return Bench(policies=None, judge=True, configured=[POLICIES[name] for name in MIXES[mix]], **given)


def decide(
    bench: Bench, items: list[Item], *, keep: Callable[[int], float] = lambda number: 1.0
) -> list[Decision]:
    """Decisions at 200 a minute; the judge answers at once, with four calls each."""
    decisions = []
    for number, item in enumerate(items):
        bench.keep = keep(number)
        decision = bench.sampler.decide(item.found, item.results)
        if decision.fate is Fate.QUEUED:
            bench.books.interactions += 1
            bench.books.calls += 4
        decisions.append(decision)
        if number % 200 == 199:
            bench.clock.advance(60)
    return decisions


def check(decisions: list[Decision], values: np.ndarray, *, sent: float | None = None) -> None:
    """The number kept is what the probabilities say, over all and where they are low, middle and high; and the
    Horvitz-Thompson total of `values` is right. All within 4.5 standard errors."""
    p = np.array([decision.probability for decision in decisions])
    kept = np.array([decision.fate is Fate.QUEUED for decision in decisions])
    for part in np.array_split(np.argsort(p, kind="stable"), 4):
        spread = float((p[part] * (1 - p[part])).sum()) ** 0.5
        assert abs(kept[part].sum() - p[part].sum()) <= 4.5 * spread + 1e-9
    weights = np.array([decision.weight for decision in decisions])
    u = weights * p
    variance = float((values**2 * u**2 * (1 - p) / p).sum())
    truth = float((values * u).sum())
    if sent is not None:
        variance += float((values**2 * u * (u - 1)).sum())
        truth = sent
    assert abs(float((values * weights)[kept].sum()) - truth) <= 4.5 * variance**0.5


@pytest.mark.parametrize("mix", MIXES)
def test_inclusion_frequency(mix: str) -> None:
    items = traffic(1)
    decisions = decide(bench(mix), items)
    check(decisions, np.ones(len(items)))
    check(decisions, np.array([item.y for item in items]))
    assert min(decision.probability for decision in decisions) >= 0.01  # the floor


@pytest.mark.parametrize("mix", MIXES)
def test_inclusion_frequency_with_budget_and_shedding(mix: str) -> None:
    items = traffic(2)
    # What the policies of a mix ask for, halved from the second minute on; a full queue leaves less now and then.
    plain = decide(bench(mix), items)
    wanted = sum(decision.probability for decision in plain) / (N / 200)
    decisions = decide(
        bench(mix, floor=0.001, budget={"calls_per_day": int(wanted / 2 * 4 * 1_440), "usd_per_day": None}),
        items,
        keep=lambda number: 0.4 if number % 3_000 < 1_000 else 1.0,
    )
    check(decisions, np.array([item.y for item in items]))
    fates = {decision.fate for decision in decisions}
    assert fates == {Fate.QUEUED, Fate.SAMPLED_OUT, Fate.SHED}
    assert sum(one.fate is Fate.QUEUED for one in decisions) < 0.7 * sum(one.fate is Fate.QUEUED for one in plain)


@pytest.mark.parametrize("mix", ["rules, strata, marks", "scores", "all"])
def test_inclusion_frequency_behind_an_upstream_sampler(mix: str) -> None:
    threshold = (1 << 56) * 3 // 4
    items = traffic(3, 4 * N, threshold=threshold)
    decisions = decide(
        bench(mix, upstream={"default": "tracestate"}),
        items,
        keep=lambda number: 0.5 if number % 2_000 < 700 else 1.0,
    )
    assert {decision.upstream_weight for decision in decisions} == {4.0}
    check(decisions, np.ones(len(items)), sent=4 * N)


def test_policies_decide_independently() -> None:
    """Two policies with one probability keep the union, not one the other's."""
    both = Bench(
        configured=[{"type": "rate", "rate": 0.3}, {"type": "rate", "rate": 0.3, "name": "again"}],
        budget=NO_BUDGET,
    )
    decisions = [both.sampler.decide(found(number)) for number in range(N)]
    assert {decision.probability for decision in decisions} == {0.3 + 0.3 - 0.3 * 0.3}
    check(decisions, np.ones(N))


JUDGED = Measure("faithfulness", Kind.JUDGED, None, "j")
LOCAL = Measure("faithfulness", Kind.LOCAL, Tier.FAST, "f")


@pytest.fixture(scope="module")
def windows() -> list[list[Item]]:
    return [traffic(100 + run, 1_500) for run in range(40)]


@pytest.mark.parametrize("mix", ["scores", "all"])
def test_means_are_unbiased_where_the_probability_depends_on_the_score(
    mix: str, windows: list[list[Item]]
) -> None:
    """Sampler, decisions, sums: over 40 windows the weighted mean errs by no more than chance, and its interval holds
    the truth; the plain mean of what was judged errs by three standard errors of one window."""
    truth = float(np.mean([item.y for items in windows for item in items]))
    shown, plain, inside = [], [], []
    for items in windows:
        window = bench(mix)
        estimates = Estimates(
            EstimateOptions(),
            declared=[JUDGED, LOCAL],
            segment_names=[],
            clock=window.clock,
            telemetry=window.telemetry,
        )
        judged = []
        for item, decision in zip(items, decide(window, items), strict=True):
            results: tuple[Result, ...] = ()
            if decision.fate is Fate.QUEUED:
                results = (
                    Result(item.found.interaction.id, "faithfulness", Kind.JUDGED, Score(item.y), "1", "j"),
                )
                judged.append(item.y)
            estimates.settle(Settled(item.found, decision, (), results))
        estimate = estimates.estimate(JUDGED, Window.HOUR)
        assert estimate.mean is not None and estimate.lower is not None and estimate.upper is not None
        shown.append(estimate.mean)
        inside.append(estimate.lower <= truth <= estimate.upper)
        plain.append(float(np.mean(judged)))
    spread = float(np.std(shown))
    assert abs(float(np.mean(shown)) - truth) <= 3.5 * spread / len(windows) ** 0.5
    assert float(np.mean(inside)) >= 0.88
    assert float(np.mean(plain)) < truth - 3 * spread
