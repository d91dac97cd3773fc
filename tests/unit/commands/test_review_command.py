"""`groundwatch review`: what other processes found is picked from, and a data subject's cases are erased."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from collector.cli import main
from collector.extract.redaction import pseudonym
from collector.pipeline.clock import SystemClock
from collector.records.result_json import encode, from_settled
from collector.records.settled import Settled
from collector.review.case import Reason
from collector.review.labels import Draft, LabelKind
from collector.review.options import Options
from collector.review.query import Query
from collector.review.sqlite import SqliteStore
from collector.telemetry.instruments import Telemetry
from tests.support.review_settled import NOON_NANO, a_settled

HOUR = 3_600_000_000_000


def line(settled: Settled, *, hour: float = 0, content: bool = True, judge_model: str | None = "judge-9") -> str:
    moment = NOON_NANO + int(hour * HOUR)
    message = from_settled(settled, content=content, settled_unix_nano=moment, judge_model=judge_model)
    return encode(message).decode() + "\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Cases of 2023, kept; a control part of one half."""
    path = tmp_path / "groundwatch.yaml"
    options = {
        "seed": "a seed",
        "review": {
            "path": str(tmp_path / "review.sqlite"),
            "max_age_days": 100_000,
            "pick": {"control": {"rate": 0.5, "per_day": 1e9}, "low_per_day": 24},
        },
    }
    path.write_text(json.dumps(options))
    return path


def store_of(tmp_path: Path) -> SqliteStore:
    store = SqliteStore(
        tmp_path / "review.sqlite", Options(max_age_days=100_000), clock=SystemClock(), telemetry=Telemetry()
    )
    store.open()
    return store


def test_results_of_other_processes_become_cases(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.jsonl"
    lines = [line(a_settled(f"good-{number}", judged={"faithfulness": 1.0})) for number in range(40)]
    lines += [line(a_settled("low-local", local={"faithfulness": 0.1}), judge_model=None)]
    # 24 a day, two an hour at most: by the messages' times, not by ours
    lines += [line(a_settled(f"low-{n}", judged={"faithfulness": 0.1}), hour=n / 4) for n in range(40)]
    lines += ["\n", line(a_settled("bare", judged={"faithfulness": 0.0}), content=False)]
    file.write_text("".join(lines))
    assert main(["review", "ingest", str(file), "-c", str(config), "--control", "judged"]) == 0
    out, err = capsys.readouterr()
    assert "from 81 interactions" in out
    assert "1 without content, 0 replayed, 0 lines that could not be read" in out
    assert "export.content" in err
    store = store_of(tmp_path)
    low = list(store.each(Query(reason=Reason.LOW_SCORE)))
    assert len([case for case in low if case.id.startswith("low-") and case.id != "low-local"]) == 20
    control = list(store.each(Query(reason=Reason.CONTROL)))
    assert 20 < len(control) < 60
    assert {case.probability for case in control} == {0.5}
    assert all(case.decision is not None and case.decision.fate == "queued" for case in control)
    case = store.get("low-0")
    assert case is not None
    assert (case.judge_model, case.interaction.question) == ("judge-9", "Does the warranty cover water damage?")
    local = store.get("low-local")
    assert local is not None
    assert local.judge_model is None
    store.close()
    # Once more changes nothing: the same interactions are the same cases.
    before = out.split(" are kept now")[0].rsplit(" ", 1)[1]
    assert main(["review", "ingest", str(file), "-c", str(config), "--control", "judged"]) == 0
    assert f"{before} are kept now" in capsys.readouterr().out


def test_bad_lines_are_told_by_their_place(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["no json\n", '{"schema_version": 99}\n', line(a_settled("a", judged={"faithfulness": 0.0}))]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("".join(lines).encode())))
    assert main(["review", "ingest", "-", "-c", str(config)]) == 1
    out, err = capsys.readouterr()
    assert "-:1: " in err
    assert "-:2: " in err
    assert "schema_version 99" in err
    assert "from 1 interactions" in out


def test_a_subject_is_erased_by_the_id_that_the_application_knows(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hashed = pseudonym("a seed", "jane-77")
    file = tmp_path / "results.jsonl"
    settled = [a_settled(f"case-{n:016d}", judged={"faithfulness": 0.0}, trace_ids=(f"t-{n}",)) for n in range(3)]
    settled[1] = replace(settled[1], found=replace(settled[1].found, user=hashed))
    file.write_text("".join(line(one, hour=n) for n, one in enumerate(settled)))
    assert main(["review", "ingest", str(file), "-c", str(config)]) == 0
    store = store_of(tmp_path)
    store.label("case-0000000000000001", [Draft(LabelKind.SKIP)], author="ann", expected_revision=0)
    store.close()
    capsys.readouterr()
    assert main(["review", "delete", "--user", "jane-77", "-c", str(config)]) == 0
    assert "1 cases and 1 labels of the user are erased" in capsys.readouterr().out
    assert b"case-0000000000000001" not in (tmp_path / "review.sqlite").read_bytes()
    # What comes again, from a topic that is read twice, is not taken again.
    assert main(["review", "ingest", str(file), "-c", str(config)]) == 0
    assert "2 are kept now" in capsys.readouterr().out
    assert main(["review", "delete", "--trace", "t-0", "-c", str(config)]) == 0
    assert main(["review", "delete", "--session", "nobody", "-c", str(config)]) == 0
    assert "0 cases" in capsys.readouterr().out
    assert main(["review", "stats", "-c", str(config)]) == 0
    assert "1 cases, 0 labelled, 0 golden" in capsys.readouterr().out


def test_what_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", "stats"]) == 2
    assert "give --store FILE, or set review.path" in capsys.readouterr().err
    assert main(["review", "delete", "--case", "x", "--store", str(tmp_path / "none")]) == 2
    assert "there is no review store" in capsys.readouterr().err
    (tmp_path / "text").write_text("no database" * 100)
    assert main(["review", "stats", "--store", str(tmp_path / "text")]) == 2
    assert "can not be used" in capsys.readouterr().err
    assert main(["review", "ingest", str(tmp_path / "none.jsonl"), "--store", str(tmp_path / "new")]) == 2
    assert "none.jsonl" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["review", "delete"])
    assert "required" in capsys.readouterr().err
