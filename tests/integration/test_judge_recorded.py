"""Recorded replies of a real small model: what it said then must read today as it read then, wrong labels included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scorers import catalog
from scorers.interaction import Interaction, Passage
from scorers.judge.options import JudgeOptions
from scorers.judge.reader import read_json
from scorers.judge.service import Judge
from scorers.judge.wire import Rung
from scorers.outcome import Score
from scorers.testing import Fault, Received, ScriptedJudge

DATA = Path(__file__).parents[1] / "data" / "judge_replies"
FOUR = ("faithfulness", "response_relevancy", "context_relevance", "groundedness")
EXCHANGES = {
    "en-1": Interaction(
        "en-1",
        "What is the hotel limit for business trips?",
        (
            Passage("The canteen opens at 11:30 and closes at 14:00."),
            Passage(
                "For business trips the hotel limit is 120 euros per night, breakfast excluded. "
                "In Munich it is 150 euros."
            ),
        ),
        "The hotel limit is 120 euros per night, and 150 euros in Munich. Breakfast is included.",
    ),
    "ko-1": Interaction(
        "ko-1",
        "출장 시 호텔 숙박비 한도는 얼마인가요?",
        (
            Passage("구내식당은 오전 11시 30분에 열고 오후 2시에 닫습니다."),
            Passage("국내 출장 시 숙박비 한도는 1박당 15만 원이며 조식은 포함되지 않습니다."),
        ),
        "숙박비 한도는 1박당 15만 원입니다. 조식이 포함됩니다.",
    ),
    "en-2": Interaction(
        "en-2",
        "Who approves expenses above 1000 euros?",
        (Passage("Expenses above 1000 euros are approved by the head of department."),),
        "The weather in Berlin is mild in spring.",
    ),
}


def lines(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("name", "faithfulness", "context_relevance", "groundedness", "claims"),
    [
        ("en-1", 0.0, 0.5, 1.0, 2),
        ("ko-1", 1.0, 0.5, 0.5, 2),
        ("en-2", 1.0, 0.5, 0.5, 1),
    ],
)
async def test_a_recorded_judge(
    name: str, faithfulness: float, context_relevance: float, groundedness: float, claims: int
) -> None:
    recorded = {
        tuple(str(task) for task in line["tasks"]): str(line["content"])  # type: ignore[attr-defined]  # a list
        for line in lines("qwen2.5-coder-1.5b.jsonl")
        if line["interaction"] == name
    }

    def answer(received: Received) -> str:
        return recorded[tuple(task.name for task in received.tasks)]

    async with ScriptedJudge(answer) as server:
        options = JudgeOptions.model_validate(
            {"base_url": server.base_url, "model": "qwen", "embeddings": {"model": "e"}}
        )
        async with Judge(options, catalog.judged(FOUR)) as judge:
            results = {one.scorer: one for one in await judge.score(EXCHANGES[name])}
    assert len(server.chats) == 5, "nothing had to be asked again"
    assert len(results["faithfulness"].verdicts) == claims
    expected = {"faithfulness": faithfulness, "context_relevance": context_relevance, "groundedness": groundedness}
    for metric, value in expected.items():
        outcome = results[metric].outcome
        assert isinstance(outcome, Score)
        assert outcome.value == value
    assert isinstance(results["response_relevancy"].outcome, Score)


async def test_the_500_of_a_server_that_validates_sends_us_down_the_ladder() -> None:
    body = (DATA / "llama-cpp-python-500.json").read_text(encoding="utf-8")
    async with ScriptedJudge(faults=[Fault(500, body=body)]) as server:
        options = JudgeOptions(base_url=server.base_url, model="qwen")
        async with Judge(options, catalog.judged(["context_relevance"])) as judge:
            (result,) = await judge.score(EXCHANGES["en-2"])
            assert judge.chat.dialect.rung is Rung.OBJECT_WITH_SCHEMA
    assert isinstance(result.outcome, Score)


def test_every_recorded_reply_is_read() -> None:
    for line in lines("qwen2.5-coder-1.5b.jsonl"):
        tasks = line["tasks"]
        assert isinstance(tasks, list)
        reading = read_json(str(line["content"]), expected=tasks)
        assert isinstance(reading.value, dict)
        assert set(tasks) <= set(reading.value)


def test_free_text_of_a_real_judge_is_read_as_far_as_it_goes() -> None:
    """Among them a fenced list under a key without the object around it."""
    found: dict[tuple[str, str, str], int] = {}
    for line in lines("free_text.jsonl"):
        question = "verdicts" if line["question"] == "verdicts" else "claims"
        value = read_json(str(line["content"]), expected=[question]).value
        inner = value[question] if isinstance(value, dict) else value
        assert isinstance(inner, (list, dict))
        found[str(line["lang"]), str(line["question"]), str(line["rung"])] = len(inner)
    assert found == {
        ("en", "verdicts", "text"): 5,
        ("en", "claims", "text"): 5,
        ("en", "fused", "text"): 3,
        ("en", "fused", "json_object"): 5,
        ("ko", "verdicts", "text"): 5,
        ("ko", "claims", "text"): 4,
        ("ko", "fused", "text"): 2,
        ("ko", "fused", "json_object"): 2,
    }
