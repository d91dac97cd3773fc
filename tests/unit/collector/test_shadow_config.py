"""The shadow's section: what it does not name is the judge's, except what belongs to the judge's address."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.config import Config, Shadow
from collector.configfile import ConfigError, load

JUDGE = """
  base_url: https://judge.example/v1
  model: large
  plan: fused
  api_key: {env: KEY}
  headers: {x-team: search}
  budget: {day: {calls: 50}}
  scorers: [faithfulness]
  embeddings: {model: vectors}
"""


def shadow(tmp_path: Path, text: str) -> Shadow:
    path = tmp_path / "groundwatch.yaml"
    path.write_text(f"judge:{JUDGE}  shadow: {text}\n")
    config = load(Config, path, {})
    assert config.judge is not None and config.judge.shadow is not None
    return config.judge.shadow


def test_it_differs_only_where_it_says_so(tmp_path: Path) -> None:
    found = shadow(tmp_path, "{model: small}")
    assert (found.model, found.name, found.plan, found.base_url) == (
        "small",
        "shadow",
        "fused",
        "https://judge.example/v1",
    )
    assert (found.api_key.env, found.headers) == ("KEY", {"x-team": "search"})
    assert [one.type for one in found.scorers] == ["faithfulness"]


def test_the_judges_key_and_headers_are_not_for_another_address(tmp_path: Path) -> None:
    found = shadow(tmp_path, "{model: small, base_url: 'https://elsewhere.example/v1'}")
    assert (found.api_key.env, found.headers) == (None, {})
    assert found.embeddings is not None and found.embeddings.api_key is not None
    assert (found.embeddings.base_url, found.embeddings.api_key.env) == ("https://judge.example/v1", "KEY")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{model: small, budget: {day: {calls: 5}}}", "the budget is shared"),
        ("{model: small, name: judge}", "is the judge's own name"),
        ("{modle: small}", "modle"),
    ],
)
def test_what_can_not_be_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        shadow(tmp_path, text)
