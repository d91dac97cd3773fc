"""The installed command with a state directory: interactions become cases, and a restart keeps them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext, set_span_in_context

from tests.e2e.conftest import StartSidecar
from tests.support.sidecar import Sidecar
from tests.support.traces import body, rag_trace

pytestmark = pytest.mark.e2e

INVENTED = "Rides are free for everybody on Mondays, and the fare is refunded in gold."


def cases(sidecar: Sidecar, **filters: str) -> dict[str, object]:
    reply = sidecar.client.get(f"{sidecar.http}/api/v1/review/cases", params=filters)
    assert reply.status_code == 200, reply.text
    found: dict[str, object] = reply.json()
    return found


def test_low_scores_feedback_and_the_control_part_become_cases(
    start_sidecar: StartSidecar, tmp_path: Path
) -> None:
    review = {"pick": {"control": {"rate": 1}, "cause_per_day": 0}}
    state = {"state_dir": str(tmp_path / "state")}
    sidecar = start_sidecar(review=review, process=state)
    dice = random.Random(7)
    good, bad = (dice.randbytes(16) for _ in range(2))
    sidecar.send(body(rag_trace(dice, trace_id=good)))
    sidecar.send(body(rag_trace(dice, trace_id=bad, response=INVENTED)))
    sidecar.wait_for_interactions(2)
    sidecar.wait(
        lambda now: now.total("groundwatch_review_cases_total", outcome="stored") == 2, "both are written"
    )
    found = {row["id"]: row for row in cases(sidecar)["cases"]}  # type: ignore[attr-defined]  # the API's JSON
    assert sorted(tuple(sorted(row["reasons"])) for row in found.values()) == [
        ("control",),
        ("control", "low_score"),
    ]
    reply = sidecar.client.post(
        f"{sidecar.http}/api/v1/feedback", json={"trace_id": good.hex(), "score": 0, "comment": "not true"}
    )
    assert (reply.status_code, reply.json()["outcome"]) == (200, "picked")
    sidecar.wait(lambda now: now.total("groundwatch_review_cases_total", outcome="merged") == 1, "it is merged")
    assert len(cases(sidecar, reason="feedback")["cases"]) == 1  # type: ignore[arg-type]  # as above
    assert sidecar.terminate() == 0

    again = start_sidecar(review=review, process=state)
    assert len(cases(again)["cases"]) == 2  # type: ignore[arg-type]  # as above
    # What memory has forgotten the store still knows.
    reply = again.client.post(f"{again.http}/api/v1/feedback", json={"trace_id": bad.hex(), "score": 0})
    assert (reply.status_code, reply.json()["outcome"]) == (200, "attached")
    again.wait(lambda now: now.total("groundwatch_review_cases_total", outcome="merged") == 1, "it is merged")
    assert len(cases(again, reason="feedback")["cases"]) == 2  # type: ignore[arg-type]  # as above


def say(sidecar: Sidecar, trace_id: bytes, name: str, **attributes: str | float) -> None:
    """As an application tells it with the SDK, in the context of the answer's span."""
    provider = LoggerProvider()
    exporter = OTLPLogExporter(endpoint=f"{sidecar.http}/v1/logs")
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    span = SpanContext(int.from_bytes(trace_id, "big"), 1, is_remote=True)
    provider.get_logger("shop").emit(
        LogRecord(
            context=set_span_in_context(NonRecordingSpan(span)),
            event_name="gen_ai.evaluation.result",
            attributes={"gen_ai.evaluation.name": name, **attributes},
        )
    )
    provider.shutdown()


def test_what_users_say_in_log_events_makes_cases_and_is_redacted(
    start_sidecar: StartSidecar, tmp_path: Path
) -> None:
    review = {"pick": {"control": {"rate": 0}, "cause_per_day": 0, "low_per_day": 0}}
    sidecar = start_sidecar(review=review, process={"state_dir": str(tmp_path / "state")})
    dice = random.Random(9)
    first, second = (dice.randbytes(16) for _ in range(2))
    for trace_id in (first, second):
        sidecar.send(body(rag_trace(dice, trace_id=trace_id)))
    sidecar.wait_for_interactions(2)
    words = {"gen_ai.evaluation.explanation": "not true, write to jane@example.org"}
    say(sidecar, first, "user_feedback", **{"gen_ai.evaluation.score.label": "thumbs-down"}, **words)
    say(sidecar, second, "toxicity", **{"gen_ai.evaluation.score.value": 0.0})  # another evaluator's, not a user's
    sidecar.wait(lambda now: now.total("groundwatch_review_cases_total", outcome="stored") == 1, "it is written")
    row = cases(sidecar, reason="feedback")["cases"][0]  # type: ignore[index]  # the API's JSON
    case = sidecar.client.get(f"{sidecar.http}/api/v1/review/case", params={"id": row["id"]}).json()
    [said] = case["feedback"]
    assert (said["score"], said["source"], said["name"]) == (0.0, "event", "user_feedback")
    assert said["comment"] == "not true, write to [EMAIL_1]"
    now = sidecar.metrics()
    assert now.total("groundwatch_review_feedback_total") == 1
    assert now.total("groundwatch_items_total", signal="logs", outcome="late") == 2  # of no use to their traces


def test_a_session_is_erased_by_the_id_that_the_application_knows(
    start_sidecar: StartSidecar, tmp_path: Path
) -> None:
    sidecar = start_sidecar(
        review={"pick": {"control": {"rate": 1}}}, process={"state_dir": str(tmp_path / "state")}
    )
    dice = random.Random(8)
    mine, other = (dice.randbytes(16) for _ in range(2))
    sidecar.send(body(rag_trace(dice, trace_id=mine, session="session-of-jane")))
    sidecar.send(body(rag_trace(dice, trace_id=other, session="session-of-joe")))
    sidecar.wait(
        lambda now: now.total("groundwatch_review_cases_total", outcome="stored") == 2, "both are written"
    )
    erase = {"kind": "session", "id": "session-of-jane"}
    token = sidecar.get("/api/v1/review/session").json()["csrf_token"]
    reply = sidecar.client.post(
        f"{sidecar.http}/api/v1/review/erase", json=erase, headers={"x-groundwatch-csrf": token}
    )
    assert reply.status_code == 200, reply.text
    assert len(reply.json()["case_ids"]) == 1
    assert len(cases(sidecar)["cases"]) == 1  # type: ignore[arg-type]  # the API's JSON
    # Neither the store nor memory can make it a case again.
    told = {"trace_id": mine.hex(), "score": 0}
    assert sidecar.client.post(f"{sidecar.http}/api/v1/feedback", json=told).status_code == 404
    files = b"".join(file.read_bytes() for file in (tmp_path / "state").glob("review.sqlite*"))
    assert mine.hex().encode() not in files
    assert other.hex().encode() in files


def test_without_a_directory_there_is_no_review(sidecar: Sidecar) -> None:
    assert sidecar.get("/api/v1/review/cases").status_code == 404
