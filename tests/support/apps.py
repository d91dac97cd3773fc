"""Real applications beside the tests: a stub model, and pipelines that are traced by public libraries."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import collector.demo
from collector.demo.processes import environment

DEMO = Path(collector.demo.__file__).parent
HERE = Path(__file__).parent


class App:
    """A child that tells JSON lines on standard output; ended by its owner."""

    def __init__(self, directory: Path, name: str, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        self._out = directory / f"{name}.out"
        self._error = directory / f"{name}.err"
        with self._out.open("wb") as out, self._error.open("wb") as error:
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=error,
                env=environment(env),
                start_new_session=True,
            )

    def told(self) -> list[dict[str, Any]]:
        """The lines so far; one that is being written is left out."""
        lines = self._out.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def finish(self, seconds: float = 60.0) -> list[dict[str, Any]]:
        """Wait until it has ended by itself, and give all that it told."""
        code = self.process.wait(seconds)
        assert code == 0, self._error.read_text(encoding="utf-8")
        return self.told()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)


def start_model(directory: Path) -> App:
    """The demo's stub model; its first line tells its address."""
    arguments = ["-P", str(DEMO / "stub_llm.py"), "--max-seconds", "300", "--latency", "0.01"]
    return App(directory, "model", arguments, {})


def start_openinference(directory: Path, model_url: str, otlp_url: str, *, seconds: float) -> App:
    """The demo's application (OpenInference), over OTLP/HTTP."""
    arguments = ["-P", str(DEMO / "rag_app.py"), "--llm", f"{model_url}/v1", "--model", "fable-mini-1"]
    arguments += ["--rate", "12", "--duration", str(seconds), "--seed", "3"]
    return App(directory, "openinference", arguments, _telemetry("openinference-app", otlp_url, "http/protobuf"))


def start_assistant(
    directory: Path, model_url: str, otlp_url: str, *, model: str, release: str, rate: float
) -> App:
    """One release of the demo's application, with the model given; it goes on until its owner ends it."""
    arguments = [
        "-P",
        str(DEMO / "rag_app.py"),
        "--llm",
        f"{model_url}/v1",
        "--model",
        model,
        "--release",
        release,
    ]
    arguments += ["--rate", str(rate), "--duration", "3600", "--seed", "3"]
    telemetry = _telemetry("fjordling-assistant", otlp_url, "http/protobuf")
    return App(directory, f"assistant-{release}", arguments, telemetry)


def start_openllmetry(directory: Path, model_url: str, otlp_target: str, *, questions: int) -> App:
    """The same pipeline traced by OpenLLMetry, over OTLP/gRPC, with the model that makes things up."""
    arguments = [str(HERE / "openllmetry_app.py"), "--llm", f"{model_url}/v1", "--model", "fable-mini-2"]
    arguments += ["--questions", str(questions)]
    return App(directory, "openllmetry", arguments, _telemetry("openllmetry-app", f"http://{otlp_target}", "grpc"))


def _telemetry(service: str, endpoint: str, protocol: str) -> dict[str, str]:
    return {
        "OTEL_SERVICE_NAME": service,
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=production",
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_INSECURE": "true",
        "OTEL_BSP_SCHEDULE_DELAY": "300",
    }
