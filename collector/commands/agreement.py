"""`groundwatch agreement`: how far judge, local scores and people agree, and the quality in people's terms."""

from __future__ import annotations

import argparse
import json
import math
import sys

from collector.commands.cases import add_filter_arguments, add_store_arguments, opened, read_filters
from collector.commands.common import reason
from collector.configfile import ConfigError
from collector.review.agreement import Builder, Settings
from collector.review.agreement_text import finite, report_json, report_text
from collector.review.query import BadQuery
from collector.review.store import ReviewError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compare the judge's scores with people's labels, and local scores with both: confusion, accuracy, balanced "
        "accuracy, AUROC, Cohen's kappa and calibration, each with a 95 % interval, weighted to the traffic where "
        "cases were labelled in the order drawn. From 50 such labels the quality of all traffic is told in people's "
        "terms."
    )
    parser.add_argument(
        "--by",
        metavar="NAME",
        help="figures for each value of a segment, or of service, service_version, prompt_version, model, judge, cause",
    )
    parser.add_argument(
        "--threshold",
        action="append",
        default=[],
        metavar="[METRIC=]T",
        help="scores of T and above are good (default 0.5); may be repeated",
    )
    parser.add_argument("--no-curve", action="store_true", help="leave out the calibration curves")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    add_store_arguments(parser)
    add_filter_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 reported, 1 there is nothing to compare, 2 wrong usage, or the store can not be read."""
    try:
        builder = Builder(_settings(args))
        query = read_filters(args)
        with opened(args) as store:
            for case in store.each(query):
                builder.add(case)
    except (ConfigError, ReviewError, BadQuery, OSError) as error:
        sys.stderr.write(f"groundwatch agreement: {reason(error)}\n")
        return 2
    report = builder.report()
    if args.json:
        sys.stdout.write(json.dumps(finite(report_json(report)), indent=1) + "\n")
    else:
        sys.stdout.write(report_text(report, calibration=not args.no_curve) + "\n")
    return 0 if report.compared else 1


def _settings(args: argparse.Namespace) -> Settings:
    general, single = 0.5, {}
    for text in args.threshold:
        metric, _, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not 0 < value <= 1:
            raise ConfigError(
                [f"--threshold {text}: a number above 0, and at most 1, is needed, as 0.5 or METRIC=0.7"]
            )
        if metric:
            single[metric] = value
        else:
            general = value
    return Settings(general, single, args.by)
