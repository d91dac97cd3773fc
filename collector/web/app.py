"""The routes of the one HTTP port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from collector import __version__
from collector.web.access import Guard, Proxy, Token, refusal
from collector.web.health import Health
from collector.web.options import Options
from collector.web.passwords import Lines, Passwords
from collector.web.review.site import Review
from collector.web.review.site import routes as review_routes
from collector.web.session import Sessions
from collector.web.status import Status, lines
from collector.web.templating import environment

HERE = Path(__file__).parent
Explain = Callable[[str], list[dict[str, object]]]
Render = Callable[[str, str, str], Awaitable[tuple[bytes, dict[str, str]]]]
"""(Accept, Accept-Encoding, scraper) to the body of /metrics with its headers. The scraper is the peer's address, where
the request says that it is one, which comes again; else empty."""
_SCRAPER = "x-prometheus-scrape-timeout-seconds"
"""Sent by Prometheus, and by what scrapes as it does."""

_SECURITY = {
    b"content-security-policy": b"default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; "
    b"form-action 'self'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-store",
}


_RENEWS_ITSELF = {
    "content-security-policy": _SECURITY[b"content-security-policy"].decode()
    + "; script-src 'self'; connect-src 'self'"
}
"""The status page's own policy: one script of this host, which asks this host for the page again."""


class _SecurityHeaders:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((name, value) for name, value in _SECURITY.items() if name not in present),
                ]
            await send(message)

        await self._app(scope, receive, sending)


async def _no_such(request: Request, error: Exception) -> Response:
    """What no route serves, or not by this method."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    what = "there is nothing here" if status == 404 else f"{request.method} is not served here"
    reply = refusal(request.scope, status, what, "/api/v1/openapi.json tells of the review's API")
    reply.headers.update(getattr(error, "headers", None) or {})
    return reply


class Site:
    """What the port serves: `/v1/*` goes to `otlp` before anything else looks at it, since that path is the hot one.

    `guarded` are the routes that ask who comes; beside them only metrics and health are served.
    """

    def __init__(self, *, otlp: ASGIApp, site: ASGIApp, guarded: Sequence[BaseRoute]) -> None:
        self._otlp = otlp
        self._site = site
        self.guarded = tuple(guarded)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/v1/"):
            await self._otlp(scope, receive, send)
        else:
            await self._site(scope, receive, send)


def build(
    *,
    options: Options,
    health: Health,
    status: Callable[[], Status],
    explain: Explain,
    render_metrics: Render,
    otlp: ASGIApp,
    token: Token,
    loopback: bool,
    more: Sequence[BaseRoute] = (),
    users: Lines | None = None,
    review: Review | None = None,
) -> Site:
    """`more` are routes of other parts, behind the same guard. `users` are the names that may log in. Without
    `review` there are no review pages."""
    templates = environment()
    proxy = Proxy.of(options.proxy_user_header, options.proxy_networks)
    reviewing: list[BaseRoute] = []
    if review is not None:
        reviewing = review_routes(
            review, options=options, templates=templates, sessions=Sessions(proxy), version=__version__
        )

    async def page(request: Request) -> Response:
        now = status()
        kept: frozenset[str] = frozenset()
        if review is not None:
            kept = await run_in_threadpool(review.kept, [worst.interaction_id for worst in now.worst])
        html = templates.get_template("status.html").render(
            status=now,
            lines=lines(now.estimates),
            refresh=options.refresh_seconds,
            reviewing=review is not None,
            kept=kept,
        )
        return HTMLResponse(html, headers=_RENEWS_ITSELF)

    async def trace_page(request: Request) -> Response:
        trace_id = request.path_params["trace_id"]
        notes = explain(trace_id)
        html = templates.get_template("why.html").render(trace_id=trace_id, notes=notes)
        return HTMLResponse(html, status_code=200 if notes else 404)

    async def api_status(request: Request) -> Response:
        return JSONResponse(status().as_json())

    async def api_why(request: Request) -> Response:
        trace_id = request.path_params["trace_id"]
        notes = explain(trace_id)
        body = {"trace_id": trace_id, "decisions": notes}
        return JSONResponse(body, status_code=200 if notes else 404)

    async def metrics(request: Request) -> Response:
        headers = request.headers
        body, response_headers = await render_metrics(
            headers.get("accept", ""),
            headers.get("accept-encoding", ""),
            request.client.host if request.client is not None and _SCRAPER in headers else "",
        )
        return Response(body, headers=response_headers)

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def readyz(request: Request) -> Response:
        if health.ready:
            return PlainTextResponse("ready\n")
        lines = "".join(f"{component}: {reason}\n" for component, reason in sorted(health.reasons.items()))
        return PlainTextResponse(lines, status_code=503)

    guarded = Starlette(
        routes=[
            Route("/", page),
            Route("/why/{trace_id}", trace_page),
            Route("/api/v1/status", api_status),
            Route("/api/v1/why/{trace_id}", api_why),
            *more,
            *reviewing,
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ],
        exception_handlers={404: _no_such, 405: _no_such},
    )
    site = Starlette(
        routes=[
            Route("/metrics", metrics),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Mount(
                "/",
                Guard(
                    guarded,
                    token=token,
                    open_without_token=loopback,
                    passwords=Passwords(users) if users is not None else None,
                    proxy=proxy,
                    allowed_hosts=options.allowed_hosts,
                ),
            ),
        ],
        middleware=[Middleware(_SecurityHeaders)],
    )

    return Site(otlp=otlp, site=site, guarded=guarded.routes)
