"""Write everything that is generated: recording and alert rules, their tests, inhibition, dashboards.

Without options the committed files are made. With options of your own name a folder (`--out`): thresholds belong to
an application, not to this repository.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from dashboards.alert_tests import alert_tests
from dashboards.alerting import Alert, alert_rules
from dashboards.boards import boards
from dashboards.burn import Refusal, plan
from dashboards.drift_alerts import drift_alerts
from dashboards.drift_tests import drift_tests
from dashboards.estimate_tests import estimate_tests
from dashboards.health_alerts import health_alerts
from dashboards.inhibition import inhibit_rules
from dashboards.options import Objective, Options
from dashboards.quality_alerts import quality_alerts
from dashboards.recording import recording_rules

HERE = Path(__file__).parent
HEAD = "# Made by `python -m dashboards.build`; changes by hand are lost.\n"


def generated(options: Options) -> dict[str, str]:
    """Every generated file by its path below this folder."""
    alerts = all_alerts(options)
    files = {
        "prometheus/recording.yml": as_yaml(recording_rules(options)),
        "prometheus/alerts.yml": as_yaml(alert_rules(alerts, options)),
        "alertmanager/inhibit_rules.yml": as_yaml({"inhibit_rules": inhibit_rules(options)}),
    }
    if options == Options():  # scenarios are written for the committed thresholds
        files["prometheus/tests/alerts.yml"] = as_yaml(alert_tests(options))
        files["prometheus/tests/estimates.yml"] = as_yaml(estimate_tests(options))
        files["prometheus/tests/drift.yml"] = as_yaml(drift_tests(options))
    for board in boards(options):
        files[f"grafana/{board.uid.removeprefix('groundwatch-')}.json"] = as_json(board.written())
    return files


def all_alerts(options: Options) -> list[Alert]:
    """Every alert, those about quality first."""
    return [*quality_alerts(options), *drift_alerts(options), *health_alerts(options)]


def as_yaml(content: object) -> str:
    return HEAD + yaml.safe_dump(content, sort_keys=False, width=1_000_000, allow_unicode=True)


def as_json(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def differing(folder: Path, files: dict[str, str]) -> list[str]:
    """Paths that are missing or differ."""
    return [
        path
        for path, text in files.items()
        if not (folder / path).is_file() or (folder / path).read_text(encoding="utf-8") != text
    ]


def write(folder: Path, files: dict[str, str]) -> None:
    """Write the files below a folder."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """The command: 0 when written or equal, 1 when `--check` found a difference, 2 for options that can not be."""
    parser = argparse.ArgumentParser(prog="python -m dashboards.build", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file differs")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to (default: this package's own)")
    parser.add_argument(
        "--floor",
        action="append",
        default=[],
        metavar="METRIC=MEAN",
        help="lowest acceptable mean of a judged metric; may be repeated, and replaces the default floors",
    )
    parser.add_argument(
        "--objective",
        action="append",
        default=[],
        metavar="NAME=TARGET",
        help="an objective of the sidecar's configuration, for its burn-rate windows: grounded=0.95",
    )
    parser.add_argument("--judged-per-hour", type=float, default=100, help="effective answers an hour to expect")
    parser.add_argument("--segments", default="service", help="segment labels of the configuration, by comma")
    parser.add_argument("--keep", default="job", help="labels that tell applications apart, by comma")
    parser.add_argument("--runbook", default=Options().runbook, help="where the runbook is; an anchor is appended")
    args = parser.parse_args(argv)
    try:
        options = _options(args)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for objective in options.objectives:
        for refused in plan(objective, false_alarm=options.false_alarm):
            if isinstance(refused, Refusal):
                sys.stderr.write(
                    f"objective {objective.name}: no {refused.burn.rate:g}x alert, {refused.reason}\n"
                )
    files = generated(options)
    if not args.check:
        write(args.out, files)
        return 0
    different = differing(args.out, files)
    for path in different:
        sys.stderr.write(f"{args.out / path} differs from what is generated; run python -m dashboards.build\n")
    return 1 if different else 0


def _options(args: argparse.Namespace) -> Options:
    floors = dict(_pair(text, "--floor") for text in args.floor)
    objectives = tuple(
        Objective(name, target, args.judged_per_hour)
        for name, target in (_pair(text, "--objective") for text in args.objective)
    )
    return Options(
        segments=tuple(args.segments.split(",")),
        keep=tuple(args.keep.split(",")),
        floors=floors or Options().floors,
        objectives=objectives or (Objective(judged_per_hour=args.judged_per_hour),),
        runbook=args.runbook,
    )


def _pair(text: str, option: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        return name, float(number)
    except ValueError:
        raise ValueError(f"{option} {text!r}: write a name, = and a number, like faithfulness=0.9") from None


if __name__ == "__main__":
    sys.exit(main())
