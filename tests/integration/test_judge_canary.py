"""The canary sees a judge that answers, one that says yes to everything, and one that is down."""

from __future__ import annotations

import json

from scorers import catalog
from scorers.judge.canary import CanaryReport, canary_cases
from scorers.judge.options import JudgeOptions
from scorers.judge.service import Judge
from scorers.refusal import noncommittal
from scorers.testing import Answerer, Fault, Received, ScriptedJudge, plain_answer


async def canary(server: ScriptedJudge) -> CanaryReport:
    async with server:
        options = JudgeOptions(base_url=server.base_url, model="m", backoff_seconds=0.001, max_attempts=1)
        async with Judge(options, catalog.judged(["faithfulness", "groundedness", "noncommittal"])) as judge:
            return await judge.canary()


def saying(label: str) -> Answerer:
    """A judge that gives `label` wherever it is offered."""

    def answer(received: Received) -> str:
        def edit(value: object) -> object:
            if isinstance(value, dict):
                return {key: label if key == "label" else edit(inner) for key, inner in value.items()}
            return value

        return json.dumps(edit(json.loads(plain_answer(received))))

    return answer


async def test_a_judge_that_supports_everything_is_found_out() -> None:
    report = await canary(ScriptedJudge(saying("supported")))
    assert "en-contradicted faithfulness" in report.wrong
    assert "ko-contradicted faithfulness" in report.wrong
    assert "en-supported faithfulness" not in report.wrong


async def test_a_judge_that_supports_nothing_is_found_out() -> None:
    report = await canary(ScriptedJudge(saying("unsupported")))
    assert "en-supported faithfulness" in report.wrong
    assert report.accuracy is not None
    assert report.accuracy < 1


async def test_a_judge_that_is_down_has_no_accuracy() -> None:
    report = await canary(ScriptedJudge(faults=[Fault(401)] * 100))
    assert len(report.failed) == len(report.expectations) > 10
    assert report.accuracy is None
    assert set(report.by_series().values()) == {None}


def test_the_cases_leave_the_judge_something_to_decide() -> None:
    cases = canary_cases()
    assert len({case.id for case in cases}) == len(cases) == 10
    for case in cases:
        assert noncommittal(case.response).label == ("unsure" if "refusal" in case.id else "no")
