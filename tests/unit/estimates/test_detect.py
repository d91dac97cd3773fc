"""Change detection: baselines, alarms, clusters, what people do to it, and restarts."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from collector.estimates.detect import UnknownSeries
from collector.estimates.options import DetectionOptions
from collector.records.decision import Fate
from collector.stats.detector import Detector
from collector.stats.interval import logit_interval
from collector.telemetry import metrics
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason
from tests.unit.estimates.detect_simulator import READY, World, given, lowered, warm_up
from tests.unit.estimates.estimates_simulator import scores

TOTAL = ("faithfulness", "judged", "", "total", "higher", "")
SHOP = ("faithfulness", "judged", "", "segment", "higher", "shop")
WEEK = 7 * 86_400.0
LEARNED = {"metrics": ["faithfulness"], "by_segment": False}


def learned(*, n: int = 1_200, days: float = 7.01, seed: int = 3, **options: object) -> tuple[World, list[float]]:
    world = World({**LEARNED, **options})
    values = [float(y) for y in scores(np.random.default_rng(seed), n)]
    world.feed(values, every=days * 86_400 / n, p=0.05)
    return world, values


def test_a_baseline_is_the_lower_bound_over_whole_weeks_and_frozen() -> None:
    world, values = learned()
    watch = world.of("faithfulness")
    assert watch.state == "watching"
    assert watch.progress == 1
    # The last 0.01 days came after the week and are bets, not baseline.
    y = np.array(values[: int(watch.baseline_n + 0.5)])
    assert 1_190 < len(y) < 1_200
    w = np.full(len(y), 20.0)
    bound = logit_interval(w.sum(), (w**2).sum(), (w * y).sum(), (w**2 * y).sum(), (w**2 * y**2).sum())
    assert watch.level == pytest.approx(float(bound.lower))
    month = len(y) / 7 * 365.25 / 12
    assert watch.threshold == pytest.approx(month, rel=0.01)
    assert world.told("detector_watches") == [{"series": "faithfulness", "level": round(watch.level, 4)}]
    level = watch.level
    world.feed(lowered(np.random.default_rng(4), 3_000, 0.1), every=100, p=0.05)
    assert world.of("faithfulness").level == level, "it is never learned again by itself"
    assert world.of("faithfulness").state == "alarm"


def test_it_learns_on_until_a_whole_week_holds_enough() -> None:
    world, _ = learned(n=700, days=10)
    assert world.of("faithfulness").state == "learning"
    assert 0.4 < world.of("faithfulness").progress < 0.75
    world.feed(scores(np.random.default_rng(1), 300), every=10 * 86_400 / 700)
    assert world.clock.monotonic() > 14 * 86_400
    assert world.of("faithfulness").state == "learning", "1,000 items of unequal weight are fewer effective ones"
    world.feed(scores(np.random.default_rng(1), 700), every=10 * 86_400 / 700, p=0.05)
    assert world.of("faithfulness").state == "watching"


def test_a_tolerance_keeps_the_level_away_from_the_mean() -> None:
    near, values = learned()
    far, _ = learned(tolerance=0.05)
    assert near.of("faithfulness").level - far.of("faithfulness").level > 0.02
    assert far.of("faithfulness").level == pytest.approx(float(np.mean(values)) - 0.05, abs=0.001)


def test_nothing_but_scores_of_the_first_attempt_is_bet_on() -> None:
    world = World(given(0.8, 50))
    warm_up(world)
    before = world.values(metrics.DETECTOR_LOG1P_M)
    for outcome in (NotApplicable(NotApplicableReason.REFUSAL), Failed(FailedReason.DEADLINE), math.nan, 1.5):
        world.settle(("faithfulness", outcome))
    world.settle(("faithfulness", 0.0), attempt=1)
    world.settle(("faithfulness", 0.0), fate=Fate.FILTERED)
    world.settle(("faithfulness", 0.0), fate=Fate.SAMPLED_OUT)
    world.settle(("response_relevancy", 0.0))
    assert world.values(metrics.DETECTOR_LOG1P_M) == before
    world.settle(("faithfulness", 0.0), ("faithfulness", 0.0))
    bet_once = world.values(metrics.DETECTOR_LOG1P_M)[TOTAL]
    assert bet_once > before[TOTAL]
    assert bet_once < math.log1p(20)


def test_scores_of_an_unknown_bound_of_weight_are_left_out_and_counted() -> None:
    world = World(given(0.8, 50))
    warm_up(world)
    before = world.values(metrics.DETECTOR_LOG1P_M)
    world.settle(("faithfulness", 0.0), least=0.0)
    world.settle(("faithfulness", 0.0), highest_u=math.inf)
    world.settle(("faithfulness", 0.0), p=0.1, least=0.5)
    assert world.values(metrics.DETECTOR_LOG1P_M) == before
    assert world.telemetry.registry.get_sample_value(metrics.DETECTOR_UNBOUNDED.name) == 3


def test_an_alarm_counts_once_stands_and_is_acknowledged() -> None:
    world = World(given(0.8, 50))
    warm_up(world)
    world.feed([0.0] * 30, every=10)
    watch = world.of("faithfulness")
    assert (watch.state, watch.alarms) == ("alarm", 1)
    assert watch.evidence > 1
    assert world.values(metrics.DETECTOR_ALARM) == {TOTAL: 1.0}
    assert world.values(metrics.DETECTOR_ALARMS) == {TOTAL: 1.0}
    assert len(world.told("quality_drifted")) == 1
    done = world.detection.acknowledge("faithfulness")
    assert (done.state, done.alarms, done.level) == ("watching", 1, 0.8)
    assert done.acknowledged is not None
    assert world.values(metrics.DETECTOR_LOG1P_M) == {TOTAL: 0.0}
    world.feed([0.0] * 30, every=10)
    assert world.of("faithfulness").alarms == 2, "it goes on watching: what is still bad alarms again"
    assert world.detection.reset("faithfulness").acknowledged is None
    assert world.of("faithfulness").state == "watching"
    assert world.detection.learn("faithfulness").state == "learning"
    with pytest.raises(UnknownSeries):
        world.detection.acknowledge("groundedness")


def test_where_lower_is_better_a_rise_is_the_alarm() -> None:
    options = {
        "metrics": ["noncommittal"], "by_segment": False, "judged_per_month": 50, "level_days": READY,
        "levels": [{"metric": "noncommittal", "mean": 0.2}],
    }  # fmt: skip
    world = World(options)
    world.feed([0.1] * 101, every=1.0, metric="noncommittal")
    world.feed([0.0] * 100, every=1.0, metric="noncommittal")
    watch = world.of("noncommittal")
    assert (watch.state, watch.level, watch.direction) == ("watching", pytest.approx(0.2), "lower")
    world.feed([1.0] * 20, every=1.0, metric="noncommittal")
    assert world.of("noncommittal").state == "alarm"
    assert world.values(metrics.DETECTOR_LEVEL) == {
        ("noncommittal", "judged", "", "total", "lower", ""): pytest.approx(0.2)
    }


def test_a_learned_level_of_a_metric_where_lower_is_better_lies_above_its_mean() -> None:
    world = World({"metrics": ["noncommittal"], "by_segment": False})
    values = 1 - scores(np.random.default_rng(3), 1_200)
    world.feed(values, every=7.01 * 86_400 / 1_200, metric="noncommittal")
    assert float(values.mean()) + 0.005 < world.of("noncommittal").level < float(values.mean()) + 0.03


def test_each_segment_but_other_is_watched_beside_the_total() -> None:
    world = World({"metrics": ["faithfulness"]})
    assert [one.series for one in world.detection.watched()] == ["faithfulness"]
    world.settle(("faithfulness", 1.0), service="shop")
    world.settle(("faithfulness", 1.0), service="other")
    assert [one.series for one in world.detection.watched()] == ["faithfulness", "faithfulness/service=shop"]
    assert set(world.values(metrics.DETECTOR_LOG1P_M)) == {TOTAL, SHOP}
    assert world.values(metrics.DETECTOR_ALARMS) == {TOTAL: 0.0, SHOP: 0.0}


def test_series_are_bounded_and_what_is_not_watched_is_counted() -> None:
    world = World({"metrics": ["faithfulness"], "max_series": 2})
    for service in ("a", "b", "c"):
        world.settle(("faithfulness", 1.0), service=service)
    assert [one.series for one in world.detection.watched()] == ["faithfulness", "faithfulness/service=a"]
    assert world.telemetry.registry.get_sample_value(metrics.DETECTOR_UNWATCHED.name) == 2


def test_local_scores_are_watched_where_that_is_asked_for() -> None:
    options = {
        "metrics": [], "local": ["faithfulness"], "judged_per_month": 50, "level_days": READY,
        "levels": [{"metric": "faithfulness", "kind": "local", "mean": 0.8}],
    }  # fmt: skip
    world = World(options)
    for value in [0.9] * 101 + [0.0] * 30:
        world.clock.advance(1)
        world.settle(fate=Fate.SAMPLED_OUT, p=0.05, least=0.0, local=value, screening=0.5, service="shop")
    watch = world.of("faithfulness:local")
    assert (watch.kind, watch.state) == ("local", "alarm")
    assert set(world.values(metrics.DETECTOR_ALARM)) == {("faithfulness", "local", "fast", "total", "higher", "")}


def test_a_session_is_one_bet_placed_when_it_has_been_idle() -> None:
    world = World(given(0.8, 1e6))
    warm_up(world)
    start = world.detection.watched()[0]
    for _ in range(10):
        world.clock.advance(60)
        world.settle(("faithfulness", 0.0), session="s")
    assert world.of("faithfulness").evidence == start.evidence, "the cluster is still open"
    world.clock.advance(599)
    world.detection.tick()
    assert world.of("faithfulness").evidence == start.evidence
    world.clock.advance(1)
    world.detection.tick()
    expected = Detector(0.8, 1.0)
    expected.bet(-0.1, 1, 1.0)  # the last of the warm-up
    expected.bet(0.8, 10, 1.0)
    assert world.values(metrics.DETECTOR_LOG1P_M)[TOTAL] == pytest.approx(expected.log1p)


def test_a_session_that_does_not_end_is_a_bet_each_hour() -> None:
    world = World(given(0.8, 1e6))
    warm_up(world)
    for _ in range(130):
        world.clock.advance(60)
        world.settle(("faithfulness", 0.0), session="s")
    # Two bets of sixty items each; what was said since is open. The second multiplies the first's sixty.
    expected = Detector(0.8, 1.0)
    expected.bet(-0.1, 1, 1.0)  # the last of the warm-up
    expected.bet(0.8, 60, 1.0)
    expected.bet(0.8, 60, 1.0)
    assert world.values(metrics.DETECTOR_LOG1P_M)[TOTAL] == pytest.approx(expected.log1p)


def test_too_many_open_clusters_close_the_one_that_is_idle_for_longest() -> None:
    world = World(given(0.8, 1e6, max_clusters=2))
    warm_up(world)
    before = world.values(metrics.DETECTOR_LOG1P_M)[TOTAL]
    for session in "abc":
        world.settle(("faithfulness", 0.0), session=session)
    assert world.values(metrics.DETECTOR_LOG1P_M)[TOTAL] == before, "one over the bound is closed at the next"
    world.settle(("faithfulness", 0.0), session="c")
    assert world.values(metrics.DETECTOR_LOG1P_M)[TOTAL] > before


def test_another_judge_is_another_baseline() -> None:
    world, _ = learned()
    world.feed([0.0] * 40, every=10, p=0.05)
    assert world.of("faithfulness").state == "alarm"
    world.settle(("faithfulness", 1.0), session="open", p=0.05)
    world.settle(("faithfulness", 1.0), fingerprint="j2", p=0.05)
    watch = world.of("faithfulness")
    assert (watch.state, watch.evidence, watch.level) == ("learning", None, None)
    assert watch.baseline_n == pytest.approx(1)
    world.detection.close_all()
    assert world.of("faithfulness").baseline_n == pytest.approx(1), "what the old judge said is in no new baseline"
    assert world.told("detector_renewed") == [{"series": "faithfulness", "level": None}]


def test_another_judge_leaves_a_given_level_and_takes_the_evidence() -> None:
    world = World(given(0.8, 50))
    warm_up(world)
    world.feed([0.0] * 30, every=10)
    world.settle(("faithfulness", 1.0), fingerprint="j2")
    watch = world.of("faithfulness")
    assert (watch.state, watch.level) == ("watching", 0.8)
    assert watch.evidence == pytest.approx(2 / 51)


def test_weights_that_may_be_far_above_the_usual_are_told() -> None:
    world = World(given(0.8, 50))
    world.feed([0.9] * 102, every=1.0, highest_u=1_000.0)
    assert [line["series"] for line in world.told("detector_slow")] == ["faithfulness"]


# --- restarts
def test_a_restart_goes_on_where_it_stopped() -> None:
    one = World(given(0.8, 1e4))
    warm_up(one)
    one.feed([0.0] * 8, every=10)
    rows = dict(one.detection.changed())
    assert one.detection.changed() == {}
    again = World(given(0.8, 1e4), kept=rows, at=one.clock.monotonic())
    assert again.detection.watched() == one.detection.watched()
    for world in (one, again):
        world.feed([0.0, 1.0, 0.0], every=10)
    assert again.detection.watched() == one.detection.watched()
    assert again.detection.families() == one.detection.families()


def test_a_baseline_is_learned_over_a_restart_and_segments_come_back() -> None:
    first = World({"metrics": ["faithfulness"]})
    values = scores(np.random.default_rng(3), 1_200)
    first.feed(values[:600], every=7.01 * 86_400 / 1_200, service="shop")
    rows = {key: row for key, row in first.detection.changed().items() if len(key) <= 200}
    second = World({"metrics": ["faithfulness"]}, kept=rows, at=first.clock.monotonic())
    assert [one.series for one in second.detection.watched()] == ["faithfulness", "faithfulness/service=shop"]
    second.feed(values[600:], every=7.01 * 86_400 / 1_200, service="shop")
    whole = World({"metrics": ["faithfulness"]})
    whole.feed(values, every=7.01 * 86_400 / 1_200, service="shop")
    assert second.detection.watched() == whole.detection.watched()
    assert second.of("faithfulness/service=shop").state == "watching"


def test_the_false_alarms_that_are_allowed_may_change_at_a_restart() -> None:
    first, _ = learned()
    rows = dict(first.detection.changed())
    second = World({**LEARNED, "alarms_per_month": 4}, kept=rows, at=first.clock.monotonic())
    assert second.of("faithfulness").threshold == pytest.approx(first.of("faithfulness").threshold / 4)
    third = World({**LEARNED, "judged_per_month": 9_000}, kept=rows, at=first.clock.monotonic())
    assert third.of("faithfulness").threshold == 9_000
    assert third.of("faithfulness").level == first.of("faithfulness").level


def test_only_rows_that_changed_are_written() -> None:
    world = World({"metrics": ["faithfulness"]})
    world.settle(("faithfulness", 1.0), service="a")
    world.settle(("faithfulness", 1.0), service="b")
    first = world.detection.changed()
    assert len(first) == 4, "the total, two segments, and the number of items"
    world.settle(("faithfulness", 1.0), service="b")
    assert len(world.detection.changed()) == 3
    assert {**first, **world.detection.changed()}.keys() == first.keys()


def test_bets_of_open_clusters_are_placed_at_a_stop() -> None:
    world = World(given(0.8, 1e4))
    warm_up(world)
    world.detection.changed()
    before = world.of("faithfulness").evidence
    world.settle(("faithfulness", 0.0), session="s")
    assert world.detection.changed() == {}
    world.detection.close_all()
    assert world.of("faithfulness").evidence > before
    assert world.detection.changed()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda row: {**row, "version": 0}, "it is damaged, or of another version"),
        (lambda row: {**row, "sums": [1.0]}, "it is damaged (ValueError)"),
        (lambda row: {**row, "logs": ["x"] * 5}, "it is damaged (ValueError)"),
        (lambda row: {**row, "m": 2.0}, "it is damaged (ValueError)"),
        (lambda row: {key: value for key, value in row.items() if key != "since"}, "it is damaged (KeyError)"),
        (lambda row: {**row, "given": 0.7}, "given was 0.7 and is 0.8"),
        (lambda row: {**row, "lower": True}, "lower was True and is False"),
    ],
)
def test_a_row_that_can_not_be_used_is_told_and_begins_anew(change, why: str) -> None:  # type: ignore[no-untyped-def]  # parametrised
    one = World(given(0.8, 50))
    warm_up(one)
    one.feed([0.0] * 30, every=10)
    rows = {
        key: json.dumps(change(json.loads(row))).encode() if key != "items" else row
        for key, row in one.detection.changed().items()
    }
    again = World(given(0.8, 50), kept=rows, at=one.clock.monotonic())
    assert again.told("detector_state_unusable") == [{"series": "faithfulness", "why": why}]
    assert again.of("faithfulness").state == "learning"
    assert again.of("faithfulness").alarms == 0


def test_rows_of_nothing_that_is_watched_now_are_harmless() -> None:
    one = World({"metrics": ["faithfulness"]})
    one.settle(("faithfulness", 1.0), service="shop")
    rows = dict(one.detection.changed())
    for world in (
        World({"metrics": []}, kept=rows),
        World({"metrics": ["noncommittal"]}, kept=rows),
        World({"metrics": ["faithfulness"], "by_segment": False}, kept=rows),
        World({"metrics": ["faithfulness"]}, segments=("tenant",), kept=rows),
        World({"metrics": ["faithfulness"]}, kept={"x": b"\xff", "items": b"{}", "y": b"[]"}),
    ):
        assert all("shop" not in one.series for one in world.detection.watched())


# --- options
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"metrics": ["nonsense"]},
            "estimates.detection.metrics: no scorer gives the judged metric 'nonsense'; there are: faithfulness, "
            "noncommittal",
        ),
        ({"local": ["noncommittal"]}, "local: no scorer gives the local metric 'noncommittal'; there are: faithf"),
        (
            {"metrics": [], "levels": [{"metric": "faithfulness", "mean": 0.8}]},
            "levels: 'faithfulness' (judged) has a level and is not watched: name it in estimates.detection.metrics",
        ),
        (
            {"levels": [{"metric": "faithfulness", "mean": 0.8, "segment": {"tenant": "x"}}]},
            "is limited to tenant: name a value for each of the segments (service), or none for the total",
        ),
        (
            {"levels": [{"metric": "faithfulness", "mean": 0.8, "segment": {"service": "other"}}]},
            "what is `other` is watched in the total only",
        ),
        (
            {
                "local": ["faithfulness"],
                "levels": [{"metric": "faithfulness", "kind": "local", "mean": 0.8, "segment": {"service": "x"}}],
            },
            "'faithfulness' (local): local scores are watched in total only",
        ),
        (
            {
                "by_segment": False,
                "levels": [{"metric": "faithfulness", "mean": 0.8, "segment": {"service": "x"}}],
            },
            "speaks of a segment, and by_segment is false",
        ),
    ],
)
def test_options_that_fit_nothing_are_refused_with_the_cure(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError) as refused:  # the sentence is compared below
        World(options)
    assert sentence in str(refused.value)


def test_two_levels_of_one_series_are_refused() -> None:
    with pytest.raises(ValueError, match="levels: two for the same series of faithfulness"):
        DetectionOptions.model_validate({"levels": [{"metric": "faithfulness", "mean": m} for m in (0.8, 0.9)]})


def test_a_level_of_a_segment_is_watched_from_the_start() -> None:
    world = World(
        {
            "metrics": ["faithfulness"],
            "levels": [{"metric": "faithfulness", "mean": 0.8, "segment": {"service": "shop"}}],
        }
    )
    assert [(one.series, one.level) for one in world.detection.watched()] == [
        ("faithfulness", None),
        ("faithfulness/service=shop", 0.8),
    ]


def test_nothing_is_watched_where_it_is_off() -> None:
    world = World({"enabled": False})
    world.settle(("faithfulness", 1.0))
    assert world.detection.watched() == []
    assert world.detection.families() == []
    assert world.detection.changed() == {}
