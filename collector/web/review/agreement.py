"""The page that says how far judge, local scores and people agree, and what the quality is in people's terms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.review.agreement import VALUES
from collector.review.figures import Agreement, Compared, Corrected
from collector.review.query import BadQuery
from collector.review.standing import MAX_CASES, Report, Standing
from collector.review.store import ReviewStore
from collector.stats.labels import MIN_LABELS

Page = Callable[..., Response]
"""Renders (request, template's name, values...) as the other pages are."""
View = Callable[[Request], Awaitable[Response]]
_PLOT = 120
"""Side of a calibration plot, in its own units."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A bin of the calibration curve in the plot's units; y grows downwards."""

    x: float
    y: float
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Group:
    """One metric in one segment: its quality, and what was compared, weighted rows first."""

    metric: str
    segment: str
    quality: Corrected | None
    compared: tuple[Compared, ...]


def groups(report: Agreement) -> list[Group]:
    """The page's sections: a metric for all traffic, then its segments."""
    keys = dict.fromkeys(
        [(one.metric, one.segment) for one in report.compared]
        + [(one.metric, one.segment) for one in report.corrected]
    )
    quality = {(one.metric, one.segment): one for one in report.corrected}
    return [
        Group(
            metric,
            segment,
            quality.get((metric, segment)),
            tuple(one for one in report.compared if (one.metric, one.segment) == (metric, segment)),
        )
        for metric, segment in keys
    ]


def dots(row: Compared) -> list[Dot]:
    """The calibration curve: mean score across, what is held to be right upwards, with its interval."""
    return [
        Dot(
            round(one.mean_score * _PLOT, 1),
            round((1 - one.right.value) * _PLOT, 1),
            round((1 - (one.right.value if one.right.high is None else one.right.high)) * _PLOT, 1),
            round((1 - (one.right.value if one.right.low is None else one.right.low)) * _PLOT, 1),
        )
        for one in row.calibration
    ]


class AgreementPage:
    """The route /review/agreement. The report is a few minutes old at most; `by` splits it by a segment."""

    def __init__(self, store: ReviewStore, standing: Standing, *, page: Page) -> None:
        self._store = store
        self._standing = standing
        self._page = page

    def routes(self, caught: Callable[[View], View]) -> list[Route]:
        """`caught` turns errors of the store into pages."""
        return [Route("/review/agreement", caught(self.show))]

    async def show(self, request: Request) -> Response:
        by = request.query_params.get("by") or None

        def look() -> tuple[Report, list[str]]:
            choices = [*VALUES, *self._store.facets().segments]
            if by is not None and by not in choices:
                raise BadQuery("by: a segment's name, or one of " + ", ".join(VALUES))
            return self._standing.report(by), choices

        report, choices = await run_in_threadpool(look)
        values: dict[str, Any] = {
            "report": report,
            "groups": groups(report.agreement),
            "by": by,
            "choices": choices,
            "dots": dots,
            "PLOT": _PLOT,
            "MIN_LABELS": MIN_LABELS,
            "MAX_CASES": MAX_CASES,
        }
        return self._page(request, "agreement", **values)
