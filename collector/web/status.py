"""What the status page and `/api/v1/status` show: one value, made by the service on request."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from collector.estimates.detect_choice import Watched
from collector.records.diagnosis import Cause


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One estimate. `mean`, `lower`, `upper` are None where there is too little to say; `direction`: higher, lower.

    `conditional` is true where upstream sampling is unknown: the number speaks of what was received only. Interval and
    `n_eff` take interactions of one session or of one repeated question as belonging together; `cluster_ratio` says by
    how much that widens the variance. `gain` is what the local score saves in judged answers, used where `controlled`.
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
    cluster_ratio: float | None = None
    gain: float | None = None
    controlled: bool = False


CAUSES = {
    Cause.NOTHING_RETRIEVED: "retrieval found nothing: filters, index, or a question outside of it",
    Cause.KNOWLEDGE_GAP: "rightly refused: the knowledge base lacks it",
    Cause.NEEDLESS_REFUSAL: "the contexts fit, and the answer refuses: prompt or model",
    Cause.RETRIEVAL_MISS: "contexts do not fit and the answer is invented: start with retrieval",
    Cause.WRONG_DOCUMENTS: "contexts do not fit and are faithfully repeated: wrong documents or index",
    Cause.UNSUPPORTED: "the contexts fit, the answer is not supported by them: generation",
    Cause.BESIDE_THE_QUESTION: "supported, but does not answer what was asked: generation",
    Cause.RANKING: "fine, but relevant contexts stand behind others: look at reranking",
    Cause.TOO_MANY_CONTEXTS: "fine, but many contexts are irrelevant: top-k too wide or cut-off too low",
    Cause.FINE: "no score is low",
    Cause.UNDETERMINED: "a score that would decide is missing",
}
"""What each cause says to the reader of the page."""


@dataclass(frozen=True, slots=True)
class CauseRow:
    """The share, by weight, of one cause in the last `window_seconds`; `kind` says whose scores tell it."""

    cause: str
    kind: str
    share: float
    window_seconds: int
    says: str = ""


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A metric's mean by release of a service."""

    service: str
    version: str
    metric: str
    kind: str
    tier: str | None
    window_seconds: int
    mean: float
    lower: float | None
    upper: float | None
    n_eff: float


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A release, model, prompt version or scorer, with when this process first and last saw it (Unix seconds)."""

    dimension: str
    service: str
    metric: str
    value: str
    first_seen: float
    last_seen: float


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
    causes: list[CauseRow] = field(default_factory=list)
    versions: list[VersionRow] = field(default_factory=list)
    changes: list[ChangeRow] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)

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
