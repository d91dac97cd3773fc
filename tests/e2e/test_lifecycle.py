"""How the installed command starts, ends, and what a crash leaves behind."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import socket
from collections import Counter
from pathlib import Path

import httpx
import psutil
import pytest
import yaml

from tests.e2e.conftest import StartSidecar
from tests.support.judge import JudgeServer
from tests.support.otlp_sink import LogSink
from tests.support.sidecar import Metrics, Sidecar, run_command
from tests.support.traces import body, rag_trace
from tests.support.waiting import until

pytestmark = pytest.mark.e2e


def gone(processes: list[psutil.Process]) -> bool:
    return not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in processes)


def export(sink: LogSink) -> dict[str, dict[str, str]]:
    """The section that sends results to the sink: after the end, it alone knows what was scored."""
    return {"otlp": {"endpoint": sink.endpoint}}


def results(sink: LogSink, kind: str, metric: str) -> Counter[str]:
    """What arrived of one metric, by outcome, or by reason where it failed."""
    return Counter(
        event.attributes.get("error.type", event.attributes["groundwatch.outcome"])
        for event in sink.events
        if (event.attributes["groundwatch.scorer.kind"], event.attributes["gen_ai.evaluation.name"])
        == (kind, metric)
    )


def metrics_until_closed(sidecar: Sidecar) -> Metrics:
    """The last reading of /metrics before its port closes."""
    last: list[Metrics] = []

    def closed() -> bool:
        try:
            last.append(sidecar.metrics())
        except httpx.TransportError:
            return True
        return False

    until(closed, "/metrics closes", step=0.02)
    return last[-1]


def test_sigterm_scores_what_was_accepted_and_serves_metrics_until_last(
    start_sidecar: StartSidecar, sink: LogSink
) -> None:
    sidecar = start_sidecar(assembly={"quiet_seconds": 1.5}, export=export(sink))
    children = sidecar.children()
    dice = random.Random(1)
    for _ in range(5):
        sidecar.send(body(rag_trace(dice)))
    sidecar.process.send_signal(signal.SIGTERM)
    # From here on the traces are open, and nothing new is taken.
    until(lambda: sidecar.get("/readyz").status_code == 503, "not ready")
    refused = sidecar.client.post(
        f"{sidecar.http}/v1/traces",
        content=body(rag_trace(dice)),
        headers={"content-type": "application/x-protobuf"},
    )
    assert refused.status_code in (429, 503)
    assert int(refused.headers["retry-after"]) >= 1
    assert sidecar.get("/healthz").status_code == 200
    final = metrics_until_closed(sidecar)
    assert sidecar.process.wait(20) == 0, sidecar.log
    # /metrics outlived the drain of assembly, and every trace had its quiet period.
    assert final.total("groundwatch_traces_released_total", reason="quiet") == 5, final.text
    assert final.total("groundwatch_receiver_refused_requests_total", reason="shutting_down") == 1
    assert results(sink, "local", "faithfulness") == {"scored": 5}
    until(lambda: gone(children), "its processes have ended")


def test_a_trace_whose_quiet_period_is_too_long_is_released_incomplete(
    start_sidecar: StartSidecar, sink: LogSink
) -> None:
    sidecar = start_sidecar(assembly={"quiet_seconds": 60}, process={"grace_seconds": 3}, export=export(sink))
    sidecar.send(body(rag_trace(random.Random(2))))
    assert sidecar.terminate() == 0, sidecar.log
    # Incomplete is in the coverage, and never a score.
    assert results(sink, "local", "faithfulness") == {"incomplete": 1}


def test_the_second_signal_forces_the_end(start_sidecar: StartSidecar) -> None:
    sidecar = start_sidecar(assembly={"quiet_seconds": 60})
    children = sidecar.children()
    sidecar.send(body(rag_trace(random.Random(3))))
    sidecar.process.send_signal(signal.SIGTERM)
    until(lambda: sidecar.get("/readyz").status_code == 503, "not ready")
    sidecar.process.send_signal(signal.SIGINT)
    assert sidecar.process.wait(10) == 1
    assert "second signal" in sidecar.log
    until(lambda: gone(children), "no process is left")


def test_a_state_directory_belongs_to_one_process_and_tells_of_a_crash(
    start_sidecar: StartSidecar, tmp_path: Path
) -> None:
    state = {"state_dir": str(tmp_path / "state")}
    first = start_sidecar(process=state)
    assert first.metrics().total("groundwatch_unclean_shutdown") == 0
    children = first.children()
    second = start_sidecar(raw=True, process=state)
    assert second.process.wait(30) == 2
    assert str(tmp_path / "state") in second.log
    assert "in use by another groundwatch" in second.log
    assert "Traceback" not in second.log
    assert first.get("/readyz").status_code == 200
    # kill -9: no orphan stays, the next start knows, and the one after a clean end knows nothing.
    first.process.kill()
    first.process.wait(10)
    until(lambda: gone(children), "workers end with their parent")
    third = start_sidecar(process=state)
    assert third.metrics().total("groundwatch_unclean_shutdown") == 1
    assert third.terminate() == 0
    assert not (tmp_path / "state" / "running").exists()  # the mark by which the next start would know


@pytest.mark.parametrize("which", ["http", "grpc"])
def test_a_taken_port_is_named(start_sidecar: StartSidecar, which: str) -> None:
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        other = "grpc" if which == "http" else "http"
        sidecar = start_sidecar(raw=True, receivers={which: {"port": port}, other: {"port": 0}})
        assert sidecar.process.wait(60) == 1
    assert f"127.0.0.1:{port}" in sidecar.log
    assert f"receivers.{which}.port" in sidecar.log
    assert "Traceback" not in sidecar.log


def test_every_problem_of_a_configuration_is_told_at_once(tmp_path: Path) -> None:
    config = tmp_path / "groundwatch.yaml"
    config.write_text(
        "assembly:\n  quiet_second: 3\nreceivers:\n  http: {port: 99999}\nsampling: 7\n", encoding="utf-8"
    )
    code, out, error = run_command("run", "-c", str(config))
    assert (code, out) == (2, "")
    for place in ("quiet_second", "receivers.http.port", "sampling", f"{config}:2", f"{config}:4", f"{config}:5"):
        assert place in error, error
    assert "quiet_seconds" in error  # the likely spelling
    code, _, error = run_command("run", "-c", str(tmp_path / "absent.yaml"))
    assert code == 2
    assert "absent.yaml" in error


def test_a_worker_killed_in_its_work_is_replaced_and_nothing_is_lost(sidecar: Sidecar) -> None:
    dice = random.Random(5)
    (worker,) = sidecar.workers()
    # Stopped, it holds the batch that it is given; so the kill hits it in its work, on every machine.
    worker.suspend()
    for _ in range(20):
        sidecar.send(body(rag_trace(dice)))
    sidecar.wait(
        lambda now: (
            now.total("groundwatch_traces_released_total") == 20
            and now.total("groundwatch_screening_queue_traces") < 20
        ),
        "the worker has a batch",
    )
    worker.kill()
    now = sidecar.wait_for_interactions(20)
    assert now.by("groundwatch_screening_traces_total", "outcome") == {"screened": 20}
    assert now.by("groundwatch_screening_worker_losses_total", "reason") == {"died": 1}
    (successor,) = sidecar.workers()
    assert successor.pid != worker.pid


def test_the_judge_queue_is_drained_too(start_sidecar: StartSidecar, judge: JudgeServer, sink: LogSink) -> None:
    judge.judge.delay_seconds = 0.2
    sidecar = start_sidecar(
        judge=judge.section(scorers=["faithfulness"], cache_entries=0),
        sampling={"rate": 1.0},
        judging={"concurrency": 2},
        export=export(sink),
    )
    dice = random.Random(6)
    for _ in range(6):
        sidecar.send(body(rag_trace(dice)))
    sidecar.wait(lambda now: now.total("groundwatch_judging_waiting") >= 1, "jobs wait")
    assert sidecar.terminate() == 0, sidecar.log
    assert results(sink, "judged", "faithfulness") == {"scored": 6}


def test_rates_change_while_it_runs_and_a_bad_file_changes_nothing(
    start_sidecar: StartSidecar, judge: JudgeServer, tmp_path: Path
) -> None:
    sections = {"judge": judge.section(scorers=["faithfulness"]), "sampling": {"rate": 1.0, "floor": 0.0001}}
    sidecar = start_sidecar(**sections)  # type: ignore[arg-type]  # sections by name
    config = yaml.safe_load(sidecar.config.read_text(encoding="utf-8"))
    dice = random.Random(9)
    sidecar.send(body(rag_trace(dice)))
    now = sidecar.wait_for_interactions(1)
    assert now.total("groundwatch_interactions_total", fate="queued") == 1

    sidecar.config.write_text("sampling: {rate: 7}\n", encoding="utf-8")
    sidecar.process.send_signal(signal.SIGHUP)
    until(lambda: "reload_refused" in sidecar.log, "the bad file is refused")
    assert "sampling.rate" in sidecar.log

    config["sampling"]["rate"] = 0.0001
    config["assembly"]["quiet_seconds"] = 0.4
    sidecar.config.write_text(yaml.safe_dump(config), encoding="utf-8")
    sidecar.process.send_signal(signal.SIGHUP)
    until(lambda: " reloaded" in sidecar.log, "the good file is taken")
    assert re.search(r" reloaded.*assembly", sidecar.log)  # what has to wait for a restart is named
    for _ in range(5):
        sidecar.send(body(rag_trace(dice)))
    now = sidecar.wait_for_interactions(6)
    assert now.by("groundwatch_interactions_total", "fate") == {"queued": 1, "sampled_out": 5}


def test_stopping_while_it_starts_is_an_orderly_end(start_sidecar: StartSidecar) -> None:
    sidecar = start_sidecar(raw=True)
    until(lambda: psutil.Process(sidecar.process.pid).children(), "it has begun to start its workers")
    children = sidecar.children()
    sidecar.process.send_signal(signal.SIGTERM)
    assert sidecar.process.wait(20) == 0, sidecar.log
    assert "Traceback" not in sidecar.log
    until(lambda: gone(children), "no process is left")
