"""What several commands share: finding and reading the configuration."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import math
import os
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from collector.config import Config
from collector.configfile import load

_T = TypeVar("_T")


def add_config_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c",
        "--config",
        type=Path,
        metavar="FILE",
        help="groundwatch.yaml; also taken from GROUNDWATCH_CONFIG; without one every default holds",
    )


def read_config(args: argparse.Namespace) -> Config:
    """The configuration named by `-c` or GROUNDWATCH_CONFIG, with the environment laid over it.

    Raises ConfigError with every problem at once.
    """
    path: Path | None = args.config
    if path is None and os.environ.get("GROUNDWATCH_CONFIG"):
        path = Path(os.environ["GROUNDWATCH_CONFIG"])
    return load(Config, path, os.environ)


def at_least(least: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number of `least` or more."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number of {least} or more")
        return value

    return read


def number(text: str) -> float:
    """The number that an argument is; NaN, which is in no range, where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def reason(error: Exception) -> str:
    """What went wrong, for a person: a file that can not be used by its name and why, without numbers of errors."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error)


def end_cut_off_line(path: Path) -> None:
    """Make a file that lines are appended to end with a whole line: a process that was killed left half of one, and
    what follows must not become a part of it. A file that is absent or empty is left so. Raises OSError."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")


async def bounded(
    items: Iterator[_T], act: Callable[[_T], Coroutine[object, object, None]], *, limit: int
) -> None:
    """Run `act` on every item, at most `limit` at a time; items are taken only when one has room."""
    running: set[asyncio.Task[None]] = set()
    for item in items:
        running.add(asyncio.create_task(act(item)))
        if len(running) >= limit:
            finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                task.result()
    for task in running:
        await task


def through_proxies(url: str) -> bool:
    """Whether HTTP_PROXY and the like apply: no proxy leads to this machine's own loopback."""
    host = urlsplit(url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"
