"""Configuration: every problem at once, each with its place, its value and its cure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field

from collector.config import Config
from collector.configfile import ConfigError, example, load


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    port: int = Field(4318, ge=0, le=65535, description="Port to listen on.")
    hosts: tuple[str, ...] = ()


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str = "http://127.0.0.1"
    inner: Inner = Inner()
    rate: float = Field(0.05, gt=0, le=1)


class Needs(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(description="Which model.")


class Root(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: str = "s"
    judge: Needs | None = None
    sampling: Section = Section()


def _write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "groundwatch.yaml"
    path.write_text(text)
    return path


def test_file_and_environment_are_merged_and_the_environment_wins(tmp_path: Path) -> None:
    path = _write(tmp_path, "sampling:\n  rate: 0.2\n  inner: {port: 1}\n")
    environment = {
        "GROUNDWATCH_SAMPLING_INNER__PORT": "2",
        "GROUNDWATCH_SAMPLING_BASE_URL": "http://b",
        "GROUNDWATCH_JUDGE_MODEL": "m",
        "GROUNDWATCH_CONFIG": "ignored",
        "OTHER": "x",
    }
    config = load(Root, path, environment)
    assert config.sampling.rate == 0.2
    assert config.sampling.inner.port == 2
    assert config.sampling.base_url == "http://b"
    assert config.judge is not None and config.judge.model == "m"


def test_all_problems_are_told_at_once_with_line_value_and_cure(tmp_path: Path) -> None:
    path = _write(tmp_path, "seed: x\nsampling:\n  raet: 0.2\n  inner:\n    port: 99999\njudge: {}\n")
    with pytest.raises(ConfigError) as caught:
        load(Root, path, {"GROUNDWATCH_SAMPLING_RATE": "7"})
    text = "\n".join(caught.value.problems)
    assert f"{path}:3: sampling.raet" in text and "did you mean 'rate'?" in text
    assert f"{path}:5: sampling.inner.port" in text and "99999" in text
    assert "GROUNDWATCH_SAMPLING_RATE: sampling.rate" in text and "(is 7)" in text
    assert f"{path}:6: judge.model: is required" in text
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [("a: [", "not valid YAML"), ("- 1\n- 2\n", "must be a mapping"), ("seed: {from_env: NOPE}", "NOPE")],
)
def test_unusable_files_say_why(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load(Root, _write(tmp_path, text), {})


def test_a_missing_file_and_an_unknown_variable_are_problems(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(Root, tmp_path / "none.yaml", {"GROUNDWATCH_JUGDE_MODEL": "m"})
    assert "can not be read" in caught.value.problems[0]
    assert "GROUNDWATCH_JUGDE_MODEL" in caught.value.problems[1]


def test_what_kubernetes_sets_for_a_service_of_our_name_is_no_setting() -> None:
    environment = {
        "GROUNDWATCH_PORT": "tcp://10.0.0.1:4317",
        "GROUNDWATCH_SERVICE_HOST": "10.0.0.1",
        "GROUNDWATCH_SERVICE_PORT_OTLP_GRPC": "4317",
        "GROUNDWATCH_PORT_4317_TCP_ADDR": "10.0.0.1",
        "GROUNDWATCH_SAMPLING_INNER__PORT": "7",
    }
    assert load(Root, None, environment).sampling.inner.port == 7


def test_secrets_come_from_files_and_variables(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush\n")
    path = _write(tmp_path, "seed: {from_file: secret}\nsampling: {base_url: {from_env: URL}}\n")
    config = load(Root, path, {"URL": "http://c"})
    assert (config.seed, config.sampling.base_url) == ("hush", "http://c")


@pytest.mark.parametrize(
    ("scorers", "says"),
    [
        (
            "[faithfulness, nonsense]",
            "judge.scorers: no judged scorer is called 'nonsense'; there are: faithfulness,",
        ),
        ("[rubric]", "judge.scorers: a rubric needs its text"),
        ("[]", "judge.scorers: list one scorer at least, or leave scorers out for the defaults"),
    ],
)
def test_scorers_that_can_not_be_are_told_with_all_other_problems(tmp_path: Path, scorers: str, says: str) -> None:
    path = _write(tmp_path, f"judge:\n  base_url: http://a/v1\n  model: m\n  scorers: {scorers}\nunheard: 1\n")
    with pytest.raises(ConfigError) as raised:
        load(Config, path, {})
    assert len(raised.value.problems) == 2
    assert any(f"{path}:4: {says}" in problem for problem in raised.value.problems)


def test_the_example_is_valid_and_equals_the_defaults(tmp_path: Path) -> None:
    text = example(Root)
    assert "# Port to listen on." in text
    assert load(Root, _write(tmp_path, text), {}) == Root()
    assert yaml.safe_load(text)["sampling"]["inner"]["port"] == 4318


def test_a_setting_that_stands_twice_is_named_with_both_lines(tmp_path: Path) -> None:
    path = _write(
        tmp_path, "sampling:\n  rate: 0.2\n  inner: {port: 1, port: 2}\nseed: a\nsampling: {rate: 0.3}\n"
    )
    with pytest.raises(ConfigError) as raised:
        load(Root, path, {})
    assert raised.value.problems == [
        f"{path}:3: sampling.inner.port: is set in line 3 already; put both into one",
        f"{path}:5: sampling: is set in line 1 already; put both into one",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "judge: {base_url: 'http://j/v1', model: m, api_key: HUNTER2}",
        "judge: {base_url: 'http://me:HUNTER2@j/v1', model: m}",
        "receivers: {tokens: [HUNTER2]}",
        "receivers: {kafka: {brokers: 'b:1', topics: t, sasl: {username: u, password: HUNTER2}}}",
        "export: {otlp: {endpoint: 'http://c:4317', headers: {authorization: [HUNTER2]}}}",
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(tmp_path: Path, text: str) -> None:
    """The message goes to a terminal or a log; it says where the secret is to be given."""
    with pytest.raises(ConfigError) as raised:
        load(Config, _write(tmp_path, text), {})
    assert "HUNTER2" not in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path))


def test_a_mapping_that_is_missing_is_named_by_what_belongs_in_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load(Root, _write(tmp_path, "sampling: 5\n"), {})
    (problem,) = raised.value.problems
    assert problem.endswith("sampling: must be a mapping of base_url, inner, rate (is 5)")


@pytest.mark.parametrize("text", ["seed: 2001-99-99\n", "sampling: &x [*x]\n"])
def test_what_yaml_itself_stumbles_over_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(str(tmp_path))):
        load(Root, _write(tmp_path, text), {})


def test_a_variable_that_is_no_yaml_is_a_text() -> None:
    assert load(Root, None, {"GROUNDWATCH_SEED": "2001-99-99"}).seed == "2001-99-99"


def test_yamls_own_merging_of_mappings_is_no_repetition(tmp_path: Path) -> None:
    path = _write(tmp_path, "sampling:\n  <<: {rate: 0.2}\n  rate: 0.3\n")
    assert load(Root, path, {}).sampling.rate == 0.3
