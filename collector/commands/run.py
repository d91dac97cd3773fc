"""`groundwatch run`: the sidecar."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from collector.commands.common import add_config_argument, read_config
from collector.configfile import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_argument(parser)
    parser.add_argument("--quiet", action="store_true", help="do not print the addresses at start")


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 stopped in order, 1 could not start or was forced to stop, 2 bad configuration."""
    try:
        config = read_config(args)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    # The stages' packages are imported only when the configuration is known to be good.
    from collector.app import build
    from collector.parts import StartError
    from collector.pipeline.garbage import collect_less_often
    from collector.pipeline.lock import StateDirError
    from collector.pipeline.workers import WorkerStartError

    async def serve() -> int:
        announce = (lambda _: None) if args.quiet else sys.stderr.write
        service = build(config, os.environ, announce=announce, reread=lambda: read_config(args))
        collect_less_often()
        code = await service.run()
        if code:
            # Forced: the interpreter's own end would wait for threads and for workers, which ignore signals. They
            # end when this process is gone; the mark in the state directory stays, as after any loss.
            sys.stderr.flush()
            os._exit(code)
        return code

    try:
        return asyncio.run(serve())
    except (StartError, StateDirError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except (OSError, WorkerStartError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
