"""Real servers on loopback, in front of a downstream that records or refuses."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn

from collector.otlp.request import Interner
from collector.pipeline.clock import ManualClock
from collector.receivers.auth import Authenticator, providers
from collector.receivers.border import Border
from collector.receivers.options import GrpcOptions, Options, TokenSource
from collector.receivers.otlp_grpc import OtlpGrpc
from collector.receivers.otlp_http import OtlpHttp, uvicorn_tls
from collector.records.batch import Batch, Refusal
from collector.telemetry.instruments import Telemetry


@dataclass
class Recorder:
    """Takes every batch, or refuses with `refusal`."""

    batches: list[Batch] = field(default_factory=list)
    refusal: Refusal | None = None

    def offer(self, batch: Batch) -> Refusal | None:
        if self.refusal is None:
            self.batches.append(batch)
        return self.refusal

    @property
    def items(self) -> int:
        return sum(map(len, self.batches))


@dataclass
class Running:
    """Both receivers, listening."""

    intake: Recorder
    telemetry: Telemetry
    borders: Mapping[str, Border]
    http: OtlpHttp
    grpc: OtlpGrpc
    http_port: int
    scheme: str

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.http_port}"

    @property
    def grpc_address(self) -> str:
        return f"localhost:{self.grpc.port}"

    def count(self, name: str, **labels: str) -> float:
        """A counter's value, by its metric's name without the common prefix."""
        value = self.telemetry.registry.get_sample_value(f"groundwatch_{name}", labels)
        assert value is not None, (name, labels)
        return value


Start = Callable[..., Awaitable[Running]]


async def _start(
    stack: AsyncExitStack, tokens: Sequence[TokenSource], environ: dict[str, str], **values: Any
) -> Running:
    grpc_options = values.pop("grpc", GrpcOptions(port=0))
    options = Options(grpc=grpc_options, tokens=tuple(tokens), **values)
    intake, telemetry, intern = Recorder(), Telemetry(), Interner()
    borders = {
        name: Border(
            transport=name,
            intake=intake,
            telemetry=telemetry,
            max_item_bytes=options.max_item_bytes,
            intern=intern,
        )
        for name in ("http", "grpc")
    }
    auth = Authenticator(providers(options.tokens, environ=environ, clock=ManualClock())) if tokens else None
    grpc = OtlpGrpc(options=options, border=borders["grpc"], auth=auth)
    await grpc.start()
    stack.push_async_callback(grpc.stop, 0)
    http = OtlpHttp(options=options, border=borders["http"], auth=auth)
    config = uvicorn.Config(http, lifespan="off", ws="none", log_level="critical", **uvicorn_tls(options.tls))
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    # Without uvicorn's main loop, whose ticks would make every test a fifth of a second longer.
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    for listening in server.servers:
        stack.callback(listening.close)
    scheme = "https" if options.tls else "http"
    return Running(intake, telemetry, borders, http, grpc, listener.getsockname()[1], scheme)


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """`await start(tokens=..., environ=..., **Options fields)`."""
    async with AsyncExitStack() as stack:

        async def begin(
            *, tokens: Sequence[TokenSource] = (), environ: dict[str, str] | None = None, **values: Any
        ) -> Running:
            return await _start(stack, tokens, environ or {}, **values)

        yield begin


@pytest.fixture
async def running(start: Start) -> Running:
    """Both receivers with default options."""
    return await start()
