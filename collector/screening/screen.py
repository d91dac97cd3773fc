"""What runs inside a worker: extraction handed in, then the fast scorers over what was found."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from collector.records.found import Found, Mark
from collector.records.settled import Screened
from collector.records.trace import ReleasedTrace
from collector.screening.options import Options
from collector.screening.shares import place_in_unit
from scorers.interaction import Field
from scorers.local import build
from scorers.outcome import NotApplicable, NotApplicableReason, Result
from scorers.run import run_local
from scorers.scorer import Tier

_LOG = logging.getLogger(__name__)

WITHOUT_RETRIEVAL = frozenset({"response_relevancy", "noncommittal", "language_match"})
"""Scorers that say something of an interaction in which no retrieval took place."""


@dataclass(frozen=True, slots=True)
class Examined:
    """One trace after a worker had it: its screened interactions, and what was found in it (one of the values of
    the metric `groundwatch_traces_examined_total`). `malformed` spans and log records could not be decoded."""

    screened: tuple[Screened, ...]
    seen: str
    malformed: int = 0


Examine = Callable[[ReleasedTrace], tuple[Sequence[Found], str, int]]
"""Extraction: the interactions of a trace, what was found where there are none, and how many items were malformed."""


class Screen:
    """The fast local scorers over found interactions. Made once in each worker; not for two threads at once."""

    def __init__(self, options: Options) -> None:
        self._all = build(options.scorers, Tier.FAST, table=options.calibration, cache_bytes=options.cache_bytes)
        self._rate = options.full_rate
        self._salt = f"{options.salt}.full"
        self._full = (
            build(
                options.full_scorers,
                Tier.FULL,
                table=options.calibration,
                cache_bytes=options.cache_bytes,
            )
            if options.full_rate > 0
            else []
        )
        self._plain = [scorer for scorer in self._all if scorer.info.name in WITHOUT_RETRIEVAL]

    def screen(self, found: Sequence[Found], probabilities: Sequence[float] | None = None) -> list[Screened]:
        """Each interaction with its results, in order. `probabilities` are those with which screening kept the
        traces (1 where absent). Never raises for an interaction."""
        results: list[tuple[Result, ...]] = [()] * len(found)
        rag = [place for place, one in enumerate(found) if one.is_rag and not _own(one)]
        chat = [place for place, one in enumerate(found) if not one.is_rag and not _own(one)]
        chosen = [place for place in rag if self._full and self._in_full_sample(found[place])]
        for places, scorers in ((rag, self._all), (chat, self._plain), (chosen, self._full)):
            scored = run_local(scorers, [found[place].interaction for place in places])
            share = self._rate if scorers is self._full else 1.0
            for place, made in zip(places, scored, strict=True):
                results[place] += tuple(
                    made if share == 1.0 else (replace(one, probability=share) for one in made)
                )
        kept = probabilities if probabilities is not None else [1.0] * len(found)
        return [
            Screened(one, self._without_answer(one, made), probability)
            for one, made, probability in zip(found, results, kept, strict=True)
        ]

    def _in_full_sample(self, found: Found) -> bool:
        return place_in_unit(self._salt, found.interaction.id) < self._rate

    def _without_answer(self, found: Found, results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Where the application's own call failed, what needs the response is not applicable for that reason."""
        if Mark.APPLICATION_ERROR not in found.marks or found.interaction.response:
            return results
        asking = {scorer.info.name for scorer in (*self._all, *self._full) if Field.RESPONSE in scorer.info.needs}
        failed = NotApplicable(NotApplicableReason.APPLICATION_ERROR)
        return tuple(
            replace(result, outcome=failed, evidence={}, verdicts=()) if result.scorer in asking else result
            for result in results
        )


def _own(found: Found) -> bool:
    return Mark.OWN_EVALUATION in found.marks


def _where(error: Exception) -> str:
    """The error's class and the line that raised it; not its message, which may quote the trace."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"


def handler(examine: Examine, screen: Screen) -> Callable[[list[ReleasedTrace]], list[Examined]]:
    """The handler for a worker pool: one `Examined` per trace, in order."""
    told: set[str] = set()

    def handle(traces: list[ReleasedTrace]) -> list[Examined]:
        found: list[Found] = []
        kept: list[float] = []
        seen_by_trace: list[tuple[int, str, int]] = []
        for trace in traces:
            try:
                here, seen, malformed = examine(trace)
            except Exception as error:  # noqa: BLE001  # one odd trace must not take its batch along
                where = _where(error)
                if where not in told:  # once a place and worker: a flood of odd traces is told by the metric
                    told.add(where)
                    _LOG.error("a trace could not be examined: %s", where)
                here, seen, malformed = (), "error", 0
            found.extend(here)
            kept.extend([trace.kept_probability] * len(here))
            seen_by_trace.append((len(here), seen, malformed))
        screened = screen.screen(found, kept)
        examined: list[Examined] = []
        start = 0
        for count, seen, malformed in seen_by_trace:
            examined.append(Examined(tuple(screened[start : start + count]), seen, malformed))
            start += count
        return examined

    return handle
