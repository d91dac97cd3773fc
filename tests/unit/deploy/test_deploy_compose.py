"""compose.yaml against the published schema, and the promises of its head."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "tests/data/schemas/compose.json").read_text(encoding="utf-8"))
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def test_follows_the_published_schema() -> None:
    validator = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
    validator.validate(COMPOSE)
    broken = {**COMPOSE, "services": {"x": {"image": "y", "portz": []}}}
    assert not validator.is_valid(broken)


def test_runs_what_it_says() -> None:
    assert SERVICES.keys() == {"groundwatch", "kafka", "prometheus", "alertmanager", "grafana"}


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_pinned_checked_bounded_and_published_on_loopback_only(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"[\w./-]+:(v?\d+\.\d+\.\d+|local)", service["image"])
    assert service["healthcheck"]["test"][0] == "CMD"
    assert service["logging"]["options"]["max-size"]
    assert "no-new-privileges:true" in service["security_opt"]
    for port in service["ports"]:
        assert port.startswith("127.0.0.1:")


def test_groundwatch_is_confined() -> None:
    service = SERVICES["groundwatch"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["tmpfs"]
    assert service["mem_limit"]
    compile(service["healthcheck"]["test"][3], "healthcheck", "exec")


@pytest.mark.parametrize("name", SERVICES)
def test_mounted_files_exist_and_volumes_are_declared(name: str) -> None:
    for mount in SERVICES[name].get("volumes", ()):
        source = mount.split(":")[0]
        if source.startswith("."):
            assert (ROOT / source).exists(), source
            assert mount.endswith(":ro")
        else:
            assert source in COMPOSE["volumes"]


def test_the_services_find_each_other_by_name_and_port() -> None:
    folder = ROOT / "dashboards/prometheus"
    prometheus = yaml.safe_load((folder / "prometheus.yml").read_text(encoding="utf-8"))
    jobs = {job["job_name"]: job["static_configs"][0]["targets"] for job in prometheus["scrape_configs"]}
    assert jobs["groundwatch"] == ["groundwatch:4318"]
    (alertmanagers,) = prometheus["alerting"]["alertmanagers"]
    assert alertmanagers["static_configs"][0]["targets"] == ["alertmanager:9093"]
    provisioning = ROOT / "dashboards/grafana/provisioning"
    source = yaml.safe_load((provisioning / "datasources/prometheus.yaml").read_text(encoding="utf-8"))
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    provider = yaml.safe_load((provisioning / "dashboards/groundwatch.yaml").read_text(encoding="utf-8"))
    mounts = dict(mount.split(":")[:2] for mount in SERVICES["grafana"]["volumes"])
    assert mounts["./dashboards/grafana"] == provider["providers"][0]["options"]["path"]
    assert mounts["./dashboards/grafana/provisioning"] == "/etc/grafana/provisioning"


def test_prometheus_and_alertmanager_accept_their_files(program: Callable[[str], str], tmp_path: Path) -> None:
    promtool = program("promtool")
    shutil.copytree(ROOT / "dashboards/prometheus", tmp_path / "prometheus")
    for check in ("config", "web-config"):
        target = tmp_path / "prometheus/prometheus.yml"
        done = subprocess.run([promtool, "check", check, target], capture_output=True, text=True, check=False)
        # The second is a check of another file format: it must refuse, or the first proves nothing.
        assert (done.returncode == 0) == (check == "config"), done.stdout + done.stderr
    amtool = program("amtool")
    alerting = ROOT / "collector/deploy/compose/alertmanager.yml"
    subprocess.run([amtool, "check-config", alerting], capture_output=True, text=True, check=True)
