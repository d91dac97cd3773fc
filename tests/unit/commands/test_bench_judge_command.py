"""`groundwatch bench-judge` as its user calls it: what was planted in the rows must come out of the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collector.cli import main
from scorers.testing import Fault
from tests.support.judge import JudgeServer

FACT = "The hotel limit is 120 euros per night."
MADE_UP = "The hotel limit is 300 euros per night."


def row(number: int, *, good: bool, says: bool, **more: object) -> dict[str, object]:
    """A row that people call `good` and that the scripted judge, who looks for the words, calls `says`."""
    return {
        "id": f"r{number}",
        "task": "groundedness",
        "question": f"What is the hotel limit of branch {number}?",
        "contexts": [FACT],
        "response": FACT if says else MADE_UP,
        "label": int(good),
        "group": f"g{number}",
        **more,
    }


def planted() -> list[dict[str, object]]:
    """20 good rows of which the judge finds 18, 20 bad ones of which it finds 14."""
    good = [row(n, good=True, says=n < 18) for n in range(20)]
    return good + [row(20 + n, good=False, says=n >= 14) for n in range(20)]


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer() as server:
        yield server


def files(tmp_path: Path, judge: JudgeServer, rows: list[dict[str, object]], **more: object) -> tuple[str, str]:
    config, labelled = tmp_path / "groundwatch.yaml", tmp_path / "planted.jsonl"
    config.write_text(json.dumps({"judge": judge.section(**more)}))
    labelled.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return str(config), str(labelled)


def bench(*argv: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> dict[str, Any]:
    assert main(["bench-judge", *argv, "--no-progress", "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_planted_accuracy_comes_out_under_both_plans(
    tmp_path: Path, judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = {"scripted": {"input_usd_per_million": 1.0, "output_usd_per_million": 2.0}}
    config, labelled = files(tmp_path, judge, planted(), prices=prices)
    found = bench(labelled, "-c", config, "--plan", "both", "--scorers", "faithfulness", capsys=capsys)
    assert [one["plan"] for one in found["sets"]] == ["standard", "fused"]
    for one in found["sets"]:
        (metric,) = one["metrics"]
        assert (metric["scored"], metric["unscored"]) == (40, {})
        assert metric["balanced_accuracy"]["value"] == pytest.approx((0.9 + 0.7) / 2)
        assert metric["auroc"]["value"] == pytest.approx(0.8)
        assert metric["kappa"]["value"] == pytest.approx(0.6)
        assert metric["balanced_accuracy"]["low"] < 0.72 < 0.87 < metric["balanced_accuracy"]["high"]
        assert one["cost_usd"]["value"] == pytest.approx(
            (one["input_tokens"]["value"] + 2 * one["output_tokens"]["value"]) / 1e6
        )
        assert 0 < one["seconds_median"]["value"] <= one["seconds_p95"]["value"]
    standard, fused = found["sets"]
    assert (standard["calls"]["value"], fused["calls"]["value"]) == (2, 1)
    (compared,) = found["comparisons"]
    assert compared["difference"]["value"] == 0
    assert compared["difference"]["low"] < 0 < compared["difference"]["high"]


def test_noise_and_reasons_are_reported_in_words_too(
    tmp_path: Path, judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(n, good=n % 2 == 0, says=n % 2 == 0) for n in range(6)]
    rows.append(row(6, good=True, says=True, response="I do not know."))
    config, labelled = files(tmp_path, judge, rows)
    assert (
        main(
            ["bench-judge", labelled, "-c", config, "--scorers", "faithfulness", "--repeat", "2", "--no-progress"]
        )
        == 0
    )
    text = capsys.readouterr().out
    assert "faithfulness: 6 of 7 scored, 1 not_applicable: refusal" in text
    assert "noise s_e          0.000 (0.000 to ?) from 6 repeated rows" in text
    assert "unknown: no price" in text
    assert "balanced accuracy  1.000 (" in text


def test_a_run_is_continued_and_not_with_another_model(
    tmp_path: Path, judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    config, labelled = files(tmp_path, judge, planted())
    out = str(tmp_path / "trials.jsonl")
    argv = (labelled, "-c", config, "--scorers", "faithfulness", "-o", out)
    bench(*argv, "--limit", "10", capsys=capsys)
    asked = len(judge.chats)
    with Path(out).open("a") as lines:
        lines.write(Path(out).read_text().splitlines()[0] + "\n")  # a row that two runs wrote counts once
        lines.write('{"set": "cut o')
    found = bench(*argv, "--limit", "10", capsys=capsys)
    assert len(judge.chats) == asked
    assert found["sets"][0]["rows"] == 10
    Path(out).write_text(Path(out).read_text().rsplit("\n", 1)[0] + "\n")
    found = bench(*argv, "--limit", "12", capsys=capsys)
    assert found["sets"][0]["rows"] == 12
    assert len(judge.chats) - asked == 4  # two calls for each of the two new rows
    other, _ = files(tmp_path, judge, planted(), model="another")
    assert main(["bench-judge", *argv[:1], "-c", other, *argv[3:], "--no-progress"]) == 2
    assert "name another file" in capsys.readouterr().err


def test_failures_are_shares_not_scores(
    tmp_path: Path, judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    config, labelled = files(tmp_path, judge, planted(), max_attempts=1)
    judge.misbehave(*[Fault(401)] * 400)
    found = bench(labelled, "-c", config, "--limit", "4", "--scorers", "faithfulness", capsys=capsys, code=1)
    (metric,) = found["sets"][0]["metrics"]
    assert metric["unscored"] == {"failed: judge_auth": 4}
    assert (metric["scored"], metric["balanced_accuracy"]) == (0, None)


def test_scorers_fit_the_task_and_a_question_may_stand_in(
    tmp_path: Path, judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    config, labelled = files(tmp_path, judge, [{**one, "question": None} for one in planted()])
    found = bench(labelled, "-c", config, "--limit", "4", capsys=capsys)
    by_name = {metric["metric"]: metric for metric in found["sets"][0]["metrics"]}
    assert by_name["faithfulness"]["unscored"] == {"not_applicable: no_question": 4}
    assert by_name["groundedness"]["scored"] == 4
    found = bench(labelled, "-c", config, "--limit", "4", "--question", "Is it so?", capsys=capsys)
    assert [metric["scored"] for metric in found["sets"][0]["metrics"]] == [4, 4]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([row(1, good=True, says=True), row(1, good=False, says=True)], "the id 'r1' occurs twice"),
        ([{**row(1, good=True, says=True), "label": "yes"}], "label is 'yes'"),
        ([], "holds no row"),
    ],
)
def test_bad_files_are_told_before_anything_is_asked(
    tmp_path: Path,
    judge: JudgeServer,
    capsys: pytest.CaptureFixture[str],
    rows: list[dict[str, object]],
    told: str,
) -> None:
    config, labelled = files(tmp_path, judge, rows)
    assert main(["bench-judge", labelled, "-c", config]) == 2
    assert told in capsys.readouterr().err
    assert not judge.chats


def test_without_a_judge_it_says_what_to_add(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labelled = tmp_path / "planted.jsonl"
    labelled.write_text(json.dumps(row(1, good=True, says=True)))
    assert main(["bench-judge", str(labelled)]) == 2
    assert "GROUNDWATCH_JUDGE_MODEL" in capsys.readouterr().err
