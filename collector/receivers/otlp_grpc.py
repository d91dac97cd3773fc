"""OTLP over gRPC: TraceService/Export and LogsService/Export on a grpc.aio server.

Handlers take and give bytes; no generated stub is involved. gRPC's own decompression is switched off and done
here, because it inflates a message whole before it looks at the size.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from grpc import aio

from collector.otlp.batch import Signal
from collector.otlp.model import Encoding
from collector.receivers.auth import Authenticator
from collector.receivers.border import Accepted, Border
from collector.receivers.inflate import Corrupt, TooLarge, compression, inflate
from collector.receivers.options import Options, TlsOptions
from collector.receivers.status import MARKER, Reason, Refused

_METHODS = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": Signal.TRACES,
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": Signal.LOGS,
}

Handle = Callable[[Any, Any], Awaitable[bytes]]

_BUSY_RETRY_SECONDS = 1.0


class OtlpGrpc:
    """The server. `border` is the border of transport "grpc"; `auth` None means no authentication.

    `start` and `stop` may each be called twice, and `stop` without `start`.
    """

    def __init__(self, *, options: Options, border: Border, auth: Authenticator | None) -> None:
        self._options = options
        self._border = border
        self._auth = auth
        self._server: aio.Server | None = None
        self._port = 0

    @property
    def port(self) -> int:
        """The port that is listened on; 0 before `start`."""
        return self._port

    async def start(self) -> None:
        """Raises OSError when the address can not be bound or a TLS file can not be read."""
        if self._server is not None:
            return
        options = self._options
        server = aio.server(
            options=(
                ("grpc.max_receive_message_length", options.max_request_bytes),
                ("grpc.per_message_decompression", 0),
                ("grpc.so_reuseport", 0),
            ),
        )
        server.add_generic_rpc_handlers((_Methods(self._border, self._auth, options),))
        address = _address(options.grpc.host, options.grpc.port)
        try:
            if options.tls is None:
                port = server.add_insecure_port(address)
            else:
                port = server.add_secure_port(address, _credentials(options.tls))
        except RuntimeError as error:
            # The library's own text names no reason, only a variable for its log; that log has said the reason.
            why = "" if "Failed to bind" in str(error) else f" ({error})"
            raise OSError(
                f"OTLP/gRPC can not listen on {address}{why}: free the port or set receivers.grpc.port"
            ) from error
        await server.start()
        self._server, self._port = server, port

    async def stop(self, grace_seconds: float) -> None:
        """Take no new requests; give those in progress `grace_seconds`, then cancel them."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(grace_seconds)


class _Methods(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """Methods are declared as taking a stream, though clients send one message: only so can a request be refused
    before its message is read, and one be counted whose message gRPC itself refused."""

    def __init__(self, border: Border, auth: Authenticator | None, options: Options) -> None:
        self._border = border
        self._auth = auth
        self._options = options
        self._reading = 0
        self._handlers = {
            method: grpc.stream_unary_rpc_method_handler(self._export(signal))
            for method, signal in _METHODS.items()
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Before the message is read: what the metadata alone forbid gets a handler that reads nothing."""
        handler = self._handlers.get(handler_call_details.method)
        if handler is None:
            return None
        authorization: bytes | None = None
        own = False
        for key, value in handler_call_details.invocation_metadata:
            if key == "authorization":
                authorization = value.encode() if isinstance(value, str) else value
            elif key == MARKER:
                own = True
        if self._auth is not None and not self._auth.accepts(authorization):
            return self._refusing(handler_call_details.method, Refused(Reason.UNAUTHENTICATED))
        if own:
            return self._refusing(handler_call_details.method, Refused(Reason.OWN_EVALUATION))
        if self._border.closed is not None:
            return self._refusing(handler_call_details.method, self._border.closed)
        return handler

    def _refusing(self, method: str, refused: Refused) -> Any:
        async def refuse(_messages: Any, context: Any) -> bytes:
            await _abort(context, self._border.refuse(_METHODS[method], refused))
            return b""

        return grpc.stream_unary_rpc_method_handler(refuse)

    def _export(self, signal: Signal) -> Handle:
        border = self._border

        async def export(_messages: Any, context: Any) -> bytes:
            message = await self._message(context)
            if isinstance(message, Refused):
                outcome: Accepted | Refused = border.refuse(signal, message)
            else:
                outcome = await self._take(message, signal)
            if isinstance(outcome, Refused):
                await _abort(context, outcome)
                return b""
            return outcome.proto_response()

        return export

    async def _message(self, context: Any) -> bytes | Refused:
        if self._reading >= self._options.grpc.max_concurrent_requests:
            return Refused(
                Reason.MEMORY_FULL,
                "too many requests are being read; try again later",
                retry_after_seconds=_BUSY_RETRY_SECONDS,
            )
        self._reading += 1
        try:
            async with asyncio.timeout(self._options.request_timeout_seconds):
                message = await context.read()
        except TimeoutError:
            return Refused(
                Reason.UNREADABLE,
                f"no whole message arrived in {self._options.request_timeout_seconds:g} s; send smaller batches",
            )
        finally:
            self._reading -= 1
        if isinstance(message, bytes):
            return message
        # End of stream. gRPC has answered by itself when the message was over its limit; it tells us no more.
        return Refused(
            Reason.TOO_LARGE,
            f"no whole message arrived: it is over the limit of {self._options.max_request_bytes} bytes "
            "or was cut off; send smaller batches or raise receivers.max_request_bytes",
        )

    async def _take(self, message: bytes, signal: Signal) -> Accepted | Refused:
        limit = self._options.max_decompressed_bytes
        try:
            body = inflate(message, compression(message), limit)
        except TooLarge:
            return self._border.refuse(
                signal,
                Refused(
                    Reason.TOO_LARGE,
                    f"the request after decompression is over the limit of {limit} bytes; "
                    "send smaller batches or raise receivers.max_decompressed_bytes",
                ),
            )
        except Corrupt as error:
            return self._border.refuse(signal, Refused(Reason.UNREADABLE, str(error)))
        return await self._border.receive(body, signal, Encoding.PROTO)


async def _abort(context: Any, refused: Refused) -> None:
    await context.abort(refused.row.grpc, refused.text, (("grpc-status-details-bin", refused.status()),))


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _credentials(tls: TlsOptions) -> grpc.ServerCredentials:
    client_ca = tls.client_ca_file.read_bytes() if tls.client_ca_file is not None else None
    return grpc.ssl_server_credentials(
        [(tls.key_file.read_bytes(), tls.cert_file.read_bytes())],
        root_certificates=client_ca,
        require_client_auth=client_ca is not None,
    )
