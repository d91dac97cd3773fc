"""Generated rules: the committed files, promtool's opinion, and a scenario for every alert."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from collector.telemetry.metrics import table
from dashboards import build
from dashboards.alerting import SEVERITIES
from dashboards.drift_tests import drift_scenarios
from dashboards.health_scenarios import health_scenarios
from dashboards.options import Options, duration
from dashboards.quality_scenarios import quality_scenarios
from dashboards.recording import recording_rules
from tests.conftest import Program

FOLDER = Path(build.__file__).parent
FILES = build.generated(Options())
ALERTS = build.all_alerts(Options())
NAMES = sorted({alert.name for alert in ALERTS})
RULES = [rule for group in yaml.safe_load(FILES["prometheus/recording.yml"])["groups"] for rule in group["rules"]]


def test_the_committed_files_are_what_is_generated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build.differing(FOLDER, FILES) == [], "run: python -m dashboards.build"
    assert build.main(["--check"]) == 0
    build.write(tmp_path, FILES)
    assert build.differing(tmp_path, FILES) == []
    changed = tmp_path / "prometheus/alerts.yml"
    changed.write_text(changed.read_text(encoding="utf-8").replace("critical", "info"), encoding="utf-8")
    (tmp_path / "prometheus/recording.yml").unlink()
    assert build.differing(tmp_path, FILES) == ["prometheus/recording.yml", "prometheus/alerts.yml"]
    assert build.main(["--check", "--out", str(tmp_path)]) == 1
    assert "prometheus/alerts.yml differs" in capsys.readouterr().err


def test_promtool_finds_no_fault_in_the_rules(program: Program) -> None:
    for name in ("recording", "alerts"):
        done = subprocess.run(
            [
                program("promtool"),
                "check",
                "rules",
                "--lint=all",
                "--lint-fatal",
                FOLDER / f"prometheus/{name}.yml",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["alerts", "estimates", "drift"])
def test_promtool_runs_the_unit_tests_of_the_rules(program: Program, name: str) -> None:
    done = subprocess.run(
        [program("promtool"), "test", "rules", f"tests/{name}.yml"],
        cwd=FOLDER / "prometheus",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_scenario_in_which_it_fires_and_one_in_which_nothing_does() -> None:
    scenarios = [*health_scenarios(), *quality_scenarios(), *drift_scenarios()]
    fired = {name for scenario in scenarios for name in scenario.fires}
    assert fired | {"GroundwatchAbsent"} == set(NAMES)
    silent = [scenario for scenario in scenarios if not scenario.fires]
    assert len(silent) > len(scenarios) / 3


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: f"{alert.name}-{'-'.join(alert.labels.values())}")
def test_every_alert_says_how_bad_what_and_where_to_read_on(alert) -> None:  # type: ignore[no-untyped-def]  # parametrised
    assert alert.severity in SEVERITIES
    assert alert.category in ("quality", "judge", "instrumentation", "pipeline")
    assert alert.name.startswith("Groundwatch")
    assert alert.description.endswith(".")
    assert not alert.summary.endswith(".")
    written = alert.written(Options())
    headings = re.findall(r"^#+ (.+)$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    place, anchor = written["annotations"]["runbook_url"].split("#")
    assert place == "dashboards/README.md"
    assert anchor in {heading.lower() for heading in headings}, f"the runbook lacks a section {alert.name}"


def test_the_runbook_has_no_section_for_an_alert_that_is_gone() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^#+ (Groundwatch\w+)$", text, re.MULTILINE)) == set(NAMES)


def test_every_name_in_the_rules_is_declared_or_recorded() -> None:
    declared = {spec.name for spec in table()}
    recorded = {rule["record"] for rule in RULES}
    for file in ("prometheus/recording.yml", "prometheus/alerts.yml"):
        for group in yaml.safe_load(FILES[file])["groups"]:
            for rule in group["rules"]:
                used = set(re.findall(r"(?:\w+:)?groundwatch[\w:]*", rule["expr"]))
                assert used <= declared | recorded, (rule, used - declared - recorded)


def test_counters_are_only_read_by_their_increase() -> None:
    counters = [spec.name for spec in table() if spec.name.endswith("_total")]
    for rule in RULES:
        for name in counters:
            for found in re.finditer(rf"(?<![\w:]){name}\b", rule["expr"]):
                assert rule["expr"][: found.start()].endswith("increase("), rule


def test_the_compose_file_has_the_inhibition_and_alertmanager_accepts_it(program: Program, tmp_path: Path) -> None:
    rules = yaml.safe_load(FILES["alertmanager/inhibit_rules.yml"])["inhibit_rules"]
    compose = yaml.safe_load(
        (FOLDER.parent / "collector/deploy/compose/alertmanager.yml").read_text(encoding="utf-8")
    )
    assert compose["inhibit_rules"] == rules, "copy dashboards/alertmanager/inhibit_rules.yml into it"
    named = {name for rule in rules for side in ("source", "target") for text in rule[f"{side}_matchers"]
             for name in re.findall(r"Groundwatch\w+", text)}  # fmt: skip
    assert named <= set(NAMES)
    path = tmp_path / "alertmanager.yml"
    path.write_text(yaml.safe_dump(compose), encoding="utf-8")
    subprocess.run([program("amtool"), "check-config", path], check=True, capture_output=True)


def test_the_command_takes_an_applications_own_thresholds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--out", str(tmp_path), "--floor", "faithfulness=0.93", "--objective", "grounded=0.9"]
    assert build.main([*arguments, "--judged-per-hour", "20"]) == 0
    told = capsys.readouterr().err
    assert "objective grounded: no 14.4x alert, at 14.4x an objective of 0.9 allows a bad share of 1.44" in told
    alerts = (tmp_path / "prometheus/alerts.yml").read_text(encoding="utf-8")
    assert 'burn_rate:6h{objective=~"grounded"} > 6' in alerts
    assert "> 14.4" not in alerts
    recording = (tmp_path / "prometheus/recording.yml").read_text(encoding="utf-8")
    assert "vector(0.93)" in recording
    assert "groundedness" not in recording


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--floor", "faithfulness"],
            "--floor 'faithfulness': write a name, = and a number, like faithfulness=0.9",
        ),
        (["--floor", "faithfulness=90"], "floor of 'faithfulness': 90.0 must lie between 0 and 1"),
        (["--objective", "grounded=95"], "objective 'grounded': target 95.0 must lie between 0 and 1, like 0.95"),
    ],
)
def test_thresholds_that_can_not_be_are_refused_with_the_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert build.main(["--out", str(tmp_path), *arguments]) == 2
    assert capsys.readouterr().err.strip() == message
    assert list(tmp_path.iterdir()) == []


def test_time_can_run_faster_for_tests() -> None:
    scaled = recording_rules(Options(time_scale=60))
    text = yaml.safe_dump(scaled)
    assert "[5s]" in text
    assert "[1m]" in text
    assert "[5m]" not in text
    assert {group["interval"] for group in scaled["groups"]} == {"1s", "30s"}  # type: ignore[attr-defined]  # plain data


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "500ms"), (90, "90s"), (300, "5m"), (3_600, "1h"), (604_800, "7d"), (1.5, "1500ms")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_what_can_not_be_is_refused() -> None:
    with pytest.raises(ValueError, match="use a smaller time_scale"):
        duration(1e-5)
    with pytest.raises(ValueError, match="time_scale 0"):
        Options(time_scale=0)
    with pytest.raises(ValueError, match=r"floor of 'faithfulness': 1\.5"):
        Options(floors={"faithfulness": 1.5})
    with pytest.raises(ValueError, match=r"false_alarm 0\.5"):
        Options(false_alarm=0.5)


def test_segments_and_kept_labels_are_the_users(tmp_path: Path, program: Program) -> None:
    options = Options(segments=("service", "tenant"), keep=("job", "namespace"), floors={"support": 0.9})
    files = build.generated(options)
    build.write(tmp_path, files)
    for name in ("recording", "alerts"):
        path = tmp_path / f"prometheus/{name}.yml"
        subprocess.run([program("promtool"), "check", "rules", path], check=True, capture_output=True)
    recording = files["prometheus/recording.yml"]
    by = "job, namespace, metric, fingerprint, service, tenant"
    assert f"sum by ({by}) (increase(groundwatch_judged_sum_w_total" in recording
    assert "faithfulness" not in recording
    assert '{tenant="other"}' in files["prometheus/alerts.yml"]
