"""`groundwatch inspect`: what it prints, and what it says of what it can not find."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from collector.commands import inspect
from tests.golden.extract_measure import unpack

KEYS = {
    "interaction_id", "question", "contexts", "response", "model", "session", "user", "tenant", "usage", "trace_ids",
    "marks", "rules", "convention", "service", "reference", "history", "rewritten_query", "error", "damage",
    "unused_contexts",
}  # fmt: skip


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("recordings"))


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, list[dict[str, Any]], str]:
    parser = argparse.ArgumentParser()
    inspect.add_arguments(parser)
    code = inspect.run(parser.parse_args([str(a) for a in arguments]))
    captured = capsys.readouterr()
    return code, [json.loads(line) for line in captured.out.splitlines()], captured.err


def test_spans_and_logs_in_any_order(recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = recordings / "otel_genai"
    files = [base / "openai_genai_event.basic.1.pb", base / "openai_genai_event.basic.2.logs.pb"]
    code, lines, errors = run(capsys, *files)
    _, turned, _ = run(capsys, *reversed(files))
    assert (code, errors) == (0, "")
    assert lines == turned
    line = lines[0]
    assert set(line) >= KEYS
    assert set(line["contexts"][0]) >= {"rank", "id", "text", "score"}
    assert [c["rank"] for c in line["contexts"]] == [0, 1, 2]
    assert line["usage"] == {"input_tokens": 149, "output_tokens": 30}
    assert line["tenant"] == "acme"


def test_explain_names_the_switch_of_the_library(recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, errors = run(capsys, recordings / "haystack" / "native.hidden.pb", "--explain")
    assert code == 0
    assert lines[0]["response"] is None
    assert lines[0]["contexts"] is None
    assert "HAYSTACK_CONTENT_TRACING_ENABLED=true" in errors
    assert "documents_keys" in errors


def test_explain_says_that_all_is_well(recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, errors = run(capsys, recordings / "openinference" / "openai.basic.pb", "--explain")
    assert errors == "rag-api (openinference): 1 interaction(s), all parts found\n"


def test_own_attributes_by_a_configuration_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    span = {
        "traceId": "0" * 31 + "1",
        "spanId": "0" * 15 + "1",
        "name": "ask",
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
        "attributes": [
            {"key": "app.q", "value": {"stringValue": "Why?"}},
            {"key": "app.a", "value": {"stringValue": "Because."}},
            {"key": "app.d", "value": {"stringValue": json.dumps([{"id": "1", "text": "It is so."}])}},
        ],
    }
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    (tmp_path / "spans.json").write_text(json.dumps(request))
    (tmp_path / "groundwatch.yaml").write_text(
        "extract:\n  question_keys: [app.q]\n  response_keys: [app.a]\n  documents_keys: [app.d]\n"
    )
    code, lines, errors = run(capsys, tmp_path / "spans.json")
    assert (code, lines) == (0, [])
    assert "no interaction found" in errors
    code, lines, _ = run(capsys, tmp_path / "spans.json", "-c", tmp_path / "groundwatch.yaml")
    assert (lines[0]["question"], lines[0]["response"]) == ("Why?", "Because.")
    assert [c["text"] for c in lines[0]["contexts"]] == ["It is so."]


def test_unrelated_telemetry_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.json").write_text('{"resourceSpans": []}')
    code, lines, errors = run(capsys, tmp_path / "empty.json", "--explain")
    assert (code, lines) == (0, [])
    assert "no interaction found" in errors
    assert "extract:" in errors


@pytest.mark.parametrize(
    ("name", "content", "config", "said"),
    [
        ("x.txt", "hello", "", "x.txt"),
        ("x.json", '{"resourceSpans": []}', "extract:\n  question_kees: [a]\n", "extract.question_kees"),
        (
            "x.json",
            '{"resourceSpans": []}',
            "extract: {prompt_patterns: [{context: '('}]}\n",
            "no regular expression",
        ),
        ("x.json", '{"resourceSpans": []}', "extract: [\n", "is not valid YAML"),
    ],
)
def test_bad_files_and_bad_configuration_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str, config: str, said: str
) -> None:
    (tmp_path / name).write_text(content)
    (tmp_path / "c.yaml").write_text(config)
    code, lines, errors = run(capsys, tmp_path / name, "-c", tmp_path / "c.yaml")
    assert (code, lines) == (2, [])
    assert said in errors


def test_a_missing_file_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, tmp_path / "none.pb")[0] == 2
