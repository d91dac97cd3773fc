"""An interaction whose scoring, of one kind, has ended: what estimates and exporters take."""

from __future__ import annotations

from dataclasses import dataclass, field

from collector.pipeline.receipt import Receipt
from collector.records.decision import Decision
from collector.records.diagnosis import Diagnosis
from collector.records.found import Found
from scorers.outcome import Result


@dataclass(frozen=True, slots=True)
class Screened:
    """An interaction after screening, with the results of the `fast` local scorers.

    `probability` is 1 except where screening shed by hash for load. `receipt` is its trace's, held for it.
    """

    found: Found
    results: tuple[Result, ...]
    probability: float = 1.0
    receipt: Receipt | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Settled:
    """One interaction at its settlement: sampled out, answered or failed.

    `local` are screening's results (weight: upstream_weight / screening_probability), `judged` the judge's (weight:
    that, divided by decision.probability); `judged` is empty when it was not queued. `segments` are the bounded label
    values, by segment name. `diagnosis` is filled in before the sinks see it. `receipt` is released after
    the last sink.
    """

    found: Found
    decision: Decision
    local: tuple[Result, ...]
    judged: tuple[Result, ...]
    segments: tuple[tuple[str, str], ...] = ()
    screening_probability: float = 1.0
    diagnosis: Diagnosis | None = None
    receipt: Receipt | None = field(default=None, compare=False, repr=False)
