"""The image's recipe, read as text: two stages, wheel only, no root, nothing secret."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def instructions() -> list[list[tuple[str, str]]]:
    """Stages of the Dockerfile, each a list of (instruction, rest), continuation lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    stages: list[list[tuple[str, str]]] = []
    for line in filter(str.strip, lines):
        word, rest = line.strip().split(maxsplit=1)
        if word == "FROM":
            stages.append([])
        stages[-1].append((word, rest))
    return stages


def of(stage: list[tuple[str, str]], word: str) -> list[str]:
    return [rest for name, rest in stage if name == word]


def test_two_stages_on_one_pinned_base() -> None:
    build, final = instructions()
    (built_on,), (runs_on,) = of(build, "FROM"), of(final, "FROM")
    assert built_on == f"{runs_on} AS build"
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", runs_on)
    supported = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert supported
    assert int(runs_on.split(".")[1].split("-")[0]) >= int(supported[1])


def test_the_final_stage_holds_the_installed_wheel_and_no_sources() -> None:
    build, final = instructions()
    assert of(final, "COPY") == ["--from=build /opt/groundwatch /opt/groundwatch"]
    assert not of(final, "ADD")
    assert "pip wheel" in " ".join(of(build, "RUN"))
    assert "pip" not in " ".join(of(final, "RUN"))


def test_runs_as_a_numeric_user_and_by_exec_form() -> None:
    _, final = instructions()
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", of(final, "USER")[-1])
    assert json.loads(of(final, "ENTRYPOINT")[0]) == ["groundwatch"]
    assert json.loads(of(final, "CMD")[0]) == ["run"]
    assert of(final, "STOPSIGNAL") == ["SIGTERM"]
    words = [name for name, _ in final]
    assert words.index("USER") > words.index("RUN")


def test_the_health_check_is_python_that_compiles_and_asks_healthz() -> None:
    _, final = instructions()
    command = json.loads(of(final, "HEALTHCHECK")[0].split("CMD", 1)[1])
    assert command[:2] == ["python", "-c"]
    compile(command[2], "healthcheck", "exec")
    assert "/healthz" in command[2]
    assert "4318" in of(final, "EXPOSE")[0].split()


def test_binds_to_all_addresses_and_holds_no_secret() -> None:
    stages = instructions()
    settings = dict(pair.split("=", 1) for pair in shlex.split(of(stages[1], "ENV")[0]))
    assert settings["GROUNDWATCH_BIND"] == "0.0.0.0"
    for stage in stages:
        for word, rest in stage:
            if word in {"ENV", "ARG"}:
                assert not re.search(r"(?i)token|secret|password|api_?key", rest)


@pytest.mark.parametrize(
    "needed", ["pyproject.toml", "README.md", "LICENSE", "collector", "scorers", "dashboards"]
)
def test_the_build_context_holds_what_is_copied_and_nothing_else(needed: str) -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert f"!{needed}" in rules
    copied = {part for rest in of(instructions()[0], "COPY") for part in rest.split()[:-1]}
    assert copied == {rule[1:] for rule in rules if rule.startswith("!")}
    assert (ROOT / needed).exists()
