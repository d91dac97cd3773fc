"""The README's own words: its configuration is valid, its metrics and commands exist, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from collector.cli import COMMANDS
from collector.config import Config
from collector.telemetry.metrics import table

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [block for block in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL) if "judge:" in block]


@pytest.mark.parametrize("block", BLOCKS)
def test_its_configuration_is_valid(block: str) -> None:
    config = Config.model_validate(yaml.safe_load(block))
    assert config.judge is not None


def test_there_is_configuration_to_check() -> None:
    assert BLOCKS


def test_its_metrics_exist() -> None:
    names = {spec.name for spec in table()}
    written = set()
    for name in re.findall(r"`(groundwatch_[a-z0-9_{},]+)`", README):
        prefix, brace, rest = name.partition("{")
        parts, _, suffix = rest.partition("}")
        written |= {prefix + part + suffix for part in parts.split(",")} if brace else {name}
    assert written, "the README names no metric"
    assert written <= names


def test_its_commands_exist_and_every_command_is_in_it() -> None:
    written = set(re.findall(r"groundwatch ([a-z-]+)[ `\]]", README))
    assert set(COMMANDS) <= written
    used = set(re.findall(r"`groundwatch ([a-z-]+)", README))
    assert used <= set(COMMANDS)


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
