"""Secrets are planted in every field of traces; afterwards every file and every byte that went out is searched."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.e2e.conftest import StartSidecar
from tests.support.judge import JudgeServer
from tests.support.otlp_sink import LogSink
from tests.support.sidecar import Sidecar
from tests.support.traces import group, pairs, rag_trace, request, span

pytestmark = pytest.mark.e2e


def luhn_card(number: int) -> str:
    digits = f"411111{number:09d}"
    total = sum(
        (int(one) * 2 - 9 if int(one) > 4 else int(one) * 2) if place % 2 == 0 else int(one)
        for place, one in enumerate(reversed(digits))
    )
    return f"{digits}{-total % 10}"


MAKERS: Mapping[str, Callable[[int], str]] = {
    "email": lambda n: f"leaked{n}@example.com",
    "card": luhn_card,
    "phone": lambda n: f"+49 30 55{n:06d}",
    "key": lambda n: f"sk-leaked{n:024d}",
    "ip": lambda n: f"203.{n // 250}.{n % 250}.7",
    "jwt": lambda n: f"eyJhbGciOiJIUzI1NiJ9.eyJsZWFrZWQiOiI{n:012d}.leaked{n:012d}",
    "ssn": lambda n: f"219-{10 + n % 80}-{1000 + n}",
}


class Planter:
    """Makes a new secret for each field, of each form in turn, and remembers it."""

    def __init__(self) -> None:
        self.planted: dict[str, str] = {}
        self._kinds = self._turns()

    def _turns(self) -> Iterator[tuple[str, Callable[[int], str]]]:
        while True:
            yield from MAKERS.items()

    def __call__(self, field: str) -> str:
        kind, make = next(self._kinds)
        secret = make(len(self.planted) + 1)
        self.planted[secret] = f"{field} ({kind})"
        return secret

    def leaks(self, text: bytes) -> list[str]:
        """The fields whose secrets occur, as they are or as JSON or HTML would escape them."""
        return [field for secret, field in self.planted.items() if secret.encode() in text]


def planted_trace(dice: random.Random, plant: Planter) -> tuple[list[Span], dict[str, str]]:
    """A RAG trace with a secret in each text, attribute, key, event and name, and the resource's attributes."""
    spans = rag_trace(
        dice,
        question=f"Who answers {plant('question')} about hotels?",
        contexts=[
            f"The desk is {plant('context')}, which is open.",
            f"Second: {plant('second context')} is closed.",
        ],
        response=f"Ask {plant('response')} at the desk, never {plant('response again')}.",
        session=plant("session"),
    )
    retriever, model, root = spans
    retriever.attributes.extend(
        pairs(
            {
                "retrieval.documents.0.document.metadata": json.dumps(
                    {plant("metadata key"): 1, "by": plant("metadata"), "deep": [{"a": plant("deep metadata")}]}
                ),
                "retrieval.documents.1.document.metadata": json.dumps({"number": int(luhn_card(77_777))}),
                "retrieval.documents.0.document.id": plant("document id"),
            }
        )
    )
    model.attributes.extend(
        pairs(
            {
                "llm.input_messages.1.message.role": "system",
                "llm.input_messages.1.message.content": f"You serve {plant('system prompt')}.",
                "llm.input_messages.2.message.role": "assistant",
                "llm.input_messages.2.message.content": f"Before: {plant('history')}.",
                "llm.invocation_parameters": json.dumps({"api_key": plant("parameters")}),
                "gen_ai.response.id": plant("response id"),
                "llm.prompt_template.version": plant("prompt version"),
            }
        )
    )
    root.attributes.extend(
        pairs(
            {
                "user.id": plant("user"),
                "enduser.id": plant("end user"),
                "tenant.id": plant("tenant"),
                "metadata": json.dumps({"email": plant("span metadata")}),
                "tag.tags": plant("tags"),
                "http.url": f"https://x.example/?k={plant('url')}",
                "client.address": plant("client address"),
                f"custom.{plant('attribute key')}": "x",
                "reference_answer": f"It is {plant('reference')}.",
                "card.number": int(luhn_card(88_888)),
            }
        )
    )
    root.attributes.add(
        key="nested",
        value=AnyValue(kvlist_value=KeyValueList(values=pairs({"inner": plant("nested attribute")}))),
    )
    root.name = f"answer {plant('span name')}"
    root.trace_state = f"vendor={plant('trace state').replace(' ', '')}"
    event = model.events.add(name="exception", time_unix_nano=model.end_time_unix_nano)
    event.attributes.extend(pairs({"exception.message": f"no route to {plant('exception')}"}))
    model.status.CopyFrom(Status(message=f"retried {plant('status')}"))
    for number in (77_777, 88_888):
        plant.planted[luhn_card(number)] = "a whole number"
    resource = {
        name: plant(name)
        for name in (
            "host.name",
            "host.ip",
            "service.instance.id",
            "service.version",
            "process.command_line",
            "os.user",
        )
    }
    return spans, resource


def test_no_planted_secret_is_in_any_file_or_goes_out(
    start_sidecar: StartSidecar, judge: JudgeServer, sink: LogSink, tmp_path: Path
) -> None:
    sidecar = start_sidecar(
        judge=judge.section(scorers=["faithfulness", "response_relevancy", "groundedness"]),
        sampling={"rate": 1.0},
        extract={"tenant_keys": ["tenant.id"]},
        export={"content": True, "otlp": {"endpoint": sink.endpoint}},
        review={"pick": {"control": {"rate": 1}}},
        process={"state_dir": str(tmp_path / "state"), "log_level": "debug"},
    )
    dice, plant = random.Random(11), Planter()
    # As many traces as there are forms, so that each field holds each form once.
    for _ in MAKERS:
        spans, resource = planted_trace(dice, plant)
        one = group(spans)
        one.resource.attributes.extend(pairs(resource))
        sidecar.send(request(one))
        next(plant._kinds)  # fields and forms shift against each other
    logs = ExportLogsServiceRequest()
    record = logs.resource_logs.add().scope_logs.add().log_records.add()
    record.trace_id, record.span_id = spans[0].trace_id, spans[1].span_id
    record.body.string_value = f"chat with {plant('log body')}"
    sidecar.send(logs.SerializeToString(), "logs")
    broken = span(dice.randbytes(16), dice.randbytes(8), b"", "bad", {"openinference.span.kind": "LLM"})
    broken.attributes.add(key=f"input.value{plant('broken')}").value.string_value = plant("broken value")
    sidecar.send(request(group([broken], service=f"shop {plant('service name')}")))
    sidecar.wait_for_interactions(len(MAKERS))
    sidecar.wait(
        lambda now: (
            now.total("groundwatch_review_cases_total", outcome="stored") >= len(MAKERS)
            and now.total("groundwatch_evaluation_events_total", outcome="sent") > 0
        ),
        "cases are written and events are sent",
    )
    seen = list(served(sidecar))
    shown = b"".join(text for _, text in seen)
    assert b"[EMAIL_1]" in shown, "the review does not show what was redacted"
    assert sidecar.terminate() == 0, sidecar.log

    seen += [
        (f"judge call {n}", json.dumps(dict(one.body), ensure_ascii=False).encode())
        for n, one in enumerate(judge.judge.received)
    ]
    seen += [
        (f"judge headers {n}", repr(dict(one.headers)).encode()) for n, one in enumerate(judge.judge.received)
    ]
    seen += [(f"event {n}", one.SerializeToString()) for n, one in enumerate(sink.requests)]
    seen += [("metadata", repr(sink.metadata).encode()), ("log", sidecar.log.encode())]
    seen += [(str(file), file.read_bytes()) for file in (tmp_path / "state").rglob("*") if file.is_file()]
    assert sum(name.startswith("judge call") for name, _ in seen) >= len(MAKERS)
    assert sum(name.startswith("event") for name, _ in seen) >= 1
    assert len(plant.planted) > 200
    leaks = {name: plant.leaks(text) for name, text in seen}
    assert {name: fields for name, fields in leaks.items() if fields} == {}


def served(sidecar: Sidecar) -> Iterator[tuple[str, bytes]]:
    """What the page, the API and /metrics say, the cases whole (from the store, which compresses them)."""
    reply = sidecar.get("/api/v1/review/cases?limit=200")
    yield "cases", reply.content
    for row in reply.json()["cases"]:
        yield "case", sidecar.client.get(f"{sidecar.http}/api/v1/review/case", params={"id": row["id"]}).content
        for trace_id in row.get("trace_ids", ()):
            yield "why", sidecar.get(f"/api/v1/why/{trace_id}").content
    for path in ("/metrics", "/", "/api/v1/status", "/api/v1/review/facets", "/review"):
        yield path, sidecar.get(path).content
