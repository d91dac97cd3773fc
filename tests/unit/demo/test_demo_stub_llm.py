"""The stub model: OpenAI-compatible, extractive when honest, repeatable, and lying as often as it was told to."""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from io import StringIO

import httpx
import pytest

from collector.demo import stub_llm

PASSAGES = [
    "The Weekday plan costs 39 euros a month. It covers Monday to Friday.",
    "The chain should be oiled every 300 kilometres. One drop per link is enough.",
]


THROWS = 1500


def prompt(question: str, passages: list[str] | None = None) -> list[dict[str, str]]:
    numbered = "\n".join(f"[{n}] {text}" for n, text in enumerate(passages or PASSAGES, 1))
    return [
        {"role": "system", "content": "x"},
        {"role": "user", "content": f"P:\n{numbered}\n\nQuestion: {question}"},
    ]


@pytest.fixture
def model(capsys: pytest.CaptureFixture[str]) -> Iterator[httpx.Client]:
    with stub_llm.Server(0, seed=3, latency_seconds=0.0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        with httpx.Client(base_url=f"http://127.0.0.1:{server.server_address[1]}", trust_env=False) as client:
            yield client
        server.shutdown()
        thread.join()


def test_reads_question_and_passages_back_from_the_prompt() -> None:
    assert stub_llm.read_prompt(prompt("Is [1] right?\nQuestion: again?")) == (
        "Is [1] right?\nQuestion: again?",
        PASSAGES,
    )


def test_honest_answers_are_sentences_of_the_passages() -> None:
    done, answer = stub_llm.honest("How much does the Weekday plan cost?", PASSAGES, random.Random(1))
    assert (done, answer) == ("faithful", "The Weekday plan costs 39 euros a month.")


@pytest.mark.parametrize("passages", [PASSAGES, []])
def test_honest_answers_refuse_what_the_passages_do_not_hold(passages: list[str]) -> None:
    done, answer = stub_llm.honest("Who won the chess championship?", passages, random.Random(1))
    assert done == "refusal"
    assert answer in stub_llm.REFUSALS


def test_inventions_share_no_sentence_with_the_passages() -> None:
    done, answer = stub_llm.compose("invented", "How much?", PASSAGES, random.Random(4))
    assert done == "invented"
    assert not any(sentence in answer for passage in PASSAGES for sentence in passage.split(". "))


def test_behaves_as_often_as_the_table_says_and_the_second_release_is_far_worse() -> None:
    faithful = {}
    for name, shares in stub_llm.BEHAVIOURS.items():
        dice = [random.Random(f"3/{name}/{n}") for n in range(THROWS)]
        wanted = Counter(d.choices(list(shares), weights=list(shares.values()))[0] for d in dice)
        # Five standard errors of a share.
        for behaviour, share in shares.items():
            assert abs(wanted[behaviour] / THROWS - share) < 5 * (share * (1 - share) / THROWS) ** 0.5
        faithful[name] = wanted["faithful"] / THROWS
    assert faithful["fable-mini-1"] > 2 * faithful["fable-mini-2"]


def test_answers_as_the_openai_api_does_and_repeats_itself(
    model: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {"model": "fable-mini-1", "seed": 5, "messages": prompt("What does the Weekday plan cost?")}
    replies = [model.post("/v1/chat/completions", json=body).json() for _ in range(2)]
    assert replies[0]["choices"] == replies[1]["choices"]
    assert replies[0]["object"] == "chat.completion"
    assert replies[0]["choices"][0]["message"]["role"] == "assistant"
    usage = replies[0]["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    told = [json.loads(line) for line in StringIO(capsys.readouterr().out)]
    assert told == [{"model": "fable-mini-1", "behaviour": "faithful"}] * 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'{"model": "fable-mini-1"}', 400),
        (b'{"model": "fable-mini-1", "messages": [1]}', 400),
        (b'{"model": "gpt-x", "messages": []}', 404),
    ],
)
def test_bad_requests_are_answered_with_a_reason(model: httpx.Client, body: bytes, status: int) -> None:
    reply = model.post("/v1/chat/completions", content=body)
    assert reply.status_code == status
    assert reply.json()["error"]["message"]


def test_oversized_bodies_are_refused_unread(model: httpx.Client) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", model.base_url.port or 0, timeout=10)
    connection.putrequest("POST", "/v1/chat/completions")
    connection.putheader("Content-Length", str(stub_llm.MAX_BODY_BYTES + 1))
    connection.endheaders()
    reply = connection.getresponse()
    assert reply.status == 413
    assert reply.headers["Connection"] == "close"
    connection.close()


def test_lists_models_and_is_healthy(model: httpx.Client) -> None:
    assert {m["id"] for m in model.get("/v1/models").json()["data"]} == set(stub_llm.BEHAVIOURS)
    assert model.get("/healthz").status_code == 200
    assert model.get("/elsewhere").status_code == 404
