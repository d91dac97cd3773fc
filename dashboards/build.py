"""Write everything that is generated: rules, their tests, inhibition, dashboards."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import yaml

from dashboards.alert_tests import alert_tests
from dashboards.alerting import Alert, alert_rules
from dashboards.health_alerts import health_alerts
from dashboards.options import Options
from dashboards.quality_alerts import quality_alerts
from dashboards.recording import recording_rules

HERE = Path(__file__).parent
HEAD = "# Made by `python -m dashboards.build`; changes by hand are lost.\n"


def generated(options: Options) -> dict[str, str]:
    """Every generated file by its path below this folder."""
    alerts = all_alerts(options)
    return {
        "prometheus/recording.yml": as_yaml(recording_rules(options)),
        "prometheus/alerts.yml": as_yaml(alert_rules(alerts, options)),
        "prometheus/tests/alerts.yml": as_yaml(alert_tests(options)),
    }


def all_alerts(options: Options) -> list[Alert]:
    """Every alert, those about quality first."""
    return [*quality_alerts(options), *health_alerts(options)]


def as_yaml(content: object) -> str:
    return HEAD + yaml.safe_dump(content, sort_keys=False, width=1_000_000, allow_unicode=True)


def differing(folder: Path, files: dict[str, str]) -> list[str]:
    """Paths that are missing or differ."""
    return [
        path
        for path, text in files.items()
        if not (folder / path).is_file() or (folder / path).read_text(encoding="utf-8") != text
    ]


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dashboards.build", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a committed file differs")
    args = parser.parse_args(argv)
    files = generated(Options())
    if not args.check:
        write(HERE, files)
        return 0
    different = differing(HERE, files)
    for path in different:
        sys.stderr.write(f"dashboards/{path} differs from what is generated; run python -m dashboards.build\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
