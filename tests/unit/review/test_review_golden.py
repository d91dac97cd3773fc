"""The golden set scored again: the rows of references, what is compared, and the command with a real judge server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collector.cli import main
from collector.review.case import Case
from collector.review.golden import BadBaseline, Run, Scored, compare, kept, load, save
from collector.review.labels import Draft, LabelKind
from collector.review.reference_rows import Finding, ReferenceThresholds, findings
from scorers.interaction import Interaction, Passage
from scorers.testing import Fault, Received, ScriptedJudge, plain_answer
from tests.support.judge import JudgeServer
from tests.support.review_cases import a_case, scored
from tests.unit.review.review_stores import fill, sqlite

FACT = "The warranty lasts two years."
KEY = ("faithfulness", "judged")
HIGH, LOW = 0.9, 0.1


@pytest.mark.parametrize(
    ("scores", "true"),
    [
        ({"context_precision_reference": HIGH, "context_recall": LOW}, {Finding.EVIDENCE_CUT}),
        ({"context_precision_reference": LOW, "context_recall": LOW}, set()),
        ({"faithfulness": HIGH, "factual_correctness": LOW}, {Finding.DOCUMENT_WRONG}),
        ({"faithfulness": LOW, "factual_correctness": HIGH}, {Finding.OWN_MEMORY}),
        ({"faithfulness": LOW, "factual_correctness": LOW}, set()),
        ({"noise_sensitivity_relevant": HIGH}, {Finding.DETAILS_GARBLED}),
        (
            {"noise_sensitivity_irrelevant": HIGH, "noise_sensitivity_relevant": LOW},
            {Finding.IRRELEVANT_LEAKS},
        ),
        (
            {
                "faithfulness": LOW,
                "factual_correctness": LOW,
                "noise_sensitivity_relevant": LOW,
                "noise_sensitivity_irrelevant": LOW,
            },
            {Finding.HALLUCINATION},
        ),
    ],
)
def test_each_row_of_the_table(scores: Mapping[str, float], true: set[Finding]) -> None:
    assert {row for row, holds in findings(scores).items() if holds} == true


def test_a_row_with_a_missing_score_tells_nothing_and_thresholds_are_ones_own() -> None:
    assert findings({"faithfulness": HIGH, "context_recall": LOW}) == {}
    scores = {"faithfulness": 0.6, "factual_correctness": 0.55}
    assert findings(scores)[Finding.OWN_MEMORY]
    assert findings(scores, ReferenceThresholds(faithfulness=0.5)) == {
        Finding.DOCUMENT_WRONG: False,
        Finding.OWN_MEMORY: False,
    }


def a_run(values: Mapping[str, list[float]], metric: str = "faithfulness", content: str = "same") -> Run:
    return Run(
        {name: Scored(content, {(metric, "judged"): one} if one else {}) for name, one in values.items()},
        {(metric, "judged"): "judge"},
    )


def test_direction_decides_what_is_worse_and_lost_scores_are_counted() -> None:
    before = a_run({f"c{n}": [0.9] for n in range(20)} | {"gone": [0.5], "old": [0.5]})
    after = a_run({f"c{n}": [0.4, 0.42] for n in range(20)} | {"gone": [], "new": [0.5]})
    (change,), new, left_out = compare(before, after, lower_is_better={}, alpha=0.05, least=0.01)
    assert (change.verdict, change.moved.n, change.lost, change.gained) == ("worse", 20, 1, 0)
    assert (new, left_out) == (1, 0)
    assert change.moved.difference == pytest.approx(-0.49)
    assert len(change.cases) == 5
    assert change.cases[0].beyond_noise
    (turned,), *_ = compare(before, after, lower_is_better={KEY: True}, alpha=0.05, least=0.01)
    assert turned.verdict == "better"
    (small,), *_ = compare(before, after, lower_is_better={}, alpha=0.05, least=0.6)
    assert small.verdict == "unmoved"


def test_other_content_is_not_compared() -> None:
    before, after = a_run({"a": [0.9]}), a_run({"a": [0.1]}, content="another")
    assert compare(before, after, lower_is_better={}, alpha=0.05, least=0) == ((), 0, 1)


def test_the_scores_kept_in_cases_are_first_tries_of_the_fast_tier_with_repeats() -> None:
    case = replace(
        a_case(),
        results=(
            scored("faithfulness", 0.5),
            scored("faithfulness", 0.7, attempt=1),
            replace(scored("faithfulness", 0.1, attempt=2), fingerprint="another judge"),
            scored("faithfulness", 0.2, "local", tier="fast"),
            scored("faithfulness", 0.3, "local", tier="full"),
        ),
    )
    run = kept([(case, case.interaction)])
    assert run.cases[case.id].scores == {KEY: [0.5, 0.7], ("faithfulness", "local"): [0.2]}


def test_a_baseline_is_read_again_and_something_else_is_refused(tmp_path: Path) -> None:
    run = a_run({"a": [0.25, 0.5]})
    path = tmp_path / "baseline.json"
    save(run, path)
    assert load(path) == run
    for text in (
        "",
        "[]",
        '{"format": 2}',
        '{"format": 1, "cases": {"a": {"content": "x", "scores": {"m/judged": ["b"]}}}}',
    ):
        path.write_text(text)
        with pytest.raises(BadBaseline, match=r"--save"):
            load(path)


# --- the command -----------------------------------------------------------------------------------------------------


def golden_cases(count: int) -> list[Case]:
    """Cases that the plain scripted judge calls faithful, as they were judged when they came."""
    made = []
    for number in range(count):
        name = f"golden-{number}"
        asked = f"How long does the warranty of part {number} last?"
        interaction = Interaction(name, asked, (Passage(FACT),), FACT)
        case = a_case(name, scores={"faithfulness": 1.0})
        made.append(replace(case, interaction=interaction))
    return made


def a_store(tmp_path: Path, cases: list[Case], references: Mapping[str, str] | None = None) -> Path:
    path = fill(tmp_path / "review.sqlite", [*cases, a_case("plain", scores={"faithfulness": 1.0})])
    with sqlite(path) as store:
        for case in cases:
            drafts = [Draft(LabelKind.GOLDEN, value=True)]
            if references and case.id in references:
                drafts.append(Draft(LabelKind.REFERENCE, references[case.id]))
            store.label(case.id, drafts, author="anna", expected_revision=None)
    return path


def strict(received: Received) -> str:
    """A judge that supports nothing any more."""
    return plain_answer(received).replace('"supported"', '"unsupported"')


def knowing(received: Received) -> str:
    """The plain judge, who also looks into the reference, or the response, where he is asked about it."""
    reply = json.loads(plain_answer(received))
    for task in received.tasks:
        for part in ("reference", "response"):
            if f"entailed_by_{part}" in task.name:
                text = received.blocks[part]
                reply[task.name] = {
                    item: {"reason": "words", "label": "yes" if claim in text else "no"}
                    for item, claim in task.items.items()
                }
    return json.dumps(reply)


def configured(tmp_path: Path, server: JudgeServer, **more: object) -> str:
    path = tmp_path / "groundwatch.yaml"
    path.write_text(json.dumps({"judge": server.section(scorers=["faithfulness", "groundedness"], **more)}))
    return str(path)


def regress(*arguments: str, capsys: pytest.CaptureFixture[str], code: int) -> dict[str, Any]:
    assert main(["regress", *arguments, "--no-progress", "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def by_metric(report: dict[str, Any], kind: str = "judged") -> dict[str, dict[str, Any]]:
    return {change["metric"]: change for change in report["changes"] if change["kind"] == kind}


def test_an_unchanged_judge_passes_and_a_stricter_one_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, baseline = a_store(tmp_path, golden_cases(12)), tmp_path / "baseline.json"
    with JudgeServer() as server:
        config = configured(tmp_path, server)
        common = ("--store", str(store), "-c", config)
        report = regress(*common, "--save", str(baseline), capsys=capsys, code=0)
        assert report["cases"] == 12, "the case that is not golden stays out"
        faithfulness = by_metric(report)["faithfulness"]
        assert (faithfulness["verdict"], faithfulness["moved"]["n"], faithfulness["moved"]["p"]) == (
            "unmoved",
            12,
            1,
        )
        assert set(by_metric(report)) == {"faithfulness"}, "the cases came with no other score"
        again = regress(*common, "--baseline", str(baseline), capsys=capsys, code=0)
        assert set(by_metric(again)) == {"faithfulness", "groundedness"}
        assert "faithfulness" in by_metric(again, "local")
        assert {change["verdict"] for change in again["changes"]} == {"unmoved"}
        assert len(server.chats) > 2 * 12
    with JudgeServer(ScriptedJudge(strict)) as server:
        config = configured(tmp_path, server)
        common = ("--store", str(store), "-c", config, "--baseline", str(baseline))
        report = regress(*common, capsys=capsys, code=1)
        faithfulness = by_metric(report)["faithfulness"]
        assert (faithfulness["verdict"], faithfulness["moved"]["after"], faithfulness["moved"]["by"]) == (
            "worse",
            0,
            "noise",
        )
        assert by_metric(report)["groundedness"]["verdict"] == "unmoved"
        assert report["causes"] == {"undetermined": 12}, "context relevance is not judged here"
        assert main(["regress", *common, "--no-progress", "--repeat", "1"]) == 1
        text = capsys.readouterr().out
        assert "something got worse beyond noise" in text
        assert "golden-" in text


def test_references_are_judged_where_people_gave_them_and_their_rows_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = {"golden-0": "The warranty lasts three years.", "golden-1": FACT}
    store = a_store(tmp_path, golden_cases(3), stale)
    with JudgeServer(ScriptedJudge(knowing)) as server:
        report = regress("--store", str(store), "-c", configured(tmp_path, server), capsys=capsys, code=0)
        assert main(["regress", "--store", str(store), "-c", configured(tmp_path, server), "--no-progress"]) == 0
    rows = {one["case_id"]: one["findings"] for one in report["reports"]}
    assert "document_wrong" in rows["golden-0"], "faithful to a passage that the reference contradicts"
    assert "document_wrong" not in rows["golden-1"]
    assert rows["golden-2"] == [], "no reference, no row"
    assert report["told"]["document_wrong"] == 2
    assert report["findings"]["document_wrong"] == 1
    assert "document_wrong 1 of 2" in capsys.readouterr().out


def test_a_judge_that_is_down_is_no_verdict_and_no_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, baseline = a_store(tmp_path, golden_cases(3)), tmp_path / "baseline.json"
    with JudgeServer(ScriptedJudge(faults=[Fault(status=401)] * 50)) as server:
        config = configured(tmp_path, server)
        report = regress(
            "--store", str(store), "-c", config, "--save", str(baseline), "--scorers", "faithfulness",
            capsys=capsys, code=2,
        )  # fmt: skip
    assert (report["trusted"], report["measured"]) == (False, 0)
    assert not baseline.exists()


def test_local_scores_alone_send_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, baseline = a_store(tmp_path, golden_cases(3)), tmp_path / "baseline.json"
    with JudgeServer() as server:
        common = ("--store", str(store), "-c", configured(tmp_path, server), "--local")
        regress(*common, "--save", str(baseline), capsys=capsys, code=2)  # the cases came without local scores
        report = regress(*common, "--baseline", str(baseline), capsys=capsys, code=0)
        assert server.chats == []
    assert {change["kind"] for change in report["changes"]} == {"local"}
    moved_file = json.loads(baseline.read_text())
    for case in moved_file["cases"].values():
        case["scores"]["faithfulness/local"] = [1.0]
    baseline.write_text(json.dumps(moved_file))
    report = regress(*common, "--baseline", str(baseline), capsys=capsys, code=1)
    assert by_metric(report, "local")["faithfulness"]["moved"]["by"] == "exact"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--repeat", "0"], "--repeat"),
        (["--alpha", "2"], "--alpha"),
        (["--high", "grace=0.5"], "--high"),
        (["--baseline", "nowhere.json"], "nowhere.json"),
        (["--service", "none"], "no golden case"),
        (["--scorers", "faithfulness"], "no judge is configured"),
    ],
)
def test_what_can_not_be_measured_exits_2_with_the_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    store = a_store(tmp_path, golden_cases(1))
    assert main(["regress", "--store", str(store), *arguments]) == 2
    assert says in capsys.readouterr().err
