"""The installed command as a process, and what a user can see of it."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import httpx
import psutil
import yaml
from prometheus_client.parser import text_string_to_metric_families

from collector.demo.processes import environment
from tests.support.waiting import until

COMMAND = str(Path(sys.executable).with_name("groundwatch"))
"""The installed command of the environment that runs the tests."""
QUIET_SECONDS = 0.5
GRPC_METHODS = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}

Labels = tuple[tuple[str, str], ...]


def quick_config(**sections: Any) -> dict[str, Any]:
    """A configuration with free ports, short quiet periods and no calls beside those for interactions; `sections` are
    laid over it, one level deep."""
    config: dict[str, Any] = {
        "receivers": {"http": {"port": 0}, "grpc": {"port": 0}},
        "assembly": {"quiet_seconds": QUIET_SECONDS, "quiet_log_events_seconds": QUIET_SECONDS},
        "judging": {"canary_hours": 0, "repeat_rate": 0},  # tests count the judge's calls
    }
    for name, section in sections.items():
        config[name] = {**config.get(name, {}), **section} if isinstance(section, dict) else section
    return config


def run_command(*arguments: str, env: Mapping[str, str] | None = None, stdin: str = "") -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `groundwatch ARGUMENTS`, which must end by itself."""
    done = subprocess.run(
        [COMMAND, *arguments],
        env=environment(env or {}),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


class Metrics:
    """One reading of /metrics."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._values: dict[tuple[str, Labels], float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self._values[sample.name, tuple(sorted(sample.labels.items()))] = sample.value

    def series(self, name: str) -> dict[Labels, float]:
        return {labels: value for (found, labels), value in self._values.items() if found == name}

    def total(self, name: str, **labels: str) -> float:
        """The sum of the metric's series that carry these labels; 0 where there is none."""
        wanted = set(labels.items())
        return sum(value for found, value in self.series(name).items() if wanted <= set(found))

    def by(self, name: str, label: str, **labels: str) -> Counter[str]:
        """The metric's sum by the values of one label; values that sum to 0 are left out."""
        wanted = set(labels.items())
        sums: Counter[str] = Counter()
        for found, value in self.series(name).items():
            if wanted <= set(found) and value:
                sums[dict(found).get(label, "")] += value  # type: ignore[assignment]  # weights are no whole numbers
        return sums


class Sidecar:
    """`groundwatch run` on free loopback ports. The test's fixtures end it, whatever happens."""

    def __init__(
        self,
        directory: Path,
        config: Mapping[str, Any],
        *,
        env: Mapping[str, str] | None = None,
        name: str = "run",
        command: Sequence[str] = (COMMAND, "run"),
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.config = directory / f"{name}.yaml"
        self.config.write_text(yaml.safe_dump(dict(config)), encoding="utf-8")
        self._log = directory / f"{name}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "-c", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(env or {}),
                start_new_session=True,
            )
        self.http = ""
        self.grpc = ""
        self._family: list[psutil.Process] = []
        # Requests by a client that stays open, as exporters do; nothing of the surroundings' proxies.
        self.client = httpx.Client(timeout=20, trust_env=False)
        self._channel: grpc.Channel | None = None

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def ready(self) -> Sidecar:
        """Wait until it says that it is; its addresses are known from then on."""

        def announced() -> bool:
            assert self.process.poll() is None, f"it ended with {self.process.returncode}:\n{self.log}"
            return "is ready" in self.log and "/metrics" in self.log

        until(announced, "the sidecar is ready", seconds=60)
        http = re.search(r"metrics +(http://\S+)/metrics", self.log)
        grpc_address = re.search(r"OTLP/gRPC +http://(\S+)", self.log)
        assert http, self.log
        self.http, self.grpc = http[1], grpc_address[1] if grpc_address else ""
        self._family = [psutil.Process(self.process.pid), *self.children()]
        # What it must reach (Kafka, say) may take a moment longer than its own ports.
        until(lambda: self.get("/readyz").status_code == 200, "/readyz says so too", seconds=60)
        return self

    def children(self) -> list[psutil.Process]:
        children: list[psutil.Process] = psutil.Process(self.process.pid).children(recursive=True)
        return children

    def workers(self) -> list[psutil.Process]:
        """The screening processes; multiprocessing's resource tracker is not one."""
        return [child for child in self.children() if "spawn_main" in " ".join(child.cmdline())]

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(self.http + path, headers=headers)

    def metrics(self) -> Metrics:
        reply = self.get("/metrics", accept="text/plain")
        assert reply.status_code == 200
        return Metrics(reply.text)

    def wait(self, condition: Callable[[Metrics], Any], what: str, *, seconds: float = 30.0) -> Metrics:
        """The first reading of /metrics for which the condition holds."""

        def check() -> Metrics | None:
            assert self.process.poll() is None, f"it ended with {self.process.returncode}:\n{self.log}"
            now = self.metrics()
            return now if condition(now) else None

        try:
            seen = until(check, what, seconds=seconds, step=0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.metrics().text}\n{self.log}") from None
        assert seen is not None
        return seen

    def wait_for_interactions(self, count: int, *, seconds: float = 30.0) -> Metrics:
        """Wait until so many interactions were found and all of them settled or filtered."""

        def settled(now: Metrics) -> bool:
            done = now.total("groundwatch_interactions_settled_total")
            done += now.total("groundwatch_interactions_total", fate="filtered")
            return now.total("groundwatch_interactions_found_total") >= count and done >= count

        return self.wait(settled, f"{count} interactions are settled", seconds=seconds)

    def send(
        self, body: bytes, signal: str = "traces", *, transport: str = "http", json: bool = False, **headers: str
    ) -> bytes:
        """Send one export request; AssertionError when it is refused."""
        if transport == "grpc":
            return self.call(body, signal)
        kind = "application/json" if json else "application/x-protobuf"
        reply = self.client.post(
            f"{self.http}/v1/{signal}", content=body, headers={"content-type": kind, **headers}
        )
        assert reply.status_code == 200, f"{reply.status_code}: {reply.text}"
        return reply.content

    def call(self, body: bytes, signal: str = "traces", metadata: tuple[tuple[str, str], ...] = ()) -> bytes:
        """One export over gRPC, as bytes. Raises grpc.RpcError."""
        if self._channel is None:
            self._channel = grpc.insecure_channel(self.grpc, options=(("grpc.enable_http_proxy", 0),))
        answer: bytes = self._channel.unary_unary(GRPC_METHODS[signal], None, None)(
            body, timeout=20, metadata=metadata
        )
        return answer

    def why(self, trace_id: str) -> list[dict[str, Any]]:
        """What the API says became of a trace."""
        decisions: list[dict[str, Any]] = self.get(f"/api/v1/why/{trace_id}").json()["decisions"]
        return decisions

    def terminate(self, seconds: float = 40.0) -> int:
        """SIGTERM, and the exit code."""
        self.process.terminate()
        return self.process.wait(seconds)

    def end(self) -> None:
        """End it and all that it started, by pid; fine when it has ended."""
        self.client.close()
        if self._channel is not None:
            self._channel.close()
        family = list(self._family)
        if self.process.poll() is None:
            family += self.children()
            self.process.kill()
            self.process.wait(10)
        for one in family:
            if one.pid != self.process.pid and one.is_running():
                one.kill()


def direct(url: str) -> bytes:
    """GET without proxies."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as reply:
        content: bytes = reply.read()
    return content
