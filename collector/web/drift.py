"""Change detection over HTTP: what is watched, and the three things that people can do about it."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Protocol
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from collector.estimates.detect_choice import Watched
from collector.web.access import Token

_MAX_BODY_BYTES = 4_096


class Drift(Protocol):
    """What the routes need of the change detection. Names of no series raise LookupError."""

    def watched(self) -> list[Watched]: ...
    def acknowledge(self, name: str) -> Watched: ...
    def reset(self, name: str) -> Watched: ...
    def learn(self, name: str) -> Watched: ...


def routes(drift: Drift, *, token: Token) -> list[Route]:
    """`GET /api/v1/drift` lists; `POST /api/v1/drift/{ack,reset,learn}` with `{"series": NAME}` acts.

    They stand behind the same token as the rest of the API. Nothing is changed by a GET, nor by what a page of
    another origin can make a browser send: the body must be declared as JSON, which such a page may not do unasked,
    an `Origin` must be our own, and without a token the request must name this machine, so that no foreign name
    can be pointed at it.
    """

    async def listed(request: Request) -> Response:
        return JSONResponse({"series": [asdict(one) for one in drift.watched()]})

    def acting(act: Callable[[str], Watched]) -> Callable[[Request], object]:
        async def acted(request: Request) -> Response:
            refusal = _refusal(request, token)
            if refusal is not None:
                return refusal
            name = await _series(request)
            if name is None:
                return _no(400, 'the body must be a JSON object like {"series": "faithfulness/service=shop"}')
            try:
                return JSONResponse(asdict(act(name)))
            except LookupError:
                known = [one.series for one in drift.watched()]
                return JSONResponse(
                    {"error": "no series of this name is watched", "series": known}, status_code=404
                )

        return acted

    return [
        Route("/api/v1/drift", listed),
        Route("/api/v1/drift/ack", acting(drift.acknowledge), methods=["POST"]),
        Route("/api/v1/drift/reset", acting(drift.reset), methods=["POST"]),
        Route("/api/v1/drift/learn", acting(drift.learn), methods=["POST"]),
    ]


def _refusal(request: Request, token: Token) -> Response | None:
    headers = request.headers
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return _no(415, "send the body as content-type: application/json")
    host = headers.get("host", "")
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return _no(403, "this comes from a page of another origin")
    if token() is None and not _this_machine(host):
        return _no(403, "without a token (web.token_file) changes are taken only by this machine's own name")
    return None


def _this_machine(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


async def _series(request: Request) -> str | None:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY_BYTES:
            return None
    try:
        content = json.loads(body)
    except ValueError:
        return None
    name = content.get("series") if isinstance(content, dict) else None
    return name if isinstance(name, str) and name else None


def _no(status: int, error: str) -> Response:
    return JSONResponse({"error": error}, status_code=status)
