"""What can be set about Kafka, and what is said about settings that can not work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from collector.pipeline.kafka_client import (
    KafkaClientOptions,
    KafkaUnusable,
    Secret,
    client_arguments,
    require_kafka,
    why_unreachable,
)
from collector.receivers.kafka_options import KafkaOptions

LEAST: dict[str, Any] = {"brokers": "a:9092", "topics": "spans"}


def test_names_alone_are_enough() -> None:
    options = KafkaOptions.model_validate(
        {"brokers": "a:9092, b:9092", "topics": ["spans", {"name": "logs", "signal": "logs"}]}
    )
    assert options.brokers == ("a:9092", "b:9092")
    assert [topic.name for topic in options.topics] == ["spans", "logs"]
    assert [topic.name for topic in KafkaOptions.model_validate({**LEAST, "topics": "x, y"}).topics] == ["x", "y"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"brokers": "kafka"}, "brokers"),
        ({"brokers": "http://kafka:9092"}, "brokers"),
        ({"brokers": ()}, "brokers"),
        ({"topics": ()}, "topics"),
        ({"topics": "a b"}, "topics"),
        ({"topics": "a,a"}, "listed twice"),
        ({"dead_letter": {"topic": "spans"}}, "name another"),
        ({"heartbeat_seconds": 10, "session_timeout_seconds": 20}, "one lost heartbeat"),
        ({"sasl": {"username": "u", "password": {}}}, "exactly one"),
        ({"sasl": {"username": "u", "password": {"env": "A", "file": "b"}}}, "exactly one"),
        ({"sasl": {"username": "u", "password": {"env": "A"}, "mechanism": "GSSAPI"}}, "mechanism"),
        ({"tls": {"cert_file": "a.pem"}}, "together"),
    ],
)
def test_what_can_not_work_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        KafkaOptions.model_validate({**LEAST, **changed})


def test_arguments_of_the_clients(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("geheim\n")
    options = KafkaClientOptions.model_validate(
        {
            "brokers": "a:9092",
            "sasl": {"username": "u", "password": {"file": secret}, "mechanism": "SCRAM-SHA-256"},
            "tls": {"check_hostname": False},
        }
    )
    arguments = client_arguments(options, {})
    assert arguments["security_protocol"] == "SASL_SSL"
    assert arguments["sasl_plain_password"] == "geheim"
    assert arguments["sasl_mechanism"] == "SCRAM-SHA-256"
    assert not arguments["ssl_context"].check_hostname
    assert "geheim" not in repr(options)
    plain = client_arguments(KafkaClientOptions(brokers=("a:9092",)), {})
    assert plain["security_protocol"] == "PLAINTEXT"
    assert "ssl_context" not in plain


def test_a_secret_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert Secret(env="A").read({"A": "b"}, "sasl.password") == "b"
    empty = tmp_path / "empty"
    empty.write_text(" \n")
    for secret, said in (
        (Secret(env="A"), "variable A is not set"),
        (Secret(file=empty), "is empty"),
        (Secret(file=tmp_path / "none"), "can not be read"),
    ):
        with pytest.raises(KafkaUnusable, match=said):
            secret.read({}, "sasl.password")


def test_files_of_tls_that_can_not_be_used_are_said(tmp_path: Path) -> None:
    bad = tmp_path / "ca.pem"
    bad.write_text("no certificate")
    for tls in ({"ca_file": bad}, {"ca_file": tmp_path / "none"}, {"cert_file": bad, "key_file": bad}):
        with pytest.raises(KafkaUnusable, match="tls: "):
            client_arguments(KafkaClientOptions.model_validate({"brokers": "a:1", "tls": tls}), {})


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    require_kafka()
    monkeypatch.setitem(sys.modules, "cramjam", None)  # as if it were not installed
    with pytest.raises(KafkaUnusable, match=r"groundwatch\[kafka\]"):
        require_kafka()


async def test_nobody_answers(free: int) -> None:
    arguments = client_arguments(KafkaClientOptions(brokers=(f"127.0.0.1:{free}",)), {})
    said = await why_unreachable(arguments)
    assert said.startswith(f"no broker answers: 127.0.0.1:{free} (connection refused)")


@pytest.fixture
def free() -> int:
    from collector.demo.processes import free_port

    return free_port(0)
