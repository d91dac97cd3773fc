"""Labels from files: what is wrong is named with its cure, and nothing is taken in part."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collector.cli import main
from collector.review.case import Reason
from collector.review.labels import Label, LabelKind
from tests.support.review_cases import a_case
from tests.unit.review.review_stores import fill, sqlite

GOOD = {"case": "one", "kind": "score", "metric": "faithfulness", "value": 0.5, "author": "anna"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    cases = [a_case(name, scores={"faithfulness": 0.25}, reasons=(Reason.CONTROL,)) for name in ("one", "two")]
    return fill(tmp_path / "review.sqlite", cases)


def given(store: Path, case_id: str) -> tuple[Label, ...]:
    with sqlite(store) as open_store:
        case = open_store.get(case_id)
    assert case is not None
    return case.in_effect.labels


def lines(path: Path, *values: object) -> Path:
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in values), "utf-8")
    return path


def test_good_lines_become_labels_and_a_repeat_changes_nothing(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lines(
        tmp_path / "labels.jsonl",
        GOOD,
        {
            "id": "one",
            "kind": "claim",
            "metric": "faithfulness",
            "target": 0,
            "value": "contradicted",
            "author": "ben",
        },
        {"case": "two", "kind": "golden", "value": True},
        "",
        {"case": "two", "kind": "comment", "value": "=not a formula"},
    )
    command = ["import-labels", str(path), "--store", str(store), "--author", "carla", "--in-order"]
    assert main([*command, "--dry-run"]) == 0
    assert given(store, "one") == ()
    assert main(command) == 0
    assert "4 labels taken on 3 cases" in capsys.readouterr().out.splitlines()[-1]
    first = given(store, "one")
    assert {(one.kind, one.value, one.author, one.source, one.in_order) for one in first} == {
        (LabelKind.SCORE, 0.5, "anna", "import", True),
        (LabelKind.CLAIM, "contradicted", "ben", "import", True),
    }
    assert {(one.kind, one.value, one.author) for one in given(store, "two")} == {
        (LabelKind.GOLDEN, True, "carla"),
        (LabelKind.COMMENT, "=not a formula", "carla"),
    }
    assert main(command) == 0
    assert "0 labels taken on 0 cases, 4 hold already" in capsys.readouterr().out
    assert given(store, "one") == first


def test_csv_of_a_spreadsheet(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        "\ufeffcase,kind,metric,target,value,author\r\n"
        "one,score,faithfulness,,0.5,anna\r\n"
        'one,comment,,,"\'=1+2, ""quoted""\nand more",anna\r\n'
        "two,passage,,0,relevant,anna\r\n"
        "two,golden,,,TRUE,anna\r\n",
        "utf-8",
    )
    assert main(["import-labels", str(path), "--store", str(store)]) == 0
    assert {one.value for one in given(store, "one")} == {0.5, '=1+2, "quoted"\nand more'}
    assert {(one.kind, one.target, one.value) for one in given(store, "two")} == {
        (LabelKind.PASSAGE, 0, "relevant"),
        (LabelKind.GOLDEN, None, True),
    }


BAD: list[tuple[object, str]] = [
    ("{not json", "not JSON"),
    ([1], "not an object"),
    ({**GOOD, "case": 7}, "case is 7"),
    ({**GOOD, "case": "three"}, "there is no case 'three'"),
    ({**GOOD, "kind": "thumb"}, "kind is 'thumb'; one of agree"),
    ({**GOOD, "kind": "undo"}, "kind is 'undo'"),
    ({**GOOD, "value": 1.5}, "value 1.5 is no score from 0 to 1"),
    ({**GOOD, "value": "high"}, "value 'high' is no score"),
    ({**GOOD, "metric": "grace"}, "no score of 'grace'; it has faithfulness"),
    ({**GOOD, "metric": ""}, "the metric is missing"),
    ({**GOOD, "author": ""}, "author is"),
    ({**GOOD, "kind": "claim", "value": "supported", "target": 4}, "target is 4; faithfulness has 1 claims"),
    ({**GOOD, "kind": "claim", "value": "supported", "target": "x"}, "target"),
    (
        {"case": "one", "kind": "passage", "target": 1, "value": "relevant", "author": "a"},
        "the case has 1 passages",
    ),
    ({**GOOD, "kind": "golden", "value": "perhaps"}, "neither true nor false"),
]


@pytest.mark.parametrize(("line", "says"), BAD)
def test_a_wrong_line_is_named_with_its_cure_and_nothing_is_taken(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: object, says: str
) -> None:
    path = lines(tmp_path / "labels.jsonl", GOOD, line)
    assert main(["import-labels", str(path), "--store", str(store)]) == 1
    error = capsys.readouterr().err
    assert f"{path}:2: " in error
    assert says in error
    assert given(store, "one") == ()
    assert main(["import-labels", str(path), "--store", str(store), "--keep-good"]) == 1
    assert [one.value for one in given(store, "one")] == [0.5]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"case,value\none,1\n", "case and kind are needed"),
        (b"case,kind,value\none,golden,true,7\n", "more cells"),
        (b'case,kind,value\none,comment,"\xff"\n', "no UTF-8"),
        (b"", "case and kind are needed"),
    ],
)
def test_a_table_that_is_none(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, says: str
) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    assert main(["import-labels", str(path), "--store", str(store), "--author", "a"]) == 1
    assert says in capsys.readouterr().err


def test_many_wrong_lines_are_counted_and_a_missing_file_is_told(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lines(tmp_path / "labels.jsonl", *["[]"] * 70)
    assert main(["import-labels", str(path), "--store", str(store)]) == 1
    error = capsys.readouterr().err
    assert "... and 20 more" in error
    assert "since 70 lines are wrong" in error
    assert main(["import-labels", str(tmp_path / "none.jsonl"), "--store", str(store)]) == 2
    assert "none.jsonl" in capsys.readouterr().err
