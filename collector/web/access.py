"""Who may read the pages and the API, and under which name."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.web.passwords import Busy, Passwords

Token = Callable[[], str | None]
"""Gives the token in force, or None where none is configured; called on each request, since files change."""

MAX_NAME = 200
_SCOPE_KEY = "groundwatch.identity"


class How(StrEnum):
    """How somebody came in."""

    OPEN = "open"  # loopback, nothing configured
    BEARER = "bearer"  # the token in a header that no browser sends by itself
    TOKEN_AS_PASSWORD = "token_as_password"  # noqa: S105  # the name of a way in, no password
    PASSWORD = "password"  # noqa: S105  # likewise
    PROXY = "proxy"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks. `name` is known by authentication; None where people say themselves who they are."""

    how: How
    name: str | None = None


def identity_of(scope: Scope) -> Identity:
    """What the guard found."""
    found = scope[_SCOPE_KEY]
    assert isinstance(found, Identity)
    return found


@dataclass(frozen=True, slots=True)
class Proxy:
    """Whom to believe, and the header in which it says who is logged in."""

    user_header: str
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]

    @classmethod
    def of(cls, user_header: str | None, networks: Sequence[str]) -> Proxy | None:
        if user_header is None:
            return None
        return cls(user_header.lower(), tuple(ipaddress.ip_network(one, strict=False) for one in networks))

    def trusts(self, scope: Scope) -> bool:
        """Whether the peer of the connection itself is the proxy."""
        client = scope.get("client")
        try:
            peer = ipaddress.ip_address(client[0]) if client else None
        except ValueError:
            return False
        if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped is not None:
            peer = peer.ipv4_mapped
        return peer is not None and any(peer in network for network in self.networks)


class Guard:
    """Finds out who asks before the wrapped application sees the request; `identity_of` tells it.

    `open_without_token` is true when bound to loopback: then nobody is asked while nothing is configured, but the
    Host must be a name of loopback or one of `allowed_hosts`, since a foreign site may rebind its own name to this
    address. Secrets are compared in constant time.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: Token,
        open_without_token: bool,
        passwords: Passwords | None = None,
        proxy: Proxy | None = None,
        allowed_hosts: Sequence[str] = (),
    ) -> None:
        self._app = app
        self._token = token
        self._open = open_without_token
        self._passwords = passwords
        self._proxy = proxy
        self._hosts = frozenset(host.lower() for host in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        found = await self._who(scope)
        if isinstance(found, Identity):
            await self._app({**scope, _SCOPE_KEY: found}, receive, send)
        else:
            await found(scope, receive, send)

    async def _who(self, scope: Scope) -> Identity | Response:
        token, headers = self._token(), Headers(scope=scope)
        if token is None and self._passwords is None and self._proxy is None:
            return self._open_or_closed(scope, headers)
        if self._proxy is not None and self._proxy.trusts(scope):
            names = headers.getlist(self._proxy.user_header)
            if names:
                return _named(scope, names)
        scheme, _, rest = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token is not None and _same(rest.strip(), token):
            return Identity(How.BEARER)
        if scheme.lower() == "basic":
            name, password = _basic(rest)
            if token is not None and _same(password, token):
                return Identity(How.TOKEN_AS_PASSWORD)
            try:
                if self._passwords is not None and name and await self._passwords.right(name, password):
                    return Identity(How.PASSWORD, name)
            except Busy:
                reply = refusal(scope, 429, "too many passwords wait to be checked", "try again in a few seconds")
                reply.headers["retry-after"] = "5"
                return reply
        return self._unauthorized(scope, token)

    def _open_or_closed(self, scope: Scope, headers: Headers) -> Identity | Response:
        if not self._open:
            return refusal(
                scope,
                403,
                "The page and the API are closed: groundwatch is bound beyond loopback and knows nobody",
                "set web.token_file (or web.token_env), web.users_file or web.proxy_user_header. /metrics, /healthz "
                "and /readyz stay open",
            )
        host = headers.get("host", "")
        if _host_name(host) in self._hosts or _is_loopback(_host_name(host)):
            return Identity(How.OPEN)
        return refusal(
            scope,
            403,
            f"the name {host[:100]!r} is not one of this machine",
            "call 127.0.0.1 or localhost, or add the name to web.allowed_hosts",
        )

    def _unauthorized(self, scope: Scope, token: str | None) -> Response:
        ways, challenges = [], []
        if token is not None:
            ways.append("a bearer token, or the token as the password of Basic (web.token_file)")
        if self._passwords is not None:
            ways.append("name and password by Basic (web.users_file)")
        if ways:
            challenges.append('Basic realm="groundwatch", charset="UTF-8"')
        if token is not None:
            challenges.append("Bearer")
        if self._proxy is not None:
            ways.append("a name given by the proxy in front (web.proxy_user_header)")
        reply = refusal(scope, 401, "who asks is not known", "needed is " + ", or ".join(ways))
        reply.headers["www-authenticate"] = ", ".join(challenges) or "Proxy"
        return reply


def refusal(scope: Scope, status: int, detail: str, cure: str) -> Response:
    """An answer that is no: a problem document (RFC 9457) under /api, else plain text."""
    if scope["path"].startswith("/api/"):
        body = {
            "type": "about:blank",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": detail,
            "cure": cure,
        }
        return Response(json.dumps(body), status_code=status, media_type="application/problem+json")
    return PlainTextResponse(f"{detail}: {cure}.\n", status_code=status)


def _named(scope: Scope, names: Sequence[str]) -> Identity | Response:
    try:
        name = names[0].encode("latin-1").decode("utf-8").strip()
    except UnicodeError:
        name = names[0].strip()
    if len(names) > 1 or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        return refusal(
            scope, 401, "the proxy's header does not hold one name", "let the proxy set it, not add to it"
        )
    return Identity(How.PROXY, name)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode("utf-8", "replace"))


def _basic(rest: str) -> tuple[str, str]:
    try:
        name, _, password = base64.b64decode(rest, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return "", ""
    return (name, password) if name.isprintable() and len(name) <= MAX_NAME else ("", password)


def _host_name(host: str) -> str:
    """Without the port and the brackets of IPv6."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().removesuffix(".")


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


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
