"""What a metric is, before any instrument exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable


class Type(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric family.

    `name` is the full exposition name (counters end in `_total`); legacy character set only. `labels` maps each
    label to its known values, from which every series is born at 0, or to None where values come from the
    config (segments) and are born when the config or the first screened interaction names them. `help` is one
    sentence in the user's words, with the unit. `collected` families are read from a `Source` at each scrape
    (the weighted sums); `Telemetry` makes no instrument for them. `segmented` families carry the configured
    segment labels after their own.
    """

    name: str
    type: Type
    help: str
    labels: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    buckets: tuple[float, ...] = ()
    group: str = ""
    collected: bool = False
    segmented: bool = False


@dataclass(frozen=True, slots=True)
class Family:
    """One collected family at one moment: every sample with its label values, in the order of `label_names`."""

    spec: MetricSpec
    label_names: tuple[str, ...]
    samples: Sequence[tuple[tuple[str, ...], float]]


class Source(Protocol):
    """What holds collected families. `families` may be called from any thread; samples that belong to one
    series are from one moment."""

    def families(self) -> list[Family]: ...


@runtime_checkable
class Freezes(Protocol):
    """A `Source` that can copy its state quickly, on its own thread, and make the families of the copy later."""

    def freeze(self) -> Callable[[], list[Family]]: ...
