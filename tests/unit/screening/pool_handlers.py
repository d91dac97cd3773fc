"""Handlers that worker processes import by name in the tests of the pool."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Doubling:
    """Doubles numbers, and does odd things when told to: see `handle`. `marks` is where it leaves traces."""

    marks: Path

    def __call__(self) -> Callable[[list[object]], list[object]]:
        return self.handle

    def handle(self, batch: list[object]) -> list[object]:
        results: list[object] = []
        for item in batch:
            if item == "pid":
                results.append(os.getpid())
            elif item == "raise":
                raise ValueError("odd")
            elif item == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            elif item == "die once":
                if not self._seen(item):
                    os.kill(os.getpid(), signal.SIGKILL)
                results.append("lived")
            elif item == "hang":
                time.sleep(3600)
            elif item == "unsendable":
                results.append(lambda: None)
            elif item == "signals":
                os.kill(os.getpid(), signal.SIGTERM)
                os.kill(os.getpid(), signal.SIGINT)
                results.append("still here")
            else:
                assert isinstance(item, int)
                results.append(item * 2)
        return results

    def _seen(self, name: str) -> bool:
        mark = self.marks / name.replace(" ", "_")
        if mark.exists():
            return True
        mark.touch()
        return False


def unfit() -> Callable[[list[object]], list[object]]:
    raise RuntimeError("no model here")
