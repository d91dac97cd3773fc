"""The one HTTP server: uvicorn, started and stopped by us instead of by signals."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import uvicorn
from starlette.types import ASGIApp


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the service: it drains before this server may close."""
        yield


class HttpServer:
    """Serves `app`. `tls` are uvicorn's ssl settings; empty = plain text.

    `start` binds (raises OSError that names the address) and returns when connections are taken. `stop` may be
    called twice, and without `start`.
    """

    def __init__(self, app: ASGIApp, *, host: str, port: int, tls: Mapping[str, Any]) -> None:
        self._host = host
        self._port = port
        self._config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,  # the peer decides whether a header of its is believed: collector/web/access.py
            timeout_keep_alive=75,
            ws="none",
            **tls,
        )
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port that is listened on; the configured one before `start`."""
        return self._port

    async def start(self) -> None:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((self._host, self._port))
        except OSError as error:
            sock.close()
            raise OSError(
                f"HTTP can not listen on {self._host}:{self._port} ({error.strerror}): free the port or set "
                "receivers.http.port"
            ) from error
        sock.listen(1024)
        sock.setblocking(False)
        self._port = sock.getsockname()[1]
        self._server = _Server(self._config)
        self._task = asyncio.create_task(self._server.serve(sockets=[sock]), name="http")
        while not self._server.started:
            if self._task.done():
                self._task.result()
                raise OSError(f"HTTP server on {self._host}:{self._port} ended while starting")
            await asyncio.sleep(0.01)

    async def stop(self, seconds: float) -> None:
        if self._server is None or self._task is None:
            return
        self._server.should_exit = True
        self._config.timeout_graceful_shutdown = max(1, int(seconds))
        task, self._task = self._task, None
        await task
