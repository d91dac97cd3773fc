"""What the generated rules depend on besides the table of metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HOUR = 3_600
DAY = 86_400


@dataclass(frozen=True, slots=True)
class Objective:
    """A service level of the sidecar's configuration, as the burn-rate alerts need to know it.

    `name` is a regular expression over the label `objective`; `target` the share that should be good, in (0, 1);
    `judged_per_hour` the effective number of scored interactions to expect in an hour
    (`groundwatch sampling-plan` tells it), from which the windows are chosen.
    """

    name: str = ".+"
    target: float = 0.95
    judged_per_hour: float = 100

    def __post_init__(self) -> None:
        if not 0 < self.target < 1:
            raise ValueError(f"objective {self.name!r}: target {self.target} must lie between 0 and 1, like 0.95")
        if self.judged_per_hour <= 0:
            raise ValueError(f"objective {self.name!r}: judged_per_hour {self.judged_per_hour} must be over 0")


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of the generator; the defaults make the committed files.

    `segments` are the segment labels of the sidecar's configuration; `keep` the labels of scrape targets that tell
    applications apart (add `namespace` or `cluster` where several share a Prometheus). Shares are by weight, 0 to 1.
    `time_scale` divides every duration, so that tests need not wait.
    """

    segments: tuple[str, ...] = ("service",)
    keep: tuple[str, ...] = ("job",)
    floors: Mapping[str, float] = field(
        default_factory=lambda: {
            "faithfulness": 0.8,
            "groundedness": 0.8,
            "response_relevancy": 0.7,
            "context_relevance": 0.5,
        }
    )
    """Lowest acceptable mean of judged metrics: starting points, to be set for each application."""
    objectives: tuple[Objective, ...] = (Objective(),)
    false_alarm: float = 1e-5
    """Chance of a false alarm that one look at one series may have."""
    min_n: float = 100
    """Effective number of answers under which no quality alert fires."""
    draw_n: float = 20
    """Effective number of answers from which an interval is recorded."""
    min_coverage: float = 0.9
    """Coverage under which no quality alert fires, and coverage_low does."""
    least_drop: float = 0.03
    """A change of a mean against last week that is worth an alert, however sure it is."""
    max_other: float = 0.2
    max_missing: float = 0.2
    """Share of interactions without, or with incomplete, contexts that is worth an alert."""
    max_judge_failures: float = 0.1
    min_canary: float = 0.8
    """Share of the planted cases that a judge must get right to be believed."""
    runbook: str = "dashboards/README.md"
    """Where the runbook is; an anchor is appended."""
    week_every: float = 1_800
    """Seconds between evaluations of a week's window, which are the dearest."""
    time_scale: float = 1

    def __post_init__(self) -> None:
        if self.time_scale <= 0:
            raise ValueError(f"time_scale {self.time_scale} must be over 0")
        if not 1e-9 <= self.false_alarm <= 0.01:
            raise ValueError(f"false_alarm {self.false_alarm} must lie between 1e-9 and 0.01")
        for metric, floor in self.floors.items():
            if not 0 < floor < 1:
                raise ValueError(f"floor of {metric!r}: {floor} must lie between 0 and 1")

    def time(self, seconds: float) -> str:
        """A duration in PromQL's notation, scaled."""
        return duration(seconds / self.time_scale)


def duration(seconds: float) -> str:
    """A duration in PromQL's notation: 1h, 90s, 500ms."""
    milliseconds = round(seconds * 1_000)
    if milliseconds <= 0:
        raise ValueError(f"{seconds} s is under a millisecond; use a smaller time_scale")
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"
