"""Control variates, service levels, releases: what one interaction adds."""

from __future__ import annotations

import pytest

from collector.estimates.changes import Change
from collector.estimates.estimates import Estimates
from collector.estimates.measures import Measure
from collector.estimates.objectives import problems
from collector.estimates.options import ChangeOptions, ClusterOptions, Objective, Options
from collector.estimates.window import Window
from collector.pipeline.clock import ManualClock
from collector.records.decision import Decision, Fate
from collector.records.diagnosis import Cause
from collector.records.found import Found
from collector.records.settled import Settled
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from collector.telemetry.spec import MetricSpec
from scorers.interaction import Interaction
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason, Outcome, Result, Score
from scorers.scorer import Kind, Tier

JUDGED = Measure("faithfulness", Kind.JUDGED, None, "j")
LOCAL = Measure("faithfulness", Kind.LOCAL, Tier.FAST, "f1")
OTHER_LOCAL = Measure("citations", Kind.LOCAL, Tier.FAST)
FAILED = Failed(FailedReason.DEADLINE)
NOT_APPLICABLE = NotApplicable(NotApplicableReason.NO_CLAIMS)


class World:
    def __init__(self, options: Options | None = None) -> None:
        self.clock = ManualClock()
        self.telemetry = Telemetry()
        self.estimates = Estimates(
            options or Options(),
            declared=[JUDGED, LOCAL, OTHER_LOCAL],
            segment_names=["service"],
            clock=self.clock,
            telemetry=self.telemetry,
        )

    def settle(
        self,
        y: Outcome | None = None,
        f: Outcome | None = None,
        *,
        p: float = 1.0,
        u: float = 1.0,
        version: str | None = None,
        service: str = "shop",
        model: str | None = None,
        fingerprint: str = "f1",
        attributes: dict[str, object] | None = None,
    ) -> None:
        local = (Result("i", LOCAL.metric, Kind.LOCAL, f, "1", fingerprint, tier=Tier.FAST),) if f else ()
        judged = (Result("i", JUDGED.metric, Kind.JUDGED, y, "1", "j"),) if y else ()
        found = Found(
            Interaction("i"),
            service=service,
            service_version=version,
            model=model,
            attributes=attributes or {},
        )
        decision = Decision(Fate.QUEUED if judged else Fate.SAMPLED_OUT, p, "rate", u)
        self.estimates.settle(Settled(found, decision, local, judged, (("service", service),)))

    def samples(self, spec: MetricSpec, fingerprint: str | None = None) -> dict[tuple[str, ...], float]:
        """By all labels but the fingerprint: what that one measured, or all added up."""
        found: dict[tuple[str, ...], float] = {}
        for family in self.estimates.families():
            for labels, value in family.samples if family.spec is spec else ():
                named = dict(zip(family.label_names, labels, strict=True))
                by = named.pop("fingerprint", None)
                if fingerprint in {None, by}:
                    key = tuple(named.values())
                    found[key] = found.get(key, 0) + value
        return found

    def control(self, version: str = "f1") -> dict[str, float]:
        return {
            part: self.samples(spec)["faithfulness", version]
            for part, spec in zip(metrics.CONTROL_PARTS, metrics.CONTROL_SUMS, strict=True)
        }

    def folded(self, dimension: str) -> float:
        return self.telemetry.registry.get_sample_value(metrics.CHANGES_FOLDED.name, {"dimension": dimension}) or 0


# --- control variates


def test_control_sums_exist_at_zero_for_judged_metrics_with_a_local_score() -> None:
    assert set(World().samples(metrics.CONTROL_SUMS[0])) == {("faithfulness", "f1")}


def test_each_fate_adds_what_the_formulas_say() -> None:
    world = World()
    world.settle(Score(0.5), Score(0.2), p=0.25, u=2)  # u 2, w 8, v 6
    world.settle(None, Score(0.4), p=0.25)  # sampled out: q = u
    world.settle(NOT_APPLICABLE, Score(0.6), p=0.5)  # answered: in J, not in W; w 2, v 1
    world.settle(FAILED, Score(0.8), p=0.5)  # not answered: q = u
    expected = {
        "w": 8,
        "w2": 64,
        "wy": 4,
        "w2y": 32,
        "w2y2": 16,
        "u": 2 + 1 + 1 + 1,
        "uf": 2 * 0.2 + 0.4 + 0.6 + 0.8,
        "j": 8 + 2,
        "jf": 8 * 0.2 + 2 * 0.6,
        "wv": 48,
        "wvf": 48 * 0.2,
        "wvy": 48 * 0.5,
        "wvyf": 48 * 0.5 * 0.2,
        "q": 36 + 1 + 1 + 1,
        "qf": 36 * 0.2 + 0.4 + 0.6 + 0.8,
        "qff": 36 * 0.04 + 0.16 + 0.36 + 0.64,
    }
    assert world.control() == pytest.approx(expected)


def test_an_unscored_local_score_counts_with_a_constant_and_a_missing_one_not_at_all() -> None:
    world = World()
    world.settle(Score(1.0), FAILED, p=0.5)
    assert world.control()["uf"] == 0.5
    world.settle(Score(1.0), None, p=0.5)
    assert world.control()["u"] == 1
    assert world.control()["w"] == 2


def test_versions_of_the_local_score_are_kept_apart_and_bounded() -> None:
    world = World()
    world.settle(Score(1.0), Score(0.5), p=0.5)
    for version in ("f2", "f3", "f4", "f5", "f6"):
        world.settle(Score(1.0), Score(0.5), p=0.5, fingerprint=version)
    versions = [labels[1] for labels in world.samples(metrics.CONTROL_SUMS[0])]
    assert versions == ["f1", "f2", "f3", "f4"]
    assert world.control("f2")["u"] == 1
    assert world.estimates.series == sum(len(f.samples) for f in world.estimates.families())


def test_no_controlled_number_where_a_window_holds_two_versions() -> None:
    world = World()
    for n in range(400):
        world.settle(Score(float(n % 4 > 0)), Score(0.9 if n % 4 else 0.1), p=0.2)
        world.settle(None, Score(0.9 if n % 4 else 0.1), p=0.2)
    one = world.estimates.estimate(JUDGED, Window.HOUR)
    assert one.controlled
    assert one.gain is not None
    assert one.gain > 1.1
    assert one.mean != one.plain_mean
    world.settle(Score(1.0), Score(0.5), fingerprint="f2")
    two = world.estimates.estimate(JUDGED, Window.HOUR)
    assert not two.controlled
    assert two.mean == two.plain_mean


def test_an_unscored_result_that_the_scorer_did_not_make_begins_no_version() -> None:
    """An application's own error is not applicable for every scorer, without asking one."""
    world = World()
    error = NotApplicable(NotApplicableReason.APPLICATION_ERROR)
    world.settle(None, error, fingerprint="made elsewhere")
    world.settle(None, Score(0.5))
    assert {labels[1] for labels in world.samples(metrics.CONTROL_SUMS[0])} == {"f1"}
    assert world.control()["u"] == 2
    assert [c.value for c in world.estimates.changes() if c.dimension == "scorer"] == ["f1"]


# --- service levels


def objective(**given: object) -> Objective:
    return Objective.model_validate(
        {"name": "faithful", "metric": "faithfulness", "threshold": 0.8, "target": 0.95, **given}
    )


def test_good_and_all_are_weighed_by_objective() -> None:
    world = World(
        Options(
            objectives=(
                objective(),
                objective(name="few", good="at_most", threshold=0.5, segment={"service": "shop"}),
                objective(name="screened", kind="local"),
            )
        )
    )
    faithful, few = ("faithful", "faithfulness", "judged"), ("few", "faithfulness", "judged")
    screened = ("screened", "faithfulness", "local")
    assert world.samples(metrics.SLO_WEIGHT) == {faithful: 0, few: 0, screened: 0}, "born at 0"
    world.settle(Score(0.8), Score(0.2), p=0.5)
    world.settle(Score(0.5), p=0.25)
    world.settle(Score(0.79), p=0.1, service="blog")
    world.settle(FAILED, p=0.1)
    assert world.samples(metrics.SLO_WEIGHT) == pytest.approx({faithful: 16, few: 6, screened: 1})
    assert world.samples(metrics.SLO_WEIGHT2) == pytest.approx({faithful: 120, few: 20, screened: 1})
    assert world.samples(metrics.SLO_GOOD_WEIGHT) == pytest.approx({faithful: 2, few: 4, screened: 0})
    assert world.samples(metrics.SLO_TARGET)[faithful] == 0.95
    assert world.samples(metrics.SLO_THRESHOLD)[few] == 0.5
    assert world.estimates.series == sum(len(f.samples) for f in world.estimates.families())


def test_objectives_that_can_not_be_measured_are_refused_with_the_cure() -> None:
    wrong = [objective(metric="faithfullness"), objective(name="b", segment={"tenant": "x"})]
    found = problems(wrong, [JUDGED, LOCAL], ["service"])
    assert len(found) == 2
    assert "'faithfullness'" in found[0]
    assert "judged metrics here: faithfulness" in found[0]
    assert "sampling.segments has: service" in found[1]
    with pytest.raises(ValueError, match=r"estimates\.objectives"):
        World(Options(objectives=tuple(wrong)))
    assert "configure a judge" in problems([objective()], [LOCAL], [])[0]


def test_options_refuse_what_is_given_twice() -> None:
    with pytest.raises(ValueError, match="different names"):
        Options(objectives=(objective(), objective()))
    with pytest.raises(ValueError, match="twice"):
        ClusterOptions(by=("session", "session"))


def test_a_service_level_goes_on_when_the_instrument_changes() -> None:
    world = World(Options(objectives=(objective(name="screened", kind="local"),)))
    world.settle(None, Score(0.9))
    world.settle(None, Score(0.1), fingerprint="f2")
    assert world.samples(metrics.SLO_WEIGHT) == {("screened", "faithfulness", "local"): 2}
    assert world.samples(metrics.SLO_GOOD_WEIGHT) == {("screened", "faithfulness", "local"): 1}


# --- releases and other changes


def test_releases_models_prompts_and_scorers_are_marked_when_first_and_last_seen() -> None:
    world = World()
    start = world.clock.unix_nano() / 1e9
    world.settle(None, Score(1.0), version="1", model="m-1", attributes={"prompt_version": 7})
    world.clock.advance(60)
    world.settle(None, Score(1.0), version="2", model="m-1")
    marks = {(c.dimension, c.value): c for c in world.estimates.changes()}
    assert marks == {
        ("service_version", "1"): Change("service_version", "shop", "", "1", start, start),
        ("service_version", "2"): Change("service_version", "shop", "", "2", start + 60, start + 60),
        ("response_model", "m-1"): Change("response_model", "shop", "", "m-1", start, start + 60),
        ("prompt_version", "7"): Change("prompt_version", "shop", "", "7", start, start),
        ("scorer", "f1"): Change("scorer", "", "faithfulness", "f1", start, start + 60),
    }
    first = world.samples(metrics.CHANGE_FIRST_SEEN)
    assert first["service_version", "shop", "", "2"] == start + 60
    assert world.samples(metrics.CHANGE_LAST_SEEN)["response_model", "shop", "", "m-1"] == start + 60


def test_means_by_release() -> None:
    world = World()
    for _ in range(30):
        world.settle(Score(1.0), Score(0.9), p=0.5, version="1")
        world.settle(Score(0.5), Score(0.9), p=0.5, version="2")
    sums = world.samples(metrics.JUDGED_VERSIONS[2])
    assert sums["faithfulness", "shop", "1"] == 60
    assert sums["faithfulness", "shop", "2"] == 30
    means = {(m.version, m.measure.kind): m for m in world.estimates.versions(Window.HOUR)}
    assert means["2", Kind.JUDGED].mean == 0.5
    assert means["2", Kind.JUDGED].n_eff == pytest.approx(30)
    upper = means["2", Kind.JUDGED].upper
    assert upper is not None
    assert upper < means["1", Kind.JUDGED].mean
    world.clock.advance(7_200)
    assert world.estimates.versions(Window.HOUR) == []


def test_a_release_has_its_series_when_it_is_screened() -> None:
    world = World()
    world.estimates.seen(Found(Interaction("i"), service="shop", service_version="1"))
    assert world.samples(metrics.JUDGED_VERSIONS[0])["faithfulness", "shop", "1"] == 0


def test_a_flood_of_releases_opens_no_flood_of_series() -> None:
    """Service names and versions come from traces, which are not trusted."""
    world = World(Options(changes=ChangeOptions(max_versions=8, max_values=12)))
    for n in range(300):
        world.settle(None, Score(1.0), version=f"v{n}", service=f"s{n % 7}", model=f"m{n}" * 100)
    weights = world.samples(metrics.LOCAL_VERSIONS[0])
    pairs = {labels[2:] for labels in weights}
    assert len(pairs) == 9
    total = sum(value for labels, value in weights.items() if labels[0] == "faithfulness")
    assert total == 300, "what is not told apart is under 'other'"
    assert weights["faithfulness", "fast", "other", "other"] > 200
    assert len(world.estimates.changes()) == 12
    assert world.folded("service_version") > 0
    assert world.folded("response_model") > 0
    assert world.estimates.series == sum(len(f.samples) for f in world.estimates.families())


def test_a_release_gives_way_only_when_it_has_not_been_seen_for_long() -> None:
    world = World(Options(changes=ChangeOptions(values=2)))
    for version in ("1", "2"):
        world.settle(None, Score(1.0), version=version)
    world.clock.advance(3_000)
    world.settle(None, Score(1.0), version="2")
    world.settle(None, Score(1.0), version="3")
    assert world.folded("service_version") == 2, "once as a mark, once for its sums"
    world.clock.advance(700)
    world.settle(None, Score(1.0), version="3")
    values = [c.value for c in world.estimates.changes() if c.dimension == "service_version"]
    assert values == ["2", "3"]
    pairs = {labels[2:] for labels in world.samples(metrics.LOCAL_VERSIONS[0])}
    assert pairs == {("other", "other"), ("shop", "2"), ("shop", "3")}


def test_releases_stay_within_the_series_budget() -> None:
    free = World().estimates.series
    world = World(Options(series_budget=free + 250))
    for n in range(40):
        world.settle(None, Score(1.0), version=f"v{n}", service=f"s{n}")
    assert world.estimates.series <= free + 250


# --- causes


def test_causes_are_weighed_by_kind_and_segment() -> None:
    world = World()
    found = Found(Interaction("i", contexts=()), service="shop")
    local = (Result("i", LOCAL.metric, Kind.LOCAL, Score(1.0), "1", "f1", tier=Tier.FAST),)
    judged = (Result("i", JUDGED.metric, Kind.JUDGED, Score(1.0), "1", "j"),)
    decision = Decision(Fate.QUEUED, 0.25, "rate", 2)
    world.estimates.settle(Settled(found, decision, local, judged, (("service", "shop"),)))
    world.settle(None, Score(1.0), u=2, service="blog")
    weights = {labels: value for labels, value in world.samples(metrics.DIAGNOSIS_WEIGHT).items() if value}
    assert weights == {
        ("nothing_retrieved", "judged", "shop"): 8,
        ("nothing_retrieved", "local", "shop"): 2,
        ("undetermined", "local", "blog"): 2,
    }
    shares = {(one.kind, one.cause): one.share for one in world.estimates.causes(Window.HOUR)}
    assert shares == {
        (Kind.JUDGED, Cause.NOTHING_RETRIEVED): 1,
        (Kind.LOCAL, Cause.NOTHING_RETRIEVED): 0.5,
        (Kind.LOCAL, Cause.UNDETERMINED): 0.5,
    }
    (only,) = world.estimates.causes(Window.HOUR, ("blog",))
    assert (only.cause, only.weight) == (Cause.UNDETERMINED, 2)
    world.clock.advance(7_200)
    assert world.estimates.causes(Window.HOUR) == []
    assert world.estimates.causes(Window.HOUR, ("nobody",)) == []
