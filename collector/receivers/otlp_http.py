"""OTLP over HTTP: a plain ASGI application for POST /v1/traces and /v1/logs.

Mounted by the one server beside the page and the metrics. Written against ASGI itself: a framework's request
and response objects cost more than reading the spans does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

import msgspec

from collector.otlp.batch import Signal
from collector.otlp.model import Encoding
from collector.receivers.auth import Authenticator
from collector.receivers.border import Accepted, Border
from collector.receivers.inflate import ENCODINGS, Corrupt, Inflater, TooLarge
from collector.receivers.options import Options, TlsOptions
from collector.receivers.status import MARKER, Reason, Refused

AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

PATHS = {"/v1/traces": Signal.TRACES, "/v1/logs": Signal.LOGS}
"""What to mount, and the signal each path takes."""

_CONTENT_TYPES = {
    b"application/x-protobuf": Encoding.PROTO,
    b"application/protobuf": Encoding.PROTO,
    b"application/json": Encoding.JSON,
}
_TYPE_OF = {Encoding.PROTO: b"application/x-protobuf", Encoding.JSON: b"application/json"}
_ALL_TAKEN = {Encoding.PROTO: b"", Encoding.JSON: b"{}"}
_MARKER = MARKER.encode()
_BUSY_RETRY_SECONDS = 1.0


class _Gone(Exception):
    """The client went away in the middle of its request."""


class OtlpHttp:
    """The ASGI callable. `border` is the border of transport "http"; `auth` None means no authentication."""

    def __init__(self, *, options: Options, border: Border, auth: Authenticator | None) -> None:
        self._max_request_bytes = options.max_request_bytes
        self._max_decompressed_bytes = options.max_decompressed_bytes
        self._max_in_progress = options.http.max_body_bytes_in_progress
        self._timeout_seconds = options.request_timeout_seconds
        self._in_progress = 0
        self._border = border
        self._auth = auth

    @property
    def body_bytes_in_progress(self) -> int:
        """Bytes of bodies that are being read now."""
        return self._in_progress

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        signal = PATHS.get(path)
        if signal is None:
            message = f"there is nothing at {quote(path[:200])}; OTLP is taken at {' and '.join(PATHS)}"
            await _answer(send, 404, Encoding.JSON, msgspec.json.encode({"code": 5, "message": message}))
            return
        encoding: Encoding | None = None
        content_type = content_encoding = b""
        length: bytes | None = None
        authorization: bytes | None = None
        own = False
        for name, value in scope["headers"]:
            if name == b"content-type":
                content_type = value
                encoding = _CONTENT_TYPES.get(value) or _CONTENT_TYPES.get(
                    value.partition(b";")[0].strip().lower()
                )
            elif name == b"content-encoding":
                content_encoding = value.strip().lower()
            elif name == b"content-length":
                length = value
            elif name == b"authorization":
                authorization = value
            elif name == _MARKER:
                own = True
        answer_in = encoding or Encoding.JSON
        if scope["method"] != "POST":
            refused = Refused(Reason.UNSUPPORTED, f"{path} takes POST only")
            await self._refuse(send, signal, answer_in, refused, status=405, more=[(b"allow", b"POST")])
            return
        early = self._before_body(
            encoding=encoding,
            content_type=content_type,
            content_encoding=content_encoding,
            length=length,
            authorization=authorization,
            own=own,
        )
        if early is not None:
            await self._refuse(send, signal, answer_in, early)
            return
        assert encoding is not None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                body = await self._body(receive, content_encoding)
        except _Gone:
            return
        except TimeoutError:
            message = f"the body did not arrive in {self._timeout_seconds:g} s; send smaller batches"
            await self._refuse(send, signal, encoding, Refused(Reason.UNREADABLE, message), status=408)
            return
        if isinstance(body, Refused):
            await self._refuse(send, signal, encoding, body)
            return
        outcome = await self._border.receive(body, signal, encoding)
        if isinstance(outcome, Refused):
            await self._send_refusal(send, encoding, outcome)
        else:
            await _answer(send, 200, encoding, _success(outcome, signal, encoding))

    def _before_body(
        self,
        *,
        encoding: Encoding | None,
        content_type: bytes,
        content_encoding: bytes,
        length: bytes | None,
        authorization: bytes | None,
        own: bool,
    ) -> Refused | None:
        """What the headers alone forbid."""
        if self._auth is not None and not self._auth.accepts(authorization):
            return Refused(Reason.UNAUTHENTICATED)
        if own:
            return Refused(Reason.OWN_EVALUATION)
        if self._border.closed is not None:
            return self._border.closed
        if encoding is None:
            return Refused(
                Reason.UNSUPPORTED,
                f"Content-Type {_shown(content_type)} is not OTLP; "
                "send application/x-protobuf or application/json",
            )
        if content_encoding not in (b"", b"identity") and content_encoding.decode("latin-1") not in ENCODINGS:
            return Refused(
                Reason.UNSUPPORTED,
                f"Content-Encoding {_shown(content_encoding)} is not supported; send gzip, deflate or identity",
            )
        if length is not None and length.isdigit() and int(length[:20]) > self._max_request_bytes:
            return self._too_large(f"the request of {length[:20].decode()} bytes", "max_request_bytes")
        return None

    def _too_large(self, what: str, option: str) -> Refused:
        limit = getattr(self, f"_{option}")
        return Refused(
            Reason.TOO_LARGE,
            f"{what} is over the limit of {limit} bytes; send smaller batches or raise receivers.{option}",
        )

    async def _body(self, receive: Receive, content_encoding: bytes) -> bytes | Refused:
        """The body, decompressed. Raises `_Gone`."""
        inflater = (
            None
            if content_encoding in (b"", b"identity")
            else Inflater(content_encoding.decode("latin-1"), self._max_decompressed_bytes)
        )
        limit = self._max_request_bytes
        if inflater is None:
            limit = min(limit, self._max_decompressed_bytes)
        pieces: list[bytes] = []
        arrived = held = 0
        try:
            while True:
                event = await receive()
                if event["type"] == "http.disconnect":
                    raise _Gone
                piece: bytes = event.get("body", b"")
                arrived += len(piece)
                if arrived > limit:
                    return self._too_large("the request", "max_request_bytes")
                if inflater is None:
                    pieces.append(piece)
                    grown = len(piece)
                else:
                    before = inflater.size
                    inflater.feed(piece)
                    grown = inflater.size - before
                held += grown
                self._in_progress += grown
                if self._in_progress > self._max_in_progress:
                    return Refused(
                        Reason.MEMORY_FULL,
                        "too many requests are being read; try again later",
                        retry_after_seconds=_BUSY_RETRY_SECONDS,
                    )
                if not event.get("more_body", False):
                    return b"".join(pieces) if inflater is None else inflater.finish()
        except TooLarge:
            return self._too_large("the request after decompression", "max_decompressed_bytes")
        except Corrupt as error:
            return Refused(Reason.UNREADABLE, str(error))
        finally:
            self._in_progress -= held

    async def _refuse(
        self,
        send: Send,
        signal: Signal,
        encoding: Encoding,
        refused: Refused,
        *,
        status: int | None = None,
        more: Headers | None = None,
    ) -> None:
        self._border.refuse(signal, refused)
        await self._send_refusal(send, encoding, refused, status=status, more=more)

    async def _send_refusal(
        self,
        send: Send,
        encoding: Encoding,
        refused: Refused,
        *,
        status: int | None = None,
        more: Headers | None = None,
    ) -> None:
        headers: Headers = list(more or ())
        if refused.row.retryable:
            headers.append((b"retry-after", str(refused.retry_after_whole_seconds).encode()))
        if refused.reason is Reason.UNAUTHENTICATED:
            headers.append((b"www-authenticate", b'Bearer realm="groundwatch"'))
        if encoding is Encoding.PROTO:
            body = refused.status()
        else:
            code: int = refused.row.grpc.value[0]
            body = msgspec.json.encode({"code": code, "message": refused.text})
        await _answer(send, status or refused.row.http, encoding, body, headers)


def _success(outcome: Accepted, signal: Signal, encoding: Encoding) -> bytes:
    """An Export...ServiceResponse, with partial success where items were rejected."""
    if not outcome.rejected:
        return _ALL_TAKEN[encoding]
    if encoding is Encoding.PROTO:
        return outcome.proto_response()
    name = "rejectedSpans" if signal is Signal.TRACES else "rejectedLogRecords"
    partial = {name: str(outcome.rejected), "errorMessage": outcome.reason}
    return msgspec.json.encode({"partialSuccess": partial})


async def _answer(send: Send, status: int, encoding: Encoding, body: bytes, more: Headers | None = None) -> None:
    headers: Headers = [
        (b"content-type", _TYPE_OF[encoding]),
        (b"content-length", str(len(body)).encode()),
    ]
    if more:
        headers += more
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _shown(value: bytes) -> str:
    """A header's value, short and printable, for an error's sentence."""
    return repr(value[:80].decode("latin-1"))


def uvicorn_tls(tls: TlsOptions | None) -> dict[str, Any]:
    """Arguments for `uvicorn.Config` that put TLS in front of the server; {} without TLS."""
    if tls is None:
        return {}
    import ssl

    settings: dict[str, Any] = {"ssl_certfile": str(tls.cert_file), "ssl_keyfile": str(tls.key_file)}
    if tls.client_ca_file is not None:
        settings["ssl_ca_certs"] = str(tls.client_ca_file)
        settings["ssl_cert_reqs"] = ssl.CERT_REQUIRED
    return settings
