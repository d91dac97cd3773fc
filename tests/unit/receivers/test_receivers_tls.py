"""TLS of both receivers, with and without client certificates; certificates are made by openssl for the test."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from grpc import aio

from collector.receivers.options import TlsOptions

DATA = Path(__file__).parents[2] / "data" / "otlp"
TRACES = (DATA / "sdk.basic.pb").read_bytes()
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
HEADERS = {"content-type": "application/x-protobuf"}

Start = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Pair:
    cert: Path
    key: Path


@pytest.fixture(scope="module")
def make_pair(tmp_path_factory: pytest.TempPathFactory, program: Callable[[str], str]) -> Callable[[str], Pair]:
    openssl = program("openssl")
    folder = tmp_path_factory.mktemp("tls")

    def make(name: str) -> Pair:
        pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
        command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-keyout", str(pair.key), "-out", str(pair.cert), "-days", "2", "-subj", f"/CN={name}"]
        command += ["-addext", "subjectAltName=DNS:localhost"]
        subprocess.run(command, check=True, capture_output=True)
        return pair

    return make


async def over_http(running: Any, server: Pair, client: Pair | None) -> int:
    context = ssl.create_default_context(cafile=str(server.cert))
    if client is not None:
        context.load_cert_chain(client.cert, client.key)
    async with httpx.AsyncClient(verify=context, trust_env=False) as session:
        return (await session.post(running.url + "/v1/traces", content=TRACES, headers=HEADERS)).status_code


async def over_grpc(running: Any, server: Pair, client: Pair | None) -> None:
    credentials = grpc.ssl_channel_credentials(
        server.cert.read_bytes(),
        client.key.read_bytes() if client else None,
        client.cert.read_bytes() if client else None,
    )
    async with aio.secure_channel(running.grpc_address, credentials) as channel:
        await channel.unary_unary(METHOD)(TRACES)


async def test_tls(start: Start, make_pair: Callable[[str], Pair]) -> None:
    server = make_pair("server")
    running = await start(tls=TlsOptions(cert_file=server.cert, key_file=server.key))
    assert await over_http(running, server, None) == 200
    await over_grpc(running, server, None)
    assert running.intake.items == 6


async def test_client_certificates(start: Start, make_pair: Callable[[str], Pair]) -> None:
    server, client = make_pair("server2"), make_pair("client")
    running = await start(tls=TlsOptions(cert_file=server.cert, key_file=server.key, client_ca_file=client.cert))
    assert await over_http(running, server, client) == 200
    await over_grpc(running, server, client)
    with pytest.raises(httpx.TransportError):
        await over_http(running, server, None)
    with pytest.raises(aio.AioRpcError):
        await over_grpc(running, server, None)
    assert running.intake.items == 6
