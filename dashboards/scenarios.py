"""Unit tests of the alerts, for `promtool test rules`.

Each scenario is a job of its own, so that one evaluation of all rules shows for every alert where it fires and where
it stays silent. The expectation is the whole list of firing alerts: a scenario in which another alert fires too
fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from collector.telemetry.spec import MetricSpec

MINUTES = 150
"""Length of a scenario, when its alerts are looked at."""
EVALUATED = 5
"""Minutes between evaluations: enough for every `for`, and five times less to compute."""
INSTRUMENT = "faithfulness/1+0b0b25e2@a-model"
"""A fingerprint, which recorded estimates have as a label."""
Labels = Mapping[str, str]
Fed = tuple[str, Labels, str]
"""A series that is fed in: name, labels besides the job, values in promtool's notation (one a minute)."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a job looks like, and the alerts that must fire for it (all others must not)."""

    job: str
    fed: tuple[Fed, ...]
    fires: tuple[str, ...] = ()


def grows(
    spec: MetricSpec | str,
    per_minute: float,
    *,
    since: int = 0,
    until: int = MINUTES,
    at: Labels | None = None,
    **labels: str,
) -> Fed:
    """A counter that is born at minute `since` and grows by so much a minute until `until`."""
    name = spec if isinstance(spec, str) else spec.name
    parts = [f"_x{since - 1}"] if since > 1 else ["_"] if since else []
    parts.append(f"0+{per_minute:g}x{until - since}")
    if until < MINUTES:
        parts.append(f"{per_minute * (until - since):g}x{MINUTES - until - 1}")
    return name, {**(at or {}), **labels}, " ".join(parts)


def is_at(spec: MetricSpec | str, value: float, *, since: int = 0, at: Labels | None = None, **labels: str) -> Fed:
    """A gauge or recorded series that has one value from minute `since` on."""
    name = spec if isinstance(spec, str) else spec.name
    gap = [f"_x{since - 1}"] if since > 1 else []
    return name, {**(at or {}), **labels}, " ".join([*gap, f"{value:g}x{MINUTES - since}"])
