"""`groundwatch import-labels FILE...`: labels that people gave elsewhere, into the review store."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from collector.commands.cases import add_store_arguments, opened
from collector.commands.common import reason
from collector.configfile import ConfigError
from collector.review.labels import BadLabel
from collector.review.labels_file import BadLabels, import_labels
from collector.review.store import ReviewError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Read labels {case, kind, metric, target, value, author} from JSON Lines or CSV into the review store. Kinds: "
        "agree (agree, disagree), claim (supported, unsupported, contradicted, unknown; target counts from 0), passage "
        "(relevant, irrelevant), score (0 to 1), comment, reference, golden (true, false), skip. Every line is checked "
        "first; when one is wrong nothing of its file is taken. A repeated import changes nothing."
    )
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="JSON Lines, or CSV by the name's .csv"
    )
    parser.add_argument("--author", metavar="NAME", help="who labelled, where a line does not say")
    parser.add_argument(
        "--in-order",
        action="store_true",
        help="the cases were labelled in the order drawn (export --sort drawn), none left out for what it is: only "
        "then may the labels enter weighted figures",
    )
    parser.add_argument("--keep-good", action="store_true", help="take the good lines of a file with wrong ones")
    parser.add_argument("--dry-run", action="store_true", help="check, and write nothing")
    add_store_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 all lines taken, 1 some file or line was not, 2 wrong usage, or the store can not be used."""
    code = 0
    try:
        with opened(args) as store:
            for path in args.files:
                try:
                    done = import_labels(
                        store,
                        path,
                        author=args.author,
                        in_order=args.in_order,
                        keep_good=args.keep_good,
                        dry=args.dry_run,
                    )
                except BadLabels as error:
                    sys.stderr.write(f"{error}\n{path}: nothing was taken, since {error.count} lines are wrong\n")
                    code = 1
                    continue
                for problem in done.problems:
                    sys.stderr.write(f"{problem}\n")
                code = max(code, int(done.left_out > 0))
                would = "would be " if args.dry_run else ""
                sys.stdout.write(
                    f"{path}: {done.labels} labels {would}taken on {done.cases} cases, {done.known} hold already, "
                    f"{done.left_out} lines left out\n"
                )
    except (ConfigError, ReviewError, BadLabel, OSError) as error:
        sys.stderr.write(f"groundwatch import-labels: {reason(error)}\n")
        return 2
    return code
