"""What `groundwatch run` takes before the first trace, by its default configuration: time to ready, memory at rest.

    python -m tests.bench.rest [--quick]

No judge, no encoder, no export; compiled, as an installation is: a first start, which is not counted, compiles. The
baseline of the same run is a bare interpreter that imports the third-party
packages that the process loads: what is above it is groundwatch's own code, and what it sets up. Resident memory (RSS)
counts what processes share once for each of them; the proportional one (PSS) once for all, as a container's limit does.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from collector.demo.processes import environment
from tests.support.sidecar import Sidecar

PACKAGES = (
    "ahocorasick_rs",
    "asyncio",
    "google.protobuf.descriptor_pb2",
    "grpc",
    "jinja2",
    "msgspec",
    "numpy",
    "prometheus_client",
    "pydantic",
    "sentencex",
    "starlette.applications",
    "uvicorn",
    "yaml",
)
_BARE = f"import {', '.join(PACKAGES)}; print('ready', flush=True); input()"
_SETTLED_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Rest:
    """Seconds to ready, by the clock and of CPU, and megabytes; `workers` are all processes but the main one."""

    ready: float
    cpu: float
    main: float
    workers: float
    shared: float


def _looked_at(family: Sequence[psutil.Process], ready: float) -> Rest:
    memory = [process.memory_full_info() for process in family]
    return Rest(
        ready,
        sum(sum(process.cpu_times()[:2]) for process in family),
        memory[0].rss / 1e6,
        sum(each.rss for each in memory[1:]) / 1e6,
        sum(each.pss for each in memory) / 1e6,
    )


def bare(env: Mapping[str, str]) -> Rest:
    begun = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", _BARE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(env)
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = _looked_at([psutil.Process(process.pid)], time.monotonic() - begun)
        process.communicate(b"\n")
    return found


def groundwatch(directory: Path, env: Mapping[str, str]) -> Rest:
    begun = time.monotonic()
    sidecar = Sidecar(directory, {"receivers": {"http": {"port": 0}, "grpc": {"port": 0}}}, env=env)
    try:
        sidecar.ready()
        ready = time.monotonic() - begun
        time.sleep(_SETTLED_SECONDS)
        return _looked_at([psutil.Process(sidecar.process.pid), *sidecar.children()], ready)
    finally:
        sidecar.end()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one start instead of seven")
    starts = 1 if parser.parse_args(argv).quick else 7
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        env = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(directory / "compiled")}
        bare(env), groundwatch(directory, env)
        pairs = [(bare(env), groundwatch(directory, env)) for _ in range(starts)]
    print(f"{'':34}{'bare':>9}{'groundwatch':>13}{'ratio':>8}")
    for name, field in (
        ("start to ready, s", "ready"),
        ("CPU until then, s", "cpu"),
        ("RSS, main process, MB", "main"),
        ("RSS, worker and its helper, MB", "workers"),
        ("PSS, all together, MB", "shared"),
    ):
        base = statistics.median(getattr(one, field) for one, _ in pairs)
        own = statistics.median(getattr(one, field) for _, one in pairs)
        print(f"{name:34}{base:>9.2f}{own:>13.2f}" + (f"{own / base:>8.2f}" if base else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
