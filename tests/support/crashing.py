"""`groundwatch run` that ends itself with SIGKILL at a commit or acknowledgement boundary.

python -m tests.support.crashing POINT TIMES -c CONFIG: dies when POINT is reached for the TIMES-th time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

from collector.app import build
from collector.commands.common import read_config
from collector.pipeline.store import Reached

POINTS = (
    "spool.before_commit",
    "spool.after_commit",
    "spool.before_acknowledge",
    "books.before_commit",
    "books.after_commit",
    "books.before_release",
    "books.after_release",
)


def killer(point: str, times: int) -> Reached:
    """Ends this process, as nothing can prevent, when the point is reached for the `times`-th time."""
    lock = threading.Lock()
    left = [times]

    def reached(name: str) -> None:
        with lock:
            left[0] -= name == point
            if left[0] <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
                threading.Event().wait()  # the signal is on its way: nothing of this thread may come before it

    return reached


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("point", choices=POINTS)
    parser.add_argument("times", type=int)
    parser.add_argument("-c", "--config", type=Path)
    args = parser.parse_args()
    service = build(
        read_config(args),
        os.environ,
        announce=sys.stderr.write,
        reread=lambda: read_config(args),
        reached=killer(args.point, args.times),
    )

    asyncio.run(service.run())


if __name__ == "__main__":
    main()
