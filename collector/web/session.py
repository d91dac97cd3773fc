"""Against requests that other sites make a browser send: a session cookie, and a token made of it in every form."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from urllib.parse import quote, unquote, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from collector.web.access import How, Proxy, identity_of

SESSION_COOKIE = "groundwatch_session"
AUTHOR_COOKIE = "groundwatch_author"
TOKEN_HEADER = "x-groundwatch-csrf"  # noqa: S105  # the name of a header, no secret
TOKEN_FIELD = "csrf"  # noqa: S105  # the name of a field, no secret
_SESSION = re.compile(r"[A-Za-z0-9_-]{43}")
_YEAR_SECONDS = 365 * 24 * 3600


class Sessions:
    """Makes and checks tokens. The key is this process's own: after a restart open forms are stale, and are shown
    again with what was typed.

    A token belongs to one session cookie (HttpOnly, SameSite=Strict, Secure under TLS) and to the name that
    authentication gave. The cookie opens nothing by itself.
    """

    def __init__(self, proxy: Proxy | None = None) -> None:
        self._key = secrets.token_bytes(32)
        self._proxy = proxy

    def session(self, request: Request) -> str | None:
        given = request.cookies.get(SESSION_COOKIE, "")
        return given if _SESSION.fullmatch(given) else None

    def begin(self, request: Request) -> tuple[str, str | None]:
        """The token for this request's forms, and the session to be set as a cookie where there was none."""
        session = self.session(request)
        fresh = None if session else secrets.token_urlsafe(32)
        return self._token(request, session or fresh or ""), fresh

    def fits(self, request: Request, token: str | None) -> bool:
        """Whether the token given belongs to the session of this request."""
        session = self.session(request)
        return bool(
            session and token and hmac.compare_digest(self._token(request, session).encode(), token.encode())
        )

    def from_here(self, request: Request) -> bool:
        """Whether a browser says that one of our own pages made the request; only such are shown what they sent.

        Our pages send no referrer, and so browsers call their origin "null" in a form's request.
        """
        site = request.headers.get("sec-fetch-site")
        if site is not None:
            return site == "same-origin"
        origin = request.headers.get("origin", "null")
        return urlsplit(origin).netloc == request.headers.get("host", "")

    def set_session(self, request: Request, response: Response, session: str | None) -> None:
        if session is not None:
            response.set_cookie(
                SESSION_COOKIE, session, httponly=True, samesite="strict", secure=self.secure(request), path="/"
            )

    def set_author(self, request: Request, response: Response, author: str) -> None:
        response.set_cookie(
            AUTHOR_COOKIE,
            quote(author, safe=""),
            max_age=_YEAR_SECONDS,
            httponly=True,
            samesite="lax",  # only a name: a link from elsewhere should not ask for it again
            secure=self.secure(request),
            path="/",
        )

    def secure(self, request: Request) -> bool:
        """Whether the browser came by TLS, to us or to the trusted proxy."""
        if request.url.scheme == "https":
            return True
        proto = request.headers.get("x-forwarded-proto", "")
        return proto == "https" and self._proxy is not None and self._proxy.trusts(request.scope)

    def api_allows(self, request: Request) -> bool:
        """Whether a request to the API may change something: by bearer, which no browser sends by itself, or with
        the session's token in a header."""
        if identity_of(request.scope).how is How.BEARER:
            return True
        return self.fits(request, request.headers.get(TOKEN_HEADER))

    def by_program(self, request: Request) -> bool:
        """Whether no browser sent it: a browser names the origin of every POST, and asks before it sends JSON."""
        return not {"origin", "sec-fetch-site", "sec-fetch-mode"} & set(request.headers.keys())

    def known(self, request: Request) -> str | None:
        """The name that authentication gives."""
        return identity_of(request.scope).name

    def author(self, request: Request) -> str | None:
        """The name under which labels are kept: by authentication, else as said once and kept in a cookie."""
        return self.known(request) or clean_author(unquote(request.cookies.get(AUTHOR_COOKIE, "")))

    def _token(self, request: Request, session: str) -> str:
        name = identity_of(request.scope).name or ""
        return hmac.new(self._key, f"{session}\0{name}".encode(), hashlib.sha256).hexdigest()


def clean_author(text: str) -> str | None:
    """A name as people type it; None where it can not be one."""
    name = " ".join(text.split())
    return name if 0 < len(name) <= 200 and name.isprintable() else None
