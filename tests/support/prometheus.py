"""A real Prometheus that scrapes one target each second, and its HTTP API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from collector.demo.processes import free_port
from tests.support.program import Program
from tests.support.waiting import until


class Prometheus:
    """Started by `program`'s path, with exemplar storage, on loopback; ended by its owner.

    It scrapes each target (all of one job, or `jobs` by name) every `interval`, evaluates the rule files given, and
    tells an `alertmanager` of its alerts.
    """

    def __init__(
        self,
        program: str,
        directory: Path,
        *targets: str,
        jobs: Mapping[str, Sequence[str]] | None = None,
        interval: str = "1s",
        rules: Sequence[Path] = (),
        alertmanager: str = "",
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "prometheus.yml"
        by_job = {**({"groundwatch": targets} if targets else {}), **(jobs or {})}
        scraped = [
            {"job_name": job, "static_configs": [{"targets": list(addresses)}]}
            for job, addresses in by_job.items()
        ]
        settings = {"scrape_interval": interval, "evaluation_interval": interval}
        content = {"global": settings, "rule_files": [str(path) for path in rules], "scrape_configs": scraped}
        if alertmanager:
            content["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]}
        config.write_text(yaml.safe_dump(content), encoding="utf-8")
        address = f"127.0.0.1:{free_port(0)}"
        self._program = Program(
            [
                program,
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'tsdb'}",
                f"--web.listen-address={address}",
                "--enable-feature=exemplar-storage",
            ],
            address=address,
            log=directory / "prometheus.log",
        )
        self._targets = sum(map(len, by_job.values()))
        self._client = self._program.client

    def ready(self, targets: int | None = None) -> Prometheus:
        """Wait until it is up and its first scrape of so many targets (None: of all) succeeded."""
        wanted = self._targets if targets is None else targets
        self._program.wait("Prometheus has scraped the sidecar", lambda: self.number("sum(up)") == wanted)
        return self

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """An instant query: (labels, value) of each series."""
        result = self._get("/api/v1/query", query=expression)["result"]
        return [(row["metric"], float(row["value"][1])) for row in result]

    def samples(self, selector: str) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
        """The samples themselves, as scraped, of a selector with a range: (labels, [(Unix time, value)])."""
        result = self._get("/api/v1/query", query=selector)["result"]
        return [(row["metric"], [(float(at), float(value)) for at, value in row["values"]]) for row in result]

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

    def scraped_once_more(self, series: str) -> None:
        """Wait for one more scrape of these series. A scrape reads sums at one moment and other counters a moment
        later, so only the one after that in which a counter has come to its end is whole."""
        when = f"min(timestamp({series}))"
        seen = self.number(when) or 0.0
        until(lambda: (self.number(when) or 0.0) > seen, f"{series} was scraped once more")

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
        self._program.end()
