"""The judge watched: repeats give its noise, planted cases its accuracy, and a shadow has names of its own."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import TypeAdapter

from collector.judging.options import Options
from collector.judging.shadow import SideBySide, shadow_info
from collector.judging.watch import Watch
from collector.pipeline.clock import ManualClock
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from scorers import catalog
from scorers.config import ScorerOptions
from scorers.interaction import Interaction
from scorers.judge.canary import CanaryCase, CanaryReport, Expectation, Verdict
from scorers.judge.options import JudgeOptions
from scorers.judge.service import Judge
from scorers.outcome import Failed, FailedReason, Result, Score
from scorers.scorer import Kind
from scorers.testing import Fault, ScriptedJudge, interaction


def result(value: float | None, *, name: str = "faithfulness", attempt: int = 0) -> Result:
    outcome = Failed(FailedReason.DEADLINE) if value is None else Score(value)
    return Result("i", name, Kind.JUDGED, outcome, "1", "print", attempt=attempt)


class Script:
    """A judge that gives these values one after the other, and these verdicts on planted cases."""

    def __init__(self, *values: float | None, verdicts: tuple[Verdict, ...] = ()) -> None:
        self.values = list(values)
        self.verdicts = verdicts
        self.up = True
        self.attempts: list[int] = []
        self.sung = 0

    def available(self) -> bool:
        return self.up

    async def score(
        self, interaction: Interaction, deadline_seconds: float | None = None, *, attempt: int = 0
    ) -> list[Result]:
        self.attempts.append(attempt)
        return [result(self.values.pop(0), attempt=attempt)]

    async def canary(self) -> CanaryReport:
        self.sung += 1
        case = CanaryCase(
            id="x", language="ko", kind="supported", question="q", contexts=("c",), response="r", expect={}
        )
        return CanaryReport(tuple(Expectation(case, "faithfulness", verdict) for verdict in self.verdicts))


class World:
    def __init__(self, judge: Script, *, chance: float = 0.0, calm: bool = True, **options: float) -> None:
        self.judge, self.clock, self.telemetry, self.calm = judge, ManualClock(), Telemetry(), calm
        self.told: list[tuple[str, Mapping[str, float], Sequence[Result]]] = []
        self.watch = Watch(
            Options.model_validate(options),
            judge,
            canaries={"judge": judge},
            names=["faithfulness"],
            chance=lambda _: chance,
            calm=lambda: self.calm,
            repeated=lambda item, first, second: self.told.append((item.id, first, second)),
            clock=self.clock,
            telemetry=self.telemetry,
            events=Events(self.telemetry, self.clock, logging.getLogger("test.watch")),
        )

    def value(self, name: str, **labels: str) -> float | None:
        return self.telemetry.registry.get_sample_value(name, labels)


async def test_repeats_add_up_to_the_noise_that_was_planted() -> None:
    world = World(Script(0.5, 1.0, None, 0.25), repeat_rate=0.01, canary_hours=0)
    for first in (1.0, 1.0, 1.0, 0.75):
        world.watch.judged(interaction(), [result(first)])
    for _ in range(4):
        assert await world.watch.step()
    assert not await world.watch.step()
    assert world.judge.attempts == [1, 1, 1, 1]
    pairs = world.value("groundwatch_judge_noise_pairs_total", metric="faithfulness")
    squares = world.value("groundwatch_judge_noise_squared_difference_total", metric="faithfulness")
    assert (pairs, squares) == (3, 0.25 + 0 + 0.25)
    assert world.value("groundwatch_judge_repeats_total", outcome="judged") == 4
    assert world.judge.sung == 0
    assert [(first, second[0].outcome) for _, first, second in world.told][-1] == (
        {"faithfulness": 0.75},
        Score(0.25),
    )
    assert [item for item, _, _ in world.told] == [interaction().id] * 4


async def test_only_the_chosen_share_and_only_what_was_scored_is_judged_twice() -> None:
    unlucky = World(Script(), chance=0.01, repeat_rate=0.01, canary_hours=0)
    unlucky.watch.judged(interaction(), [result(1.0)])
    unscored = World(Script(), repeat_rate=1, canary_hours=0)
    unscored.watch.judged(interaction(), [result(None)])
    for world in (unlucky, unscored):
        assert not await world.watch.step()
        assert world.value("groundwatch_judge_noise_pairs_total", metric="faithfulness") == 0


async def test_repeats_give_way_when_judging_is_behind_and_are_bounded() -> None:
    world = World(Script(*[1.0] * 16), repeat_rate=1, canary_hours=0)
    world.calm = False
    world.watch.judged(interaction(), [result(1.0)])
    world.calm = True
    for _ in range(20):
        world.watch.judged(interaction(), [result(1.0)])
    assert world.value("groundwatch_judge_repeats_total", outcome="left_out") == 1 + 4
    world.judge.up = False
    assert not await world.watch.step()
    world.judge.up = True
    assert await world.watch.step()
    world.watch.stop()
    assert not await world.watch.step()
    assert world.value("groundwatch_judge_repeats_total", outcome="left_out") == 5 + 15


async def test_the_canary_is_asked_at_the_start_and_every_six_hours() -> None:
    judge = Script(verdicts=(Verdict.RIGHT, Verdict.WRONG, Verdict.RIGHT, Verdict.FAILED))
    world = World(judge)
    labels = {"endpoint": "judge", "kind": "supported", "language": "ko"}
    assert world.value("groundwatch_judge_canary_timestamp_seconds", endpoint="judge") == 0
    assert await world.watch.step()
    assert not await world.watch.step()
    assert world.value("groundwatch_judge_canary_accuracy", **labels) == pytest.approx(2 / 3)
    assert world.value("groundwatch_judge_canary_results_total", **labels, result="failed") == 1
    assert world.value("groundwatch_judge_canary_timestamp_seconds", endpoint="judge") == 1_700_000_000
    world.clock.advance(6 * 3600 - 1)
    assert not await world.watch.step()
    world.clock.advance(1)
    assert await world.watch.step()
    assert judge.sung == 2


async def test_a_canary_without_answer_is_tried_again_soon_and_has_no_accuracy() -> None:
    judge = Script(verdicts=(Verdict.FAILED,))
    world = World(judge)
    judge.up = False
    assert not await world.watch.step()
    judge.up = True
    assert await world.watch.step()
    accuracy = world.value("groundwatch_judge_canary_accuracy", endpoint="judge", kind="supported", language="ko")
    assert accuracy is not None and math.isnan(accuracy)
    assert world.value("groundwatch_judge_canary_timestamp_seconds", endpoint="judge") == 0
    world.clock.advance(900)
    assert await world.watch.step()
    assert judge.sung == 2


def a_judge(server: ScriptedJudge, *, name: str = "judge", **more: Any) -> Judge:
    options = JudgeOptions(base_url=server.base_url, model=name, name=name, max_attempts=1, **more)
    return Judge(options, catalog.judged(["faithfulness", "noncommittal"]))


async def test_a_shadow_has_names_and_fingerprints_of_its_own_and_its_failures_are_its_own() -> None:
    async with (
        ScriptedJudge() as well,
        ScriptedJudge(faults=[Fault(401)] * 9) as ill,
        a_judge(well) as judge,
        a_judge(ill, name="shadow") as shadow,
    ):
        both = SideBySide(judge, shadow)
        found = {one.scorer: one for one in await both.score(interaction(), 30)}
    names = ["faithfulness", "noncommittal", "faithfulness_shadow", "noncommittal_shadow"]
    assert list(found) == names == [one.metric for one in both.metrics]
    assert both.beside == {"faithfulness_shadow", "noncommittal_shadow"}
    scored = found["faithfulness"].outcome
    assert isinstance(scored, Score) and scored.value == 1.0
    failed = found["faithfulness_shadow"].outcome
    assert isinstance(failed, Failed) and failed.reason is FailedReason.JUDGE_AUTH
    assert found["faithfulness_shadow"].fingerprint.endswith("@shadow")
    assert found["faithfulness"].fingerprint.endswith("@judge")
    assert found["faithfulness_shadow"].flags[-1] == "shadow" and "shadow" not in found["faithfulness"].flags


async def test_a_scorer_may_not_be_called_like_a_shadow() -> None:
    rubric = {
        "type": "rubric",
        "name": "noncommittal_shadow",
        "needs": ["response"],
        "text": "Is it polite?",
        "answer": {"kind": "yes_no"},
    }
    options: ScorerOptions = TypeAdapter(ScorerOptions).validate_python(rubric)
    async with ScriptedJudge() as server, a_judge(server, name="shadow") as shadow:
        own = JudgeOptions(base_url=server.base_url, model="m")
        async with Judge(own, catalog.judged([options])) as judge:
            with pytest.raises(ValueError, match="noncommittal_shadow"):
                SideBySide(judge, shadow)


def test_what_a_shadows_scorer_says_of_itself() -> None:
    (scorer,) = catalog.judged(["passage_relevance"])
    info = shadow_info(scorer.info)
    assert info.gives == ("passage_relevance_shadow", "precision_at_k_shadow", "context_precision_shadow")
    assert info.direction is scorer.info.direction
