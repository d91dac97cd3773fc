"""A real Alertmanager on loopback, and a receiver that keeps what it is notified of."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import yaml

from collector.demo.processes import free_port
from tests.support.program import Program


@dataclass(frozen=True, slots=True)
class Notified:
    """One alert of a notification."""

    status: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.labels["alertname"]


class WebhookSink:
    """An HTTP server for Alertmanager's webhook receiver."""

    def __init__(self) -> None:
        self._received: list[Notified] = []
        self._lock = threading.Lock()
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                """Silence."""

            def do_POST(self) -> None:
                content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                sink._take(content["alerts"])
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="webhook-sink", daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def _take(self, alerts: Iterable[Mapping[str, Any]]) -> None:
        told = [Notified(one["status"], one["labels"], one["annotations"]) for one in alerts]
        with self._lock:
            self._received += told

    @property
    def received(self) -> list[Notified]:
        """All so far, in the order in which they came; what is still on goes with each further notification."""
        with self._lock:
            return list(self._received)

    @property
    def firing(self) -> list[Notified]:
        return [one for one in self.received if one.status == "firing"]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


class Alertmanager:
    """Started by `program`'s path with these inhibition rules; notifies the webhook at once. Ended by its owner."""

    def __init__(
        self, program: str, directory: Path, *, webhook: str, inhibit_rules: Sequence[Mapping[str, object]]
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        route = {
            "receiver": "sink",
            "group_by": ["..."],  # each alert by itself
            "group_wait": "1s",  # what inhibits may come a moment later than what it inhibits
            "group_interval": "1s",
            "repeat_interval": "1h",
        }
        receiver = {"name": "sink", "webhook_configs": [{"url": webhook, "send_resolved": True}]}
        config = directory / "alertmanager.yml"
        content = {"route": route, "receivers": [receiver], "inhibit_rules": list(inhibit_rules)}
        config.write_text(yaml.safe_dump(content), encoding="utf-8")
        self.address = f"127.0.0.1:{free_port(0)}"
        self._program = Program(
            [
                program,
                f"--config.file={config}",
                f"--storage.path={directory / 'alertmanager'}",
                f"--web.listen-address={self.address}",
                "--cluster.listen-address=",
            ],
            address=self.address,
            log=directory / "alertmanager.log",
        )
        self._client = self._program.client

    def ready(self) -> Alertmanager:
        """Wait until it answers."""
        self._program.wait("Alertmanager is ready")
        return self

    def post(self, *labels: Mapping[str, str]) -> None:
        """Alerts that fire from now on, as Prometheus would send them."""
        reply = self._client.post("/api/v2/alerts", json=[{"labels": dict(one)} for one in labels])
        assert reply.status_code == 200, reply.text

    def alerts(self, **labels: str) -> list[tuple[dict[str, str], bool]]:
        """The alerts that are on and carry these labels, and whether each is inhibited by another."""
        reply = self._client.get("/api/v2/alerts")
        assert reply.status_code == 200, reply.text
        return [
            (one["labels"], bool(one["status"]["inhibitedBy"]))
            for one in reply.json()
            if labels.items() <= one["labels"].items()
        ]

    def end(self) -> None:
        self._program.end()
