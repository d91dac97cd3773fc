"""Agreement with people, and quality in people's terms: the arithmetic, who counts, and whether intervals cover."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from collector.cli import main
from collector.review.agreement import MAX_VALUES, Builder, Settings
from collector.review.agreement_text import report_text
from collector.review.case import Case, Reason
from collector.review.figures import Agreement, Compared
from collector.review.labels import Draft, Label, LabelKind
from tests.bench.agreement_simulation import covers, read
from tests.support.review_cases import NOON, a_case
from tests.unit.review.agreement_simulator import World, cases, one, truth
from tests.unit.review.review_stores import fill, sqlite

METRIC = "faithfulness"


def control(number: int, order: float, judged: float, **more: object) -> Case:
    return a_case(
        f"case-{number}",
        scores={METRIC: judged},
        reasons=(Reason.CONTROL,),
        probability=0.5,
        order=order,
        session=f"session-{number}",
        **more,  # type: ignore[arg-type]  # fields of a_case
    )


def by_people(case: Case, value: float | None, *, in_order: bool = True, at: float = NOON + 60) -> Case:
    """With a score of anna, or skipped by her."""
    kind = LabelKind.SKIP if value is None else LabelKind.SCORE
    label = Label(kind, "anna", at, 1, value, "" if value is None else METRIC, in_order=in_order)
    return replace(case, labels=(label,))


def built(cases: Iterable[Case], settings: Settings | None = None) -> Agreement:
    builder = Builder(settings)
    for case in cases:
        builder.add(case)
    return builder.report()


def rows(report: Agreement, first: str, second: str, *, weighted: bool) -> list[Compared]:
    return [row for row in report.compared if (row.first, row.second, row.weighted) == (first, second, weighted)]


def test_shares_and_means_are_weighted_by_what_each_case_stands_for() -> None:
    light = replace(control(1, 0.1, 0.9), decision=None)
    heavy = control(2, 0.2, 0.8)  # judged with probability 0.05
    report = built([by_people(light, 0.0), by_people(heavy, 1.0), by_people(control(3, 0.3, 0.1), 0.0)])
    (row,) = rows(report, "judged", "people", weighted=True)
    assert row.n == 3
    assert row.n_eff == pytest.approx(41**2 / (1 + 400 + 400))
    cells = row.confusion
    assert (cells.good_good, cells.good_bad) == (pytest.approx(20 / 41), pytest.approx(1 / 41))
    assert (cells.bad_good, cells.bad_bad) == (0, pytest.approx(20 / 41))
    assert row.accuracy.value == pytest.approx(40 / 41)
    assert row.balanced_accuracy is not None
    assert row.balanced_accuracy.value == pytest.approx((1 + 20 / 21) / 2)
    assert [(part.low, part.n) for part in row.calibration] == [(0.1, 1), (0.8, 1), (0.9, 1)]
    assert row.calibration[2].right.value == 0
    assert row.calibration_error == pytest.approx((20 * 0.1 + 20 * 0.2 + 0.9) / 41)
    assert rows(report, "judged", "people", weighted=False) == []


def test_what_people_picked_is_shown_apart_and_without_weights() -> None:
    drawn = [by_people(control(number, number / 10, 0.9), 1.0) for number in range(3)]
    picked = by_people(a_case("picked", scores={METRIC: 0.9}), 0.0, in_order=False)
    report = built([*drawn, picked])
    (weighted,) = rows(report, "judged", "people", weighted=True)
    (apart,) = rows(report, "judged", "people", weighted=False)
    assert (weighted.n, weighted.accuracy.value) == (3, 1)
    assert (apart.n, apart.accuracy.value) == (1, 0)
    assert report.corrected[0].labels == 3
    text = report_text(report)
    assert "not drawn in order" in text
    assert "not shown under 50 labels" in text


def test_only_what_lies_before_the_place_reached_counts() -> None:
    turn = [by_people(control(number, number / 1000, 0.9), 1.0) for number in range(100)]
    ahead = by_people(control(500, 0.9, 0.9), 0.0, in_order=False)
    far = by_people(control(501, 0.95, 0.9), 0.0)  # in order, yet half of those before it were never seen
    unseen = [control(600 + number, 0.2 + number / 1000, 0.9) for number in range(100)]
    report = built([*turn, ahead, far, *unseen])
    assert report.reached_order == pytest.approx(0.099)
    assert rows(report, "judged", "people", weighted=True)[0].n == 100
    assert rows(report, "judged", "people", weighted=False)[0].n == 2
    asked = report.corrected[0].response
    assert (asked.whole, asked.reached, asked.answered) == (202, 100, 100)


def test_skips_and_forgotten_cases_are_told_and_bounded() -> None:
    answered = [by_people(control(number, number / 1000, 0.9), 1.0) for number in range(96)]
    skipped = [by_people(control(200 + number, number / 1000 + 0.0005, 0.9), None) for number in range(3)]
    forgotten = control(300, 0.05, 0.9)
    quality = built([*answered, *skipped, forgotten]).corrected[0]
    asked = quality.response
    assert (asked.reached, asked.answered, asked.skipped, asked.left) == (100, 96, 3, 1)
    assert asked.share == pytest.approx(0.96)
    assert quality.mean is not None
    assert quality.mean.value == pytest.approx(1)
    assert quality.mean_bounds == (pytest.approx(0.96), pytest.approx(1))


def test_cases_that_had_no_turn_yet_and_a_time_of_which_only_labels_are_left_stay_out() -> None:
    old = [by_people(control(n, n / 1000, 0.9, ended_unix=NOON - 9_000), 1.0) for n in range(20)]
    day = [by_people(control(100 + n, n / 1000, 0.9), 1.0) for n in range(50)]
    unseen = [control(200 + n, 0.1 + n / 1000, 0.5) for n in range(50)]
    later = control(400, 0.0001, 0.1)
    later = replace(later, picks=(replace(later.picks[0], at_unix=NOON + 3_600),))
    report = built([*old, *day, *unseen, later])
    quality = report.corrected[0]
    assert (quality.response.whole, quality.labels) == (100, 50)
    assert (report.since_unix, report.until_unix) == (NOON, NOON)
    assert rows(report, "judged", "people", weighted=True)[0].n == 70, "agreement takes the old ones all the same"


def test_a_disagreement_without_a_number_widens_the_mean_and_not_the_share() -> None:
    dice = np.random.default_rng(3)
    scores = dice.uniform(0.5, 1, 120)
    made = [by_people(control(n, n / 1000, float(scores[n])), float(scores[n])) for n in range(120)]
    known = built(made).corrected[0]
    for n in range(0, 120, 4):
        label = Label(LabelKind.AGREE, "anna", NOON + 60, 1, "disagree", METRIC, in_order=True)
        made[n] = replace(made[n], labels=(label,))
    report = built(made)
    quality = report.corrected[0]
    assert quality.mean is not None and known.mean is not None and quality.share is not None
    widths = [(one.high or 1) - (one.low or 0) for one in (quality.mean, known.mean)]
    assert widths[0] > widths[1] + 0.1
    assert quality.mean.value == pytest.approx(float(np.mean(np.where(np.arange(120) % 4, scores, 0.25))))
    assert quality.share.value == pytest.approx(0.75)
    assert rows(report, "judged", "people", weighted=True)[0].undetermined == 30


def test_local_scores_are_compared_with_the_judge_without_any_label() -> None:
    made = [
        a_case(
            f"case-{n}",
            scores={"precision_at_k": n % 2},
            local={"passage_relevance": 0.2 + 0.6 * (n % 2)},
            reasons=(Reason.CONTROL,),
            probability=0.5,
            order=n / 50,
        )
        for n in range(40)
    ]
    report = built(made)
    (row,) = rows(report, "local", "judged", weighted=True)
    assert (row.metric, row.n, row.accuracy.value) == ("precision_at_k", 40, 1)
    assert row.auroc is not None and row.auroc.value == 1
    assert report.corrected == ()
    assert (report.labelled, report.reached_order) == (0, 0)


def test_figures_by_segment_are_bounded_and_all_stands_first() -> None:
    made = [by_people(control(n, n / 1000, 0.9, segments={"tier": f"t{n}"}), 1.0) for n in range(MAX_VALUES + 9)]
    report = built(made, Settings(by="tier"))
    found = rows(report, "judged", "people", weighted=True)
    assert [found[0].segment, found[0].n] == ["all", MAX_VALUES + 9]
    assert {row.segment: row.n for row in found}["other"] == 9
    assert len(found) == MAX_VALUES + 2
    assert {row.segment for row in built(made, Settings(by="judge")).compared} == {"all", "judge-1"}


def test_a_threshold_of_ones_own() -> None:
    made = [by_people(control(n, n / 1000, 0.75), 0.72) for n in range(3)]
    row = built(made, Settings(0.5, {METRIC: 0.8})).compared[0]
    assert (row.threshold, row.confusion.bad_bad) == (0.8, 1)


@pytest.mark.parametrize("world", [World(judged=0.2), World(lenient=0.3, noise=0.3, flips=0.15)])
def test_intervals_cover_the_truth_with_a_judge_who_errs(world: World) -> None:
    """The long form is tests/bench/agreement_simulation.py."""
    dice, true, runs = np.random.default_rng(5), truth(world, count=100_000), 25
    inside: dict[str, int] = {}
    apart: list[float] = []
    judge: list[float] = []
    for _ in range(runs):
        report = one(dice, world, answers=900, labels=60)
        for name, figure in read(report).items():
            assert figure is not None
            inside[name] = inside.get(name, 0) + covers(figure, getattr(true, name))
            if name == "mean":
                apart.append(figure.value - true.mean)
        judge.append(report.corrected[0].first_mean - true.mean)
    # Five misses or more of 25 have a probability of 0.7 % for each figure at 95 %; these are seeded.
    assert all(count >= runs - 4 for count in inside.values()), inside
    assert abs(np.mean(apart)) < 0.4 * abs(np.mean(judge))


def test_the_command_reads_a_store_and_prints_text_or_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = list(cases(np.random.default_rng(1), World(), answers=300, kept=0.4, labels=60))
    path = fill(tmp_path / "review.sqlite", made)
    with sqlite(path) as store:
        for case in made:
            for label in case.labels:
                draft = Draft(label.kind, label.value, label.metric)
                store.label(case.id, [draft], author="anna", expected_revision=0, in_order=label.in_order)
    assert main(["agreement", "--store", str(path)]) == 0
    text = capsys.readouterr().out
    assert "quality in people's terms" in text
    assert "judged against people" in text
    assert main(["agreement", "--store", str(path), "--json", "--by", "service"]) == 0
    report = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    direct = built(made, Settings(by="service"))
    assert report["corrected"][0]["mean"]["value"] == pytest.approx(direct.corrected[0].mean.value)  # type: ignore[union-attr]  # fails if None
    assert report["instruments"] == {METRIC: {"judged": {"judge": len(made)}}}
    assert main(["agreement", "--store", str(path), "--threshold", "2"]) == 2
    assert "--threshold" in capsys.readouterr().err
    assert main(["agreement", "--store", str(path), "--labelled", "true", "--text", "nothing"]) == 1


def test_an_empty_report_has_no_figures() -> None:
    report = built([])
    assert (report.cases, report.compared, report.since_unix) == (0, (), None)
    assert "nothing to compare" in report_text(report)
    assert not math.isnan(report.reached_order)
