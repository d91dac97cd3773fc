"""The one place that makes an HTTP client: httpx as the interface, aiohttp's connections underneath.

httpx's own pool scans its idle connections on every call and collapses at high concurrency. httpx-aiohttp keeps
the interface, with traps that are handled here: the connection limit is given to the connector (the client's
`limits` are ignored), environment proxies need a session that trusts the environment, cookies must not be
shared between calls, and there is no total timeout (callers put `asyncio.timeout` around each call).
"""

from __future__ import annotations

import ssl
from pathlib import Path

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from scorers.errors import BadScorerOptions, JudgeError, JudgeUnreachable

_NO_TIMEOUT = httpx.Timeout(None)  # every call stands inside asyncio.timeout, which also bounds slow bodies

TRANSPORT_ERRORS = (httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError, OSError)
"""What an exchange may raise: httpx-aiohttp lets some of aiohttp's errors through as they are."""


def make_client(
    *, ca_file: Path | None, proxy: str | None, max_connections: int, trust_env_proxies: bool, secure: bool
) -> httpx.AsyncClient:
    """A client for one endpoint. Must be called, and closed, inside the running loop that uses it.

    `ca_file` (PEM) is trusted beside the system's certificates. `trust_env_proxies` honours HTTP_PROXY and its
    kin, which a composition root may allow. `secure` is false where every address is plain http: then the system's
    certificates, which take some milliseconds, are not read, and no https address can be called.
    """
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
            trust_env=trust_env_proxies,
        )

    transport = AiohttpTransport(
        verify=context,
        proxy=httpx.Proxy(proxy) if proxy else None,
        limits=httpx.Limits(max_connections=max_connections),
        client=session,
        trust_env=trust_env_proxies,
    )
    return httpx.AsyncClient(transport=transport, timeout=_NO_TIMEOUT, follow_redirects=False)


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
