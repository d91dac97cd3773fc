"""Runs one command and ends it when the process that started us is gone, so that nothing is left behind.

Started by path, standard library only: `python leash.py COMMAND ARGUMENT...`. SIGTERM and SIGINT are passed on as
SIGTERM. Exits with the command's exit code (128 + signal when a signal ended it).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 10.0


def main(command: list[str]) -> int:
    if not command:
        sys.stderr.write("usage: leash.py COMMAND [ARGUMENT...]\n")
        return 2
    parent = os.getppid()
    stop = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda _number, _frame: stop.set())
    child = subprocess.Popen(command)  # noqa: S603 - runs what its caller names; that is its purpose
    while not stop.wait(0.2) and child.poll() is None and os.getppid() == parent:
        pass
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
