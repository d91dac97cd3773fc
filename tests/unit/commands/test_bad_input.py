"""Wrong input at the command line: one sentence with place and cure, a fitting exit code, never a traceback."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from collector.cli import main
from collector.web import passwords
from tests.support.review_pages import opened, warranty

_INTERRUPTED = """
import os, signal, sys
from collector.cli import main

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "collector.commands.score":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, CtrlC())
sys.exit(main(["score", "-"]))
"""


def test_a_ctrl_c_while_a_command_is_still_imported_ends_it_quietly() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (130, "")


def _ends(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and what was said on standard error."""
    try:
        code = main(argv)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, capsys.readouterr().err


@pytest.mark.parametrize("command", ["score", "inspect", "calibrate", "bench-judge"])
@pytest.mark.parametrize(("kind", "said"), [("absent", "no such file or directory"), ("folder", "is a directory")])
def test_a_file_that_is_none_is_named_with_why(
    command: str,
    kind: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GROUNDWATCH_JUDGE_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("GROUNDWATCH_JUDGE_MODEL", "m")
    path = tmp_path if kind == "folder" else tmp_path / "absent"
    assert _ends([command, str(path)], capsys) == (2, f"groundwatch {command}: {path}: {said}\n")


@pytest.mark.parametrize("command", ["calibrate", "bench-judge"])
def test_labelled_rows_in_bytes_that_are_no_text_are_named_by_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDWATCH_JUDGE_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("GROUNDWATCH_JUDGE_MODEL", "m")
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n\xb9\xff\n")
    code, said = _ends([command, str(path)], capsys)
    assert code == 2
    assert said == f"groundwatch {command}: {path}:2: not text in UTF-8; one object a line is needed\n"


def test_nothing_to_score_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("\n")
    code, said = _ends(["score", str(path)], capsys)
    assert (code, said.count("holds no record")) == (2, 1)


def test_lines_that_are_no_json_or_no_text_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"what?\n" + gzip.compress(b"x", mtime=0).replace(b"\n", b"") + b"\n")
    assert main(["score", str(path)]) == 1
    first, second = (json.loads(line)["error"] for line in capsys.readouterr().out.splitlines())
    assert first.startswith("line 1: is no JSON (Expecting value at column 1)")
    assert second.startswith("line 2: is no text in UTF-8")


@pytest.mark.parametrize(
    "argv",
    [
        ["score", "x", "--workers", "-3"],
        ["score", "x", "--concurrency", "0"],
        ["bench-judge", "x", "--limit", "few"],
        ["replay", "x", "--rate", "fast"],
        ["demo", "--rate", "fast"],
        ["demo", "--duration", "long"],
    ],
)
def test_a_number_that_is_none_or_out_of_range_is_a_usage_error(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = _ends(argv, capsys)
    assert code == 2
    assert f"argument {argv[-2]}: {argv[-1]!r} " in said.splitlines()[-1]


@pytest.mark.parametrize(
    "argv", [["review", "delete", "--user", "u"], ["review", "stats"], ["agreement"], ["export", "-o", "none.csv"]]
)
def test_an_empty_file_is_no_store_and_stays_empty(
    argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "review.sqlite"
    path.touch()
    code, said = _ends([*argv, "--store", str(path)], capsys)
    assert code == 2
    assert "there is no review store" in said
    assert path.stat().st_size == 0


def test_inspect_names_the_line_of_what_is_no_yaml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "groundwatch.yaml"
    path.write_text("extract: {\n")
    code, said = _ends(["inspect", "x", "-c", str(path)], capsys)
    assert code == 2
    assert said.startswith(f"groundwatch inspect: {path}:2: is not valid YAML: ")
    assert len(said.splitlines()) == 1


class _Another(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()
        self.wfile.write(b'{"detail": "Not Found"}')

    def log_message(self, *args: object) -> None:
        pass


def test_another_servers_not_found_is_no_word_about_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    with HTTPServer(("127.0.0.1", 0), _Another) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        code, said = _ends(["why", "ab" * 16, "--url", f"http://127.0.0.1:{server.server_port}"], capsys)
    assert code == 1
    assert "none of groundwatch's" in said


def test_check_tries_the_state_directory_and_the_files_of_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    config = {
        "receivers": {"http": {"port": 0}, "grpc": {"port": 0}},
        "process": {"state_dir": str(tmp_path / "file")},
        "web": {"token_file": str(tmp_path / "absent"), "users_file": str(tmp_path / "file")},
    }
    path = tmp_path / "groundwatch.yaml"
    path.write_text(json.dumps(config))
    assert main(["check", "-c", str(path)]) == 1
    told = capsys.readouterr().out
    assert "FAIL  process.state_dir:" in told
    assert "FAIL  web.token_file:" in told
    assert "FAIL  web.users_file:" in told
    config["process"] = {"state_dir": str(tmp_path / "new" / "state")}
    config["web"] = {}
    path.write_text(json.dumps(config))
    assert main(["check", "-c", str(path)]) == 0
    assert "ok    process.state_dir:" in capsys.readouterr().out
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("key", [{"env": "NO_SUCH_KEY_OF_A_TEST"}, {"file": "absent"}, {"command": ["false"]}])
def test_check_looks_for_the_judges_key(
    key: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with HTTPServer(("127.0.0.1", 0), _Another) as server:
        config = {
            "receivers": {"http": {"port": 0}, "grpc": {"port": 0}},
            "judge": {"base_url": f"http://127.0.0.1:{server.server_port}/v1", "model": "m", "api_key": key},
        }
        path = tmp_path / "groundwatch.yaml"
        path.write_text(json.dumps(config))
        assert main(["check", "-c", str(path)]) == 1
    failures = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL")]
    assert len(failures) == 1
    assert failures[0].startswith("FAIL  judge: ")


def test_results_that_are_no_text_cost_only_their_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"\xb9\n\n{}\n")
    code, said = _ends(["review", "ingest", "--store", str(tmp_path / "review.sqlite"), str(path)], capsys)
    assert code == 1
    assert f"{path}:1: " in said
    assert f"{path}:3: " in said


@pytest.mark.parametrize("where", ["", "absent/cases.csv"])
def test_an_export_that_can_not_be_written_names_its_file(
    where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "review.sqlite"
    with opened(store) as kept:
        kept.put(warranty(1))
    (tmp_path / "folder").mkdir()
    output = tmp_path / (where or "folder")
    code, said = _ends(["export", "--store", str(store), "-o", str(output)], capsys)
    assert code == 2
    assert said.startswith(f"groundwatch export: {output}: ")


def test_no_password_makes_no_line_to_log_in_by(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert passwords.main(["ana"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("a password is needed")) == ("", 1)
