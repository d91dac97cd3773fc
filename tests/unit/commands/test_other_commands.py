"""`config`, `check` and `why`: what they print and how they exit."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
import yaml

from collector.cli import COMMANDS, main
from collector.config import Config
from collector.configfile import load


def test_the_example_is_a_valid_file_with_the_defaults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--example"]) == 0
    path = tmp_path / "groundwatch.yaml"
    path.write_text(capsys.readouterr().out)
    assert load(Config, path, {}) == Config()


def test_the_schema_is_a_json_schema_with_every_section(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--schema"]) == 0
    assert set(json.loads(capsys.readouterr().out)["properties"]) == set(Config.model_fields)


def test_show_prints_what_is_in_force_without_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "groundwatch.yaml"
    path.write_text(
        "export: {otlp: {endpoint: 'http://collector:4317', headers: {authorization: hush-hush}}}\n"
        "sampling: {rate: 0.5}\n"
    )
    assert main(["config", "-c", str(path)]) == 0
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed)["sampling"]["rate"] == 0.5
    assert "hush-hush" not in printed


def test_bind_is_the_host_of_listeners_that_name_none(tmp_path: Path) -> None:
    path = tmp_path / "groundwatch.yaml"
    path.write_text("bind: 0.0.0.0\nreceivers: {grpc: {host: 127.0.0.1}}\n")
    config = load(Config, path, {})
    assert (config.receivers.http.host, config.receivers.grpc.host) == ("0.0.0.0", "127.0.0.1")
    assert not config.loopback and Config().loopback


@pytest.mark.parametrize(
    "text",
    [
        "judge: {base_url: 'http://j/v1', model: m}\nsampling: {budget: {calls_per_day: 77}}\n",
        "judge: {base_url: 'http://j/v1', model: m, budget: {day: {calls: 77, usd: 1.0}}}\n",
    ],
)
def test_the_days_budget_is_set_in_one_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "groundwatch.yaml"
    path.write_text(text)
    config = load(Config, path, {})
    assert config.judge is not None
    assert (config.judge.budget.day.calls, config.judge.budget.day.usd) == (77, 1.0)
    assert (config.sampling.budget.calls_per_day, config.sampling.budget.usd_per_day) == (77, 1.0)


def test_check_tells_a_taken_port_and_an_unreachable_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken, socket.socket() as closed:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        closed.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        port = taken.getsockname()[1]
        path = tmp_path / "groundwatch.yaml"
        path.write_text(
            f"receivers: {{http: {{port: {port}}}, grpc: {{port: 0}}}}\n"
            f"judge: {{base_url: 'http://127.0.0.1:{closed.getsockname()[1]}/v1', model: m}}\n"
        )
        assert main(["check", "-c", str(path)]) == 1
    printed = capsys.readouterr().out
    assert f"FAIL  receivers.http: 127.0.0.1:{port}" in printed
    assert "FAIL  judge: 127.0.0.1" in printed
    assert "the budget is 8000" in printed


def test_check_offline_is_good_with_defaults_and_bad_files_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--offline"]) == 0
    path = tmp_path / "groundwatch.yaml"
    path.write_text("sampling: {rate: 3}\nnonsense: 1\n")
    assert main(["check", "--offline", "-c", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_why_refuses_what_is_no_trace_id_and_says_when_nobody_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "xyz"]) == 2
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        assert main(["why", "ab" * 16, "--url", f"http://127.0.0.1:{closed.getsockname()[1]}"]) == 1
    assert "is groundwatch running there" in capsys.readouterr().err


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert "usage: groundwatch" in capsys.readouterr().out
