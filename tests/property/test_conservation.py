"""Conservation over a random stream into the running product: what came in is what became of it, unit by unit.

The stream holds RAG exchanges and plain chats, test environments, traces that no convention reads, our own judge's
calls, doubled and late spans, spans whose ids are wrong, spans that turn out unreadable only when they are wanted,
and requests that are no requests, over both transports and both encodings, split and in any order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from scorers.judge.marker import MARKER
from tests.support import laws, recordings
from tests.support.judge import JudgeServer
from tests.support.sidecar import Metrics, Sidecar, quick_config
from tests.support.traces import FACT, group, rag_trace, span

pytestmark = pytest.mark.e2e

RATE = 0.5
WINDOW = 8
"""Traces whose pieces are mixed. All of a window is sent well within the quiet period."""


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with ExitStack() as ends:
        judge = ends.enter_context(JudgeServer())
        config = quick_config(
            assembly={"quiet_seconds": 2.0},
            sampling={"rate": RATE, "budget": {"calls_per_day": None, "usd_per_day": None}},
            judge=judge.section(scorers=["faithfulness", "groundedness"], budget={"day": {"calls": None}}),
        )
        sidecar = Sidecar(tmp_path_factory.mktemp("conservation"), config)
        ends.callback(sidecar.end)
        yield sidecar.ready()


Item = tuple[bytes, str]
"""A span's bytes, and the environment of its process."""


class Stream:
    """Makes the stream and keeps count of what it holds."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.sent: Counter[str] = Counter()
        self.known: list[Item] = []
        """One span of each trace that is not our own, to be sent again when the trace is closed."""

    def trace(self) -> list[Item]:
        """The spans of one trace, in any order, some of them doubled."""
        dice = self.dice
        kind = dice.choices(("rag", "chat", "test", "plain", "own"), (10, 3, 3, 4, 1))[0]
        self.sent[kind] += 1
        if kind == "plain":
            trace_id, root = dice.randbytes(16), dice.randbytes(8)
            spans = [
                span(trace_id, root, b"", "GET /", {"http.route": "/"}),
                span(trace_id, dice.randbytes(8), root, "SELECT", {"db.system.name": "postgresql"}),
            ]
        elif kind == "own":
            spans = rag_trace(dice, question=f"{MARKER}\nJudge this.", contexts=None, response="{}")
        else:
            contexts = None if kind == "chat" else [FACT, f"Page {dice.random()}."][: dice.randint(1, 2)]
            spans = rag_trace(
                dice, contexts=contexts, response=dice.choice([FACT, "It is 999 euros.", "I do not know."])
            )
        made = [one.SerializeToString() for one in spans]
        if kind == "own":
            self.sent["own spans"] += len(made)
        else:
            self.known.append((made[-1], "production"))
            if kind == "rag" and dice.random() < 0.2:
                parent = spans[-1].span_id
                made.append(
                    unreadable(
                        span(
                            spans[0].trace_id,
                            dice.randbytes(8),
                            parent,
                            "lost",
                            {"openinference.span.kind": "TOOL"},
                        )
                    )
                )
                self.sent["unreadable"] += 1
            if dice.random() < 0.3:
                made.append(dice.choice(made))
                self.sent["doubled"] += 1
        return [(one, "test" if kind == "test" else "production") for one in made]

    def malformed(self) -> list[Item]:
        """Spans whose ids are wrong."""
        dice = self.dice
        bad = [
            span(b"", dice.randbytes(8), b"", "no trace id", {}),
            span(bytes(16), dice.randbytes(8), b"", "zero trace id", {}),
            span(dice.randbytes(15), dice.randbytes(8), b"", "short trace id", {}),
            span(dice.randbytes(16), b"", b"", "no span id", {}),
        ]
        chosen = dice.sample(bad, dice.randint(0, 2))
        self.sent["malformed"] += len(chosen)
        return [(one.SerializeToString(), "production") for one in chosen]

    def requests(self, items: list[Item]) -> Iterator[tuple[bytes, str, bool]]:
        """The items in requests of any size, in any order: (body, transport, as JSON)."""
        self.dice.shuffle(items)
        self.sent["spans"] += len(items)
        while items:
            cut = self.dice.randint(1, 9)
            here, items = items[:cut], items[cut:]
            body = b"".join(in_request(one, place) for one, place in here)
            transport, json = self.dice.choice([("grpc", False), ("http", False), ("http", True)])
            # What can not be read has no JSON form.
            json = json and not any(BROKEN in one for one, _ in here)
            yield recordings.as_json(body, "traces") if json else body, transport, json


BROKEN = b"\x4a\x05\x0a\x7fabc"
"""An attribute (field 9 of a span) of 5 bytes, whose key claims to have 127."""


def unreadable(one: Span) -> bytes:
    """A span whose ids can be read, and whose attributes can not."""
    return one.SerializeToString() + BROKEN


def in_request(one: bytes, place: str) -> bytes:
    """An export request of one span, built by hand, since no library writes what can not be read. Requests that
    stand one after the other are one request."""
    resource = group([], environment=place).resource.SerializeToString()
    return framed(1, framed(1, resource) + framed(2, framed(2, one)))


def framed(number: int, payload: bytes) -> bytes:
    """A field of type bytes."""
    length, size = len(payload), b""
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + payload


@pytest.mark.parametrize("seed", [1, 2])
def test_all_that_came_in_is_accounted_for(sidecar: Sidecar, seed: int) -> None:
    stream = Stream(seed)
    before = sidecar.metrics()
    for _ in range(8):
        items = [item for _ in range(WINDOW) for item in stream.trace()] + stream.malformed()
        for body, transport, json in stream.requests(items):
            sidecar.send(body, transport=transport, json=json)
        # Some laws hold at every moment, not only when all is quiet.
        assert [law for law in laws.broken(sidecar.metrics()) if "when nothing waits" not in law] == []
    for _ in range(3):
        reply = sidecar.client.post(
            f"{sidecar.http}/v1/traces",
            content=b"\xff" + stream.dice.randbytes(40),
            headers={"content-type": "application/x-protobuf"},
        )
        assert reply.status_code == 400
    quiet(sidecar)
    for body, transport, json in stream.requests(stream.dice.sample(stream.known, 20)):
        sidecar.send(body, transport=transport, json=json)
    after = quiet(sidecar)
    sent = stream.sent

    def more(name: str, **labels: str) -> float:
        return after.total(name, **labels) - before.total(name, **labels)

    assert min(sent[kind] for kind in ("rag", "chat", "test", "plain", "own", "doubled", "unreadable")) > 0
    assert more("groundwatch_items_received_total", signal="traces") == sent["spans"]
    outcomes = {
        "duplicate": sent["doubled"],
        "late": 20,
        "malformed": sent["malformed"],
        "own_evaluation": sent["own spans"],
    }
    outcomes["held"] = sent["spans"] - sum(outcomes.values())
    assert {one: more("groundwatch_items_total", signal="traces", outcome=one) for one in outcomes} == outcomes
    assert more("groundwatch_items_malformed_later_total") == sent["unreadable"]
    assert more("groundwatch_receiver_refused_requests_total", reason="unreadable") == 3
    assert more("groundwatch_traces_opened_total") == sum(sent[k] for k in ("rag", "chat", "test", "plain"))
    assert more("groundwatch_traces_released_total", reason="no_hint") == sent["plain"]
    assert more("groundwatch_interactions_found_total") == sent["rag"] + sent["chat"] + sent["test"]
    assert more("groundwatch_interactions_total", fate="filtered") == sent["chat"] + sent["test"]
    # What carries an unreadable span is coverage, never a score.
    assert (
        more("groundwatch_local_unscored_weight_total", metric="faithfulness", reason="incomplete")
        == (sent["unreadable"])
    )
    assert more("groundwatch_local_weight_total", metric="faithfulness") == sent["rag"]
    # Each queued interaction stands for 1 / rate.
    queued = more("groundwatch_interactions_total", fate="queued")
    assert 0 < queued < sent["rag"]
    assert more("groundwatch_judged_weight_total", metric="groundedness") == pytest.approx(queued / RATE)
    assert more("groundwatch_interactions_total", fate="sampled_out") == sent["rag"] - queued


def test_the_recordings_of_all_libraries_are_accounted_for(sidecar: Sidecar) -> None:
    """Every recorded request in any order, and some of them again: what is doubled or late is told apart."""
    dice = random.Random(3)
    bodies = list(recordings.requests())
    dice.shuffle(bodies)
    again = bodies[::4]
    for _, signal, body in bodies + again:
        transport, json = dice.choices([("grpc", False), ("http", False), ("http", True)], (4, 4, 1))[0]
        sidecar.send(recordings.as_json(body, signal) if json else body, signal, transport=transport, json=json)
    now = quiet(sidecar)
    assert now.total("groundwatch_traces_examined_total", found="error") == 0
    assert now.total("groundwatch_items_total", outcome="duplicate") + now.total(
        "groundwatch_items_total", outcome="late"
    ) >= len(again)


def quiet(sidecar: Sidecar) -> Metrics:
    """Wait until no trace is open, nothing waits, and every law holds."""

    def calm(now: Metrics) -> bool:
        return now.total("groundwatch_traces_open") == 0 and now.total("groundwatch_judging_waiting") == 0

    sidecar.wait(calm, "no trace is open and nothing waits to be judged", seconds=60)
    try:
        return sidecar.wait(lambda now: calm(now) and not laws.broken(now), "every law holds", seconds=20)
    except AssertionError as error:
        raise AssertionError(f"{laws.broken(sidecar.metrics())}\n{error}") from None
