"""The review over JSON. Reading needs what the pages need; changing needs a bearer token, or the session's own."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.review.case import Case
from collector.review.labels import BadLabel
from collector.review.query import BadQuery, Erased, Subject
from collector.review.store import Conflict, NoCase, NothingToUndo, ReviewError, ReviewStore
from collector.web.review.filters import problems, read
from collector.web.review.forms import TooLarge, body
from collector.web.review.lists import its_turn
from collector.web.review.models import (
    CaseAnswer,
    EraseBody,
    ErasedAnswer,
    FacetsAnswer,
    FeedbackAnswer,
    FeedbackBody,
    LabelBody,
    PageAnswer,
    Problem,
    SessionAnswer,
    StatsAnswer,
    UndoBody,
)
from collector.web.review.openapi import document
from collector.web.session import TOKEN_HEADER, Sessions, clean_author

_B = TypeVar("_B", bound=BaseModel)
MAX_BODY_BYTES = 2 * 2**20

View = Callable[[Request], Awaitable[Response]]


class TakesFeedback(Protocol):
    """Finds the answer that feedback is about: see `collector.review.feedback`."""

    async def take(
        self,
        *,
        score: float | None,
        comment: str,
        name: str,
        source: str,
        case_id: str,
        trace_id: str,
        response_id: str,
    ) -> str: ...


class Refused(Exception):
    """The answer is no; carries the problem."""

    def __init__(self, status: int, detail: str, cure: str, **more: object) -> None:
        super().__init__(detail)
        self.problem = Problem.model_validate(
            {
                "title": HTTPStatus(status).phrase,
                "status": status,
                "detail": detail[:2_000],
                "cure": cure,
                **more,
            }
        )


class Api:
    """The routes under /api/v1/review, and the document that describes them."""

    def __init__(
        self,
        store: ReviewStore,
        *,
        erase: Callable[[Subject], Erased],
        sessions: Sessions,
        feedback: TakesFeedback | None,
        read_only: bool,
        version: str,
    ) -> None:
        self._store = store
        self._erase = erase
        self._feedback = feedback
        self._sessions = sessions
        self._read_only = read_only
        self._version = version
        self._document: bytes | None = None

    def routes(self) -> list[Route]:
        base = "/api/v1/review"
        feedback = [Route("/api/v1/feedback", _told(self.feedback), methods=["POST"])] if self._feedback else []
        return [
            *feedback,
            Route(f"{base}/cases", _told(self.cases)),
            Route(f"{base}/case", _told(self.case)),
            Route(f"{base}/facets", _told(self.facets)),
            Route(f"{base}/stats", _told(self.stats)),
            Route(f"{base}/session", _told(self.session)),
            Route(f"{base}/labels", _told(self.label), methods=["POST"]),
            Route(f"{base}/undo", _told(self.undo), methods=["POST"]),
            Route(f"{base}/erase", _told(self.erase), methods=["POST"]),
            Route("/api/v1/openapi.json", _told(self.openapi)),
        ]

    async def cases(self, request: Request) -> Response:
        """List and search."""
        try:
            asked = read(request.query_params.multi_items())
        except ValidationError as error:
            raise _invalid(error, "the parameters are those of the OpenAPI document") from error
        page = await run_in_threadpool(
            lambda: self._store.find(asked.query(), after=asked.after, limit=asked.limit)
        )
        return _answer(PageAnswer.of(page))

    async def case(self, request: Request) -> Response:
        _only(request, "id")
        case_id = request.query_params.get("id")
        if case_id is None:
            raise Refused(422, "the id of the case is missing", "give it as the parameter `id`")
        case = await run_in_threadpool(self._store.get, case_id)
        if case is None:
            raise NoCase(case_id)
        return _answer(CaseAnswer.of(case))

    async def facets(self, request: Request) -> Response:
        return _answer(FacetsAnswer.of(await run_in_threadpool(self._store.facets)))

    async def stats(self, request: Request) -> Response:
        return _answer(StatsAnswer.of(await run_in_threadpool(self._store.stats)))

    async def session(self, request: Request) -> Response:
        """The token for a browser's or a script's changes where there is no bearer token."""
        token, fresh = self._sessions.begin(request)
        author = self._sessions.author(request)
        reply = _answer(SessionAnswer(author=author, read_only=self._read_only, csrf_token=token))
        self._sessions.set_session(request, reply, fresh)
        return reply

    async def label(self, request: Request) -> Response:
        sent = await self._changing(request, LabelBody)
        author = self._author(request, sent.author)
        given = [one.draft() for one in sent.labels]

        def store() -> Case:
            return self._store.label(
                sent.id,
                given,
                author=author,
                expected_revision=sent.expected_revision,
                in_order=sent.in_order and its_turn(self._store, sent.id),
                source="api",
            )

        return _answer(CaseAnswer.of(await run_in_threadpool(store)))

    async def undo(self, request: Request) -> Response:
        sent = await self._changing(request, UndoBody)
        author = self._author(request, sent.author)
        case = await run_in_threadpool(
            lambda: self._store.undo(sent.id, author=author, expected_revision=sent.expected_revision)
        )
        return _answer(CaseAnswer.of(case))

    async def erase(self, request: Request) -> Response:
        sent = await self._changing(request, EraseBody)
        return _answer(ErasedAnswer.of(await run_in_threadpool(self._erase, sent.subject())))

    async def feedback(self, request: Request) -> Response:
        """What a user said, from the application: late, so it makes a case and never enters an estimate."""
        assert self._feedback is not None
        if not (self._sessions.api_allows(request) or self._sessions.by_program(request)):
            raise Refused(403, "a browser may have been made to send this", "let the application's server send it")
        sent = await self._body(request, FeedbackBody)
        outcome = await self._feedback.take(
            score=sent.score,
            comment=sent.comment,
            name=sent.name,
            source="api",
            case_id=sent.interaction_id,
            trace_id=sent.trace_id.lower(),
            response_id=sent.response_id,
        )
        if outcome == "unknown":
            raise Refused(
                404,
                "nothing is known of that answer here",
                "it may be too old, or not have arrived yet: try again",
            )
        return _answer(FeedbackAnswer.model_validate({"outcome": outcome}))

    async def openapi(self, request: Request) -> Response:
        if self._document is None:
            self._document = document(self._version, feedback=self._feedback is not None)
        return Response(self._document, media_type="application/json")

    # --- what they share

    async def _changing(self, request: Request, model: type[_B]) -> _B:
        if self._read_only:
            raise Refused(403, "labels can not be changed here", "unset web.read_only, or ask another replica")
        if not self._sessions.api_allows(request):
            raise Refused(
                403,
                "a browser may have been made to send this: nothing was changed",
                f"send the bearer token, or get /api/v1/review/session and send its csrf_token in {TOKEN_HEADER} "
                "with its cookie",
            )
        return await self._body(request, model)

    async def _body(self, request: Request, model: type[_B]) -> _B:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, "the body must be JSON", "send content-type: application/json")
        try:
            return model.model_validate_json(await body(request, MAX_BODY_BYTES))
        except TooLarge as error:
            raise Refused(413, str(error), "send less at once") from error
        except ValidationError as error:
            raise _invalid(error, "the body's form is in /api/v1/openapi.json") from error

    def _author(self, request: Request, given: str | None) -> str:
        known = self._sessions.author(request)
        said = clean_author(given) if given is not None else None
        if given is not None and said is None:
            raise Refused(422, "the author's name can not be used", "give 1 to 200 printable characters")
        if self._sessions.known(request) is not None and said not in (None, known):
            raise Refused(403, "labels are given in one's own name", "leave `author` out")
        author = said or known
        if author is None:
            raise Refused(422, "who says so is not known", "give `author`")
        return author


def _told(view: View) -> View:
    """Errors become problem documents."""

    @functools.wraps(view)
    async def told(request: Request) -> Response:
        try:
            return await view(request)
        except Refused as refused:
            problem = refused.problem
        except NoCase as error:
            problem = Refused(404, str(error), "search for it in /api/v1/review/cases").problem
        except Conflict as error:
            cure = "get the case again, look at it, and send its revision"
            problem = Refused(409, str(error), cure, case_revision=error.case.revision).problem
        except NothingToUndo as error:
            problem = Refused(409, str(error), "look at the case's labels").problem
        except (BadLabel, BadQuery) as error:
            problem = Refused(422, str(error), "mend what is named").problem
        except ReviewError as error:
            problem = Refused(503, str(error), "try again later").problem
        return problem_reply(problem)

    return told


def problem_reply(problem: Problem) -> Response:
    return Response(
        problem.model_dump_json(exclude_none=True),
        status_code=problem.status,
        media_type="application/problem+json",
    )


def _invalid(error: ValidationError, cure: str) -> Refused:
    wrong = {name[:200]: says[:300] for name, says in list(problems(error).items())[:20]}
    return Refused(422, "; ".join(f"{name}: {says}" for name, says in wrong.items()), cure, errors=wrong)


def _only(request: Request, *names: str) -> None:
    unknown = sorted(set(request.query_params) - set(names))
    if unknown:
        raise Refused(422, f"unknown parameter {unknown[0][:100]!r}", f"known is {', '.join(names)}")


def _answer(model: BaseModel) -> Response:
    return Response(model.model_dump_json(), media_type="application/json")
