"""The pages on which people work through cases. All of it works by links and forms alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urlsplit

from jinja2 import Environment
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from collector.pipeline.clock import Clock
from collector.review.case import Case, Reason
from collector.review.labels import BadLabel, Draft, LabelKind, in_effect
from collector.review.query import BadQuery, Query, Sort, Stats
from collector.review.store import Conflict, NoCase, NothingToUndo, ReviewError, ReviewStore, StoreUnavailable
from collector.web.links import TraceLink
from collector.web.review.desk import Desk
from collector.web.review.filters import Asked, problems, read
from collector.web.review.forms import BadForm, Typed, drafts, fields, held
from collector.web.review.held import Held
from collector.web.review.lists import DRAWN, QUEUE, Working, following, its_turn
from collector.web.review.shown import case_page
from collector.web.session import TOKEN_FIELD, Sessions, clean_author

_ENTRY_ROWS = 10
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
"""These pages have one script, of our own, for the keys."""
_NO_NAME = "Say who you are: a name is needed."
_READ_ONLY = "labels can not be changed here: web.read_only is set"


class Pages:
    """The routes under /review. `link` makes the address of a trace in the user's tracing backend."""

    def __init__(
        self,
        store: ReviewStore,
        *,
        templates: Environment,
        sessions: Sessions,
        desk: Desk,
        clock: Clock,
        read_only: bool,
        link: TraceLink | None,
    ) -> None:
        self._store = store
        self._templates = templates
        self._sessions = sessions
        self._desk = desk
        # Counting reads much of a large store, and the numbers are for orientation.
        self._piles = Held(self._count_piles, clock=clock, fresh_seconds=5, good_seconds=60)
        self._facets = Held(store.facets, clock=clock, fresh_seconds=30, good_seconds=600)
        self._read_only = read_only
        self._link = link

    def routes(self) -> list[Route]:
        return [
            Route("/review", self.caught(self.queue)),
            Route("/review/search", self.caught(self.search)),
            Route("/review/case", self.caught(self.case)),
            Route("/review/next", self.caught(self.next)),
            Route("/review/name", self.caught(self.ask_name)),
            Route("/review/name", self._changing(self.keep_name), methods=["POST"]),
            Route("/review/label", self._changing(self.label), methods=["POST"]),
            Route("/review/undo", self._changing(self.undo), methods=["POST"]),
        ]

    # --- looking

    async def queue(self, request: Request) -> Response:
        """The control part in the order drawn, and the other reasons with what waits."""

        waiting, stats = await self._piles.get()
        rows = await run_in_threadpool(lambda: self._store.find(DRAWN, limit=_ENTRY_ROWS).rows)
        drawn = await run_in_threadpool(lambda: self._store.count(DRAWN, at_most=1000))
        return self.page(request, "queue", rows=rows, drawn=drawn, waiting=waiting, stats=stats)

    def _count_piles(self) -> tuple[dict[str, int], Stats]:
        """How many wait for each reason but the control part, which is counted at each look; and the store's size."""
        numbers = {
            reason.value: self._store.count(Query(reason=reason, labelled=False, skipped=False), at_most=1000)
            for reason in Reason
            if reason is not Reason.CONTROL
        }
        return {reason: number for reason, number in numbers.items() if number}, self._store.stats()

    async def search(self, request: Request) -> Response:
        try:
            asked = read(request.query_params.multi_items())
        except ValidationError as error:
            shown = {name: problem[:300] for name, problem in problems(error).items()}
            return await self._found(request, Asked(), shown)
        return await self._found(request, asked, {})

    async def _found(self, request: Request, asked: Asked, wrong: Mapping[str, str]) -> Response:
        query = asked.query()

        def look() -> dict[str, Any]:
            if wrong:
                return {"rows": (), "next": None, "number": 0}
            page = self._store.find(query, after=asked.after, limit=asked.limit)
            number = self._store.count(query, at_most=1000)
            return {"rows": page.rows, "next": page.next, "number": number}

        try:
            found = await run_in_threadpool(look)
        except BadQuery as error:
            return await self._found(request, Asked(), {"query": str(error)})
        return self.page(
            request,
            "search",
            asked=asked,
            given={name: value for name, value in request.query_params.multi_items() if value},
            wrong=wrong,
            listed=Working(asked).text,
            facets=await self._facets.get(),
            status_code=400 if wrong else 200,
            **found,
        )

    async def case(self, request: Request) -> Response:
        params = request.query_params
        case_id = params.get("id", "")
        case = await run_in_threadpool(self._store.get, case_id)
        if case is None:
            raise NoCase(case_id)
        return await self._case(request, case, Working.of(params.get("from", "")), full=params.get("full") == "1")

    async def next(self, request: Request) -> Response:
        """On to the next case of the list that somebody works through."""
        working = Working.of(request.query_params.get("from", ""))
        return await self._on(request, working, request.query_params.get("id"))

    # --- saying who one is

    async def ask_name(self, request: Request) -> Response:
        return self.page(request, "name", to=_inside(request.query_params.get("to", "")), wrong="")

    async def keep_name(self, request: Request, form: Mapping[str, str]) -> Response:
        author, to = clean_author(form.get("author", "")), _inside(form.get("to", ""))
        if author is None:
            return self.page(
                request, "name", to=to, wrong="A name of 1 to 200 characters is needed.", status_code=422
            )
        reply = RedirectResponse(to, status_code=303)
        self._sessions.set_author(request, reply, author)
        return reply

    # --- labelling

    async def label(self, request: Request, form: Mapping[str, str]) -> Response:
        case_id, working = form.get("id", ""), Working.of(form.get("from", ""))
        author, revision = self._sessions.author(request), _revision(form)
        case = await run_in_threadpool(self._store.get, case_id)
        if case is None:
            raise NoCase(case_id)
        if author is None:
            author = clean_author(form.get("author", ""))
        if author is None:
            return await self._case(request, case, working, typed=form, since=revision, wrong=_NO_NAME)
        skip = form.get("act") == "skip"
        try:
            given = [Draft(LabelKind.SKIP)] if skip else drafts(form, case.in_effect, author)
            if not given:
                wrong = "Nothing was labelled: choose something, or skip the case."
                return await self._case(request, case, working, typed=form, since=revision, wrong=wrong)

            def store() -> Case:
                in_order = working.in_order and its_turn(self._store, case_id)
                return self._store.label(
                    case_id, given, author=author, expected_revision=revision, in_order=in_order
                )

            saved = await run_in_threadpool(store)
        except BadLabel as error:
            return await self._case(request, case, working, typed=form, since=revision, wrong=f"{error}.")
        except Conflict as conflict:
            return await self._case(
                request, conflict.case, working, typed=form, since=conflict.expected_revision, status_code=409
            )
        self._desk.leave(case_id, author)
        reply = await self._on(request, working, case_id, done=saved, what="skipped" if skip else "labelled")
        if self._sessions.author(request) is None:
            self._sessions.set_author(request, reply, author)
        return reply

    async def undo(self, request: Request, form: Mapping[str, str]) -> Response:
        """Take back one's last labels on a case, and show it."""
        case_id, working = form.get("id", ""), Working.of(form.get("from", ""))
        author, revision = self._sessions.author(request), _revision(form)
        if author is None:
            raise NothingToUndo(case_id, "somebody without a name")

        def store() -> Case:
            return self._store.undo(case_id, author=author, expected_revision=revision)

        try:
            await run_in_threadpool(store)
        except Conflict as conflict:
            return await self._case(
                request, conflict.case, working, since=conflict.expected_revision, status_code=409
            )
        return RedirectResponse(_case_address(case_id, working, undone="1"), status_code=303)

    # --- what they share

    async def _case(
        self,
        request: Request,
        case: Case,
        working: Working,
        *,
        full: bool = False,
        typed: Mapping[str, str] | None = None,
        wrong: str = "",
        since: int | None = None,
        status_code: int = 200,
    ) -> Response:
        """The case's page. `typed` is what was sent and is not safe yet; labels after revision `since` are what
        others did meanwhile."""
        author = self._sessions.author(request)
        shown = await run_in_threadpool(case_page, case, full=full)
        if author is not None:
            self._desk.sit(case.id, author)
        meanwhile = [label for label in case.labels if since is not None and label.revision > since]
        values = held(shown.effect, author)
        if typed is not None:
            ours = {name: value for name, value in typed.items() if value or name in values.values}
            values = Typed({**values.values, **ours, "golden": _golden(typed, case, since)})
        origin = case.origin
        trace_id = origin.trace_ids[0] if origin.trace_ids else ""
        params = request.query_params
        # In a thread, too: a case can be megabytes, and ingest shares the event loop.
        return await run_in_threadpool(
            self.page,
            request,
            "case",
            page=shown,
            case=case,
            working=working,
            typed=values,
            wrong=wrong,
            meanwhile=meanwhile,
            conflict=bool(meanwhile) or status_code == HTTPStatus.CONFLICT,
            others=self._desk.others(case.id, author),
            trace_link=self._link.of(
                trace_id=trace_id, span_id=origin.span_id, service=origin.service, session=origin.session or ""
            )
            if self._link and trace_id
            else None,
            full_address=_case_address(case.id, working, full="1"),
            done=params.get("done") if request.method == "GET" else None,
            done_revision=_number(params.get("revision")),
            done_what="skipped" if params.get("what") == "skipped" else "labelled",
            undone=params.get("undone") == "1" and request.method == "GET",
            status_code=422 if wrong else status_code,
        )

    async def _on(
        self, request: Request, working: Working, case_id: str | None, *, done: Case | None = None, what: str = ""
    ) -> Response:
        author = self._sessions.author(request)
        taken = self._desk.taken(author)
        found = await run_in_threadpool(following, self._store, working, case_id=case_id, taken=taken)
        more = {"done": done.id, "revision": str(done.revision), "what": what} if done is not None else {}
        if found is not None:
            return RedirectResponse(_case_address(found[0], found[1], **more), status_code=303)
        query = urlencode({"from": working.text, **more})
        if request.url.path == "/review/next":
            return self.page(
                request,
                "end",
                working=working,
                done=request.query_params.get("done"),
                done_revision=_number(request.query_params.get("revision")),
                done_what="skipped" if request.query_params.get("what") == "skipped" else "labelled",
            )
        return RedirectResponse(f"/review/next?{query}", status_code=303)

    def page(self, request: Request, template: str, *, status_code: int = 200, **values: object) -> Response:
        token, fresh = self._sessions.begin(request)
        html = self._templates.get_template(f"review/{template}.html").render(
            csrf=token,
            read_only=self._read_only,
            author=self._sessions.author(request),
            here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            QUEUE=QUEUE,
            Sort=Sort,
            **values,
        )
        reply = HTMLResponse(html, status_code=status_code, headers={"content-security-policy": _POLICY})
        self._sessions.set_session(request, reply, fresh)
        return reply

    def _error(self, request: Request, status_code: int, title: str, detail: str) -> Response:
        return self.page(request, "error", status_code=status_code, title=title, detail=detail)

    def caught(self, view: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def caught(request: Request) -> Response:
            try:
                return await view(request)
            except NoCase as error:
                return self._error(request, 404, "There is no such case", str(error))
            except (BadQuery, BadForm, NothingToUndo) as error:
                return self._error(request, 400, "That can not be done", str(error))
            except StoreUnavailable as error:
                return self._error(request, 503, "The review store does not answer", str(error))
            except ReviewError as error:
                return self._error(request, 500, "The review store failed", str(error))

        return caught

    def _changing(
        self, view: Callable[[Request, Mapping[str, str]], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Nothing is changed in read-only mode, nor without the token of a form of ours."""

        async def guarded(request: Request) -> Response:
            if self._read_only:
                return self._error(request, 403, "Read only", _READ_ONLY)
            form = await fields(request)
            if self._sessions.fits(request, form.get(TOKEN_FIELD)):
                return await view(request, form)
            return await self._stale(request, form)

        return self.caught(guarded)

    async def _stale(self, request: Request, form: Mapping[str, str]) -> Response:
        """Nothing was done. What one typed into a page of ours is shown again, with a token that fits."""
        case = None
        if request.url.path == "/review/label" and self._sessions.from_here(request):
            case = await run_in_threadpool(self._store.get, form.get("id", ""))
        if case is None:
            return self._error(
                request,
                403,
                "Nothing was changed",
                "the form was old, or came from elsewhere: open the page again",
            )
        wrong = (
            "Nothing was saved: the page's token was no longer good, after a restart or a visit from another site. "
            "What you typed is kept; save it again."
        )
        working, since = Working.of(form.get("from", "")), _number(form.get("revision"))
        reply = await self._case(request, case, working, typed=form, since=since, wrong=wrong)
        reply.status_code = 403
        return reply


def _case_address(case_id: str, working: Working, **more: str) -> str:
    return "/review/case?" + urlencode({"id": case_id, "from": working.text, **more}, errors="replace")


def _golden(typed: Mapping[str, str], case: Case, since: int | None) -> str:
    """The box of the golden set as it is shown again: what the author changed, else what holds by now, since what
    others did meanwhile must not be taken back unseen."""
    before = in_effect([label for label in case.labels if since is None or label.revision <= since]).golden
    now, said = case.in_effect.golden, bool(typed.get("golden"))
    return "true" if (said if "shown_golden" in typed and said != before else now) else ""


def _revision(form: Mapping[str, str]) -> int:
    found = _number(form.get("revision"))
    if found is None:
        raise BadForm("the revision of the case is missing: open the page again")
    return found


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def _inside(address: str) -> str:
    """An address of our own pages, whatever was asked for."""
    parts = urlsplit(address.replace("\\", "/"))
    good = not parts.scheme and not parts.netloc and address.startswith("/review") and address.isprintable()
    return address if good and not address.startswith("//") else "/review"
