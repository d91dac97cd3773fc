"""`groundwatch sampling-plan`: its table, its JSON, and what it says of what can not be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collector.cli import main
from collector.stats.burn import minimum_n
from dashboards.options import Options as Rules

CONFIG = """
judge:
  base_url: http://127.0.0.1:9/v1
  model: m
  prices: {m: {input_usd_per_million: 0.1, output_usd_per_million: 0.4}}
  budget: {day: {calls: 20000, usd: 2}}
sampling:
  segments: [{name: tenant, attribute: app.tenant, values: [gold, free]}]
  policies:
    - {type: scores, steps: [{below: 0.5, probability: 0.5}, {below: 0.7, probability: 0.2}], otherwise: 0.05}
    - {type: stratified, segment: tenant, values: {gold: {per_hour: 60}}}
    - {type: rules, rules: [{match: {attribute: release, equals: canary}, probability: 0.5}]}
"""


def plan(
    capsys: pytest.CaptureFixture[str], *arguments: str, config: str = CONFIG, directory: Path
) -> tuple[int, str, str]:
    path = directory / "groundwatch.yaml"
    path.write_text(config)
    code = main(["sampling-plan", "-c", str(path), *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_table_says_how_many_at_what_cost_and_how_sure(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = (
        "--traffic",
        "20/m",
        "--segments",
        "tenant=gold:1,free:19",
        "--segments",
        "release=canary:1,stable:9",
    )
    code, out, _ = plan(capsys, *arguments, "--tokens", "4870,900", directory=tmp_path)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "traffic    1,200 interactions an hour, 28,800 a day"
    assert "4 calls and 0.000847 US dollars a judged interaction" in out
    assert "pays for 2,361 judged interactions a day" in out
    (dollars,) = (line for line in lines if line.startswith("US dollars a day"))
    assert dollars.split()[-2:] == ["2.0000", "2.0000"]
    windows = [line.split()[0] for line in lines if line[:2].strip() in ("5m", "30", "1h", "6h", "1d", "7d")]
    assert windows == ["5m", "30m", "1h", "6h", "1d", "7d"]
    assert {line.split()[0] for line in lines if line.startswith("tenant=")} == {"tenant=gold", "tenant=free"}
    assert "note: the budget cuts: the policies ask for" in out


def test_json_holds_the_same_and_burn_rates_by_the_generators_own_rule(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, _ = plan(capsys, "--traffic", "1200/h", "--price", "0.001", "--json", directory=tmp_path)
    assert code == 0
    made = json.loads(out)
    assert made["traffic"]["per_hour"] == 1200
    assert made["allowed_per_day"] == 2_000
    own = made["configured"]
    assert own["usd_per_day"] == pytest.approx(2.0)
    assert own["windows"]["1d"]["judged"] == pytest.approx(2_000)
    assert own["n_eff_per_hour"] == own["windows"]["1h"]["n_eff"] < made["uniform"]["n_eff_per_hour"]
    assert own["windows"]["5m"]["half_width"] is None
    pages = [one for one in made["burn_rates"] if "short_hours" in one]
    refused = [one for one in made["burn_rates"] if "refused" in one]
    assert len(pages) + len(refused) == 12
    assert pages
    for page in pages:
        needed = minimum_n(page["target"], page["rate"], Rules().false_alarm)
        assert page["needed_n"] == needed <= own["n_eff_per_hour"] * page["short_hours"]
        assert 2 * page["short_hours"] <= page["long_hours"]
    assert {(one["target"], one["rate"]) for one in refused} >= {(0.9, 14.4), (0.8, 14.4), (0.8, 6)}


def test_more_judged_allows_more_windows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    allowed = []
    for rate in (0.01, 0.1, 1.0):
        config = f"sampling: {{rate: {rate}, budget: {{calls_per_day: null, usd_per_day: null}}}}"
        _, out, _ = plan(capsys, "--traffic", "1000", "--json", config=config, directory=tmp_path)
        allowed.append(sum("short_hours" in one for one in json.loads(out)["burn_rates"]))
    assert allowed[0] < allowed[1] <= allowed[2]


def test_what_is_not_known_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, out, _ = plan(capsys, "--traffic", "100/h", config="sampling: {rate: 0.1}", directory=tmp_path)
    assert "US dollars unknown: give --price" in out
    assert "US dollars a day" not in out
    assert "note: no judge is configured" in out
    unpriced = CONFIG.replace("prices: {m:", "prices: {other:")
    _, out, _ = plan(capsys, "--traffic", "100/h", config=unpriced, directory=tmp_path)
    assert "judge.prices has none of 'm'" in out
    _, out, _ = plan(capsys, "--traffic", "100/h", directory=tmp_path)
    assert "4870 prompt tokens of the four default scorers with the plan standard; replies cost more on top" in out


def test_a_score_that_is_not_screened_and_a_budget_that_is_overrun_are_noted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = CONFIG + "  lowest: 0.01\nscreening: {scorers: [groundedness]}\n"
    config = config.replace("calls: 20000", "calls: 200")
    _, out, _ = plan(capsys, "--traffic", "1000/h", config=config, directory=tmp_path)
    assert "'faithfulness', which screening.scorers does not run" in out
    assert "or take one of groundedness" in out
    (tmp_path / "own.yaml").write_text("screening: {scorers: [groundedness]}\n" + config.partition("screening")[0])
    assert main(["check", "--offline", "-c", str(tmp_path / "own.yaml")]) == 1
    assert "FAIL  sampling.policies: 'scores' looks at the local score 'faithfulness'" in capsys.readouterr().out
    assert "stops estimates after about 5.0 h of each day" in out  # 50 of 240


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--traffic", "many"], "--traffic 'many' can not be read: write 1200/h"),
        (["--traffic", "0"], "must be above 0"),
        (["--traffic", "1/y"], "can not be read"),
        (
            ["--traffic", "9", "--segments", "team=a:1"],
            "'team' is no segment, and no rule of a policy looks at it",
        ),
        (["--traffic", "9", "--segments", "tenant"], "write NAME=VALUE:PARTS"),
        (["--traffic", "9", "--segments", "tenant=gold"], "write NAME:NUMBER"),
        (["--traffic", "9", "--segments", "tenant=gold:nan"], "write NAME:NUMBER"),
        (["--traffic", "9", "--segments", "tenant=gold:1,gold:2"], "'gold' is listed twice"),
        (["--traffic", "9", "--segments", "tenant=a:1", "--segments", "tenant=b:1"], "given twice"),
        (["--traffic", "9", "--marks", "sparkling:1"], "'sparkling' is no mark that a policy sees"),
        (["--traffic", "9", "--marks", "not_rag:1"], "'not_rag' is no mark that a policy sees"),
        (["--traffic", "9", "--marks", "streaming:2"], "must lie in [0, 1]"),
        (["--traffic", "9", "--price", "-1"], "--price -1"),
        (["--traffic", "9", "--price", "inf"], "--price inf"),
        (["--traffic", "9", "--tokens", "many"], "--tokens 'many'"),
        (["--traffic", "9", "--sd", "0.5"], "not 0.5"),
    ],
)
def test_wrong_arguments_are_explained(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], message: str
) -> None:
    code, out, err = plan(capsys, *arguments, directory=tmp_path)
    assert (code, out) == (2, "")
    assert message in err


def test_a_bad_configuration_is_explained_with_its_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = plan(
        capsys, "--traffic", "9", config=CONFIG.replace("otherwise: 0.05", "otherwise: 0.02"), directory=tmp_path
    )
    assert code == 2
    assert "groundwatch.yaml:" in err
    assert "0.5 and 0.02 are 25 times apart, at most 10 are allowed" in err
