"""What a process without a judge, and its screening workers, do not load: each costs memory in every sidecar."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROCESS = "import collector.commands.run, collector.app"
WORKER = """
from collector.examine import Examination
from collector.extract.options import Options as Extract
from collector.screening.options import Options as Screening
Examination(Extract(), Screening())()
"""


def loaded_by(statements: str) -> set[str]:
    code = f"import sys\n{statements}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("statements", "absent"),
    [
        (PROCESS, {"httpx", "aiohttp", "opentelemetry.sdk", "aiokafka", "onnxruntime", "scorers.judge.client"}),
        (WORKER, {"numpy", "httpx", "grpc", "starlette", "uvicorn", "onnxruntime", "prometheus_client"}),
    ],
    ids=["process", "worker"],
)
def test_what_is_not_configured_is_not_loaded(statements: str, absent: set[str]) -> None:
    loaded = loaded_by(statements)
    assert "collector.examine" in loaded
    assert not absent & loaded
