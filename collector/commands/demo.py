"""`groundwatch demo`: a small RAG application, a real sidecar beside it, and its scores moving in the terminal.

Three kinds of processes are started, all on loopback: the sidecar (`groundwatch run`), a stub model, and the
application (`collector/demo/rag_app.py`, which knows nothing of groundwatch). Halfway a new release of the
application goes out whose model mostly makes things up; the terminal shows whether the scores notice.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import yaml

from collector.commands.common import number
from collector.demo.processes import Child, free_port, start_application, start_model, start_sidecar
from collector.demo.scrape import Estimate, Snapshot, between, moved, read
from collector.demo.view import Frame, View, ordered

EXTRA = ("openai", "openinference.instrumentation.openai", "opentelemetry.sdk")
INSTALL = "pip install 'groundwatch[demo]'"
OK_RELEASE, BAD_RELEASE = ("1.4.0", "fable-mini-1"), ("1.5.0", "fable-mini-2")
"""(service.version, model) of the release before and after the planted drop."""
QUIET_SECONDS = 2.0
"""How long the demo's sidecar waits after the last span of a trace; the default is longer, for real networks."""
SETTLE_SECONDS = QUIET_SECONDS + 3.0
"""From a release until the scores of its answers are on /metrics: export, quiet period, scoring."""
WINDOW_SECONDS = 20.0
READY_SECONDS = 60.0
APPLICATION_SECONDS = 30.0
LIVE_STEP, LINE_STEP = 1.0, 5.0
WORST = 3
FOREVER_SECONDS = 86_400.0
"""Children end by themselves after a day even with --keep-running."""

NEXT = """next: `groundwatch run`, and OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 in your own application.
The README says how to plug in a judge, Prometheus and Grafana. Local scores are a coarse screen: they see
made-up and off-topic answers, and are nearly blind to one wrong fact in an otherwise right answer."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--duration",
        type=_seconds,
        default=90.0,
        metavar="SECONDS",
        help="length, at least 30 (default: %(default)g)",
    )
    parser.add_argument(
        "--rate",
        type=_rate,
        default=6.0,
        metavar="N",
        help="questions a second, at most 50 (default: %(default)g)",
    )
    parser.add_argument("--seed", type=int, default=7, help="the same seed asks the same questions (default: 7)")
    parser.add_argument("--no-drop", action="store_true", help="plant nothing: the first release stays")
    parser.add_argument("--keep-running", action="store_true", help="go on until Ctrl-C after the drop")
    parser.epilog = (
        "Exit codes: 0 ended by itself or by Ctrl-C; 1 something did not start or scored nothing; 2 usage."
    )


def _seconds(text: str) -> float:
    value = number(text)
    if not 30 <= value <= FOREVER_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} can not be; give 30 to {FOREVER_SECONDS:.0f} seconds")
    return value


def _rate(text: str) -> float:
    value = number(text)
    if not 0.1 <= value <= 50:
        raise argparse.ArgumentTypeError(f"{text!r} can not be; give 0.1 to 50 questions a second")
    return value


def run(args: argparse.Namespace) -> int:
    """Run the demo to its end; see the module for what happens and `add_arguments` for the exit codes."""
    missing = [name for name in EXTRA if not _installed(name)]
    if missing:
        sys.stderr.write(
            f"The demo's application needs packages that are not installed ({', '.join(missing)}): {INSTALL}\n"
        )
        return 2
    live = sys.stdout.isatty()
    columns, lines = shutil.get_terminal_size()
    view = View(sys.stdout, live=live, width=columns, height=lines)
    with _signals() as stop:
        return perform(args, view, stop, step=LIVE_STEP if live else LINE_STEP)


def perform(
    args: argparse.Namespace,
    view: View,
    stop: threading.Event,
    *,
    step: float,
    settle_seconds: float = SETTLE_SECONDS,
    ports: tuple[int, int] = (4318, 4317),
    sidecar: Callable[[Path, Path], Child] = start_sidecar,
) -> int:
    """The whole play, from the first process to the summary; gives the exit code.

    `sidecar` starts one from (config file, log file) on `ports` (HTTP, gRPC), or others where those are taken.
    `stop` ends the play early. All processes have ended when this returns, whatever happened.
    """
    with tempfile.TemporaryDirectory(prefix="groundwatch-demo-") as directory, ExitStack() as ends:
        try:
            stage = _Stage(args, view, stop, Path(directory), ends, settle_seconds=settle_seconds)
            stage.start(sidecar, ports)
            stage.play(step)
        except (RuntimeError, OSError) as error:
            # Ctrl-C while a child is starting makes that child fail; that is no failure of the demo.
            if stop.is_set():
                return 0
            sys.stderr.write(f"groundwatch demo: {error}\n")
            return 1
        ends.close()  # everything has ended before the summary is read
        return stage.summary()


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """An event that SIGINT, SIGTERM and SIGHUP set; the handlers of before come back at the end."""
    stop = threading.Event()
    names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {name: signal.signal(name, lambda _number, _frame: stop.set()) for name in names}
    try:
        yield stop
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


@dataclass(slots=True)
class _Act:
    """One release on stage: its snapshots' first and last, and what the model was told to do meanwhile."""

    release: str
    model: str
    first: Snapshot
    last: Snapshot
    estimates: list[Estimate] = field(default_factory=list)


class _Stage:
    """The running processes, the clock of the play, and what was seen."""

    def __init__(
        self,
        args: argparse.Namespace,
        view: View,
        stop: threading.Event,
        directory: Path,
        ends: ExitStack,
        *,
        settle_seconds: float,
    ) -> None:
        self._args = args
        self._view = view
        self._stop = stop
        self._directory = directory
        self._ends = ends
        self._settle = settle_seconds
        self._acts: list[_Act] = []
        self._history: list[tuple[float, Snapshot]] = []
        self._url = ""
        self._applications: list[Child] = []
        self._worst: list[str] = []
        self._client = self._ends.enter_context(httpx.Client(timeout=5.0, trust_env=False))

    def start(self, sidecar: Callable[[Path, Path], Child], ports: tuple[int, int]) -> None:
        """Sidecar, model, application; they are ended in reverse. Raises RuntimeError with what failed."""
        http, grpc = map(free_port, ports)
        self._url = f"http://127.0.0.1:{http}"
        config = self._directory / "groundwatch.yaml"
        config.write_text(yaml.safe_dump(sidecar_config(http=http, grpc=grpc)), encoding="utf-8")
        self._view.say(
            "starting a sidecar (groundwatch run), a stub model and a RAG application, all on 127.0.0.1 ..."
        )
        self._sidecar = self._keep(sidecar(config, self._directory / "sidecar.log"))
        self._wait_ready()
        self._model = self._keep(
            start_model(self._directory / "model.log", seed=self._args.seed, max_seconds=FOREVER_SECONDS)
        )
        self._model_url = str(self._model.first_line(APPLICATION_SECONDS)["listening"])
        self._release(*OK_RELEASE)
        self._view.say(f"status page  {self._url}/\nmetrics      {self._url}/metrics\n")

    def _keep(self, child: Child) -> Child:
        self._ends.callback(child.stop)
        return child

    def _wait_ready(self) -> None:
        ends = time.monotonic() + READY_SECONDS
        while time.monotonic() < ends and self._sidecar.running and not self._stop.wait(0.1):
            try:
                if self._client.get(f"{self._url}/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                continue
        raise RuntimeError(f"the sidecar did not become ready; the end of its log:\n{self._sidecar.tail()}")

    def _release(self, release: str, model: str) -> None:
        child = self._keep(
            start_application(
                self._directory / f"application-{release}.log",
                model_url=self._model_url,
                model=model,
                release=release,
                otlp_url=self._url,
                rate=self._args.rate,
                seconds=FOREVER_SECONDS,
                seed=self._args.seed,
            )
        )
        child.first_line(APPLICATION_SECONDS)
        self._applications.append(child)

    def play(self, step: float) -> None:
        """Until the end or a signal: scrape, show, and release the bad model halfway."""
        begin = time.monotonic()
        half, ends = self._args.duration / 2, self._args.duration
        release, model = OK_RELEASE
        act_begins = 0.0
        while True:
            elapsed = time.monotonic() - begin
            snapshot = self._scrape()
            self._history.append((elapsed, snapshot))
            if elapsed - act_begins >= self._settle:
                if not self._acts or self._acts[-1].release != release:
                    self._acts.append(_Act(release, model, snapshot, snapshot))
                self._acts[-1].last = snapshot
            self._view.show(self._frame(elapsed, release, half, snapshot))
            if self._stop.is_set() or (elapsed >= ends and not self._args.keep_running):
                self._worst = self._lowest()
                return
            if elapsed >= half and not self._args.no_drop and release == OK_RELEASE[0]:
                self._replace()
                release, model = BAD_RELEASE
                act_begins = time.monotonic() - begin
                ends = act_begins + half  # a slow start of the new release must not shorten its time on stage
            self._check()
            left = ends - (time.monotonic() - begin)
            self._stop.wait(min(step, left) if left > 0 else step)

    def _replace(self) -> None:
        """A rolling release: the new one answers before the old one ends."""
        self._release(*BAD_RELEASE)
        self._applications[0].stop()

    def _check(self) -> None:
        for child in (self._sidecar, self._model, self._applications[-1]):
            if not child.running and not self._stop.is_set():
                raise RuntimeError(f"the {child.name} ended early; the end of its log:\n{child.tail()}")

    def _scrape(self) -> Snapshot:
        try:
            reply = self._client.get(f"{self._url}/metrics", headers={"accept": "text/plain"})
            reply.raise_for_status()
            return read(reply.text)
        except (httpx.HTTPError, ValueError) as error:
            log = self._sidecar.tail()
            raise RuntimeError(
                f"{self._url}/metrics can not be read ({error}); the end of the sidecar's log:\n{log}"
            ) from None

    def _lowest(self) -> list[str]:
        """Lines on the lowest-scored answers, from the status API; none when it has none to tell."""
        try:
            reply = self._client.get(f"{self._url}/api/v1/status")
            rows = reply.json()["worst"] if reply.status_code == 200 else []
            return [f"  {row['trace_id']}  {row['metric']} {float(row['score']):.2f}" for row in rows[:WORST]]
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return []  # a hint for the reader; the play does not depend on it

    def _frame(self, elapsed: float, release: str, half: float, snapshot: Snapshot) -> Frame:
        while len(self._history) > 1 and self._history[1][0] <= elapsed - WINDOW_SECONDS:
            self._history.pop(0)
        if release == BAD_RELEASE[0]:
            note = "a new release, whose model makes things up (planted)"
        elif self._args.no_drop:
            note = "nothing is planted"
        else:
            note = f"the next release goes out in {max(half - elapsed, 0):.0f} s"
        return Frame(
            elapsed=elapsed,
            duration=None if self._args.keep_running else self._args.duration,
            release=release,
            note=note,
            page_url=self._url,
            window_seconds=WINDOW_SECONDS,
            interactions=int(snapshot.found),
            estimates=between(self._history[0][1], snapshot),
        )

    def summary(self) -> int:
        """What was planted, what moved, what to do next. 1 when nothing was scored over a whole run."""
        say = self._view.say
        say("\n--- summary")
        wrong = sum((child.counts for child in self._applications), Counter[tuple[str, ...]]())
        for release, model in (OK_RELEASE, BAD_RELEASE):
            told = {did: n for (name, did), n in self._model.counts.most_common() if name == model}
            if told:
                parts = ", ".join(f"{n} {did.replace('_', ' ')}" for did, n in told.items())
                say(f"planted in release {release} ({model}), {sum(told.values())} calls: {parts};")
                say(f"  {wrong[model, 'True']} of its questions were looked up in the wrong place")
        _report(self._acts, say)
        if self._worst:
            say("lowest scores (trace id; with --keep-running, `groundwatch why TRACE_ID` says more):")
            say("\n".join(self._worst))
        say("\n" + NEXT)
        if self._acts and not any(estimate.n_eff for act in self._acts for estimate in act.estimates):
            sys.stderr.write("groundwatch demo: no interaction was scored; that is a defect, please report it\n")
            return 1
        return 0


def _report(acts: Sequence[_Act], say: Callable[[str], None]) -> None:
    for act in acts:
        act.estimates = between(act.first, act.last)
    if len(acts) < 2:
        for estimate in ordered(acts[0].estimates) if acts else ():
            if estimate.n_eff:
                say(f"  {estimate.label:<40} {_said(estimate)}")
        return
    apart = moved(acts[0].estimates, acts[1].estimates)
    if not apart:
        say("no score moved by more than its 95 % interval; a longer run or a higher rate narrows the intervals")
        return
    say(f"moved by more than their 95 % intervals, release {acts[0].release} -> {acts[1].release}:")
    for before, after in apart:
        say(f"  {after.label:<40} {_said(before)} -> {_said(after)}")


def _said(estimate: Estimate) -> str:
    return f"{estimate.mean:.2f} ({estimate.lower:.2f} .. {estimate.upper:.2f}, n = {estimate.n_eff:.0f})"


def sidecar_config(*, http: int, grpc: int) -> dict[str, object]:
    """The sidecar's configuration: defaults, but its ports and a short quiet period, so that scores move soon."""
    return {
        "receivers": {"http": {"port": http}, "grpc": {"port": grpc}},
        "assembly": {"quiet_seconds": QUIET_SECONDS},
    }
