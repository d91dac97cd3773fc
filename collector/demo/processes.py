"""The demo's child processes: started, read, and ended within bounds, whatever happens."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

HERE = Path(__file__).parent
STOP_SECONDS = 12.0
OURS = ("GROUNDWATCH_", "OTEL_", "OPENAI_", "AZURE_OPENAI_")
"""Prefixes of variables that the children do not inherit: a demo must not judge at somebody's cost, nor send spans
to somebody's backend, because of what happens to be set in the shell."""


def environment(additions: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without `OURS` and without proxies for loopback, with the additions."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return {**kept, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost", **additions}


def free_port(preferred: int) -> int:
    """`preferred` when it is free on loopback, else any free port. It is not held: start the server at once."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            # As servers do: a port in TIME_WAIT from the last run counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free port on 127.0.0.1")


class Child:
    """One child process in a session of its own, so that Ctrl-C reaches us alone and we choose the order of ends.

    What it writes goes to `log`, except lines of standard output that are JSON objects: the first is kept, and how
    often each combination of values of the fields `tally` was reported is counted, so memory stays bounded.
    """

    def __init__(
        self, name: str, command: Sequence[str], *, env: Mapping[str, str], log: Path, tally: Sequence[str] = ()
    ) -> None:
        self.name = name
        self._log_path = log
        self._tally = tuple(tally)
        self._said: dict[str, object] = {}
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._lock = threading.Lock()
        self._first = threading.Event()
        with log.open("ab") as sink:
            # Only this interpreter and this package's own scripts are run, without a shell.
            self._process = subprocess.Popen(  # noqa: S603 - our own scripts, with arguments made here
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=sink,
                env=env,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout, log), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[bytes], log: Path) -> None:
        with stream, log.open("ab") as sink:
            for line in stream:
                try:
                    told = json.loads(line)
                except ValueError:
                    told = None
                if isinstance(told, dict):
                    with self._lock:
                        self._said = self._said or told
                        if self._tally and all(name in told for name in self._tally):
                            self._counts[tuple(str(told[name]) for name in self._tally)] += 1
                    self._first.set()
                else:
                    sink.write(line)
                    sink.flush()
        self._first.set()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def first_line(self, timeout: float) -> dict[str, object]:
        """What the child said first. Raises RuntimeError when it said nothing that is JSON in time."""
        self._first.wait(timeout)
        with self._lock:
            if self._said:
                return self._said
        raise RuntimeError(f"the {self.name} did not start within {timeout:.0f} s:\n{self.tail()}")

    @property
    def counts(self) -> Counter[tuple[str, ...]]:
        """How often each combination of the tallied fields was reported so far."""
        with self._lock:
            return Counter(self._counts)

    def tail(self, lines: int = 20) -> str:
        """The last lines of its log, for an error message."""
        text = self._log_path.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:]) or "(it wrote nothing)"

    def stop(self) -> int:
        """End it: SIGTERM, and SIGKILL after STOP_SECONDS. Fine to call twice; gives the exit code."""
        if self.running:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        code = self._process.wait()
        self._reader.join(STOP_SECONDS)
        return code


def start_sidecar(config: Path, log: Path) -> Child:
    """`groundwatch run` with the config, leashed to us."""
    command = [
        sys.executable,
        str(HERE / "leash.py"),
        sys.executable,
        "-P",  # a folder `collector` or `scorers` where the user stands must not be taken for ours
        "-m",
        "collector.cli",
        "run",
        "-c",
        str(config),
    ]
    return Child("sidecar", command, env=environment({}), log=log)


def start_model(log: Path, *, seed: int, max_seconds: float) -> Child:
    """The stub model; its first line holds its address under `listening`."""
    arguments = ["--seed", str(seed), "--max-seconds", str(max_seconds)]
    command = [sys.executable, "-P", str(HERE / "stub_llm.py"), *arguments]
    return Child("stub model", command, env=environment({}), log=log, tally=("model", "behaviour"))


def start_application(
    log: Path, *, model_url: str, model: str, release: str, otlp_url: str, rate: float, seconds: float, seed: int
) -> Child:
    """One release of the application, sending its spans over OTLP/HTTP to `otlp_url`."""
    command = [sys.executable, "-P", str(HERE / "rag_app.py"), "--llm", f"{model_url}/v1", "--model", model]
    command += ["--release", release, "--rate", str(rate), "--duration", str(seconds), "--seed", str(seed)]
    telemetry = {
        "OTEL_SERVICE_NAME": "fjordling-assistant",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=production",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": otlp_url,
        "OTEL_EXPORTER_OTLP_TIMEOUT": "5",
        "OTEL_BSP_SCHEDULE_DELAY": "500",
    }
    return Child("application", command, env=environment(telemetry), log=log, tally=("model", "wrong_documents"))
