"""A server that is not ours, started as a child process with what it says in a file."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx

from collector.demo.processes import environment
from tests.support.waiting import until


class Program:
    """Runs from the start, with nothing of the surroundings' variables; ended by its owner. `client` asks it."""

    def __init__(self, arguments: Sequence[str], *, address: str, log: Path) -> None:
        self._log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                list(arguments),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment({}),
                start_new_session=True,
            )
        self.client = httpx.Client(base_url=f"http://{address}", timeout=10, trust_env=False)

    def wait(self, what: str, condition: Callable[[], bool] = lambda: True) -> None:
        """Until it answers that it is ready and the condition holds; fails with what it said where it has ended."""

        def up() -> bool:
            assert self.process.poll() is None, self._log.read_text(encoding="utf-8")
            try:
                return self.client.get("/-/ready").status_code == 200 and condition()
            except httpx.TransportError:
                return False

        until(up, what)

    def end(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait(10)
