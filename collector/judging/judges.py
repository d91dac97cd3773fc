"""Makes the judge, and the shadow beside it, from their options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from collector.pipeline.clock import Clock
from scorers.catalog import judged, runnable
from scorers.config import ScorerOptions
from scorers.judge.client import Runtime
from scorers.judge.limits import Budget
from scorers.judge.observer import Observer
from scorers.judge.options import JudgeOptions
from scorers.judge.service import Judge


class Embeds(Protocol):
    """What `endpoint_names` wants to know of a judge's options."""

    @property
    def name(self) -> str: ...

    @property
    def embeddings(self) -> object | None: ...


def make_judge(
    options: JudgeOptions,
    scorers: Sequence[ScorerOptions],
    *,
    environ: Mapping[str, str],
    runtime: Runtime,
    budget: Budget | None = None,
) -> tuple[Judge, list[str]]:
    """A judge, and sentences on what it is not asked and why. `budget` is another judge's that this one shares.

    Raises ScorerError, OSError or ValueError where the options can not be used here.
    """
    asked, left_out = runnable(judged(scorers), embeddings=options.embeddings is not None)
    made = Judge(options, asked, environ=environ, runtime=runtime, budget=budget)
    return made, [
        f"{name} is not judged: it needs an embeddings endpoint (judge.embeddings)." for name in left_out
    ]


def runtime_of(observer: Observer, clock: Clock) -> Runtime:
    """What the judge's client takes from the collector."""
    return Runtime(observer, monotonic=clock.monotonic, unix_seconds=lambda: clock.unix_nano() / 1e9)


def endpoint_names(*judges: Embeds | None) -> list[str]:
    """The endpoints of these judges as they are named in metrics."""
    return [
        name
        for one in judges
        if one is not None
        for name in (one.name, *([f"{one.name}_embeddings"] if one.embeddings is not None else []))
    ]
