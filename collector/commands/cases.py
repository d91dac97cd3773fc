"""What the commands over a review store share: which store, which cases."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from collector.commands.common import add_config_argument, read_config
from collector.configfile import ConfigError
from collector.pipeline.clock import SystemClock
from collector.review.options import Options
from collector.review.query import Query
from collector.review.sqlite import SqliteStore
from collector.review.store import ReviewStore
from collector.telemetry.instruments import Telemetry
from collector.web.review.filters import Filters

FILE_NAME = "review.sqlite"
_KEEPS_ALL = Options(
    max_cases=10**12,
    max_bytes=2**60,
    max_age_days=10**9,
    labelled_max_age_days=10**9,
    read_seconds=600,
)
"""A command erases nothing by age or size: that is the sidecar's, by its own configuration."""


def add_store_arguments(parser: argparse.ArgumentParser) -> None:
    """`--store`, and the configuration that names one."""
    parser.add_argument(
        "--store",
        type=Path,
        metavar="FILE",
        help="the review store (default: review.path of the configuration, or review.sqlite in process.state_dir)",
    )
    add_config_argument(parser)


def add_filter_arguments(parser: argparse.ArgumentParser) -> None:
    """The filters of the search page, by the same names; all cases without one."""
    group = parser.add_argument_group("which cases", "every filter that is given must fit")
    for name, field in Filters.model_fields.items():
        group.add_argument(
            f"--{name.replace('_', '-')}",
            dest=f"filter_{name}",
            action="append" if name == "segment" else "store",
            metavar="NAME=VALUE" if name == "segment" else name.upper(),
            help=(field.description or "").replace("%", "%%"),
        )


def read_filters(args: argparse.Namespace) -> Query:
    """The query that the arguments say. Raises ConfigError, which names every argument that is wrong."""
    given = {name: getattr(args, f"filter_{name}") for name in Filters.model_fields}
    try:
        return Filters.model_validate({name: one for name, one in given.items() if one is not None}).query()
    except ValidationError as error:
        problems = []
        for one in error.errors():
            flag = f"--{str(one['loc'][0]).replace('_', '-')}: " if one["loc"] else ""
            problems.append(f"{flag}{one['msg'].removeprefix('Value error, ')}")
        raise ConfigError(problems) from error


def store_path(args: argparse.Namespace) -> Path:
    """Where the store is. Raises ConfigError where none is named."""
    path: Path | None = args.store
    if path is None:
        config = read_config(args)
        path = config.review.path
        if path is None and config.process.state_dir is not None:
            path = config.process.state_dir / FILE_NAME
    if path is None:
        raise ConfigError(
            [
                "no review store is named: give --store FILE, or set review.path or process.state_dir in the "
                "configuration"
            ]
        )
    return path


def require_store(path: Path) -> None:
    """Raises ConfigError where no store is: SQLite would make one of an empty file, and the answer be about nothing."""
    if not path.is_file() or not path.stat().st_size:
        raise ConfigError([f"{path}: there is no review store; check the path"])


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[ReviewStore]:
    """The store that the arguments name. Raises ConfigError, StoreUnavailable."""
    with opened_at(store_path(args)) as store:
        yield store


@contextmanager
def opened_at(path: Path) -> Iterator[ReviewStore]:
    """A store, which a sidecar may have open too. Raises ConfigError where there is none, StoreUnavailable."""
    require_store(path)
    store = SqliteStore(path, _KEEPS_ALL, clock=SystemClock(), telemetry=Telemetry())
    store.open()
    try:
        yield store
    finally:
        store.close()
