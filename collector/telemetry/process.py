"""Facts about this process: build, memory, how the one before it ended."""

from __future__ import annotations

import os
import platform
import resource
import sys
from pathlib import Path

from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry


def resident_bytes() -> int:
    """Resident memory in bytes; where the system has no /proc, its peak instead."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")


def describe_process(telemetry: Telemetry, *, version: str, unclean_shutdown: bool) -> None:
    """Set what does not change, and have memory read at each scrape."""
    telemetry.set(metrics.BUILD_INFO, 1, version=version, python=platform.python_version())
    telemetry.set(metrics.UNCLEAN_SHUTDOWN, float(unclean_shutdown))
    telemetry.gauge(metrics.PROCESS_MEMORY).set_function(lambda: float(resident_bytes()))
