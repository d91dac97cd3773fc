"""Sums, windows and what goes into them."""

from __future__ import annotations

import math
import threading
from dataclasses import replace

import pytest

from collector.estimates.estimates import Estimates
from collector.estimates.measures import Measure, label_value
from collector.estimates.options import Options
from collector.estimates.sums import OTHER
from collector.estimates.window import Window
from collector.pipeline.clock import ManualClock
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.records.settled import Settled
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from collector.telemetry.spec import MetricSpec
from scorers.interaction import Interaction
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason, Outcome, Result, Score
from scorers.scorer import Kind, Tier

JUDGED = Measure("faithfulness", Kind.JUDGED, None, "print")
LOCAL = Measure("faithfulness", Kind.LOCAL, Tier.FAST, "print")


FAILED = Failed(FailedReason.DEADLINE)


class World:
    """Estimates with all that they need, and short ways to ask them."""

    def __init__(self, *, segments: tuple[str, ...] = ("service",), budget: int = 5_000) -> None:
        self.clock = ManualClock()
        self.telemetry = Telemetry()
        self.estimates = Estimates(
            Options(series_budget=budget),
            declared=[JUDGED, LOCAL],
            segment_names=segments,
            clock=self.clock,
            telemetry=self.telemetry,
        )

    def settle(
        self,
        *,
        judged: Outcome | None = None,
        local: Outcome | None = None,
        p: float = 1.0,
        u: float = 1.0,
        screening: float = 1.0,
        service: str = "shop",
        fate: Fate = Fate.QUEUED,
        attempt: int = 0,
        conditional: bool = False,
        times: int = 1,
    ) -> None:
        settled = Settled(
            found=Found(Interaction("i")),
            decision=Decision(fate, p, "rate", u, conditional),
            local=(result(LOCAL, local, attempt),) * times if local else (),
            judged=(result(JUDGED, judged, attempt),) * times if judged else (),
            segments=(("service", service),),
            screening_probability=screening,
        )
        self.estimates.settle(settled)

    def value(self, spec: MetricSpec, **labels: str) -> float | None:
        """Of the instrument `print` where the labels name none."""
        for family in self.estimates.families():
            if family.spec is spec:
                asked = {"fingerprint": "print", **labels} if "fingerprint" in family.label_names else labels
                for values, value in family.samples:
                    if dict(zip(family.label_names, values, strict=True)) == asked:
                        return value
        return None

    def counted(self, spec: MetricSpec, **labels: str) -> float:
        return float(self.telemetry.registry.get_sample_value(spec.name, labels) or 0)


def result(measure: Measure, outcome: Outcome, attempt: int = 0) -> Result:
    return Result("i", measure.metric, measure.kind, outcome, "1", "print", tier=measure.tier, attempt=attempt)


def test_five_sums_are_of_weight_and_score() -> None:
    world = World()
    world.settle(judged=Score(0.5), p=0.1, u=2)
    world.settle(judged=Score(1.0), p=0.5)
    w, y = (20.0, 2.0), (0.5, 1.0)
    expected = (
        sum(w),
        sum(a * a for a in w),
        sum(a * b for a, b in zip(w, y, strict=True)),
        sum(a * a * b for a, b in zip(w, y, strict=True)),
        sum(a * a * b * b for a, b in zip(w, y, strict=True)),
    )
    got = tuple(world.value(spec, metric="faithfulness", service="shop") for spec in metrics.JUDGED_SUMS)
    assert got == pytest.approx(expected)


def test_local_and_judged_weights_differ_by_the_inclusion_probability() -> None:
    world = World()
    world.settle(judged=Score(1.0), local=Score(0.2), p=0.1, u=3, screening=0.5)
    assert world.value(metrics.LOCAL_SUMS[0], metric="faithfulness", tier="fast", service="shop") == 6
    assert world.value(metrics.JUDGED_SUMS[0], metric="faithfulness", service="shop") == pytest.approx(60)


def test_a_local_result_of_a_hashed_share_weighs_more() -> None:
    world = World()
    shared = replace(result(LOCAL, Score(0.2)), probability=0.25)
    decision = Decision(Fate.SAMPLED_OUT, 1.0, "rate", 3.0)
    settled = Settled(Found(Interaction("i")), decision, (shared,), (), segments=(("service", "shop"),))
    world.estimates.settle(settled)
    assert world.value(metrics.LOCAL_SUMS[0], metric="faithfulness", tier="fast", service="shop") == 12


def test_sampled_out_adds_to_local_only_and_filtered_to_nothing() -> None:
    world = World()
    world.settle(local=Score(0.2), p=0.1, fate=Fate.SAMPLED_OUT)
    world.settle(local=Score(0.2), fate=Fate.SHED)
    world.settle(local=Score(0.2), fate=Fate.FILTERED)
    assert world.value(metrics.LOCAL_SUMS[0], metric="faithfulness", tier="fast", service="shop") == 2
    assert world.value(metrics.JUDGED_SUMS[0], metric="faithfulness", service="shop") == 0
    assert world.counted(metrics.SETTLED, fate="sampled_out") == 1
    assert world.counted(metrics.SETTLED, fate="shed") == 1


def test_outcomes_and_reasons_are_weighed() -> None:
    world = World()
    world.settle(judged=Score(1.0), p=0.5)
    world.settle(judged=NotApplicable(NotApplicableReason.REFUSAL), p=0.25)
    world.settle(judged=Failed(FailedReason.DEADLINE), p=0.1)
    for outcome, weight in (("scored", 2), ("not_applicable", 4), ("failed", 10)):
        assert world.value(metrics.JUDGED_WEIGHT, metric="faithfulness", outcome=outcome, service="shop") == weight
    reason = {"metric": "faithfulness", "outcome": "failed", "reason": "deadline"}
    assert world.value(metrics.JUDGED_UNSCORED_WEIGHT, **reason) == 10
    estimate = world.estimates.estimate(JUDGED, Window.FIVE_MINUTES)
    assert estimate.coverage == pytest.approx(2 / 12), "what is not applicable is outside the domain"
    assert [estimate.if_failed_0, estimate.if_failed_1] == pytest.approx([2 / 12, 1.0])


def test_distribution_is_cumulative_and_ends_at_the_weight() -> None:
    world = World()
    for score in (0.0, 0.2, 0.21, 1.0):
        world.settle(judged=Score(score), p=0.5)
    read = {
        le: world.value(metrics.SCORE_WEIGHT, metric="faithfulness", le=le, service="shop")
        for le in ("0.0", "0.2", "0.4", "0.99", "1.0", "+Inf")
    }
    assert read == {"0.0": 2, "0.2": 4, "0.4": 6, "0.99": 6, "1.0": 8, "+Inf": 8}


def test_everything_is_born_at_zero_before_the_first_event() -> None:
    world = World()
    for family in world.estimates.families():
        assert family.samples, family.spec.name
        assert all(value == 0 for _, value in family.samples)
    assert world.value(metrics.JUDGED_SUMS[0], metric="faithfulness", service=OTHER) == 0
    world.estimates.announce((("service", "shop"),))
    for spec in (*metrics.JUDGED_SUMS, metrics.CONDITIONAL):
        labels = {"service": "shop"} | ({"metric": "faithfulness"} if spec.labels else {})
        assert world.value(spec, **labels) == 0


def test_known_segment_values_have_series_from_the_start_in_half_of_the_budget() -> None:
    names = [(("service", name),) for name in ("a", "b", "a", "c")]
    world = World()
    assert world.estimates.expect(names) == 3
    assert world.estimates.segments == ((OTHER,), ("a",), ("b",), ("c",))
    assert world.value(metrics.JUDGED_SUMS[0], metric="faithfulness", service="c") == 0
    assert world.counted(metrics.SEGMENTS_FOLDED) == 0
    alone, three_more = World().estimates.series, world.estimates.series
    each = (three_more - alone) // 3
    small = World(budget=2 * (alone + 5 * each))
    assert small.estimates.expect((("service", f"s{i}"),) for i in range(10_000_000)) == 5
    small.settle(judged=Score(1.0), service="unlisted")  # there is room left for what is seen
    assert small.value(metrics.JUDGED_SUMS[0], metric="faithfulness", service="unlisted") == 1


def test_over_the_budget_segments_fold_into_other_and_nothing_is_lost() -> None:
    world = World(budget=166)
    for service in ("a", "b", "c", "d"):
        world.settle(judged=Score(1.0), service=service)
    total = sum(
        value
        for family in world.estimates.families()
        if family.spec is metrics.JUDGED_SUMS[0]
        for _, value in family.samples
    )
    assert total == 4
    assert world.estimates.series <= 166
    assert world.counted(metrics.SEGMENTS_FOLDED) > 0
    assert (world.value(metrics.JUDGED_SUMS[0], metric="faithfulness", service=OTHER) or 0) > 0


def test_series_gauge_is_what_a_scrape_holds() -> None:
    world = World()
    world.settle(judged=Score(1.0), service="a")
    in_scrape = sum(len(family.samples) for family in world.estimates.families())
    assert world.estimates.series == in_scrape
    assert world.counted(metrics.SERIES) == in_scrape


@pytest.mark.parametrize(
    ("raw", "label"),
    [("", "unknown"), ("a\nb\u2028c", "a_b_c"), ("x" * 500, "x" * 128), ("상점", "상점"), ('q"\\', 'q"\\')],
)
def test_label_values_are_short_and_printable(raw: str, label: str) -> None:
    assert label_value(raw) == label


@pytest.mark.parametrize("name", ["le", "metric", "1a", "a-b", "__x", "größe", ""])
def test_bad_segment_names_are_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=r"^segments: "):
        World(segments=(name,))
    with pytest.raises(ValueError, match="occurs twice"):
        World(segments=("a", "a"))


@pytest.mark.parametrize(("p", "u"), [(0.0, 1.0), (1.0, math.inf), (1.0, math.nan), (1.0, -1.0), (-0.1, 1.0)])
def test_a_weight_that_is_no_weight_is_kept_out_and_counted(p: float, u: float) -> None:
    world = World()
    world.settle(judged=Score(1.0), p=p, u=u)
    assert world.value(metrics.JUDGED_SUMS[0], metric="faithfulness", service="shop") == 0
    assert world.counted(metrics.ESTIMATES_IGNORED, reason="weight") == 1


@pytest.mark.parametrize("value", [math.nan, -0.1, 1.1, math.inf])
def test_a_score_outside_its_range_is_a_failure_not_a_number(value: float) -> None:
    world = World()
    world.settle(judged=Score(value))
    assert world.value(metrics.JUDGED_SUMS[0], metric="faithfulness", service="shop") == 0
    reason = {"metric": "faithfulness", "outcome": "failed", "reason": "scorer_error"}
    assert world.value(metrics.JUDGED_UNSCORED_WEIGHT, **reason) == 1


def test_repeats_do_not_count_twice() -> None:
    world = World()
    world.settle(judged=Score(1.0), times=2)
    world.settle(judged=Score(1.0), attempt=1)
    assert world.value(metrics.JUDGED_SUMS[0], metric="faithfulness", service="shop") == 1
    assert world.counted(metrics.ESTIMATES_IGNORED, reason="duplicate") == 1
    assert world.counted(metrics.ESTIMATES_IGNORED, reason="attempt") == 1


def test_unknown_upstream_sampling_flags_its_segment() -> None:
    world = World()
    world.settle(judged=Score(1.0), service="a", conditional=True)
    world.settle(judged=Score(1.0), service="b")
    assert world.value(metrics.CONDITIONAL, service="a") == 1
    assert world.value(metrics.CONDITIONAL, service="b") == 0
    flags = {e.segment: e.conditional for e in world.estimates.all(Window.HOUR) if e.measure == JUDGED}
    assert flags == {None: True, ("a",): True, ("b",): False}


def test_windows_forget_by_the_clock() -> None:
    world = World()
    world.settle(judged=Score(0.0))
    world.clock.advance(400)
    world.settle(judged=Score(1.0))
    means = {window: world.estimates.estimate(JUDGED, window).mean for window in Window}
    assert means == {Window.FIVE_MINUTES: 1.0, Window.HOUR: 0.5, Window.DAY: 0.5}
    world.clock.advance(2 * 3_600)
    assert world.estimates.estimate(JUDGED, Window.HOUR).mean is None
    assert world.estimates.estimate(JUDGED, Window.DAY).scored == 2
    world.clock.advance(2 * 86_400)
    assert world.estimates.estimate(JUDGED, Window.DAY).scored == 0


def test_no_interval_below_n_eff_20() -> None:
    world = World()
    for _ in range(19):
        world.settle(judged=Score(0.9))
    few = world.estimates.estimate(JUDGED, Window.HOUR)
    assert (few.lower, few.upper) == (None, None)
    assert few.mean == pytest.approx(0.9)
    world.settle(judged=Score(0.9))
    enough = world.estimates.estimate(JUDGED, Window.HOUR)
    assert enough.lower is not None
    assert enough.upper is not None
    assert enough.lower < 0.9 < enough.upper


def test_the_instrument_behind_a_series_is_shown_and_bounded() -> None:
    world = World()
    for n in range(20):
        fingerprint = f"print-{n}"
        judged = Result("i", "faithfulness", Kind.JUDGED, Score(1.0), "1", fingerprint)
        world.estimates.settle(Settled(Found(Interaction("i")), Decision(Fate.QUEUED, 1.0, "rate"), (), (judged,)))
    shown = [
        s for m in world.telemetry.registry.collect() for s in m.samples if s.name == metrics.SCORER_INFO.name
    ]
    assert 1 <= len(shown) <= 8
    weights = {
        dict(zip(family.label_names, labels, strict=True))["fingerprint"]: value
        for family in world.estimates.families()
        if family.spec is metrics.JUDGED_SUMS[0]
        for labels, value in family.samples
        if value
    }
    assert len(weights) <= 8
    assert sum(weights.values()) == 20, "what is over the bound is in the last one's series"


def judged_by(world: World, fingerprint: str, y: float) -> None:
    judged = replace(result(JUDGED, Score(y)), fingerprint=fingerprint)
    decision = Decision(Fate.QUEUED, 0.5, "rate")
    world.estimates.settle(Settled(Found(Interaction("i")), decision, (), (judged,), (("service", "shop"),)))


def test_another_instrument_has_series_of_its_own_and_the_estimate_is_of_what_measures_now() -> None:
    world = World()
    for _ in range(30):
        judged_by(world, "print", 1.0)
    judged_by(world, "after an upgrade", 0.0)
    assert world.value(metrics.JUDGED_SUMS[2], metric="faithfulness", service="shop") == 60
    of_new = {"metric": "faithfulness", "fingerprint": "after an upgrade", "service": "shop"}
    assert world.value(metrics.JUDGED_SUMS[0], **of_new) == 2
    assert world.value(metrics.JUDGED_SUMS[2], **of_new) == 0
    now = world.estimates.estimate(JUDGED, Window.HOUR)
    assert (now.mean, now.scored, now.measure.fingerprint) == (0.0, 1, "after an upgrade")
    both = {
        e.measure.fingerprint: e.mean for e in world.estimates.all(Window.HOUR) if e.measure == JUDGED and e.scored
    }
    assert both == {"print": 1.0, "after an upgrade": 0.0}
    world.settle(judged=Failed(FailedReason.DEADLINE), p=0.5)
    failed = {**of_new, "outcome": "failed"}
    assert world.value(metrics.JUDGED_WEIGHT, **failed) == 2, "a failure is that of the one that measures now"
    judged_by(world, "print", 1.0)
    assert world.estimates.estimate(JUDGED, Window.HOUR).scored == 31, "the old one again: its series go on"
    world.settle(judged=NotApplicable(NotApplicableReason.REFUSAL), p=0.5)
    assert world.estimates.series == sum(len(f.samples) for f in world.estimates.families())


def test_a_measure_learns_the_name_of_its_instrument_with_its_first_score() -> None:
    world = World()
    unnamed = replace(JUDGED, metric="answer_grade", fingerprint="")
    world.settle(judged=Score(1.0))
    world.estimates.settle(
        Settled(Found(Interaction("i")), Decision(Fate.QUEUED, 1.0, "rate"), (), (result(unnamed, FAILED),))
    )
    world.estimates.settle(
        Settled(Found(Interaction("i")), Decision(Fate.QUEUED, 1.0, "rate"), (), (result(unnamed, Score(1.0)),))
    )
    for outcome in ("scored", "failed"):
        assert world.value(metrics.JUDGED_WEIGHT, metric="answer_grade", outcome=outcome, service="other") == 1


def test_a_scrape_never_sees_half_an_interaction() -> None:
    """With every weight 2 and score 1 the five sums stand in fixed ratios at any moment."""
    world = World(segments=())
    torn: list[tuple[float, ...]] = []
    done = threading.Event()

    def scrape() -> None:
        while not done.is_set():
            sums = {f.spec.name: dict(f.samples) for f in world.estimates.families()}
            w, w2, wy, w2y, w2y2 = (sums[spec.name]["faithfulness", "print"] for spec in metrics.JUDGED_SUMS)
            if not (w == wy and 2 * w == w2 == w2y == w2y2):
                torn.append((w, w2, wy, w2y, w2y2))

    reader = threading.Thread(target=scrape)
    reader.start()
    for _ in range(3_000):
        world.settle(judged=Score(1.0), p=0.5)
    done.set()
    reader.join()
    assert not torn
