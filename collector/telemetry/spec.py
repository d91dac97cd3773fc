"""What a metric is, before any instrument exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


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
    sentence in the user's words, with the unit.
    """

    name: str
    type: Type
    help: str
    labels: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    buckets: tuple[float, ...] = ()
    group: str = ""
