"""`groundwatch score` as its user calls it: bad lines, resuming, several processes, every error told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collector.cli import main
from scorers.testing import Fault
from tests.support.judge import JudgeServer

GOOD = {
    "id": "a",
    "question": "When is the office closed?",
    "contexts": ["The office is closed on Fridays in August.", "Lunch is at noon."],
    "response": "The office is closed on Fridays in August.",
}
MADE_UP = {**GOOD, "id": "b", "response": "A purple dragon opens the harbour gate at 9:45 for 300 visitors."}


def _file(tmp_path: Path, *lines: object) -> Path:
    path = tmp_path / "records.jsonl"
    path.write_bytes(
        b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    )
    return path


def _lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def _scores(line: dict[str, object]) -> dict[str, float | None]:
    results = line["results"]
    assert isinstance(results, list)
    return {result["scorer"]: result["score"] for result in results}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_each_record_gets_a_line_with_its_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    path = _file(tmp_path, GOOD, MADE_UP)
    code = main(["score", str(path), "--local", "--scorers", "faithfulness,noncommittal", "--workers", workers])
    assert code == 0
    by_id = {line["id"]: line for line in _lines(capsys.readouterr().out)}
    assert set(by_id) == {"a", "b"}
    good, made_up = _scores(by_id["a"])["faithfulness"], _scores(by_id["b"])["faithfulness"]
    assert good is not None and made_up is not None
    assert good > 0.8 > 0.3 > made_up
    assert set(_scores(by_id["a"])) == {"faithfulness", "noncommittal"}


def test_a_bad_line_costs_only_itself_and_the_exit_code_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _file(
        tmp_path, b"{not json\n", b"\xff\xfe\n", [1], {"x": 1}, b"\n", GOOD, {**GOOD, "contexts": 7, "id": "c"}
    )
    assert main(["score", str(path)]) == 1
    lines = _lines(capsys.readouterr().out)
    errors = [line for line in lines if "error" in line]
    assert [line["line"] for line in errors] == [1, 2, 3, 4, 7]
    assert "question" in str(errors[3]["error"])
    assert [line["id"] for line in lines if "results" in line] == ["a"]


def test_an_output_file_is_resumed_and_a_cut_off_line_is_done_again(tmp_path: Path) -> None:
    path = _file(tmp_path, GOOD, MADE_UP)
    output = tmp_path / "out.jsonl"
    assert main(["score", str(path), "-o", str(output), "--no-progress"]) == 0
    whole = output.read_text().splitlines()
    output.write_text(whole[0] + "\n" + whole[1][:40])
    assert main(["score", str(path), "-o", str(output), "--no-progress"]) == 0
    ids = [json.loads(line)["id"] for line in output.read_text().splitlines() if line.endswith("}")]
    assert ids == ["a", "b"]


def _judged(tmp_path: Path, judge: JudgeServer, records: Path, *more: str, **section: object) -> int:
    config = tmp_path / "groundwatch.yaml"
    config.write_text(json.dumps({"judge": judge.section(**section)}))
    return main(["score", str(records), "--judge", "-c", str(config), "--no-progress", *more])


def test_what_failed_is_scored_again_and_what_no_run_can_better_is_not(tmp_path: Path) -> None:
    path, output = _file(tmp_path, GOOD, MADE_UP), tmp_path / "out.jsonl"
    incomplete = [{"scorer": "faithfulness", "outcome": "failed", "reason": "incomplete", "score": None}]
    output.write_text(json.dumps({"id": "b", "results": incomplete}) + "\n")
    with JudgeServer() as judge:
        judge.misbehave(Fault(status=402))
        codes = [_judged(tmp_path, judge, path, "-o", str(output), "--scorers", "faithfulness") for _ in range(3)]
    assert codes == [1, 0, 0]
    lines = [(line["id"], _scores(line)["faithfulness"]) for line in _lines(output.read_text())]
    assert lines == [("b", None), ("a", None), ("a", 1.0)]


def test_a_record_with_a_reference_is_told_what_went_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {**GOOD, "id": "w", "reference": "The office is open every day."}
    right = {**GOOD, "id": "r", "reference": GOOD["response"]}
    path = _file(tmp_path, wrong, right, {**GOOD, "id": "none"})
    with JudgeServer() as judge:
        assert _judged(tmp_path, judge, path, "--scorers", "faithfulness,factual_correctness") == 0
    printed = capsys.readouterr()
    by_id = {line["id"]: line.get("findings") for line in _lines(printed.out)}
    assert by_id == {
        "w": {"document_wrong": True, "own_memory": False},
        "r": {"document_wrong": False, "own_memory": False},
        "none": None,
    }
    assert printed.err == "with a reference: document_wrong 1 of 2, own_memory 0 of 2\n"


def test_the_records_themselves_are_never_written_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _file(tmp_path, GOOD)
    before = path.read_bytes()
    for option in ("-o", "--resume"):
        assert main(["score", str(path), option, str(path)]) == 2
        assert "is the file of records itself; name another" in capsys.readouterr().err
    assert main(["score", str(path), "--resume", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: there is no such file; leave it out at the first run" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_half_a_surrogate_pair_in_a_record_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out.jsonl"
    path = _file(tmp_path, {**GOOD, "id": "\ud83d", "response": "The office is closed \ud83d on Fridays."})
    assert main(["score", str(path), "-o", str(output), "--no-progress"]) == 0
    assert json.loads(output.read_text())["id"] == "\ufffd"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--scorers", "nonsense"], "nonsense"),
        (["--judge"], "GROUNDWATCH_JUDGE_BASE_URL"),
        (["-c", "missing.yaml"], "missing.yaml"),
    ],
)
def test_what_can_not_start_exits_2_with_the_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main(["score", str(_file(tmp_path, GOOD)), *arguments]) == 2
    assert says in capsys.readouterr().err


def test_a_missing_file_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "nowhere.jsonl"]) == 2
    assert "nowhere.jsonl" in capsys.readouterr().err
