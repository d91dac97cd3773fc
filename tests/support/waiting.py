"""Wait for a condition, never for time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def until(condition: Callable[[], _T], what: str, *, seconds: float = 30.0, step: float = 0.05) -> _T:
    """The first truthy value of `condition`; AssertionError, saying `what` was awaited, after `seconds`."""
    ends = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > ends:
            raise AssertionError(f"after {seconds:.0f} s still not: {what} (last: {value!r:.2000})")
        time.sleep(step)
