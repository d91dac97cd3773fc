"""Change detection over HTTP: what is watched, and the three things that people can do about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Protocol
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from collector.estimates.detect_choice import Watched

_MAX_BODY_BYTES = 4_096


class Drift(Protocol):
    """What the routes need of the change detection. Names of no series raise LookupError."""

    def watched(self) -> list[Watched]: ...
    def acknowledge(self, name: str) -> Watched: ...
    def reset(self, name: str) -> Watched: ...
    def learn(self, name: str) -> Watched: ...


def routes(drift: Drift) -> list[Route]:
    """`GET /api/v1/drift` lists; `POST /api/v1/drift/{ack,reset,learn}` with `{"series": NAME}` acts.

    They stand behind the same guard as the rest of the API, which also refuses foreign names of this machine. Nothing
    is changed by a GET, nor by what a page of another origin can make a browser send: the body must be declared as
    JSON, which such a page may not do unasked, and an `Origin` must be our own.
    """

    async def listed(request: Request) -> Response:
        return JSONResponse({"series": [asdict(one) for one in drift.watched()]})

    def acting(act: Callable[[str], Watched]) -> Callable[[Request], object]:
        async def acted(request: Request) -> Response:
            refusal = _refusal(request)
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


def _refusal(request: Request) -> Response | None:
    headers = request.headers
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return _no(415, "send the body as content-type: application/json")
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
        return _no(403, "this comes from a page of another origin")
    return None


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
