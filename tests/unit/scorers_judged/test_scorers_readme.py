"""The snippets of scorers/README.md run as they are written, against a judge that is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from scorers.judged.rubric import Rubric, RubricOptions
from scorers.scorer import JudgedScorer
from scorers.testing import check_judged
from tests.support.judge import JudgeServer

README = (Path(__file__).parents[3] / "scorers" / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
ADDRESS = "http://127.0.0.1:8000/v1"


def run(snippet: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "snippet"}
    exec(compile(snippet, "README.md", "exec"), names)  # our own page is what is tested
    return names


def test_a_judge_in_a_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    (snippet,) = (one for one in PYTHON if ADDRESS in one)
    with JudgeServer() as judge:
        run(snippet.replace(ADDRESS, judge.judge.base_url))
        assert judge.chats
    printed = capsys.readouterr().out.split("\n", 1)
    assert printed[0] == "", "no problem was found"
    scorers = [line.split()[0] for line in printed[1].splitlines()]
    assert scorers == ["faithfulness", "context_relevance", "groundedness", "noncommittal"]
    assert printed[1].count("Score(") == 4


def test_local_scorers_in_a_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    (snippet,) = (one for one in PYTHON if "run_local" in one)
    run(snippet)
    assert "faithfulness Score(value=0." in capsys.readouterr().out


def test_a_scorer_of_ones_own_keeps_the_contract() -> None:
    (snippet,) = (one for one in PYTHON if "class Urgency" in one)
    made = run(snippet)["Urgency"]()
    assert isinstance(made, JudgedScorer)
    check_judged(made)


def test_a_rubric_of_ones_own_keeps_the_contract() -> None:
    for block in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL):
        check_judged(Rubric(RubricOptions.model_validate(yaml.safe_load(block))))


def test_every_snippet_is_run_here() -> None:
    assert len(PYTHON) == 3
