"""What the review API takes and gives; the OpenAPI document is made of these and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, model_validator

from collector.records.diagnosis import Diagnosis
from collector.review.case import Case, CaseDecision, CaseResult, Feedback, Origin, Pick, Reason
from collector.review.labels import MAX_AUTHOR, MAX_DRAFTS, MAX_TARGET, MAX_TEXT, Draft, Label, LabelKind
from collector.review.query import Erased, Facets, Page, Row, Stats, Subject, SubjectKind
from scorers.interaction import Interaction

_MOST = 2**53 - 1


class Body(BaseModel):
    """What is sent: nothing unknown, no half surrogate pairs, every size bounded."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Answer(BaseModel):
    """What is answered."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="null")


class DraftBody(Body):
    """One label. AGREE, CLAIM and SCORE speak of a metric: of the judged result where there is one."""

    kind: LabelKind
    value: StrictBool | float | Annotated[StrictStr, Field(max_length=MAX_TEXT)] | None = Field(
        None,
        description="agree: agree, disagree; claim: supported, unsupported, contradicted, unknown; passage: relevant, "
        "irrelevant; score: 0 to 1; comment, reference: text; golden: true, false; skip: none",
    )
    metric: str = Field("", max_length=500)
    target: StrictInt | None = Field(
        None, ge=0, le=MAX_TARGET, description="Number of the claim, or rank of the passage, from 0"
    )

    def draft(self) -> Draft:
        """Raises BadLabel."""
        return Draft(self.kind, self.value, self.metric, self.target)


class LabelBody(Body):
    id: str = Field(max_length=2_000, description="Case")
    labels: tuple[DraftBody, ...] = Field(min_length=1, max_length=MAX_DRAFTS)
    expected_revision: StrictInt | None = Field(
        None,
        ge=0,
        le=_MOST,
        description="Revision that was looked at; another one is a conflict. None: whatever it is",
    )
    author: str | None = Field(
        None, min_length=1, max_length=MAX_AUTHOR, description="Who says it; not needed where authentication knows"
    )
    in_order: StrictBool = Field(
        False,
        description="The case was taken from the front of the order drawn (`sort=drawn&labelled=false&skipped=false`); "
        "believed while it stands there. Only such labels may enter estimates",
    )


class UndoBody(Body):
    id: str = Field(max_length=2_000, description="Case")
    expected_revision: StrictInt | None = Field(None, ge=0, le=_MOST)
    author: str | None = Field(None, min_length=1, max_length=MAX_AUTHOR)


class EraseBody(Body):
    """A data subject's request: all cases of a trace, user, session, or one case."""

    kind: SubjectKind
    id: str = Field(min_length=1, max_length=2_000)
    also: tuple[Annotated[str, Field(max_length=2_000)], ...] = Field(
        (), max_length=20, description="Other forms under which the id may stand"
    )

    def subject(self) -> Subject:
        return Subject(self.kind, self.id, self.also)


class FeedbackBody(Body):
    """What a user of the application said about an answer. One of the three ids is needed."""

    score: float | None = Field(None, ge=0, le=1, description="1 is best: a thumb up is 1, a thumb down 0")
    comment: str = Field("", max_length=MAX_TEXT)
    name: str = Field("user_feedback", min_length=1, max_length=100, description="What kind of feedback it is")
    interaction_id: str = Field("", max_length=2_000)
    trace_id: str = Field("", max_length=100, description="Trace of the answer, as hex digits")
    response_id: str = Field("", max_length=2_000, description="The model's id of the response")

    @model_validator(mode="after")
    def _of_what(self) -> Self:
        if not (self.interaction_id or self.trace_id or self.response_id):
            raise ValueError("interaction_id, trace_id or response_id is needed: which answer is it about?")
        if self.score is None and not self.comment.strip():
            raise ValueError("score or comment is needed")
        return self


class ScoreOf(Answer):
    metric: str
    kind: str
    score: float


class RowAnswer(Answer):
    id: str
    title: str
    ended_unix: float
    service: str
    service_version: str | None
    prompt_version: str | None
    model: str | None
    cause: str | None
    lowest: float | None
    scores: tuple[ScoreOf, ...]
    reasons: tuple[Reason, ...]
    probability: float | None
    order: float | None
    revision: int
    labelled: bool
    golden: bool
    skipped: bool
    authors: tuple[str, ...]

    @classmethod
    def of(cls, row: Row) -> RowAnswer:
        plain = {name: getattr(row, name) for name in cls.model_fields if name != "scores"}
        scores = tuple(
            ScoreOf(metric=metric, kind=kind, score=value) for (metric, kind), value in row.scores.items()
        )
        return cls(**plain, scores=scores)


class PageAnswer(Answer):
    cases: tuple[RowAnswer, ...]
    next: str | None = Field(description="`after` of the next page; null at the end")

    @classmethod
    def of(cls, page: Page) -> PageAnswer:
        return cls(cases=tuple(RowAnswer.of(row) for row in page.rows), next=page.next)


class CaseAnswer(Answer):
    """A case with all that is known of it. `labels` are all that were ever given, `in_effect` those that hold."""

    id: str
    revision: int
    interaction: Interaction
    picks: tuple[Pick, ...]
    ended_unix: float
    stored_unix: float
    results: tuple[CaseResult, ...]
    decision: CaseDecision | None
    screening_probability: float
    probability: float | None
    weight: float
    local_weight: float
    diagnosis: Diagnosis | None
    marks: tuple[str, ...]
    segments: Mapping[str, str]
    origin: Origin
    judge_model: str | None
    cost_usd: float | None
    feedback: tuple[Feedback, ...]
    labels: tuple[Label, ...]
    in_effect: tuple[Label, ...]
    golden: bool

    @classmethod
    def of(cls, case: Case) -> CaseAnswer:
        own = {"in_effect", "golden"}
        plain = {name: getattr(case, name) for name in cls.model_fields if name not in own}
        effect = case.in_effect
        return cls.model_construct(**plain, in_effect=effect.labels, golden=effect.golden)


class Counted(Answer):
    value: str
    cases: int


class CountedMetric(Answer):
    metric: str
    kind: str
    cases: int


class FacetsAnswer(Answer):
    """The values that filters can take, most frequent first."""

    services: tuple[Counted, ...]
    service_versions: tuple[Counted, ...]
    prompt_versions: tuple[Counted, ...]
    models: tuple[Counted, ...]
    causes: tuple[Counted, ...]
    reasons: tuple[Counted, ...]
    marks: tuple[Counted, ...]
    authors: tuple[Counted, ...]
    metrics: tuple[CountedMetric, ...]
    segments: Mapping[str, tuple[Counted, ...]]

    @classmethod
    def of(cls, facets: Facets) -> FacetsAnswer:
        plain = {
            name: _counted(getattr(facets, name))
            for name in cls.model_fields
            if name not in ("metrics", "segments")
        }
        metrics = tuple(
            CountedMetric(metric=metric, kind=kind, cases=cases)
            for (metric, kind), cases in facets.metrics.items()
        )
        segments = {name: _counted(values) for name, values in facets.segments.items()}
        return cls.model_validate({**plain, "metrics": metrics, "segments": segments})


class StatsAnswer(Answer):
    cases: int
    labelled: int
    golden: int
    bytes: int
    waiting: int
    oldest_unix: float | None

    @classmethod
    def of(cls, stats: Stats) -> StatsAnswer:
        return cls(**{name: getattr(stats, name) for name in cls.model_fields})


class ErasedAnswer(Answer):
    """What was erased, verified."""

    case_ids: tuple[str, ...]
    labels: int

    @classmethod
    def of(cls, erased: Erased) -> ErasedAnswer:
        return cls(case_ids=erased.case_ids, labels=erased.labels)


class FeedbackAnswer(Answer):
    outcome: Literal["picked", "attached", "content"] = Field(
        description="picked: it made a case; attached: to a case that is kept; content: noted, and no case was made"
    )


class SessionAnswer(Answer):
    """Who asks, and the token that a browser's requests must carry in `x-groundwatch-csrf` to change something."""

    author: str | None
    read_only: bool
    csrf_token: str


class Problem(Answer):
    """What went wrong (RFC 9457), with how to mend it. `case_revision` tells where a conflict stands."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    cure: str
    errors: Mapping[str, str] = Field(default_factory=dict, description="What is wrong, by field")
    case_revision: int | None = None


def _counted(values: Mapping[str, int]) -> tuple[Counted, ...]:
    return tuple(Counted(value=value, cases=cases) for value, cases in values.items())
