"""The demo as a play: real processes, a small sidecar in the place of the real one, and what the terminal says."""

from __future__ import annotations

import argparse
import io
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from collector.commands import demo as command
from collector.demo.processes import Child, environment
from collector.demo.view import View

pytest.importorskip("openinference.instrumentation.openai", reason="extra [demo] is not installed")


def play(
    *given: str, sidecar: list[str], duration: float = 7.0, stop: threading.Event | None = None
) -> tuple[int, str]:
    """Exit code and what was shown. The duration is shorter than the command line would take."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(["--rate", "40", *given])
    args.duration = duration
    out = io.StringIO()

    def start(config: Path, log: Path) -> Child:
        return Child("sidecar", [*sidecar, str(config)], env=environment({}), log=log)

    code = command.perform(
        args,
        View(out, live=False),
        stop or threading.Event(),
        step=0.25,
        settle_seconds=1.0,
        ports=(0, 0),
        sidecar=start,
    )
    return code, out.getvalue()


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """What other tests keep running, such as a broker, was there before."""
    before = set(psutil.Process().children(recursive=True))
    yield
    assert set(psutil.Process().children(recursive=True)) - before == set()


FAKE = [sys.executable, str(Path(__file__).with_name("demo_sidecar.py"))]


def test_the_planted_drop_shows() -> None:
    code, shown = play(sidecar=FAKE)
    assert code == 0
    before, after = (shown.index(f"planted in release {release}") for release in ("1.4.0", "1.5.0"))
    assert "invented" in shown[after:]
    found = re.search(r"faithfulness \(local, fast\) +(0\.\d+|1\.00) \(.* -> (0\.\d+) \(", shown)
    assert found, shown
    # It stands there only when the two intervals do not overlap.
    assert float(found[1]) > float(found[2])
    assert before < after < found.start()
    assert re.search(r"\n  [0-9a-f]{32}  faithfulness 0\.00\n", shown)
    assert "nearly blind to one wrong fact" in shown


def test_a_sidecar_that_does_not_start_is_reported_with_its_log(capsys: pytest.CaptureFixture[str]) -> None:
    broken = [sys.executable, "-c", "import sys; sys.exit('port taken')"]
    code, _ = play(sidecar=broken)
    assert code == 1
    assert "the sidecar did not become ready; the end of its log:\nport taken" in capsys.readouterr().err


def test_a_stop_before_anything_started_ends_quietly(capsys: pytest.CaptureFixture[str]) -> None:
    stop = threading.Event()
    stop.set()
    code, shown = play(sidecar=FAKE, stop=stop)
    assert code == 0
    assert "summary" not in shown
    assert capsys.readouterr().err == ""
