"""`groundwatch demo` with the real sidecar, in a short form: the planted drop reaches /metrics and nothing is left."""

from __future__ import annotations

import argparse
import io
import re
import threading

import psutil
import pytest

from collector.commands import demo as command
from collector.demo.view import View

pytestmark = pytest.mark.e2e
pytest.importorskip("openinference.instrumentation.openai", reason="extra [demo] is not installed")


def test_the_real_sidecar_sees_the_planted_drop() -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(["--rate", "30"])
    args.duration = 12.0  # the command line takes no less than 30 seconds
    out = io.StringIO()
    code = command.perform(
        args, View(out, live=False), threading.Event(), step=0.5, settle_seconds=3.5, ports=(0, 0)
    )
    shown = out.getvalue()
    assert code == 0, shown
    assert "planted in release 1.5.0" in shown
    # A line stands under "moved" only when the intervals before and after do not overlap.
    for metric in ("faithfulness", "groundedness"):
        found = re.search(rf"{metric} \(local, fast\) +(\d\.\d+) \(.* -> (\d\.\d+) \(", shown)
        assert found, shown
        assert float(found[1]) > float(found[2])
    assert not re.search(r"context_relevance \(local, fast\) .* -> ", shown), shown
    assert re.search(r"\n  [0-9a-f]{32}  \w+ 0\.\d\d\n", shown), shown
    assert psutil.Process().children(recursive=True) == []
