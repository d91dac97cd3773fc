"""Exports, each read back by the library that it is for."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet
import pytest

from collector.cli import main
from collector.review.case import Case, Reason
from collector.review.export import (
    COLUMNS,
    ROWS_AT_A_TIME,
    Layout,
    inert,
    uninert,
    write_csv,
    write_jsonl,
    write_parquet,
)
from collector.review.labels import Draft, Label, LabelKind
from scorers.interaction import Passage
from tests.support.review_cases import NOON, a_case
from tests.unit.review.review_stores import fill, score, sqlite

CONTROL = a_case(
    "control",
    scores={"faithfulness": 0.25},
    local={"faithfulness": 0.75, "groundedness": 0.5},
    reasons=(Reason.CONTROL,),
    probability=0.1,
    order=0.2,
    segments={"tier": "gold"},
)
PICKED = a_case(
    "picked",
    question="=HYPERLINK(0)",
    response="-1+2, said \u65e5\u672c\n\u2028",
    scores={"faithfulness": 0.0},
    session="@sum",
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = fill(tmp_path / "review.sqlite", [CONTROL, PICKED])
    with sqlite(path) as open_store:
        open_store.label(
            "control",
            [score(0.5), Draft(LabelKind.REFERENCE, "It is not covered."), Draft(LabelKind.COMMENT, "+cmd")],
            author="anna",
            expected_revision=0,
            in_order=True,
        )
    return path


def exported(store: Path, *arguments: str, to: Path) -> Path:
    assert main(["export", "--store", str(store), "-o", str(to), *arguments]) == 0
    return to


def test_json_lines_hold_everything_with_weights_and_labels(store: Path, tmp_path: Path) -> None:
    path = exported(store, "--sort", "oldest", to=tmp_path / "cases.jsonl")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir() if "part" in one.name] == []
    lines = {line["id"]: line for line in map(json.loads, path.read_text("utf-8").split("\n")[:-1])}
    control, picked = lines["control"], lines["picked"]
    assert set(COLUMNS) <= set(control)
    assert control["contexts"] == ["Water damage is not covered."]
    assert control["reference"] == "It is not covered."
    assert control["scores"] == {"faithfulness": {"judged": 0.25, "local": 0.75}, "groundedness": {"local": 0.5}}
    assert control["people"] == {"faithfulness": 0.5}
    assert control["weight"] == pytest.approx(20)
    assert (control["probability"], control["order"]) == (0.1, 0.2)
    assert control["case_weight"] == pytest.approx(200)
    assert {(one["kind"], one["value"], one["author"], one["in_order"]) for one in control["labels"]} == {
        ("score", 0.5, "anna", True),
        ("reference", "It is not covered.", "anna", True),
        ("comment", "+cmd", "anna", True),
    }
    assert control["results"][0]["verdicts"][0]["claim"] == "water is wet"
    assert (picked["probability"], picked["case_weight"], picked["people"]) == (None, None, {})
    assert picked["question"] == "=HYPERLINK(0)", "what is no table is not changed"


def test_filters_are_those_of_the_search_page(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = exported(store, "--labelled", "true", to=tmp_path / "labelled.jsonl")
    assert [json.loads(line)["id"] for line in path.read_text("utf-8").splitlines()] == ["control"]
    path = exported(store, "--metric", "faithfulness", "--score-max", "0.1", to=tmp_path / "low.jsonl")
    assert [json.loads(line)["id"] for line in path.read_text("utf-8").split("\n") if line] == ["picked"]
    path = exported(store, "--segment", "tier=gold", to=tmp_path / "gold.jsonl")
    assert [json.loads(line)["id"] for line in path.read_text("utf-8").splitlines()] == ["control"]
    assert main(["export", "--store", str(store), "--score-max", "high", "--sort", "by luck"]) == 2
    error = capsys.readouterr().err
    assert "--score-max" in error
    assert "--sort" in error
    assert main(["export", "--store", str(store), "--service", "no such"]) == 1


def test_csv_is_read_by_the_csv_module_and_holds_no_formula(store: Path, tmp_path: Path) -> None:
    path = exported(store, to=tmp_path / "cases.csv")
    with path.open(encoding="utf-8", newline="") as lines:
        rows = {row["id"]: row for row in csv.DictReader(lines)}
    control, picked = rows["control"], rows["picked"]
    assert float(control["score.faithfulness.judged"]) == 0.25
    assert float(control["score.faithfulness.local"]) == 0.75
    assert (float(control["people.faithfulness"]), picked["people.faithfulness"]) == (0.5, "")
    assert float(control["case_weight"]) == pytest.approx(200)
    assert json.loads(control["contexts"]) == ["Water damage is not covered."]
    assert datetime.fromisoformat(control["ended"]) == datetime.fromtimestamp(NOON, UTC)
    assert (control["golden"], picked["score.groundedness.local"]) == ("false", "")
    assert picked["question"] == "'=HYPERLINK(0)"
    assert picked["response"] == "'-1+2, said \u65e5\u672c\n\u2028"
    assert picked["session"] == "'@sum"
    for row in rows.values():
        assert all(not cell or cell[0] not in "=+-@\t\r\n" for cell in row.values())


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", " \t=1", "\tx", "\rx", "\nx", "\uff1d1", "\uff0bx"])
def test_what_a_spreadsheet_would_compute_gets_an_apostrophe_and_loses_it_again(text: str) -> None:
    assert inert(text) == f"'{text}"
    assert uninert(inert(text)) == text


@pytest.mark.parametrize("text", ["", "plain", "'quoted'", "1-2", "a=b", "'tis"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert inert(text) == text
    assert uninert(text) == text


def test_parquet_is_read_by_pyarrow_with_types_and_meanings(store: Path, tmp_path: Path) -> None:
    table = pyarrow.parquet.read_table(exported(store, to=tmp_path / "cases.parquet"))
    rows = {row["id"]: row for row in table.to_pylist()}
    assert rows["control"]["contexts"] == ["Water damage is not covered."]
    assert rows["control"]["ended"] == datetime.fromtimestamp(NOON, UTC)
    assert rows["control"]["score.faithfulness.judged"] == 0.25
    assert rows["control"]["case_weight"] == pytest.approx(200)
    assert rows["picked"]["case_weight"] is None
    assert rows["picked"]["question"] == "=HYPERLINK(0)"
    assert rows["picked"]["golden"] is False
    assert json.loads(rows["control"]["labels"])[0]["author"] == "anna"
    meaning = table.schema.field("probability").metadata[b"description"].decode()
    assert meaning == COLUMNS["probability"][1]


def test_parquet_with_unknown_contexts_and_no_case_at_all(tmp_path: Path) -> None:
    bare = replace(CONTROL, interaction=replace(CONTROL.interaction, contexts=None), results=())
    layout = Layout([("faithfulness", "judged")])
    assert write_parquet([bare], layout, tmp_path / "one.parquet") == 1
    assert pyarrow.parquet.read_table(tmp_path / "one.parquet").to_pylist()[0]["contexts"] is None
    assert write_parquet([], layout, tmp_path / "none.parquet") == 0
    assert pyarrow.parquet.read_table(tmp_path / "none.parquet").num_rows == 0


def test_the_real_ragas_loads_its_form(store: Path, tmp_path: Path) -> None:
    pytest.importorskip("ragas", reason="the extra [parity] is not installed")
    from tests.unit.review.ragas_dataset import load

    with sqlite(store) as open_store:
        alone = replace(CONTROL, interaction=replace(CONTROL.interaction, id="third", contexts=None), id="third")
        open_store.put(alone)
        open_store.flush()
    path = exported(store, "--format", "ragas", "--sort", "oldest", to=tmp_path / "ragas.jsonl")
    loaded = load(path)
    samples = {sample["response"]: sample for sample in loaded}
    assert len(loaded) == 3
    assert samples[CONTROL.interaction.response or ""].get("user_input") == CONTROL.interaction.question
    assert samples["-1+2, said \u65e5\u672c\n\u2028"]["retrieved_contexts"] == ["Water damage is not covered."]
    assert {sample.get("reference") for sample in loaded} == {None, "It is not covered."}
    first = json.loads(path.read_text("utf-8").split("\n")[0])
    assert {"id", "weight", "probability", "case_weight", "people"} <= set(first)


def many(count: int) -> Iterator[Case]:
    label = Label(LabelKind.SCORE, "anna", NOON, 1, 0.5, "faithfulness", in_order=True)
    for number in range(count):
        passages = tuple(Passage(f"passage {number} {place} " * 40) for place in range(5))
        yield replace(
            CONTROL,
            id=f"case-{number}",
            interaction=replace(CONTROL.interaction, contexts=passages),
            labels=(label,),
        )


@pytest.mark.parametrize(
    ("form", "few", "more"),
    [("jsonl", 20, 300), ("csv", 20, 300), ("parquet", 2 * ROWS_AT_A_TIME, 4 * ROWS_AT_A_TIME)],
)
def test_memory_does_not_grow_with_the_number_of_cases(form: str, few: int, more: int, tmp_path: Path) -> None:
    layout = Layout([("faithfulness", "judged")])

    def peak(count: int) -> int:
        path = tmp_path / f"{count}.{form}"
        tracemalloc.start()
        if form == "parquet":
            assert write_parquet(many(count), layout, path) == count
        else:
            with path.open("w", encoding="utf-8", newline="") as out:
                written = write_csv(many(count), layout, out) if form == "csv" else write_jsonl(many(count), out)
            assert written == count
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    peak(2)  # imports
    assert peak(more) < 1.2 * peak(few) + 200_000


def test_columns_are_explained_and_a_missing_store_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "--columns"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in COLUMNS)
    assert main(["export", "--store", str(tmp_path / "none.sqlite")]) == 2
    assert "none.sqlite" in capsys.readouterr().err
    assert not (tmp_path / "none.sqlite").exists()
    assert main(["export"]) == 2
    assert "--store" in capsys.readouterr().err


def test_a_write_that_fails_leaves_no_part_and_an_old_file_as_it_was(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    target.mkdir()
    assert main(["export", "--store", str(store), "-o", str(target)]) == 2
    assert "out" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith(".part")] == []


def test_standard_output_takes_text_formats(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--store", str(store), "--format", "csv"]) == 0
    assert {row["id"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))} == {"control", "picked"}
    assert main(["export", "--store", str(store), "--format", "parquet"]) == 2
    assert "-o" in capsys.readouterr().err
