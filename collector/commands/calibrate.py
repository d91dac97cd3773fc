"""`groundwatch calibrate`: refit the local scorers from labelled rows or reviewed cases; say how good they are."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from collector.commands.common import reason
from scorers.errors import ScorerError
from scorers.scorer import Tier

if TYPE_CHECKING:
    from scorers.local.labelled import LabelledSet


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
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
    parser.add_argument(
        "--from-review",
        type=Path,
        metavar="STORE",
        help="fit on people's labels in this review store, beside the files; a model is replaced only where held-out "
        "rows say that it got better than the table in force",
    )
    parser.add_argument(
        "--picked",
        action="store_true",
        help="also take reviewed cases that were picked for what they are: more rows, but probabilities then speak of "
        "such cases, not of the traffic",
    )
    parser.add_argument(
        "--table",
        type=Path,
        metavar="FILE",
        help="the table in force (default: the one that comes with groundwatch)",
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the report as JSON here as well")


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 reported (and written), 1 the store's labels gave nothing better, 2 nothing could be fitted."""
    from collector.configfile import ConfigError
    from collector.review.store import ReviewError
    from collector.review.training import TooFewLabels, improved
    from scorers.local.calibration import refit, report_json, report_text, table_json
    from scorers.local.encoder import Encoder
    from scorers.local.engine import Engine
    from scorers.local.labelled import read_set
    from scorers.local.table import load_table

    try:
        if not args.files and args.from_review is None:
            raise ConfigError(["nothing to fit on: name labelled files, or a review store with --from-review"])
        about = json.loads(
            args.sets.read_text("utf-8")
            if args.sets is not None
            else resources.files("scorers.local").joinpath("data/sets.json").read_text("utf-8")
        )
        sets = [read_set(path, about) for path in args.files]
        current = load_table(args.table) if args.from_review is not None else None
        if args.from_review is not None:
            sets += _reviewed(args.from_review, picked=args.picked)
        models, reports = {}, []
        for tier in (Tier.FAST, Tier.FULL):
            if args.tier not in (tier, "both"):
                continue
            encoder = Encoder(threads=2) if tier is Tier.FULL else None
            fitted, report = refit(Engine(None, tier=tier, encoder=encoder), sets, current=current)
            models.update(fitted)
            reports.extend(report)
    except (ScorerError, ConfigError, ReviewError, TooFewLabels, OSError, ValueError) as error:
        sys.stderr.write(f"groundwatch calibrate: {reason(error)}\n")
        return 2
    if not models:
        sys.stderr.write(
            "groundwatch calibrate: no set may be fitted on; give one with fit: true and weight > 0\n"
        )
        return 2
    sys.stdout.write(report_text(reports) + "\n")
    if args.report is not None:
        args.report.write_text(json.dumps(report_json(reports), indent=1) + "\n", "utf-8")
    earlier: Sequence[Mapping[str, object]] = ()
    if current is not None:
        better = improved(reports)
        if not better:
            sys.stdout.write(
                "no model got better on held-out rows: the table in force stays, nothing is written\n"
            )
            return 1
        sys.stdout.write(f"replaced: {', '.join(sorted(better))}; all others are those of {current.version}\n")
        models = {**current.models, **{name: model for name, model in models.items() if name in better}}
        earlier = current.fitted_on
    if args.out is not None:
        text = table_json(models, sets, earlier=earlier)
        args.out.write_text(text, "utf-8")
        sys.stdout.write(f"wrote {args.out}, version {json.loads(text)['version']}\n")
    return 0


def _reviewed(path: Path, *, picked: bool) -> list[LabelledSet]:
    """The store's labels as sets. Raises ConfigError, ReviewError, TooFewLabels."""
    from collector.commands.cases import opened_at
    from collector.review.query import Query
    from collector.review.training import Rows

    rows = Rows(picked=picked)
    with opened_at(path) as store:
        for case in store.each(Query(labelled=True)):
            rows.add(case)
    sets, reasons = rows.sets()
    for left_out in reasons:
        sys.stdout.write(f"not fitted on: {left_out}\n")
    return sets
