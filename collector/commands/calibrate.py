"""`groundwatch calibrate`: refit the local scorers from labelled JSON Lines, and say how good they are."""

from __future__ import annotations

import argparse
import json
import sys
from importlib import resources
from pathlib import Path

from scorers.errors import ScorerError
from scorers.scorer import Tier


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="labelled JSON Lines, one set a file: question, contexts, response, task, label, group",
    )
    parser.add_argument(
        "--tier",
        choices=("fast", "full", "both"),
        default="both",
        help="which tier's models to fit (default both; full needs the extra [local])",
    )
    parser.add_argument(
        "--sets",
        type=Path,
        metavar="FILE",
        help="JSON: set name to licence, origin, fit (true/false) and weight; without it the list shipped with "
        "groundwatch is used, and a set that is not in it is fitted with weight 1",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write the table here (else only the report is made)"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the report as JSON here as well")


def run(args: argparse.Namespace) -> int:
    from scorers.local.calibration import refit, report_json, report_text, table_json
    from scorers.local.encoder import Encoder
    from scorers.local.engine import Engine
    from scorers.local.labelled import read_set

    try:
        about = json.loads(
            args.sets.read_text("utf-8")
            if args.sets is not None
            else resources.files("scorers.local").joinpath("data/sets.json").read_text("utf-8")
        )
        sets = [read_set(path, about) for path in args.files]
        models, reports = {}, []
        for tier in (Tier.FAST, Tier.FULL):
            if args.tier not in (tier, "both"):
                continue
            encoder = Encoder(threads=2) if tier is Tier.FULL else None
            fitted, report = refit(Engine(None, tier=tier, encoder=encoder), sets)
            models.update(fitted)
            reports.extend(report)
    except (ScorerError, OSError, ValueError) as error:
        sys.stderr.write(f"groundwatch calibrate: {error}\n")
        return 2
    if not models:
        sys.stderr.write(
            "groundwatch calibrate: no set may be fitted on; give one with fit: true and weight > 0\n"
        )
        return 2
    sys.stdout.write(report_text(reports) + "\n")
    if args.report is not None:
        args.report.write_text(json.dumps(report_json(reports), indent=1) + "\n", "utf-8")
    if args.out is not None:
        args.out.write_text(table_json(models, sets), "utf-8")
        sys.stdout.write(f"wrote {args.out}\n")
    return 0
