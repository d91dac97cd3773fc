"""Who may read the page and the API."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

Token = Callable[[], str | None]
"""Gives the token in force, or None where none is configured; called on each request, since files change."""


class Guard:
    """Asks for the token before the wrapped application sees the request.

    `open_without_token` is true when bound to loopback. Tokens are compared in constant time.
    """

    def __init__(self, app: ASGIApp, *, token: Token, open_without_token: bool) -> None:
        self._app = app
        self._token = token
        self._open = open_without_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        token = self._token()
        if token is None:
            if self._open:
                return None
            return PlainTextResponse(
                "The page and the API are closed: groundwatch is bound beyond loopback and web.token_file "
                "(or web.token_env) is not set. /metrics, /healthz and /readyz stay open.\n",
                status_code=403,
            )
        given = _credential(Headers(scope=scope).get("authorization", ""))
        if given is not None and hmac.compare_digest(given.encode(), token.encode()):
            return None
        return JSONResponse(
            {"error": "a bearer token (or the token as the password of Basic) is needed: see web.token_file"},
            status_code=401,
            headers={"www-authenticate": 'Basic realm="groundwatch", Bearer'},
        )


def _credential(header: str) -> str | None:
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(rest, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return None
    return None


def file_or_env_token(path: Path | None, name: str | None, environment: Mapping[str, str]) -> Token:
    """The token of a file, read anew each time (it may be rotated), or of an environment variable.

    An unreadable or empty file gives a token that nobody can present: closed, not open.
    """

    def read() -> str | None:
        if path is not None:
            try:
                return path.read_text(encoding="utf-8").strip() or secrets.token_urlsafe(32)
            except (OSError, UnicodeDecodeError):
                return secrets.token_urlsafe(32)
        if name is not None:
            return environment.get(name, "").strip() or secrets.token_urlsafe(32)
        return None

    return read
