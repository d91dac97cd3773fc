"""The one place that makes an HTTP transport: httpx as the interface, aiohttp's connections underneath.

httpx's own pool scans its idle connections on every call and collapses at high concurrency. httpx-aiohttp keeps
the interface, with traps that are handled here: the connection limit is given to the connector (the client's
`limits` are ignored), environment proxies are not honoured (they are resolved once, here), cookies must not be
shared between calls, and there is no total timeout (callers put `asyncio.timeout` around each call).
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from scorers.errors import BadScorerOptions, JudgeError, JudgeUnreachable

TRANSPORT_ERRORS = (httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError, OSError)
"""What an exchange may raise: httpx-aiohttp lets some of aiohttp's errors through as they are."""


def make_transport(
    *, url: str, ca_file: Path | None, proxy: str | None, max_connections: int
) -> httpx.AsyncBaseTransport:
    """A transport to the endpoint at `url`. Must be used, and closed, inside one running loop.

    It is used without `httpx.AsyncClient`, whose cookie jar, redirects and authentication cost a third of a call's
    CPU and are not wanted here. `ca_file` (PEM) is trusted beside the system's certificates, which are not even
    read for a plain http `url`.
    """
    secure = url.startswith("https:") or (proxy or "").startswith("https:")
    context = ssl.create_default_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=str(ca_file))
        except (OSError, ssl.SSLError) as error:
            raise BadScorerOptions(f"judge ca_file {str(ca_file)!r} can not be used: {error}") from error

    def session() -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=max_connections, ssl=context, ttl_dns_cache=60),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,  # aiohttp would read environment and .netrc anew, in a thread, for every call
        )

    return AiohttpTransport(
        verify=context,
        proxy=_proxy(proxy) if proxy else None,
        limits=httpx.Limits(max_connections=max_connections),
        client=session,
        trust_env=False,
    )


def _proxy(url: str) -> httpx.Proxy:
    """The proxy; a bare `host:port` is one of http, as in curl. Its URL is not told, since it may hold a password."""
    try:
        proxy = httpx.Proxy(url if "://" in url else f"http://{url}")
    except (ValueError, httpx.InvalidURL):
        proxy = None
    if proxy is None or proxy.url.scheme not in ("http", "https") or not proxy.url.host:
        raise BadScorerOptions(
            "the proxy for the judge (judge.proxy, or HTTP_PROXY, HTTPS_PROXY, ALL_PROXY) can not be used: give it as "
            "http://host:port, or set judge.proxy_from_env: false"
        )
    return proxy


def proxy_from(environ: Mapping[str, str], url: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY of `environ` (any case) name for `url`."""
    values = {name.lower(): value.strip() for name, value in environ.items()}
    target = httpx.URL(url)
    host = target.host.lower()
    for rule in values.get("no_proxy", "").lower().split(","):
        name = rule.strip().removeprefix("*").removeprefix(".")
        if rule.strip() == "*" or (
            name and (host == name or host.endswith("." + name) or name == target.netloc.decode())
        ):
            return None
    return values.get(f"{target.scheme}_proxy") or values.get("all_proxy") or None


def classify(error: Exception) -> JudgeError:
    """What a failed exchange means. Its message names the class of the error only: addresses may hold secrets.

    httpx-aiohttp reports every disconnect as a connect timeout, so the aiohttp error underneath decides:
    a connector error means that nothing was sent; anything later may have been read, and billed.
    """
    cause = error.__cause__ or error
    name = type(cause).__name__
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        return JudgeUnreachable(f"TLS certificate not trusted ({name}); set judge.ca_file to your own authority")
    if isinstance(cause, (aiohttp.ClientConnectorError, aiohttp.ClientProxyConnectionError)):
        return JudgeUnreachable(f"no connection ({name})")
    if isinstance(error, (httpx.UnsupportedProtocol, httpx.InvalidURL)):
        return JudgeUnreachable(f"base_url can not be used ({name})")
    return JudgeUnreachable(f"disconnected after the request may have been read ({name})", maybe_billed=True)
