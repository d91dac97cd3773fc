"""The judge watches itself in the running product: planted cases, repeats and a shadow, and none of them mixes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

import pytest

from scorers.testing import Received, ScriptedJudge, plain_answer
from tests.support import laws
from tests.support.judge import JudgeServer
from tests.support.sidecar import Sidecar
from tests.support.traces import FACT, body, rag_trace

pytestmark = pytest.mark.e2e

INVENTED = "The hotel limit is 999 euros per night."


def says_yes(received: Received) -> str:
    """A judge to whom everything is supported."""

    def edit(value: object) -> object:
        if isinstance(value, dict):
            return {key: "supported" if key == "label" else edit(inner) for key, inner in value.items()}
        return value

    return json.dumps(edit(json.loads(plain_answer(received))))


@pytest.fixture
def lax() -> Iterator[JudgeServer]:
    with JudgeServer(ScriptedJudge(says_yes)) as server:
        yield server


def test_noise_canary_and_shadow_are_series_of_their_own(
    start_sidecar: Callable[..., Sidecar], judge: JudgeServer, lax: JudgeServer
) -> None:
    sidecar = start_sidecar(
        judge=judge.section(
            scorers=["faithfulness"],
            shadow={"base_url": lax.judge.base_url, "model": "lax", "window_tokens": 8000},
        ),
        judging={"repeat_rate": 1.0, "canary_hours": 6},
        sampling={"rate": 1.0},
    )
    dice = random.Random(4)
    for response in (FACT, INVENTED, INVENTED, INVENTED):
        sidecar.send(body(rag_trace(dice, response=response), service="shop"))
    now = sidecar.wait(
        lambda now: (
            now.total("groundwatch_judge_noise_pairs_total", metric="faithfulness_shadow") == 4
            and not laws.broken(now)
            and all(
                now.total("groundwatch_judge_canary_timestamp_seconds", endpoint=endpoint)
                for endpoint in ("judge", "shadow")
            )
        ),
        "repeats and planted cases are judged",
        seconds=60,
    )

    def mean(metric: str) -> float:
        sums = [now.total(f"groundwatch_judged_sum_{part}_total", metric=metric) for part in ("wy", "w")]
        assert sums[1] == 4  # neither repeats nor planted cases are in the estimates
        return sums[0] / sums[1]

    assert (mean("faithfulness"), mean("faithfulness_shadow")) == (0.25, 1.0)
    assert now.total("groundwatch_judge_noise_pairs_total", metric="faithfulness") == 4
    assert now.total("groundwatch_judge_noise_squared_difference_total") == 0
    contradicted = {"kind": "contradicted", "language": "ko"}
    accuracy = "groundwatch_judge_canary_accuracy"
    assert now.total(accuracy, endpoint="judge", **contradicted) == 1
    assert now.total(accuracy, endpoint="shadow", **contradicted) == 0
    infos = {dict(labels)["metric"]: dict(labels) for labels in now.series("groundwatch_scorer_info")}
    assert infos["faithfulness_shadow"]["fingerprint"].endswith("@lax")
    assert infos["faithfulness"]["fingerprint"].endswith("@scripted")
    # What was planted and repeated was spent, and is counted like all calls.
    calls = now.total("groundwatch_judge_calls_total", endpoint="judge", outcome="ok")
    assert calls == len(judge.chats)
