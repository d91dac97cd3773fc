"""Which cases, as a query string says it: the state of the search page and the parameters of the API."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Self
from urllib.parse import urlencode

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from collector.review.case import Reason
from collector.review.query import Query, Sort
from collector.review.store import MAX_PAGE
from scorers.scorer import Kind

Word = Annotated[str, Field(max_length=500)]
_HIGHEST_UNIX = 253_402_300_799.0  # the last second of the year 9999


def _instant(value: object) -> object:
    """ISO 8601 or Unix seconds; a date is its first instant, and no zone is UTC."""
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            pass
        else:
            if not (math.isfinite(number) and 0 <= number <= _HIGHEST_UNIX):
                raise ValueError("not a time: ISO 8601 as in 2026-11-30T12:00Z, or Unix seconds, is needed")
            return datetime.fromtimestamp(number, UTC)
    return value


Instant = Annotated[datetime, BeforeValidator(_instant)]


class Filters(BaseModel):
    """Every part that is given must fit. A range of scores needs `metric`; without `kind` the judged score counts
    where there is one, else the local one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = Field(
        "",
        max_length=500,
        description='Words that must all occur in question or response; "several words" together; begin*',
    )
    metric: Word | None = Field(None, description="Metric that score range and order by score speak of")
    kind: Kind | None = Field(None, description="Whose score: local or judged")
    score_min: float | None = Field(None, ge=0, le=1, description="Least score, inclusive")
    score_max: float | None = Field(None, ge=0, le=1, description="Highest score, inclusive")
    cause: Word | None = Field(None, description="Cause by the diagnosis")
    reason: Reason | None = Field(None, description="Why it was kept")
    mark: Word | None = Field(None, description="What is special about the interaction")
    segment: tuple[Word, ...] = Field((), max_length=20, description="name=value of a segment; may be repeated")
    service: Word | None = Field(None, description="Service, exactly")
    service_version: Word | None = Field(None, description="Version of the service")
    prompt_version: Word | None = Field(None, description="Version of the prompt")
    model: Word | None = Field(None, description="Model that answered")
    since: Instant | None = Field(
        None, description="Ended at or after; ISO 8601 (UTC unless said) or Unix seconds"
    )
    until: Instant | None = Field(None, description="Ended before")
    labelled: bool | None = Field(None, description="With or without a judgement of a person")
    golden: bool | None = Field(None, description="In the golden set, or not")
    skipped: bool | None = Field(None, description="Looked at and left without a label")
    author: Word | None = Field(None, description="Labelled by")
    trace_id: Word | None = Field(None, description="Trace, exactly")
    session: Word | None = Field(None, description="Session as redaction wrote it, exactly")
    user: Word | None = Field(None, description="User as redaction wrote it, exactly")
    sort: Sort = Field(
        Sort.NEWEST, description="newest, oldest, lowest or highest score first, or in the order drawn"
    )

    @model_validator(mode="after")
    def _range_of_what(self) -> Self:
        if (self.score_min is not None or self.score_max is not None or self.kind) and not self.metric:
            raise ValueError("a range of scores needs the metric that it speaks of: give `metric`")
        if any("=" not in one for one in self.segment):
            raise ValueError("segment: name=value is needed")
        return self

    def query(self) -> Query:
        return Query(
            text=self.text,
            metric=self.metric,
            kind=self.kind.value if self.kind else None,
            score_min=self.score_min,
            score_max=self.score_max,
            cause=self.cause,
            reason=self.reason,
            mark=self.mark,
            segments=dict(one.split("=", 1) for one in self.segment),
            service=self.service,
            service_version=self.service_version,
            prompt_version=self.prompt_version,
            model=self.model,
            since_unix=_unix(self.since),
            until_unix=_unix(self.until),
            labelled=self.labelled,
            golden=self.golden,
            skipped=self.skipped,
            author=self.author,
            trace_id=self.trace_id,
            session=self.session,
            user=self.user,
            sort=self.sort,
        )

    def encoded(self, **more: str) -> str:
        """The query string that means the same, without what is not set."""
        given = self.model_dump(mode="json", exclude_defaults=True, include=set(Filters.model_fields))
        pairs: list[tuple[str, str]] = []
        for name, value in given.items():
            for one in value if isinstance(value, list) else [value]:
                pairs.append((name, str(one).lower() if isinstance(one, bool) else str(one)))
        return urlencode([*pairs, *((name, value) for name, value in more.items() if value)])


class Asked(Filters):
    """Filters with the page of the answer."""

    after: str | None = Field(None, max_length=500, description="`next` of the page before")
    limit: int = Field(50, ge=1, le=MAX_PAGE, description="Most cases of a page")


def read(pairs: Iterable[tuple[str, str]]) -> Asked:
    """From the pairs of a query string; what a form left empty is not set. Raises pydantic's ValidationError."""
    given: dict[str, Any] = {}
    for name, value in pairs:
        if value == "":
            continue
        if name == "segment":
            given.setdefault(name, []).append(value)
        elif name in given:
            given[name] = [given[name], value]  # twice: no field takes a list, so the answer names it
        else:
            given[name] = value
    return Asked.model_validate(given)


def problems(error: ValidationError) -> Mapping[str, str]:
    """What is wrong, by the name of the parameter."""
    return {
        ".".join(str(part) for part in one["loc"]) or "query": one["msg"].removeprefix("Value error, ")
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    }


def _unix(value: datetime | None) -> float | None:
    if value is None:
        return None
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
