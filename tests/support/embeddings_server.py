"""The encoder of the full local tier behind OpenAI's embeddings interface, on loopback: real vectors for trying
response relevancy where no other embedding model is at hand. It reads English.

    python -m tests.support.embeddings_server --port 8082
"""

from __future__ import annotations

import argparse
import socket
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from scorers.local.encoder import Encoder
from scorers.local.reading import Reader
from tests.support.waiting import until

_MAX_CHARACTERS = 20_000


class EmbeddingsServer:
    """Serves POST /v1/embeddings on `port` (0: any free one) until the end of the `with` block."""

    def __init__(self, port: int = 0) -> None:
        self._encoder = Encoder()
        self._reader = Reader()
        self._lock = threading.Lock()
        self.texts: list[str] = []
        """What was asked for, in order."""
        self._socket = socket.create_server(("127.0.0.1", port))
        app = Starlette(routes=[Route("/v1/embeddings", self._serve, methods=["POST"])])
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A unit vector a text: the mean of its sentences' vectors."""
        with self._lock:
            self.texts += texts
            readings = [self._reader.read(text, _MAX_CHARACTERS) for text in texts]
            self._encoder.read(readings)
        means = [self._encoder.vectors(reading).mean(axis=0) for reading in readings]
        return [(mean / max(float(np.linalg.norm(mean)), 1e-12)).tolist() for mean in means]

    async def _serve(self, request: Request) -> JSONResponse:
        body = await request.json()
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        vectors = await run_in_threadpool(self.embed, texts)
        data: list[dict[str, Any]] = [
            {"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(vectors)
        ]
        tokens = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return JSONResponse({"object": "list", "data": data, "model": self._encoder.version, "usage": usage})

    def __enter__(self) -> EmbeddingsServer:
        self._thread.start()
        until(lambda: self._server.started, "the embeddings server listens")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()

    def wait(self) -> None:
        """Serve until interrupted."""
        self._thread.join()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    with EmbeddingsServer(parser.parse_args(argv).port) as server:
        print(f"serving {server.base_url}", flush=True)
        server.wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
