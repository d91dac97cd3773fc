"""A real Prometheus that scrapes one target each second, and its HTTP API."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import yaml

from collector.demo.processes import environment, free_port
from tests.support.waiting import until


class Prometheus:
    """Started by `program`'s path, with exemplar storage, on loopback; ended by its owner.

    It scrapes each target every `interval`, and evaluates the rule files given.
    """

    def __init__(
        self, program: str, directory: Path, *targets: str, interval: str = "1s", rules: Sequence[Path] = ()
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "prometheus.yml"
        job = {"job_name": "groundwatch", "static_configs": [{"targets": list(targets)}]}
        settings = {"scrape_interval": interval, "evaluation_interval": interval}
        content = {"global": settings, "rule_files": [str(path) for path in rules], "scrape_configs": [job]}
        config.write_text(yaml.safe_dump(content), encoding="utf-8")
        address = f"127.0.0.1:{free_port(0)}"
        self._log = directory / "prometheus.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    program,
                    f"--config.file={config}",
                    f"--storage.tsdb.path={directory / 'tsdb'}",
                    f"--web.listen-address={address}",
                    "--enable-feature=exemplar-storage",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment({}),
                start_new_session=True,
            )
        self._targets = len(targets)
        self._client = httpx.Client(base_url=f"http://{address}", timeout=10, trust_env=False)

    def ready(self) -> Prometheus:
        """Wait until it is up and its first scrape succeeded."""

        def up() -> bool:
            assert self.process.poll() is None, self._log.read_text(encoding="utf-8")
            try:
                return self._client.get("/-/ready").status_code == 200 and self.number("sum(up)") == self._targets
            except httpx.TransportError:
                return False

        until(up, "Prometheus has scraped the sidecar")
        return self

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """An instant query: (labels, value) of each series."""
        result = self._get("/api/v1/query", query=expression)["result"]
        return [(row["metric"], float(row["value"][1])) for row in result]

    def failed_rules(self) -> list[str]:
        """Rules whose last evaluation failed, each with its error."""
        groups = self._get("/api/v1/rules")["groups"]
        return [f"{r['name']}: {r['lastError']}" for group in groups for r in group["rules"] if r.get("lastError")]

    def alerts(self) -> list[dict[str, Any]]:
        """Alerts that are pending or firing, with their labels and annotations."""
        found: list[dict[str, Any]] = self._get("/api/v1/alerts")["alerts"]
        return found

    def number(self, expression: str) -> float | None:
        """The one value of an expression; None where it gives no series."""
        rows = self.query(expression)
        assert len(rows) <= 1, rows
        return rows[0][1] if rows else None

    def exemplars(self, expression: str) -> list[dict[str, Any]]:
        """The exemplars of the last minutes: series labels, labels, value."""
        import time

        now = time.time()
        rows = self._get("/api/v1/query_exemplars", query=expression, start=str(now - 600), end=str(now + 5))
        return [{**one, "series": row["seriesLabels"]} for row in rows for one in row["exemplars"]]

    def target(self) -> dict[str, Any]:
        """What it says about the one thing that it scrapes."""
        targets: list[dict[str, Any]] = self._get("/api/v1/targets")["activeTargets"]
        return targets[0]

    def _get(self, path: str, **parameters: str) -> Any:
        reply = self._client.get(path, params=parameters)
        assert reply.status_code == 200, reply.text
        return reply.json()["data"]

    def end(self) -> None:
        self._client.close()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait(10)
