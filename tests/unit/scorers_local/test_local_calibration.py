"""Fitting, its measures, planted faults, and the `calibrate` command end to end on the excerpts."""

from __future__ import annotations

import argparse
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from collector.commands import calibrate
from scorers.interaction import Interaction, Passage
from scorers.local import build
from scorers.local.fitting import (
    FOLDS,
    Rows,
    auroc,
    auroc_interval,
    balanced_accuracy,
    calibration_error,
    fit,
    fold_of,
    joined,
    predict,
    spearman,
)
from scorers.local.labelled import BadLabelledFile, read_set
from scorers.local.planted import PLANTERS, donor_of
from scorers.local.table import Model, load_table, parse_table

EXCERPTS = Path(__file__).parents[2] / "data" / "eval"


def rows(features: list[list[float]], labels: list[float]) -> Rows:
    return Rows(np.array(features), np.array(labels), np.ones(len(labels)), np.zeros(len(labels), np.int64))


def test_auroc_by_hand() -> None:
    labels, scores = np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.9, 0.4, 0.4, 0.1])
    assert auroc(labels, scores) == pytest.approx((1 + 1 + 0.5 + 1) / 4)
    low, high = auroc_interval(labels, scores)
    assert 0 <= low < 0.875 < high <= 1
    assert math.isnan(auroc(np.ones(3), np.arange(3.0)))
    assert all(math.isnan(end) for end in auroc_interval(np.ones(3), np.arange(3.0)))


def test_other_measures_by_hand() -> None:
    labels, scores = np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.9, 0.4, 0.6, 0.1])
    assert balanced_accuracy(labels, scores) == 0.5
    assert math.isnan(balanced_accuracy(np.zeros(2), scores[:2]))
    assert spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 40.0])) == pytest.approx(1.0)
    assert math.isnan(spearman(np.ones(3), np.arange(3.0)))
    assert calibration_error(np.array([1.0, 0.0]), np.array([0.95, 0.05])) == pytest.approx(0.05)
    assert calibration_error(np.array([0.0, 0.0]), np.array([1.0, 1.0])) == 1.0


def test_fit_finds_the_coefficients_that_made_the_data() -> None:
    rng = np.random.default_rng(5)
    features = rng.normal(size=(20_000, 3))
    chance = 1 / (1 + np.exp(-(features @ np.array([2.0, 0.5, 0.0]) - 1)))
    labels = (rng.random(20_000) < chance).astype(float)
    model = fit(rows(features.tolist(), labels.tolist()), ("a", "b", "c"), ridge=1e-3)
    assert model.coefficients == pytest.approx((2.0, 0.5, 0.0), abs=0.1)
    assert model.intercept == pytest.approx(-1, abs=0.1)


def test_signs_are_kept_unless_a_feature_is_unsigned() -> None:
    features = [[value, value / 2] for value in range(20)]
    labels = [1.0] * 10 + [0.0] * 10
    held = fit(rows(features, labels), ("a", "b"))
    assert held.coefficients == (0.0, 0.0)
    free = fit(rows(features, labels), ("a", "b"), unsigned=frozenset({"b"}))
    assert free.coefficients[0] == 0.0 and free.coefficients[1] < 0


def test_a_constant_feature_gets_no_coefficient_and_weights_count() -> None:
    part = rows([[0.0, 1.0], [1.0, 1.0]], [0.0, 1.0])
    model = fit(joined([part, part]), ("a", "constant"))
    assert model.coefficients[1] == 0.0 and model.coefficients[0] > 0
    heavy = Rows(np.zeros((2, 1)), np.array([1.0, 0.0]), np.array([3.0, 1.0]), np.zeros(2, np.int64))
    assert predict(fit(heavy, ("a",)), np.zeros((1, 1)))[0] == pytest.approx(0.75, abs=1e-3)


def test_probabilities_do_not_overflow() -> None:
    model = Model(("a",), (1000.0,), 0.0)
    assert model.probability([1000.0]) == 1.0
    assert model.probability([-1000.0]) == pytest.approx(0.0)


def test_folds_are_stable() -> None:
    assert [fold_of(name) for name in ("a", "b", "\ud800")] == [fold_of(name) for name in ("a", "b", "\ud800")]
    assert {fold_of(str(number)) for number in range(100)} == set(range(FOLDS))


def test_the_shipped_table_is_monotone_and_says_what_it_was_fitted_on() -> None:
    table = load_table()
    assert {f"{kind}.{tier}" for kind in ("support", "passage", "response") for tier in ("fast", "full")} == set(
        table.models
    )
    for model in table.models.values():
        for name, coefficient in zip(model.features, model.coefficients, strict=True):
            assert coefficient >= 0 or name == "short"
    listed = {str(one["set"]): one for one in table.fitted_on}
    assert "begin_wow" in listed
    for one in listed.values():
        assert "CDLA" not in str(one["licence"]) and one["licence"] != "not stated"


CLEAN = Interaction(
    "c",
    "q?",
    (
        Passage(
            "In March 1998 the firm was founded by Maria Lopez in Berlin. It pays 25 km a day and 12 percent. "
            "It has offices."
        ),
    ),
    "In March 1998 the firm was founded by Maria Lopez. It pays 25 km a day.",
)
DONOR = Interaction("d", "q?", (Passage("Yesterday we saw Napoleon cross the Alps with elephants."),), "x")
KOREAN = Interaction(
    "k", "q?", (Passage("숙박비는 5일 동안 10만원까지 지원합니다."),), "숙박비는 5일 동안 10만원까지 지원합니다."
)
KOREAN_DONOR = Interaction("e", "q?", (Passage("벌꿀은 여름에 만들어지고 나비가 꽃을 찾습니다."),), "x")


@pytest.mark.parametrize("kind", PLANTERS)
@pytest.mark.parametrize(("clean", "donor"), [(CLEAN, DONOR), (KOREAN, KOREAN_DONOR)], ids=["en", "ko"])
def test_each_fault_changes_one_thing(kind: str, clean: Interaction, donor: Interaction) -> None:
    faulty = PLANTERS[kind](clean, donor, random.Random(1))
    if kind == "date" and clean is KOREAN:
        assert faulty is None
        return
    assert faulty is not None
    changed = {
        name for name in ("question", "contexts", "response") if getattr(faulty, name) != getattr(clean, name)
    }
    assert changed == ({"contexts"} if kind in ("swapped", "emptied") else {"response"})


def test_planting_needs_a_place_and_donors_come_from_other_documents() -> None:
    bare = Interaction("b", "q?", (Passage("text"),), "nothing to change here")
    for kind in ("number", "unit", "date", "name", "negation"):
        assert PLANTERS[kind](bare, DONOR, random.Random(1)) is None
    assert donor_of([CLEAN, DONOR, KOREAN], ["a", "a", "b"], 0) is KOREAN
    assert donor_of([CLEAN, DONOR], ["a", "a"], 0) is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not an object"),
        ('{"task": "truth", "label": 1}', "task is 'truth'"),
        ('{"task": "groundedness", "label": 2}', "label is 2"),
        ('{"task": "groundedness", "label": true}', "label is True"),
        ('{"task": "groundedness", "label": 1, "contexts": "x"}', "contexts is not a list"),
        ("", "holds no row"),
        ('{"task": "groundedness", "label": 1}\n{"task": "context_relevance", "label": 1}', "several tasks"),
    ],
)
def test_bad_labelled_files_name_the_place(tmp_path: Path, line: str, message: str) -> None:
    place = tmp_path / "rows.jsonl"
    place.write_text(line + "\n")
    with pytest.raises(BadLabelledFile, match=message) as failure:
        read_set(place)
    assert str(place) in str(failure.value)


def test_an_absent_question_may_be_written_as_nan(tmp_path: Path) -> None:
    place = tmp_path / "rows.jsonl"
    place.write_text('{"task": "groundedness", "label": 1, "question": NaN, "contexts": ["a"], "response": "a"}\n')
    assert read_set(place).rows[0].interaction.question is None


def test_a_null_id_or_group_is_none(tmp_path: Path) -> None:
    place = tmp_path / "set.jsonl"
    row = {"task": "groundedness", "label": 1, "contexts": ["a"], "response": "a"}
    rows = [{**row, "id": None, "group": None}, {**row, "group": None}, {**row, "id": 7, "group": 0}]
    place.write_text("".join(json.dumps(one) + "\n" for one in rows))
    read = read_set(place).rows
    assert [one.interaction.id for one in read] == [f"{place}:1", f"{place}:2", "7"]
    assert [one.group for one in read] == [f"{place}:1", f"{place}:2", "0"]


def call(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    calibrate.add_arguments(parser)
    return calibrate.run(parser.parse_args(arguments))


def test_calibrate_writes_a_table_that_scorers_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(EXCERPTS / f"{name}.jsonl") for name in ("begin_wow", "selqa", "clapnq_resp")]
    table, report = tmp_path / "table.json", tmp_path / "report.json"
    assert call(*files, "--tier", "fast", "--out", str(table), "--report", str(report)) == 0
    printed = capsys.readouterr().out
    assert "begin_wow" in printed and "clapnq_resp+contexts" in printed
    made = parse_table(table.read_text(), str(table))
    assert {str(one["set"]): one["licence"] for one in made.fitted_on}["begin_wow"] == "CC BY 4.0"
    listed = {one["name"]: one for one in json.loads(report.read_text())}
    assert listed["selqa"]["held_out_documents"] > 0.8
    assert made.version in build(["faithfulness"], table=table)[0].score([CLEAN])[0][0].fingerprint
    again = tmp_path / "again.json"
    assert call(*files, "--tier", "fast", "--out", str(again)) == 0
    assert again.read_text() == table.read_text()


def test_calibrate_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(str(tmp_path / "absent.jsonl")) == 2
    assert "absent.jsonl" in capsys.readouterr().err
    sets = tmp_path / "sets.json"
    sets.write_text('{"selqa": {"fit": false}}')
    assert call(str(EXCERPTS / "selqa.jsonl"), "--tier", "fast", "--sets", str(sets)) == 2
    assert "no set may be fitted on" in capsys.readouterr().err
