"""How often Python looks for reference cycles.

Nothing here is built of cycles, but open traces, waiting interactions and cached readings are many objects that live
for seconds, and with Python's defaults they are looked through again and again: a twentieth of the CPU of ingest and of
screening.
"""

from __future__ import annotations

import gc

_YOUNG = 10_000
_ROUNDS = 20


def collect_less_often() -> None:
    """To be called once by a process that serves, when what lives as long as it does has been made: that is not looked
    at any more, and new objects when there are 10,000 more of them (Python's default: 700)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _ROUNDS, _ROUNDS)
