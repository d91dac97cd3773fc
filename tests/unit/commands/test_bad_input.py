"""Wrong input at the command line: one sentence with place and cure, a fitting exit code, never a traceback."""

from __future__ import annotations

import subprocess
import sys

_INTERRUPTED = """
import os, signal, sys
from collector.cli import main

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "collector.commands.score":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, CtrlC())
sys.exit(main(["score", "-"]))
"""


def test_a_ctrl_c_while_a_command_is_still_imported_ends_it_quietly() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (130, "")
