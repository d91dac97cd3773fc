"""Simulated windows through the real estimates: what the intervals promise, and what naive ones miss.

Short and seeded; the long form with tables is `python -m tests.bench.estimates_simulation`.
"""

from __future__ import annotations

import numpy as np
import pytest

from collector.estimates.window import Window
from collector.telemetry import metrics
from tests.unit.estimates.estimates_simulator import (
    JUDGED,
    MEAN,
    SCHEMES,
    Floats,
    Random,
    Traffic,
    clustered,
    independent,
    make,
    settlements,
    simulate,
    sums,
    uniform,
)

RUNS, FEW = 200, 100
"""Windows; a coverage of 95 % is then known to 1.5 and 2.2 % (one standard error). `FEW` where all are settled."""


@pytest.mark.parametrize("name", SCHEMES)
def test_intervals_cover_the_truth_whatever_the_sampling(name: str) -> None:
    seen = simulate(lambda rng: independent(rng, 500, SCHEMES[name], local=False), runs=RUNS, seed=11)
    assert len(seen.n_eff) > 0.95 * RUNS
    assert np.mean(seen.n_eff) > 50
    assert 0.91 <= seen.coverage("shown") <= 0.99
    assert 0.91 <= seen.coverage("groups") <= 0.99
    assert abs(seen.bias("shown")) < 0.1 + 2 / RUNS**0.5


@pytest.mark.parametrize("name", ["stratified", "score-dependent", "upstream", "mix"])
def test_the_plain_mean_of_what_was_judged_misses_it(name: str) -> None:
    seen = simulate(lambda rng: independent(rng, 500, SCHEMES[name], local=False), runs=40, seed=12)
    assert seen.coverage("naive") < 0.6
    assert seen.bias("naive") < -1


@pytest.mark.parametrize("by", ["session", "question"])
def test_item_intervals_fail_under_clusters_and_cluster_sums_cover(by: str) -> None:
    seen = simulate(lambda rng: clustered(rng, 70, by=by, local=False), runs=RUNS, seed=13)
    assert seen.coverage("item") < 0.75
    assert 0.91 <= seen.coverage("shown") <= 0.98
    assert 0.91 <= seen.coverage("groups") <= 0.985
    assert np.mean(seen.ratio) > 2


def two_in_five(rng: Random, y: Floats, f: Floats) -> tuple[Floats, Floats]:
    return np.full(len(y), 0.4), np.ones(len(y))


def test_the_control_variate_covers_and_is_narrower() -> None:
    seen = simulate(lambda rng: independent(rng, 350, two_in_five), runs=FEW, seed=14)
    assert len(seen.inside["control"]) > 0.9 * FEW
    assert seen.coverage("control") >= 0.9
    assert abs(seen.bias("control")) < 0.1 + 2 / FEW**0.5
    assert seen.width("control") < 0.9 * seen.width("item")
    assert np.mean(seen.gain) > 1.3


def test_the_control_variate_holds_with_answers_that_are_not_applicable() -> None:
    """Where the metric is not defined is told by f as well: what is answered must stay in J and Q."""

    def traffic(rng: Random) -> Traffic:
        made = independent(rng, 450, two_in_five)
        made.not_applicable = rng.random(450) < np.where(made.y < 1, 0.1, 0.35)
        return made

    # Of the defined, the perfect share is 0.75 x 0.65 / (0.75 x 0.65 + 0.25 x 0.9).
    perfect = 0.75 * 0.65 / (0.75 * 0.65 + 0.25 * 0.9)
    truth = perfect + (1 - perfect) * 2.0 / 3.85
    seen = simulate(traffic, runs=FEW, seed=15, truth=truth)
    assert len(seen.inside["control"]) > 0.9 * FEW
    assert seen.coverage("control") >= 0.9
    assert abs(seen.bias("control")) < 0.1 + 2 / FEW**0.5


def test_the_control_variate_knows_of_clusters() -> None:
    """The more a session has in common, the less there is to gain; what is shown covers all the same."""
    small = simulate(lambda rng: clustered(rng, 130, by="session", mean_size=2.5, share=0.6), runs=FEW, seed=20)
    assert small.coverage("shown") >= 0.9
    assert 1.1 < np.mean(small.gain) < 1.5
    large = simulate(lambda rng: clustered(rng, 60, by="session"), runs=20, seed=21)
    assert np.mean(large.gain) < 1.1


def test_a_local_score_that_tells_nothing_leaves_the_judged_number() -> None:
    def traffic(rng: Random) -> Traffic:
        made = independent(rng, 600, uniform)
        made.f = rng.random(600)
        return made

    seen = simulate(traffic, runs=20, seed=16)
    assert len(seen.inside.get("control", [])) <= 2
    assert np.mean(seen.gain) < 1.1


def test_two_replicas_give_the_sums_of_one_where_sessions_stay_together() -> None:
    rng = np.random.default_rng(17)
    settled = list(settlements(rng, clustered(rng, 60, by="session")))
    one, first, second = make(), make(), make()
    for item in settled:
        one.settle(item)
        (first if int((item.found.session or "s0")[1:]) % 2 else second).settle(item)
    together = {name: np.add(values, sums(second)[name]) for name, values in sums(first).items()}
    for name, values in sums(one).items():
        if name.endswith("_total"):
            assert together[name] == pytest.approx(values), name


def test_random_groups_and_controls_add_up_however_a_session_is_torn() -> None:
    rng = np.random.default_rng(18)
    settled = list(settlements(rng, clustered(rng, 60, by="session")))
    one, first, second = make(), make(), make()
    for number, item in enumerate(settled):
        one.settle(item)
        (first if number % 2 else second).settle(item)
    whole, halves = sums(one), (sums(first), sums(second))
    for spec in (*metrics.JUDGED_SUMS, *metrics.JUDGED_GROUPS, *metrics.CONTROL_SUMS):
        assert np.add(halves[0][spec.name], halves[1][spec.name]) == pytest.approx(whole[spec.name]), spec.name
    torn = sum(half[metrics.JUDGED_CLUSTERS[0].name][0] for half in halves)
    assert torn < whole[metrics.JUDGED_CLUSTERS[0].name][0], "why totals over replicas need the groups"


def test_cluster_sums_are_those_of_the_clusters() -> None:
    rng = np.random.default_rng(19)
    traffic = clustered(rng, 40, by="question")
    by_cluster: dict[str, list[float]] = {}
    estimates = make()
    for item in settlements(rng, traffic):
        estimates.settle(item)
        for result in item.judged:
            w = item.decision.weight
            sums_of = by_cluster.setdefault(item.found.interaction.question or "", [0.0, 0.0])
            sums_of[0] += w
            sums_of[1] += w * result.outcome.value  # type: ignore[union-attr]  # all of them are scores here
    a, b = np.array(list(by_cluster.values())).T
    got = [sums(estimates)[spec.name][0] for spec in metrics.JUDGED_CLUSTERS]
    assert got == pytest.approx([(a * a).sum(), (a * b).sum(), (b * b).sum()])
    shown = estimates.estimate(JUDGED, Window.HOUR)
    assert shown.n_eff == pytest.approx(a.sum() ** 2 / (a * a).sum())
    assert MEAN - 0.2 < (shown.mean or 0) < 1
