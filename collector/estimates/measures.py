"""What is measured, numbered, and what one interaction adds to it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from scorers.outcome import FailedReason, NotApplicable, Result, Score
from scorers.scorer import Kind, Tier

MAX_INSTRUMENTS = 8
"""Fingerprints told apart per measure; a configuration has one."""
_LABEL_CHARACTERS = 128


@dataclass(frozen=True, slots=True)
class Measure:
    """What is measured: the metric's name with the kind and (local only) the tier of the scorer; and with what: the
    fingerprint of the instrument, empty while none is known. Two are equal when they measure the same thing."""

    metric: str
    kind: Kind
    tier: Tier | None = None
    fingerprint: str = field(default="", compare=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """Label values of this measure in its kind's families."""
        tier = () if self.kind is Kind.JUDGED else (self.tier.value if self.tier else "",)
        return (self.metric, *tier, label_value(self.fingerprint) if self.fingerprint else "")


Sums3 = tuple[float, float, float]
"""What an item adds to C2, CY and CYY of its clusters."""


class Term:
    """One interaction's contribution to one measure. `value` is the score, None where there is none.

    `place` is the measure's number. `own` and `total` are what it adds to the cluster sums of its segment and of all
    segments together; they are filled in by `Clusters`.
    """

    __slots__ = ("own", "place", "total", "unscored", "value", "weight")

    def __init__(
        self, place: int, weight: float, value: float | None, unscored: tuple[str, str] | None = None
    ) -> None:
        self.place = place
        self.weight = weight
        self.value = value
        self.unscored = unscored
        self.own: Sums3 | None = None
        self.total: Sums3 | None = None

    @property
    def answered(self) -> bool:
        """Scored, or known not to be applicable."""
        return self.unscored is None or self.unscored[0] == "not_applicable"


class Measures:
    """Numbers the measures in the order in which they come. Looked up by name within kind and tier: an enum
    computes its hash anew each time, and this is done for every result.

    Another fingerprint of the same metric, kind and tier is another instrument and has a number of its own; looked
    up is the one whose results come now."""

    def __init__(self) -> None:
        self.all: list[Measure] = []
        self._judged: dict[str, int] = {}
        self._fast: dict[str, int] = {}
        self._full: dict[str, int] = {}
        self._untiered: dict[str, int] = {}

    def _names(self, kind: Kind, tier: Tier | None) -> dict[str, int]:
        if kind is Kind.JUDGED:
            return self._judged
        return self._fast if tier is Tier.FAST else self._full if tier is Tier.FULL else self._untiered

    def place(self, metric: str, kind: Kind, tier: Tier | None) -> int | None:
        """The number of a known measure."""
        return self._names(kind, tier).get(metric)

    def add(self, measure: Measure) -> int:
        """Number a new measure; a known one keeps its number, and learns its fingerprint if it had none."""
        names = self._names(measure.kind, measure.tier)
        place = names.get(measure.metric)
        if place is None:
            place = names[measure.metric] = len(self.all)
            self.all.append(measure)
        elif measure.fingerprint and not self.all[place].fingerprint:
            self.all[place] = measure
        return place

    def renew(self, place: int, fingerprint: str) -> int:
        """From now on results of this measure come from the instrument of this fingerprint: its number, a new one
        where it was not met before. Over the bound of instruments the number stays what it was."""
        known = self.all[place]
        if not known.fingerprint:
            return self.add(replace(known, fingerprint=fingerprint))
        same = [number for number, one in enumerate(self.all) if one == known]
        found = next((number for number in same if self.all[number].fingerprint == fingerprint), None)
        if found is None:
            if len(same) >= MAX_INSTRUMENTS:
                return place
            found = len(self.all)
            self.all.append(replace(known, fingerprint=fingerprint))
        self._names(known.kind, known.tier)[known.metric] = found
        return found

    def controls(self) -> dict[int, int]:
        """Judged measures that have a fast local score of the same name: number of the judged one to its."""
        return {place: self._fast[name] for name, place in self._judged.items() if name in self._fast}


def label_value(value: str) -> str:
    """A value as a label: at most 128 characters, nothing unprintable, never empty."""
    cut = value[:_LABEL_CHARACTERS]
    return (cut if cut.isprintable() else "".join(c if c.isprintable() else "_" for c in cut)) or "unknown"


Places = Sequence[int | None]
"""Where a measure stands now, by its number in an earlier process; None where nothing gives it any more."""


def moved(values: Sequence[float], width: int, places: Places, into: list[float], head: int = 0) -> None:
    """Add rows of `width`, which stand in `values` behind `head` others, to their measures' rows of `into`."""
    for old, new in enumerate(places):
        if new is not None:
            at, there = head + old * width, head + new * width
            for column in range(min(width, len(values) - at)):
                into[there + column] += values[at + column]


def controlled(measures: Iterable[Measure]) -> int:
    """How many of these are judged and have a fast local score of the same name."""
    numbered = Measures()
    for measure in measures:
        numbered.add(measure)
    return len(numbered.controls())


def term(place: int, weight: float, result: Result) -> Term:
    """What a result adds. A score that is no number in [0, 1] is a failure of the scorer, never a number."""
    outcome = result.outcome
    if isinstance(outcome, Score):
        if 0 <= outcome.value <= 1:
            return Term(place, weight, outcome.value)
        return Term(place, weight, None, ("failed", FailedReason.SCORER_ERROR.value))
    name = "not_applicable" if isinstance(outcome, NotApplicable) else "failed"
    return Term(place, weight, None, (name, outcome.reason.value))


def ratio(weight: float, probability: float) -> float:
    """Weight after sampling with this probability; NaN where that is no probability."""
    return weight / probability if probability > 0 else math.nan
