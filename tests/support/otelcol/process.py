"""The Collector that build.sh makes, as a process: OTLP over HTTP in, Kafka out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from collector.demo.processes import environment, free_port
from tests.support.waiting import until


class Collector:
    """Runs until it is left. `exporters` are options of its Kafka exporters by name; each has a receiver of its own."""

    def __init__(self, program: str, exporters: Mapping[str, Mapping[str, Any]], log: Path) -> None:
        self._ports = {name: free_port(0) for name in exporters}
        self._log = log
        config = {
            "receivers": {
                f"otlp/{name}": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}
                for name, port in self._ports.items()
            },
            "exporters": {f"kafka/{name}": dict(options) for name, options in exporters.items()},
            "service": {
                "telemetry": {"metrics": {"level": "none"}},
                "pipelines": {
                    f"{signal}/{name}": {"receivers": [f"otlp/{name}"], "exporters": [f"kafka/{name}"]}
                    for name in exporters
                    for signal in ("traces", "logs")
                },
            },
        }
        with log.open("wb") as sink:
            self._process = subprocess.Popen(
                [program, "--config", f"yaml:{json.dumps(config)}"],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env=environment({}),
            )
        self._client = httpx.Client(trust_env=False, timeout=60)

    def __enter__(self) -> Collector:
        for name in self._ports:
            until(lambda name=name: self._answers(name), "the Collector listens")
        return self

    def _answers(self, name: str) -> bool:
        assert self._process.poll() is None, self._log.read_text(encoding="utf-8")
        try:
            return self._client.get(f"http://127.0.0.1:{self._ports[name]}/").status_code > 0
        except httpx.TransportError:
            return False

    def send(self, name: str, signal: str, body: bytes) -> None:
        """One export request to the receiver of that exporter; taken when this returns."""
        reply = self._client.post(
            f"http://127.0.0.1:{self._ports[name]}/v1/{signal}",
            content=body,
            headers={"content-type": "application/x-protobuf"},
        )
        assert reply.status_code == 200, reply.text

    def __exit__(self, *_: object) -> None:
        """An orderly end, which sends what waits."""
        self._client.close()
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
