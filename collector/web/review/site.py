"""The review's routes, from what the composition root hands over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jinja2 import Environment
from starlette.routing import BaseRoute

from collector.pipeline.clock import Clock
from collector.review.query import Erased, Subject
from collector.review.standing import Standing
from collector.review.store import ReviewError, ReviewStore
from collector.web.links import TraceLink
from collector.web.options import Options
from collector.web.review.agreement import AgreementPage
from collector.web.review.api import Api, TakesFeedback
from collector.web.review.desk import Desk
from collector.web.review.pages import Pages
from collector.web.session import Sessions


@dataclass(frozen=True, slots=True)
class Review:
    """What the pages need. `erase` erases a subject wherever groundwatch keeps it, verified; None = in the store
    only. `feedback` takes what users of the application say; None = there is no such route. `more` are further
    routes of the review."""

    store: ReviewStore
    clock: Clock
    erase: Callable[[Subject], Erased] | None = None
    feedback: TakesFeedback | None = None
    more: Sequence[BaseRoute] = ()

    def kept(self, ids: Sequence[str]) -> frozenset[str]:
        """Which of them are cases; none while the store does not answer."""
        try:
            return frozenset(one for one in ids if self.store.get(one) is not None)
        except ReviewError:
            return frozenset()


def routes(
    review: Review, *, options: Options, templates: Environment, sessions: Sessions, version: str
) -> list[BaseRoute]:
    pages = Pages(
        review.store,
        templates=templates,
        sessions=sessions,
        desk=Desk(review.clock),
        clock=review.clock,
        read_only=options.read_only,
        link=TraceLink(options.trace_link) if options.trace_link else None,
    )
    api = Api(
        review.store,
        erase=review.erase or review.store.erase,
        sessions=sessions,
        feedback=review.feedback,
        read_only=options.read_only,
        version=version,
    )
    agreement = AgreementPage(review.store, Standing(review.store, review.clock), page=pages.page)
    return [*pages.routes(), *agreement.routes(pages.caught), *api.routes(), *review.more]
