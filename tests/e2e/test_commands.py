"""The commands as a user sees them: what they print, where, and with which exit code."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no stubs of its own
import pytest
import yaml

from collector import __version__
from collector.cli import COMMANDS, main
from collector.demo.processes import free_port
from scorers.testing import Fault
from tests.support import recordings
from tests.support.judge import JudgeServer
from tests.support.sidecar import Sidecar, run_command
from tests.support.traces import FACT, QUESTION, body, rag_trace
from tests.support.waiting import until

pytestmark = pytest.mark.e2e

RECORDS: list[dict[str, Any]] = [
    {"id": "good", "question": QUESTION, "contexts": [FACT], "response": FACT},
    {"id": "invented", "question": QUESTION, "contexts": [FACT], "response": "Elephants sleep for two hours."},
    {"id": "refusal", "question": QUESTION, "contexts": [FACT], "response": "I do not know."},
]


def records_file(directory: Path, *lines: object) -> Path:
    path = directory / "records.jsonl"
    path.write_text(
        "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines), encoding="utf-8"
    )
    return path


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def ports(**more: object) -> dict[str, Any]:
    """A configuration whose listeners are free."""
    return {"receivers": {"http": {"port": free_port(0)}, "grpc": {"port": free_port(0)}}, **more}


def written(directory: Path, config: object) -> str:
    path = directory / "groundwatch.yaml"
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.startswith("usage: groundwatch ")
    assert f" {name} " in shown.out


def test_the_command_names_its_commands() -> None:
    code, out, error = run_command("--help")
    assert (code, error) == (0, "")
    assert all(f"\n    {name}" in out for name in COMMANDS)
    assert run_command("--version") == (0, f"groundwatch {__version__}\n", "")
    code, _, error = run_command("watch")
    assert code == 2
    assert "watch" in error


def test_the_example_is_valid_and_is_the_defaults(tmp_path: Path) -> None:
    code, example, _ = run_command("config", "--example")
    assert code == 0
    config = written(tmp_path, example)
    code, shown, error = run_command("config", "--show", "-c", config)
    assert (code, error) == (0, "")
    assert yaml.safe_load(shown) == yaml.safe_load(run_command("config", "--show")[1])
    code, schema_text, _ = run_command("config", "--schema")
    assert code == 0
    schema = json.loads(schema_text)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(example) or {}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"assembly": {"quiet_second": 1}}, schema)


def test_check_says_what_is_good_and_what_is_not(tmp_path: Path, judge: JudgeServer) -> None:
    code, out, error = run_command("check", "-c", written(tmp_path, ports()))
    assert (code, error) == (0, ""), out
    assert "series" in out
    assert all(line.startswith("ok ") for line in out.splitlines()), out
    with_judge = written(tmp_path, ports(judge=judge.section()))
    code, out, _ = run_command("check", "--judge", "-c", with_judge)
    assert code == 0, out
    judge.misbehave(*[Fault(404)] * 5)
    code, out, _ = run_command("check", "--judge", "-c", with_judge)
    assert code == 1
    assert "404" in out
    away = {"base_url": f"http://127.0.0.1:{free_port(0)}/v1", "model": "none"}
    config = written(tmp_path, ports(judge=away))
    code, out, _ = run_command("check", "-c", config)
    assert code == 1
    assert "FAIL  judge" in out
    assert run_command("check", "--offline", "-c", config)[0] == 0
    code, _, error = run_command("check", "-c", written(tmp_path, "sampling: {rate: 7}\nassembly: 3\n"))
    assert code == 2
    assert "sampling.rate" in error
    assert "assembly" in error


def test_check_knows_a_running_groundwatch(sidecar: Sidecar, tmp_path: Path) -> None:
    proxy = {"HTTP_PROXY": f"http://127.0.0.1:{free_port(0)}", "NO_PROXY": "", "no_proxy": ""}
    code, _, error = run_command("check", "--health", sidecar.http, env=proxy)
    assert code == 0, error
    port = int(sidecar.http.rpartition(":")[2])
    config = ports()
    config["receivers"]["http"]["port"] = port
    code, out, _ = run_command("check", "-c", written(tmp_path, config))
    assert code == 1
    assert "running already" in out
    sidecar.terminate()
    assert run_command("check", "--health", sidecar.http)[0] == 1


def test_inspect_prints_what_it_found(tmp_path: Path) -> None:
    row = next(r for r in recordings.rows() if r["files"][-1].endswith(".logs.pb") and r["case"] == "basic")
    paths = []
    for name, signal, content in recordings.requests(row["files"]):
        path = tmp_path / Path(name).name
        path.write_bytes(content)
        paths.append(str(path))
        json_form = tmp_path / f"{path.stem}.json"
        json_form.write_bytes(recordings.as_json(content, signal))
    code, out, error = run_command("inspect", *paths)
    assert (code, error) == (0, "")
    (found,) = json_lines(out)
    assert found["question"] == row["question"]
    assert found["response"] == row["response"]
    assert [one["text"] for one in found["contexts"]] == [one["text"] for one in row["contexts"]]
    assert found["trace_ids"] == row["trace_ids"]
    # Any order, either encoding.
    reversed_json = [path.removesuffix(".pb") + ".json" for path in reversed(paths)]
    assert run_command("inspect", *reversed_json) == (0, out, "")
    code, out, error = run_command("inspect", str(tmp_path / "absent.pb"))
    assert (code, out) == (2, "")
    assert "absent.pb" in error


def test_inspect_explains_hidden_content(tmp_path: Path) -> None:
    row = next(r for r in recordings.rows() if r["case"] == "hidden")
    paths = []
    for name, _, content in recordings.requests(row["files"]):
        path = tmp_path / Path(name).name
        path.write_bytes(content)
        paths.append(str(path))
    code, out, error = run_command("inspect", "--explain", *paths)
    assert code == 0
    assert all(one["response"] is None for one in json_lines(out))
    assert error.strip()


def test_why_tells_what_became_of_a_trace(sidecar: Sidecar) -> None:
    spans = rag_trace(random.Random(8))
    trace_id = spans[0].trace_id.hex()
    sidecar.send(body(spans))
    until(lambda: "scoring" in run_command("why", trace_id, "--url", sidecar.http)[1], "the trace is scored")
    code, out, _ = run_command("why", trace_id, "--url", sidecar.http)
    assert code == 0
    for stage in ("assembly", "extraction", "sampling", "scoring"):
        assert stage in out, out
    assert "faithfulness (local)" in out
    assert "hotel" not in out  # ids and numbers, no text of the trace
    code, out, _ = run_command("why", "0" * 31 + "1", "--url", sidecar.http)
    assert code == 1
    assert "nothing is known" in out
    code, _, error = run_command("why", "xyz")
    assert code == 2
    assert "'xyz' is not a trace id" in error
    code, _, error = run_command("why", trace_id, "--url", f"http://127.0.0.1:{free_port(0)}")
    assert code == 1
    assert "is groundwatch running there?" in error


def test_score_locally(tmp_path: Path) -> None:
    path = records_file(tmp_path, *RECORDS)
    code, out, error = run_command("score", str(path))
    assert code == 0, error
    by_id = {line["id"]: {r["scorer"]: r for r in line["results"]} for line in json_lines(out)}
    assert by_id.keys() == {"good", "invented", "refusal"}
    for result in (r for results in by_id.values() for r in results.values()):
        assert result.keys() >= {"scorer", "kind", "tier", "outcome", "score", "raw", "reason", "evidence"}
        assert (result["kind"], result["tier"]) == ("local", "fast")
        assert (result["score"] is not None) == (result["outcome"] == "scored")
    assert by_id["good"]["faithfulness"]["score"] > by_id["invented"]["faithfulness"]["score"] + 0.3
    assert by_id["refusal"]["noncommittal"]["score"] > 0.5
    assert by_id["refusal"]["faithfulness"]["outcome"] == "not_applicable"
    assert json_lines(run_command("score", "-", "--scorers", "faithfulness", stdin=path.read_text())[1])[0][
        "results"
    ][0]["scorer"] == "faithfulness"  # fmt: skip


def test_score_goes_on_after_bad_lines_and_where_it_stopped(tmp_path: Path) -> None:
    path = records_file(tmp_path, RECORDS[0], "{not json", {"id": "odd", "contexts": 7}, RECORDS[1])
    out_path = tmp_path / "out.jsonl"
    code, out, error = run_command("score", str(path), "-o", str(out_path))
    assert (code, out) == (1, ""), error
    lines = json_lines(out_path.read_text(encoding="utf-8"))
    assert {line["id"] for line in lines if line.get("results")} == {"good", "invented"}
    assert {line["line"] for line in lines if line["id"] is None} == {2, 3}
    more = records_file(tmp_path, *RECORDS)
    code, _, _ = run_command("score", str(more), "-o", str(out_path))
    assert code == 0
    again = json_lines(out_path.read_text(encoding="utf-8"))[len(lines) :]
    assert [line["id"] for line in again] == ["refusal"]
    code, out, error = run_command("score", str(tmp_path / "absent.jsonl"))
    assert (code, out) == (2, "")
    assert "absent.jsonl" in error
    code, out, error = run_command("score", str(more), "--scorers", "fidelity")
    assert (code, out) == (2, "")
    assert "fidelity" in error


def test_score_with_a_judge(tmp_path: Path, judge: JudgeServer) -> None:
    path = records_file(tmp_path, *RECORDS[:2])
    code, _, error = run_command("score", str(path), "--judge")
    assert code == 2
    assert "GROUNDWATCH_JUDGE_BASE_URL" in error
    assert judge.chats == []
    config = written(tmp_path, {"judge": judge.section(scorers=["faithfulness"])})
    code, out, error = run_command("score", str(path), "--judge", "-c", config)
    assert code == 0, error
    scores = {line["id"]: line["results"][0]["score"] for line in json_lines(out)}
    assert scores == {"good": 1.0, "invented": 0.0}
    # The same from the environment, and a judge that is not there: failed, with its reason, and no number.
    judge.misbehave(*[Fault(401)] * 40)
    env = {"GROUNDWATCH_JUDGE_BASE_URL": judge.judge.base_url, "GROUNDWATCH_JUDGE_MODEL": "scripted"}
    code, out, _ = run_command("score", str(path), "--judge", "--scorers", "faithfulness", env=env)
    assert code == 1
    for line in json_lines(out):
        (result,) = line["results"]
        assert (result["outcome"], result["reason"], result["score"]) == ("failed", "judge_auth", None)
