"""The product with an LLM judge over HTTP that is slow, rate-limiting, failing and lying in turn.

One sidecar for all tests of this file; each test sends the traffic of a service of its own and reads what became of
it from a real OTLP receiver of evaluation events and from /metrics. Whatever the judge does, every interaction gets
one result for each metric, a failure is never a number, and the laws of conservation hold.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from scorers.interaction import Interaction
from scorers.judge.marker import HEADER, HEADER_VALUE, MARKER
from scorers.testing import Answerer, Fault, Received, ScriptedJudge, plain_answer
from tests.integration.test_judge_recorded import EXCHANGES
from tests.support import laws
from tests.support.judge import JudgeServer
from tests.support.otlp_sink import Event, LogSink
from tests.support.sidecar import Sidecar, quick_config
from tests.support.traces import FACT, body, rag_trace
from tests.support.waiting import until

pytestmark = pytest.mark.e2e

ASKED = ("faithfulness", "context_relevance", "groundedness")
METRICS = (*ASKED, "noncommittal")
"""Rules decide `noncommittal` for plain answers, so a judge that fails does not make it fail."""
CALL_TIMEOUT, DEADLINE, MAX_AGE = 0.8, 2.5, 3.0
RECORDED = Path(__file__).parents[1] / "data" / "judge_replies"
INVENTED = "The hotel limit is 999 euros per night."


class Switch:
    """How the judge answers now."""

    def __init__(self) -> None:
        self.manner: Answerer = plain_answer

    def answer(self, received: Received) -> str:
        return self.manner(received)


@dataclass
class Bench:
    """The sidecar between a judge that can be told how to answer, and a receiver of its events."""

    sidecar: Sidecar
    server: JudgeServer
    sink: LogSink
    switch: Switch
    spans: dict[str, dict[str, str]] = field(default_factory=dict)
    _dice: random.Random = field(default_factory=lambda: random.Random(20))

    def send(self, service: str, responses: list[str]) -> list[str]:
        """One trace for each response; gives their ids."""
        ids = []
        for response in responses:
            spans = rag_trace(self._dice, response=response)
            trace_id = spans[0].trace_id.hex()
            self.spans[trace_id] = {span.name: span.span_id.hex() for span in spans}
            self.sidecar.send(body(spans, service=service))
            ids.append(trace_id)
        return ids

    def judged(self, service: str, responses: list[str]) -> list[dict[str, Event]]:
        """Send, and wait for every judged event of these interactions: one mapping of metric to event for each."""
        return self._results(service, self.send(service, responses))

    def judged_exchanges(self, service: str, exchanges: list[Interaction]) -> list[dict[str, Event]]:
        """The same for whole exchanges."""
        ids = []
        for one in exchanges:
            texts = [passage.text for passage in one.contexts or ()]
            spans = rag_trace(self._dice, question=one.question or "", contexts=texts, response=one.response or "")
            self.sidecar.send(body(spans, service=service))
            ids.append(spans[0].trace_id.hex())
        return self._results(service, ids)

    def _results(self, service: str, ids: list[str]) -> list[dict[str, Event]]:

        def arrived() -> list[Event] | None:
            events = [
                event
                for event in self.sink.events
                if event.trace_id in ids and event.attributes["groundwatch.scorer.kind"] == "judged"
            ]
            return events if len(events) >= len(ids) * len(METRICS) else None

        events = until(arrived, f"{len(ids)} interactions of {service} are judged")
        assert events is not None
        assert len(events) == len(ids) * len(METRICS)  # one result a metric, no more
        by_id = {
            trace_id: {e.attributes["gen_ai.evaluation.name"]: e for e in events if e.trace_id == trace_id}
            for trace_id in ids
        }
        for event in events:
            check_form(event)
        for given in by_id.values():
            assert given.keys() == set(METRICS)
        now = self.sidecar.wait(lambda now: not laws.broken(now), "the laws of conservation hold")
        for metric in METRICS:
            weight = now.total("groundwatch_judged_weight_total", service=service, metric=metric)
            assert weight == pytest.approx(len(ids))
        return list(by_id.values())

    def share(self, service: str, metric: str, outcome: str) -> float:
        """Share of the weight of a service's interactions with this outcome."""
        now = self.sidecar.metrics()
        labels = {"service": service, "metric": metric}
        of = now.total("groundwatch_judged_weight_total", outcome=outcome, **labels)
        return of / now.total("groundwatch_judged_weight_total", **labels)


def check_form(event: Event) -> None:
    """A score is a number in [0, 1]; whatever else is no number at all."""
    attributes = event.attributes
    assert event.name == "gen_ai.evaluation.result"
    outcome = attributes["groundwatch.outcome"]
    if outcome == "scored":
        assert 0.0 <= attributes["gen_ai.evaluation.score.value"] <= 1.0
        assert "error.type" not in attributes
    else:
        assert "gen_ai.evaluation.score.value" not in attributes
        assert ("error.type" in attributes) == (outcome == "failed")


def outcomes(given: list[dict[str, Event]], metric: str) -> set[str]:
    """The outcomes, and where failed the reasons, of one metric."""
    return {
        one[metric].attributes.get("error.type", one[metric].attributes["groundwatch.outcome"]) for one in given
    }


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with ExitStack() as ends:
        switch = Switch()
        server = ends.enter_context(JudgeServer(ScriptedJudge(answer=switch.answer)))
        sink = ends.enter_context(LogSink())
        config = quick_config(
            sampling={"rate": 1.0, "budget": {"calls_per_day": None, "usd_per_day": None}},
            judge=server.section(
                scorers=list(METRICS),
                budget={"day": {"calls": None, "usd": None}},
                call_timeout_seconds=CALL_TIMEOUT,
                max_attempts=4,
                backoff_seconds=0.05,
                max_backoff_seconds=0.2,
                breaker_failures=50,
                breaker_pause_seconds=0.2,
                reasks=1,
                cache_entries=0,
            ),
            judging={
                "deadline_seconds": DEADLINE,
                "max_age_seconds": MAX_AGE,
                "retry_seconds": 0.3,
                "shed_from": 0.99,
            },
            export={"otlp": {"endpoint": sink.endpoint}},
        )
        sidecar = Sidecar(tmp_path_factory.mktemp("judge"), config)
        ends.callback(sidecar.end)
        yield Bench(sidecar.ready(), server, sink, switch)


@pytest.fixture(autouse=True)
def well_again(bench: Bench) -> Iterator[None]:
    """Each test finds a judge that works, and its breaker closed."""
    yield
    bench.switch.manner = plain_answer
    bench.server.judge.faults.clear()
    bench.server.judge.delay_seconds = 0.0
    bench.server.judge.keys.clear()


def test_events_arrive_in_the_context_of_the_evaluated_span(bench: Bench) -> None:
    honest, invented = bench.judged("events", [FACT, INVENTED])
    assert honest["faithfulness"].attributes["gen_ai.evaluation.score.value"] == 1.0
    assert invented["faithfulness"].attributes["gen_ai.evaluation.score.value"] == 0.0
    for given in (honest, invented):
        for event in given.values():
            assert event.span_id in bench.spans[event.trace_id].values()
            assert event.resource["service.name"] == "events"
            assert event.resource["deployment.environment.name"] == "production"
    assert {one.span_id for one in honest.values()} == {honest["faithfulness"].span_id}
    local = [e for e in bench.sink.events if e.attributes["groundwatch.scorer.kind"] == "local"]
    assert {"faithfulness", "context_relevance"} <= {e.attributes["gen_ai.evaluation.name"] for e in local}


def test_no_text_of_the_application_leaves_with_the_events(bench: Bench) -> None:
    bench.judged("private", [INVENTED])
    sent = b"".join(request.SerializeToString() for request in bench.sink.requests)
    assert b"hotel" not in sent
    assert b"999" not in sent


def test_judge_calls_and_events_carry_our_marks(bench: Bench) -> None:
    bench.judged("marks", [FACT])
    for chat in bench.server.chats:
        assert {name.lower(): value for name, value in chat.headers.items()}[HEADER] == HEADER_VALUE
        assert MARKER in chat.prompt
    assert all(metadata[HEADER] == HEADER_VALUE for metadata in bench.sink.metadata)


def test_own_events_sent_back_are_refused(bench: Bench) -> None:
    bench.judged("loop", [FACT])
    own: ExportLogsServiceRequest = bench.sink.requests[-1]
    again = own.SerializeToString()
    before = bench.sidecar.metrics()
    # As our exporter sends them: refused whole, and not to be tried again.
    with pytest.raises(grpc.RpcError) as refused:
        bench.sidecar.call(again, "logs", metadata=((HEADER, HEADER_VALUE),))
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    # Through a collector, which takes the header off: they are known by an attribute, in known and unknown traces.
    bench.sidecar.send(again, "logs")
    for group in own.resource_logs:
        for scope in group.scope_logs:
            for record in scope.log_records:
                record.trace_id = random.Random(record.trace_id).randbytes(16)
    bench.sidecar.send(own.SerializeToString(), "logs")
    # The judge's own calls, where somebody traces its client.
    chat = bench.server.chats[-1]
    spans = rag_trace(random.Random(77), question=chat.prompt, contexts=None, response="{}")
    bench.sidecar.send(body(spans, service="judge-client"))
    now = bench.sidecar.wait(
        lambda now: now.total("groundwatch_traces_open") == 0 and not laws.broken(now), "all is released"
    )
    records = sum(len(s.log_records) for g in own.resource_logs for s in g.scope_logs)
    outcomes = now.by("groundwatch_items_total", "outcome", signal="logs")
    assert outcomes == {"own_evaluation": 2 * records}, outcomes
    refusals = "groundwatch_receiver_refused_requests_total"
    assert now.total(refusals, reason="own_evaluation") == before.total(refusals, reason="own_evaluation") + 1
    settled = "groundwatch_interactions_settled_total"
    assert now.total(settled) == before.total(settled)


def test_a_slow_judge_is_waited_for(bench: Bench) -> None:
    bench.server.judge.delay_seconds = 0.3
    given = bench.judged("slow", [FACT] * 6)
    assert all(outcomes(given, metric) == {"scored"} for metric in METRICS)
    assert bench.server.judge.most_at_once >= 6  # side by side, not one after the other


def test_a_judge_slower_than_its_time_limit_fails_what_it_was_asked(bench: Bench) -> None:
    bench.server.judge.delay_seconds = 2 * CALL_TIMEOUT
    given = bench.judged("too-slow", [FACT] * 2)
    for metric in ASKED:
        assert outcomes(given, metric) <= {"expired", "deadline", "judge_overloaded"}, metric
        assert bench.share("too-slow", metric, "failed") == 1.0
    assert bench.sidecar.metrics().total("groundwatch_judge_calls_total", outcome="timeout") > 0


def test_a_rate_limit_is_kept_and_nothing_is_lost(bench: Bench) -> None:
    bench.server.misbehave(*[Fault(429, headers={"Retry-After": "1"})] * 3)
    given = bench.judged("rate-limited", [FACT] * 4)
    assert all(outcomes(given, metric) == {"scored"} for metric in METRICS)
    assert bench.sidecar.metrics().total("groundwatch_judge_calls_total", outcome="overloaded") >= 3


def test_errors_and_broken_connections_are_tried_again(bench: Bench) -> None:
    bench.server.misbehave(
        Fault(500),
        Fault(disconnect=True),
        Fault(503),
        Fault(cut_body=True),
        Fault(502, body="<html>no JSON</html>"),
    )
    given = bench.judged("flaky", [FACT] * 3)
    assert all(outcomes(given, metric) == {"scored"} for metric in METRICS)


def test_malformed_replies_are_failures_and_never_numbers(bench: Bench) -> None:
    bench.switch.manner = lambda _: '{"claims": [{"text": "The hotel'
    given = bench.judged("malformed", [FACT, INVENTED])
    for metric in ASKED:
        assert outcomes(given, metric) == {"bad_reply"}, metric
        assert bench.share("malformed", metric, "failed") == 1.0
        assert bench.sidecar.metrics().total(
            "groundwatch_judged_sum_w_total", service="malformed", metric=metric
        ) == pytest.approx(0.0)


def test_prose_and_numbers_in_the_place_of_verdicts_are_no_scores(bench: Bench) -> None:
    replies = iter(["I would say 0.9!", "[1, 0.5]", '"supported"', "null", "1e999", "```json\n{}\n```"] * 40)
    bench.switch.manner = lambda _: next(replies)
    given = bench.judged("prose", [FACT] * 3)
    assert all(outcomes(given, metric) == {"bad_reply"} for metric in ASKED)


def test_a_forgotten_verdict_fails_its_metric_alone(bench: Bench) -> None:
    def forgetful(received: Received) -> str:
        reply = json.loads(plain_answer(received))
        for name, answer in reply.items():
            if name.startswith("verdicts"):
                reply[name] = dict(list(answer.items())[:-1])
            elif name.startswith("claims") and answer and isinstance(answer[0], dict):
                for one in answer[-1:]:
                    one.pop("label")
        return json.dumps(reply)

    bench.switch.manner = forgetful
    given = bench.judged("forgetful", [f"{FACT} Breakfast is not paid for. Trains go hourly."])
    assert outcomes(given, "faithfulness") == {"bad_reply"}
    assert outcomes(given, "context_relevance") == {"scored"}
    assert bench.sidecar.metrics().total("groundwatch_judge_reasked_answers_total") > 0


def test_a_verdict_for_what_was_not_asked_is_not_counted(bench: Bench) -> None:
    def overeager(received: Received) -> str:
        reply = json.loads(plain_answer(received))
        for name, answer in list(reply.items()):
            if name.startswith("verdicts"):
                reply[name] = {**answer, "99": {"reason": "", "passages": [], "label": "supported"}}
        return json.dumps({**reply, "faithfulness": 1.0, "score": 1.0})

    bench.switch.manner = overeager
    (given,) = bench.judged("overeager", [INVENTED])
    assert given["faithfulness"].attributes["gen_ai.evaluation.score.value"] == 0.0


def test_a_rejected_key_opens_the_breaker_and_mends_by_itself(bench: Bench) -> None:
    bench.server.judge.keys.add("another")
    ids = bench.send("locked-out", [FACT] * 2)
    now = bench.sidecar.wait(
        lambda now: now.total("groundwatch_judge_breaker_state", state="open") == 1, "the breaker opens"
    )
    assert now.total("groundwatch_judge_breaker_opened_total", cause="auth") >= 1
    assert "scripted, down: auth" in bench.sidecar.get("/").text
    bench.server.judge.keys.clear()

    # What waited is judged, not lost.
    def scored() -> bool:
        events = [e for e in bench.sink.events if e.trace_id in ids]
        done = [e for e in events if e.attributes["groundwatch.scorer.kind"] == "judged"]
        return len(done) == len(ids) * len(METRICS) and all(
            e.attributes["groundwatch.outcome"] == "scored" for e in done
        )

    until(scored, "the waiting interactions are judged")


def test_a_judge_that_stays_away_is_a_failure_that_coverage_shows(bench: Bench) -> None:
    bench.server.judge.keys.add("another")
    given = bench.judged("away", [FACT] * 2)
    for metric in ASKED:
        assert outcomes(given, metric) <= {"expired", "judge_auth"}, metric
        assert bench.share("away", metric, "failed") == 1.0
    assert bench.sidecar.metrics().total("groundwatch_judging_retried_jobs_total") > 0


def test_recorded_replies_of_a_real_model_are_read(bench: Bench) -> None:
    """The small model's own words, wrong labels included, for the exchanges that it was asked about."""
    words: dict[tuple[str, ...], str] = {}
    for line in (RECORDED / "qwen2.5-coder-1.5b.jsonl").read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        words[one["interaction"], *one["tasks"]] = one["content"]
    unknown: list[Received] = []

    def remembered(received: Received) -> str:
        asked = received.user
        name = next(
            name
            for name, one in EXCHANGES.items()
            if any(p.text in asked for p in one.contexts or ()) or str(one.response) in asked
        )
        key = (name, *(task.name for task in received.tasks))
        if key not in words:
            unknown.append(received)
        return words.get(key, "")

    bench.switch.manner = remembered
    given = bench.judged_exchanges("recorded", list(EXCHANGES.values()))
    assert unknown == []
    # As the recordings' own test reads them in the scorers alone.
    assert {
        name: tuple(one[metric].attributes.get("gen_ai.evaluation.score.value") for metric in ASKED)
        for name, one in zip(EXCHANGES, given, strict=True)
    } == {"en-1": (0.0, 0.5, 1.0), "ko-1": (1.0, 0.5, 0.5), "en-2": (1.0, 0.5, 0.5)}


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9])
def test_recorded_replies_that_break_off_are_failures(bench: Bench, cut: float) -> None:
    lines = (RECORDED / "qwen2.5-coder-1.5b.jsonl").read_text(encoding="utf-8").splitlines()
    words = {tuple(one["tasks"]): one["content"] for one in map(json.loads, lines)}

    def broken(received: Received) -> str:
        whole = str(words.get(tuple(task.name for task in received.tasks), "{}"))
        return whole[: int(len(whole) * cut)]

    bench.switch.manner = broken
    (given,) = bench.judged(f"broken-{cut}", [FACT])
    # What a cut reply still holds whole may be read; its missing part is never filled.
    assert outcomes([given], "faithfulness") == {"bad_reply"}
    assert all(outcomes([given], metric) <= {"bad_reply", "scored"} for metric in ASKED)


def test_an_unknown_price_is_no_cost(bench: Bench) -> None:
    bench.judged("priceless", [FACT])
    now = bench.sidecar.metrics()
    assert now.series("groundwatch_judge_cost_usd_total") == {}
    assert now.total("groundwatch_judge_unpriced_calls_total") > 0
    assert now.total("groundwatch_judge_tokens_total", direction="input", source="reported") > 0


def test_every_event_was_sent(bench: Bench) -> None:
    bench.judged("last", [FACT])
    now = bench.sidecar.wait(lambda now: now.total("groundwatch_evaluation_events_waiting") == 0, "all is sent")
    assert now.by("groundwatch_evaluation_events_total", "outcome").keys() == {"sent"}
    assert now.total("groundwatch_evaluation_events_total", outcome="sent") == len(bench.sink.events)
