"""What the status page and `/api/v1/status` show: one value, made by the service on request."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One estimate. `mean`, `lower`, `upper` are None where there is too little to say; `direction`: higher, lower.

    `conditional` is true where upstream sampling is unknown: the number speaks of what was received only.
    """

    metric: str
    kind: str
    tier: str | None
    segment: dict[str, str]
    window_seconds: int
    mean: float | None
    lower: float | None
    upper: float | None
    n_eff: float
    coverage: float | None
    scored: int
    not_applicable: int
    failed: int
    direction: str = "higher"
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class Worst:
    """One of the lowest-scored answers of the last hour; carries no content."""

    trace_id: str
    interaction_id: str
    service: str
    metric: str
    kind: str
    score: float
    ended_unix: float


@dataclass(frozen=True, slots=True)
class Gap:
    """A service whose telemetry lacks something, with the switch that turns it on."""

    service: str
    missing: str
    interactions: int
    cure: str


@dataclass(frozen=True, slots=True)
class Status:
    version: str
    uptime_seconds: float
    ready: bool
    reasons: dict[str, str]
    judge: str
    funnel: dict[str, int]
    estimates: list[ScoreRow] = field(default_factory=list)
    worst: list[Worst] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the page's table: a metric in one segment, with its windows side by side, shortest first."""

    metric: str
    kind: str
    tier: str | None
    segment: dict[str, str]
    direction: str
    windows: list[ScoreRow]


def lines(estimates: list[ScoreRow]) -> list[Line]:
    """Windows of one series side by side; a segment that is alone says nothing beside the total and is left out."""
    segments = {tuple(row.segment.items()) for row in estimates if row.segment}
    by_series: dict[tuple[object, ...], list[ScoreRow]] = {}
    for row in estimates:
        if row.segment and len(segments) == 1:
            continue
        by_series.setdefault((row.metric, row.kind, row.tier, tuple(row.segment.items())), []).append(row)
    made = [
        Line(rows[0].metric, rows[0].kind, rows[0].tier, rows[0].segment, rows[0].direction, rows)
        for rows in by_series.values()
    ]
    # What a judge says stands before what is only screened.
    return sorted(made, key=lambda line: line.kind != "judged")
