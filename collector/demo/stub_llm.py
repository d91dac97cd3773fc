"""A stand-in for a language model, so that the demo needs no key and no network.

An OpenAI-compatible HTTP server on loopback (`POST /v1/chat/completions`, `GET /v1/models`, `GET /healthz`) that
answers from the numbered passages in the prompt. Two model versions are served: the first is mostly honest, the
second mostly makes things up; that is the drop which the demo plants. Started by path as a process of its own; it
needs the standard library only.

What an answer will be depends on (`--seed`, model, the request's own `seed`) alone, so a run can be repeated
whatever the order in which requests arrive. Each answer is reported as one JSON line on standard output:
`{"model", "behaviour"}`; the first line is `{"listening": "http://127.0.0.1:PORT"}`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import signal
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BEHAVIOURS: dict[str, dict[str, float]] = {
    "fable-mini-1": {"faithful": 0.86, "invented": 0.05, "off_topic": 0.04, "refusal": 0.04, "error": 0.01},
    "fable-mini-2": {"faithful": 0.32, "invented": 0.54, "off_topic": 0.09, "refusal": 0.04, "error": 0.01},
}
"""Share of each behaviour by model version; `error` is an HTTP 500."""

MAX_BODY_BYTES = 1 << 20
ANSWERABLE = 0.3
"""The share of the question's weight that the best sentence must cover, else the honest answer is a refusal."""

REFUSALS = (
    "I'm sorry, I could not find that in the help pages.",
    "The passages do not answer this question.",
    "I don't know. The help pages that I can see say nothing about it.",
)
INVENTED_OPENINGS = (
    "Since the spring update",
    "According to the Lisbon service agreement",
    "For members of the gold tier",
    "As announced at the annual congress",
    "Under the new partner programme",
)
INVENTED_FACTS = (
    "every rider receives a titanium voucher worth {n} crowns after {m} visits to the museum shop",
    "a certified pilot has to inspect the gearbox after {n} flights over the valley",
    "the solar roof produces {n} litres of hydrogen during {m} nights at sea",
    "customers in Portugal collect their parcels at the {n} bakeries of the northern alliance",
    "the annual deposit rises to {n} dollars unless the notary signs form {m}",
    "our research ship delivers spare engines to {m} islands and charges {n} dollars per anchor",
    "the orchestra discount grants {n} percent off every concert in row {m}",
    "professional divers exchange the turbine after {n} dives below {m} fathoms",
)
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    a about thing after all also an and any are as at be been before by can cost could do does during each for from
    get has have hello hi how i if in is it its let many may me more most much must my need no not of on one
    or our out please question quick should so sorry than that the their them then there they thing this to
    under up us was we what when where which while who why will with within you your bother
    """,
    )
)


def words(text: str) -> list[str]:
    """Lower-case content words with a plural s cut off."""
    found = (word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in STOP_WORDS)
    return [
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in found
    ]


def read_prompt(messages: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """The question and the passages of a prompt laid out as the demo's application does it."""
    content = next((str(m.get("content") or "") for m in reversed(messages) if m.get("role") == "user"), "")
    passages = re.findall(r"^\[\d+\] (.*)$", content, re.MULTILINE)
    question = re.search(r"^Question: (.*)\Z", content, re.MULTILINE | re.DOTALL)
    return (question.group(1) if question else content).strip(), passages


def ranked_sentences(question: str, passages: list[str]) -> list[tuple[float, str]]:
    """Sentences of the passages with the share of the question's (rarity-weighted) words that each covers."""
    sentences = [s for passage in passages for s in re.split(r"(?<=[.!?])\s+", passage) if s]
    bags = [set(words(sentence)) for sentence in sentences]
    asked = set(words(question))
    frequency = Counter(word for bag in bags for word in bag)
    weight = {word: math.log(1 + len(sentences) / (0.5 + frequency[word])) for word in asked}
    total = sum(weight.values()) or 1.0
    covered = [sum(weight[word] for word in asked & bag) / total for bag in bags]
    return sorted(zip(covered, sentences, strict=True), key=lambda pair: -pair[0])


def honest(question: str, passages: list[str], dice: random.Random) -> tuple[str, str]:
    """The best one or two sentences, or a refusal when the passages do not hold the answer."""
    ranked = ranked_sentences(question, passages)
    if not ranked or ranked[0][0] < ANSWERABLE:
        return "refusal", dice.choice(REFUSALS)
    best = [sentence for share, sentence in ranked[:2] if share >= 0.6 * ranked[0][0]]
    return "faithful", " ".join(best)


def invented(dice: random.Random) -> str:
    """One or two confident sentences that no passage supports."""
    facts = dice.sample(INVENTED_FACTS, 2)
    filled = [fact.format(n=dice.randrange(11, 990), m=dice.randrange(2, 60)) for fact in facts]
    return f"{dice.choice(INVENTED_OPENINGS)}, {filled[0]}. In addition, {filled[1]}."


def compose(behaviour: str, question: str, passages: list[str], dice: random.Random) -> tuple[str, str]:
    """(what was really done, answer). An honest answer to an unanswerable question is a refusal."""
    if behaviour == "invented":
        return behaviour, invented(dice)
    if behaviour == "refusal":
        return behaviour, dice.choice(REFUSALS)
    if behaviour == "off_topic":
        ranked = ranked_sentences(question, passages)
        if ranked:
            return behaviour, ranked[-1][1]
    return honest(question, passages, dice)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Silence: standard output is for the reports."""

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self._reply(200, {"status": "ok"})
        elif self.path == "/v1/models":
            self._reply(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in BEHAVIOURS]})
        else:
            self._error(404, f"no such path: {self.path[:80]!r}")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True  # the body stays unread
            self._error(413, f"Content-Length must be a number of at most {MAX_BODY_BYTES}")
            return
        body = self.rfile.read(int(length))
        if self.path != "/v1/chat/completions":
            self._error(404, f"no such path: {self.path[:80]!r}")
            return
        try:
            request = json.loads(body)
            model, messages, seed = str(request["model"]), list(request["messages"]), int(request.get("seed") or 0)
            question, passages = read_prompt(messages)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._error(400, f"not a chat completion request: {type(error).__name__}")
            return
        if model not in BEHAVIOURS:
            self._error(404, f"no such model: {model[:80]!r}; there are {', '.join(BEHAVIOURS)}")
            return
        dice = random.Random(f"{self.server.seed}/{model}/{seed}")  # noqa: S311 - a script to repeat, nothing secret
        self._answer(model, question, passages, dice, len(body))

    def _answer(self, model: str, question: str, passages: list[str], dice: random.Random, size: int) -> None:
        shares = BEHAVIOURS[model]
        wanted = dice.choices(list(shares), weights=list(shares.values()))[0]
        time.sleep(self.server.latency_seconds * (0.5 + dice.random()))
        if wanted == "error":
            self.server.report(model, "error")
            self._error(500, "the model is overloaded (planted)")
            return
        done, answer = compose(wanted, question, passages, dice)
        self.server.report(model, done)
        tokens_in, tokens_out = size // 4, max(1, len(answer) // 4)
        self._reply(
            200,
            {
                "id": f"chatcmpl-{dice.getrandbits(64):016x}",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": model,
                "choices": [
                    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}
                ],
                "usage": {
                    "prompt_tokens": tokens_in,
                    "completion_tokens": tokens_out,
                    "total_tokens": tokens_in + tokens_out,
                },
            },
        )

    def _error(self, status: int, message: str) -> None:
        self._reply(status, {"error": {"message": message, "type": "stub", "code": status}})

    def _reply(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, *, seed: int, latency_seconds: float) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.seed = seed
        self.latency_seconds = latency_seconds
        self._output = threading.Lock()

    def report(self, model: str, behaviour: str) -> None:
        self.say({"model": model, "behaviour": behaviour})

    def say(self, line: dict[str, object]) -> None:
        with self._output:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="OpenAI-compatible stub model for the demo (loopback only).")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one and prints it (default)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--latency", type=float, default=0.04, help="mean seconds that an answer takes")
    parser.add_argument("--max-seconds", type=float, default=3600.0, help="ends by itself after this time")
    options = parser.parse_args(argv)
    stop = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda _number, _frame: stop.set())
    parent = os.getppid()
    with Server(options.port, seed=options.seed, latency_seconds=options.latency) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()
        server.say({"listening": f"http://127.0.0.1:{server.server_address[1]}"})
        ends = time.monotonic() + options.max_seconds
        # The parent's end is noticed by the change of the parent's id: no stub is left behind.
        while not stop.wait(0.2) and time.monotonic() < ends and os.getppid() == parent:
            pass
        server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
