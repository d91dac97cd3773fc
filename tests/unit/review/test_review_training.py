"""Refitting the local scorers on people's labels: which rows, when it is refused, and what is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from collector.cli import main
from collector.review.case import Case, Reason
from collector.review.labels import Draft, Label, LabelKind
from collector.review.training import MIN_CLASS, MIN_ROWS, Rows, TooFewLabels, improved
from scorers.interaction import Interaction, Passage
from scorers.local.calibration import SetReport
from scorers.local.table import load_table
from tests.support.review_cases import NOON, a_case
from tests.unit.review.review_stores import fill, sqlite


def labelled(case: Case, *labels: tuple[LabelKind, object, str, int | None]) -> Case:
    made = tuple(
        Label(kind, "anna", NOON, 1, value, metric, target)  # type: ignore[arg-type]  # terse in tests
        for kind, value, metric, target in labels
    )
    return replace(case, labels=made)


def part(number: int, *, says: str, good: bool, reason: Reason = Reason.CONTROL) -> Case:
    """An answer about a part's warranty that people call good or bad."""
    name = f"part-{number}"
    fact = f"The warranty of part {number} lasts {number + 3} months."
    case = a_case(name, scores={"faithfulness": 0.5}, reasons=(reason,), probability=0.5, order=number / 10_000)
    interaction = Interaction(name, f"How long is the warranty of part {number}?", (Passage(fact),), says)
    return labelled(
        replace(case, interaction=interaction),
        (LabelKind.SCORE, float(good), "faithfulness", None),
        (LabelKind.PASSAGE, "relevant", "", 0),
    )


def parts(count: int = 200) -> Iterator[Case]:
    """People forgive a wrong number of months, which the table in force does not, and no nonsense."""
    for number in range(count):
        if number % 4 == 0:
            yield part(number, says="A purple dragon opens the harbour gate at 9:45.", good=False)
        else:
            months = number + (3 if number % 4 == 1 else 4)
            yield part(number, says=f"The warranty of part {number} lasts {months} months.", good=True)


def test_labels_become_rows_by_task() -> None:
    context = "Water damage is not covered."
    case = a_case(scores={"faithfulness": 0.8, "response_relevancy": 0.9, "context_relevance": 1.0})
    agreed = [(LabelKind.AGREE, "agree", metric, None) for metric in ("faithfulness", "response_relevancy")]
    rows = Rows(picked=True)
    rows.add(labelled(case, *agreed, (LabelKind.AGREE, "disagree", "context_relevance", None)))
    found = {task: [row.label for row in rows._rows[task]] for task in rows._rows}
    # four of five claims supported is not a supported response; a lone passage takes the score of the contexts
    assert found == {"groundedness": [0.0], "response_relevancy": [1.0], "context_relevance": [0.0]}
    (row,) = rows._rows["context_relevance"]
    assert [passage.text for passage in row.interaction.contexts or ()] == [context]


def test_what_people_left_open_is_no_row() -> None:
    rows = Rows(picked=True)
    middling = a_case(scores={"groundedness": 0.6, "faithfulness": 0.3})
    rows.add(labelled(middling, (LabelKind.AGREE, "agree", "groundedness", None)))
    rows.add(
        labelled(middling, (LabelKind.AGREE, "disagree", "faithfulness", None))
    )  # better, but wholly supported?
    rows.add(middling)
    assert not any(rows._rows.values())


def test_cases_of_one_question_share_a_group_and_weights_are_those_of_the_traffic() -> None:
    rows = Rows()
    first, second = part(1, says="Two.", good=False), part(2, says="Three.", good=True)
    asked = replace(second.interaction, question="how long is the  WARRANTY of part 1?")
    for case in (first, replace(second, interaction=asked), part(3, says="x", good=True, reason=Reason.LOW_SCORE)):
        rows.add(case)
    grounded = rows._rows["groundedness"]
    assert len({row.group for row in grounded}) == 1
    assert [row.weight for row in grounded] == [pytest.approx(40)] * 2
    assert rows.left_out == 1


def test_too_few_labels_are_refused_with_the_reason() -> None:
    rows = Rows()
    for case in parts(100):
        rows.add(case)
    rows.add(part(900, says="x", good=True, reason=Reason.LOW_SCORE))
    with pytest.raises(TooFewLabels) as raised:
        rows.sets()
    assert "groundedness: 100 labelled rows, 25 of the rarer class" in str(raised.value)
    assert f"{MIN_ROWS} and {MIN_CLASS} are needed" in str(raised.value)
    assert "--picked" in str(raised.value)


def a_store(tmp_path: Path, cases: Iterator[Case]) -> Path:
    made = list(cases)
    path = fill(tmp_path / "review.sqlite", made)
    with sqlite(path) as store:
        for case in made:
            drafts = [Draft(one.kind, one.value, one.metric, one.target) for one in case.labels]
            store.label(case.id, drafts, author="anna", expected_revision=0)
    return path


def test_the_command_replaces_what_got_better_and_keeps_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, out, report = a_store(tmp_path, parts()), tmp_path / "table.json", tmp_path / "report.json"
    command = [
        "calibrate",
        "--from-review",
        str(store),
        "--tier",
        "fast",
        "--out",
        str(out),
        "--report",
        str(report),
    ]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "replaced: support.fast" in told
    assert "context_relevance: 200 labelled rows, 0 of the rarer class" in told
    shipped, made = load_table(), load_table(out)
    assert made.version != shipped.version
    assert made.models["support.fast"] != shipped.models["support.fast"]
    assert {n: m for n, m in made.models.items() if n != "support.fast"} == {
        n: m for n, m in shipped.models.items() if n != "support.fast"
    }
    assert [one["set"] for one in made.fitted_on] == [
        *(one["set"] for one in shipped.fitted_on),
        "review-groundedness",
    ]
    (row,) = json.loads(report.read_text())
    assert row["held_out_documents"] > 0.95
    assert row["loss_change"] + row["loss_change_se"] < 0


def test_only_what_gains_more_than_a_standard_error_on_peoples_labels_is_replaced() -> None:
    row = SetReport(
        "review-groundedness", "fast", "support", "", True, 200, 0, "auroc", 0.9, 0.8, 1.0, 0.9, 0.8, 0.1
    )
    gained = replace(row, loss_change=-0.05, loss_change_se=0.04)
    assert improved([gained, row]) == {"support.fast"}
    assert improved([replace(gained, loss_change_se=0.06), replace(gained, name="shipped"), row]) == set()


def test_the_command_refuses_few_labels_and_no_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = a_store(tmp_path, parts(8))
    assert main(["calibrate", "--from-review", str(store)]) == 2
    assert "are needed" in capsys.readouterr().err
    assert main(["calibrate"]) == 2
    assert "--from-review" in capsys.readouterr().err
    assert main(["calibrate", "--from-review", str(tmp_path / "none.sqlite")]) == 2
    assert "none.sqlite" in capsys.readouterr().err
