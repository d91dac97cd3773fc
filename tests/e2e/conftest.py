"""Processes of the end-to-end tests: each is ended by its fixture, also when the test fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.support.judge import JudgeServer
from tests.support.otlp_sink import LogSink
from tests.support.sidecar import Sidecar, quick_config


class StartSidecar(Protocol):
    def __call__(self, *, env: Mapping[str, str] | None = None, raw: bool = False, **sections: Any) -> Sidecar: ...


@pytest.fixture
def start_sidecar(tmp_path: Path) -> Iterator[Callable[..., Sidecar]]:
    """Starts sidecars from sections laid over the quick configuration; `raw` does not wait for readiness."""
    started: list[Sidecar] = []

    def start(*, env: Mapping[str, str] | None = None, raw: bool = False, **sections: Any) -> Sidecar:
        sidecar = Sidecar(tmp_path, quick_config(**sections), env=env, name=f"run{len(started)}")
        started.append(sidecar)
        return sidecar if raw else sidecar.ready()

    yield start
    for sidecar in started:
        sidecar.end()


@pytest.fixture
def sidecar(start_sidecar: StartSidecar) -> Sidecar:
    """One with the quick configuration."""
    return start_sidecar()


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer() as server:
        yield server


@pytest.fixture
def sink() -> Iterator[LogSink]:
    with LogSink() as server:
        yield server
