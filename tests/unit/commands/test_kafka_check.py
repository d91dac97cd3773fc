"""`groundwatch check` and Kafka: what can not be reached is said before it is relied on."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from collector.cli import main
from collector.demo.processes import free_port


def check(tmp_path: Path, kafka: dict[str, object], *arguments: str) -> int:
    config = tmp_path / "groundwatch.yaml"
    receivers = {"http": {"port": 0}, "grpc": {"port": 0}, "kafka": kafka}
    config.write_text(yaml.safe_dump({"receivers": receivers}), encoding="utf-8")
    return main(["check", "-c", str(config), *arguments])


def test_no_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port(0)
    assert check(tmp_path, {"brokers": f"127.0.0.1:{port}", "topics": "spans"}) == 1
    assert f"FAIL  receivers.kafka: no broker answers: 127.0.0.1:{port}" in capsys.readouterr().out


def test_a_password_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sasl = {"username": "u", "password": {"env": "NOT_SET_ANYWHERE"}}
    assert check(tmp_path, {"brokers": "127.0.0.1:1", "topics": "spans", "sasl": sasl}) == 1
    assert "environment variable NOT_SET_ANYWHERE is not set" in capsys.readouterr().out


def test_offline_nothing_is_reached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path, {"brokers": "127.0.0.1:1", "topics": "spans"}, "--offline") == 0
    assert "receivers.kafka" not in capsys.readouterr().out


def test_a_bad_section_is_refused_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path, {"brokers": "kafka", "topics": "spans"}) == 2
    assert "receivers.kafka.brokers" in capsys.readouterr().err
