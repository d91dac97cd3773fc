"""`groundwatch export`: cases of the review store, with scores, labels and weights, for other tools."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

from collector.commands.cases import add_filter_arguments, add_store_arguments, opened, read_filters
from collector.commands.common import reason
from collector.configfile import ConfigError
from collector.review.export import (
    Format,
    Layout,
    MissingPackage,
    about,
    write_csv,
    write_jsonl,
    write_parquet,
    write_ragas,
)
from collector.review.query import BadQuery, Query
from collector.review.store import ReviewError, ReviewStore

_SUFFIXES = {".jsonl": Format.JSONL, ".ndjson": Format.JSONL, ".csv": Format.CSV, ".parquet": Format.PARQUET}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write cases of the review store, with scores, labels and weights. To say something of the traffic, take the "
        "cases with a case_weight alone and weigh them by it; the others were picked for what they are. Formats: jsonl "
        "(everything), csv and parquet (a table), ragas (what ragas.EvaluationDataset.from_jsonl reads)."
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="OUT",
        help="the file, readable by its owner only (default: standard output)",
    )
    parser.add_argument(
        "--format",
        choices=[str(one) for one in Format],
        help="default: by the file's name (.jsonl, .csv, .parquet), else jsonl",
    )
    parser.add_argument("--columns", action="store_true", help="print the columns and what they mean, and end")
    add_store_arguments(parser)
    add_filter_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 written, 1 no case fits, 2 wrong usage, or store or file can not be used."""
    if args.columns:
        sys.stdout.write(about() + "\n")
        return 0
    try:
        output: Path | None = args.output
        form = Format(args.format) if args.format else _form(output)
        if form is Format.PARQUET and output is None:
            raise ConfigError(["--format parquet: a Parquet file needs a name: give -o FILE"])
        query = read_filters(args)
        with opened(args) as store:
            count = _write(store, query, form, output)
    except BrokenPipeError:
        raise
    except (ConfigError, ReviewError, BadQuery, MissingPackage, OSError) as error:
        sys.stderr.write(f"groundwatch export: {reason(error)}\n")
        return 2
    sys.stderr.write(f"{count} cases\n")
    return 0 if count else 1


def _form(output: Path | None) -> Format:
    return _SUFFIXES.get(output.suffix.lower(), Format.JSONL) if output is not None else Format.JSONL


def _write(store: ReviewStore, query: Query, form: Format, output: Path | None) -> int:
    """Write whole or not at all: the file appears under its name when it is complete."""
    if output is None:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="")
        return _text(store, query, form, sys.stdout)
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        # Made before anything is written, with the mode that text of users asks for.
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        if form is Format.PARQUET:
            count = write_parquet(store.each(query), _layout(store), part)
        else:
            with part.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
                count = _text(store, query, form, out)
        part.replace(output)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.filename is not None:
            raise OSError(error.errno, error.strerror, str(output)) from error  # not the name of the part
        raise
    return count


def _text(store: ReviewStore, query: Query, form: Format, out: IO[str]) -> int:
    if form is Format.CSV:
        return write_csv(store.each(query), _layout(store), out)
    return (write_ragas if form is Format.RAGAS else write_jsonl)(store.each(query), out)


def _layout(store: ReviewStore) -> Layout:
    return Layout(sorted(store.facets().metrics))
