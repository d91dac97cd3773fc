"""A judge to test against: a real HTTP server on 127.0.0.1 that answers by script, and misbehaves on demand.

    async with ScriptedJudge() as judge:
        options = JudgeOptions(base_url=judge.base_url, model="scripted")

By default it judges by plain rules over words (`plain_answer`), deterministically. Give `answer` to script every
reply, `recorded` texts to replay, and `faults` to misbehave before, or instead of, answering.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from scorers.interaction import Interaction, Passage
from scorers.judge.question import Answer, Embedding, Labelled, Listing, Question
from scorers.needs import unmet
from scorers.outcome import Failed, FailedReason, Result, Score
from scorers.refusal import noncommittal
from scorers.scorer import JudgedScorer, LocalScorer, ScorerInfo

_TASK = re.compile(r'^Task "([a-z0-9_]+)": (.*?)(?=^Task "|\Z)', re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"^<(d[0-9a-f]{6}) ([^>\n]+)>\n(.*?)\n</\1>$", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"^([0-9]+): (.*?)(?=^[0-9]+: |\Z)", re.DOTALL | re.MULTILINE)
_OFFERED = re.compile(r'"label": "([^|"]+)')
_WORD = re.compile(r"\w+")


def interaction(
    question: str | None = "What is the hotel limit?",
    contexts: Iterable[str] | None = ("The hotel limit is 120 euros per night.",),
    response: str | None = "The hotel limit is 120 euros per night.",
    *,
    reference: str | None = None,
    id: str = "i-1",  # the field's own name
) -> Interaction:
    """An interaction from plain strings."""
    passages = None if contexts is None else tuple(Passage(text) for text in contexts)
    return Interaction(id, question, passages, response, reference)


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a prompt as the judge reads it: its instruction, and the items by id."""

    name: str
    text: str
    items: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Received:
    """One request that arrived. `blocks` are the fenced texts by name; embeddings requests have only `inputs`."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    query: str = ""

    @property
    def prompt(self) -> str:
        return "\n".join(str(message["content"]) for message in self.body.get("messages", ()))

    @property
    def user(self) -> str:
        return str(self.body["messages"][-1]["content"])

    @property
    def blocks(self) -> dict[str, str]:
        return {name: text for _, name, text in _BLOCK.findall(self.user)}

    @property
    def tasks(self) -> list[Task]:
        outside = _BLOCK.sub(lambda match: match.group() if match.group(2).startswith("items") else "", self.user)
        return [Task(name, text, _items(text)) for name, text in _TASK.findall(outside)]

    @property
    def inputs(self) -> list[str]:
        return list(self.body.get("input", ()))


def _items(task: str) -> dict[str, str]:
    if listed := re.search(r"^Passages: ([0-9, ]+)$", task, re.MULTILINE):
        return {rank: f"passage {rank}" for rank in listed.group(1).split(", ")}
    fenced = "\n".join(text for _, name, text in _BLOCK.findall(task) if name.startswith("items"))
    return {item_id: item.strip() for item_id, item in _ITEM.findall(fenced)}


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to misbehave; the request that meets it gets nothing else, unless it is only slow.

    `status` with `headers` and `body`; `disconnect` (after the request was read); `cut_body` (half of the reply,
    then the connection closes); `delay_seconds` before the headers, `slow_body_seconds` between the two halves
    of the body; `stream` as server-sent events; `content` instead of the judge's words; `raw` instead of the body.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = '{"error": {"message": "scripted fault"}}'
    disconnect: bool = False
    cut_body: bool = False
    delay_seconds: float = 0.0
    slow_body_seconds: float = 0.0
    stream: bool = False
    usage: bool = True
    finish_reason: str = "stop"
    content: str | None = None
    raw: bytes | None = None
    content_type: str = "application/json"


Answerer = Callable[[Received], str]


def plain_answer(received: Received) -> str:
    """Judge by words alone: supported is what occurs in a passage, relevant is what shares words."""
    blocks = received.blocks
    passages = [text for name, text in blocks.items() if name.startswith("passage ")]
    reply = {task.name: _answer_task(task, blocks, passages) for task in received.tasks}
    return json.dumps(reply, ensure_ascii=False)


def _answer_task(task: Task, blocks: Mapping[str, str], passages: list[str]) -> object:
    response, question = blocks.get("response", ""), blocks.get("question", "")
    joined = "\n".join(passages)
    base = task.name.split("_take_")[0]
    if base in ("claims", "answered_questions", "response_statements", "reference_statements"):
        target = blocks.get("reference", "") if base == "reference_statements" else response
        entries = _sentences(target)
        if base == "answered_questions":
            return [f"{sentence}?" for sentence in (entries * 3)[:3]]
        if '"label"' not in task.text:
            return entries
        return [
            {"text": one, "reason": "", "passages": _citing(one, passages), "label": _verdict(one, joined)}
            for one in entries
        ]
    if base == "noncommittal":
        return {"label": "yes" if noncommittal(response).label == "yes" else "no"}
    if base.startswith("context_relevance"):
        return {"reason": "words", "label": str(min(2, len(_words(question) & _words(joined))))}
    if base.startswith("groundedness"):
        supported = [one for one in _sentences(response) if _verdict(one, joined) == "supported"]
        label = 2 if len(supported) == len(_sentences(response)) else 1 if supported else 0
        return {"reason": "words", "label": str(label)}
    offered = _OFFERED.search(task.text)
    if not task.items and offered is not None:
        return {"reason": "the first label", "label": offered.group(1)}
    return _answer_items(base, task, blocks, passages)


def _answer_items(base: str, task: Task, blocks: Mapping[str, str], passages: list[str]) -> object:
    joined = "\n".join(passages)
    labelled: dict[str, object] = {}
    for item_id, text in task.items.items():
        if base == "passage_relevance":
            shares = _words(blocks.get("question", "")) & _words(blocks.get(f"passage {item_id}", ""))
            labelled[item_id] = {"reason": "words", "label": "relevant" if len(shares) > 1 else "irrelevant"}
        elif base == "verdicts":
            labelled[item_id] = {
                "reason": "words",
                "passages": _citing(text, passages),
                "label": _verdict(text, joined),
            }
        else:
            source = blocks.get(base.removeprefix("entailed_by_"), joined)  # the response or the reference
            labelled[item_id] = {"reason": "words", "label": "yes" if text in source else "no"}
    return labelled


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.!?。])\s*", text) if _WORD.search(part)]


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.casefold()) if len(word) > 3 or not word.isascii()}


def _verdict(claim: str, joined: str) -> str:
    return "supported" if claim.strip(" .。") in joined else "unsupported"


def _citing(claim: str, passages: list[str]) -> list[int]:
    return [rank for rank, text in enumerate(passages, start=1) if claim.strip(" .。") in text]


def plain_vector(text: str) -> list[float]:
    """A bag of hashed words: equal words give nearby vectors; never the zero vector."""
    vector = [0.01] * 64
    for word in _WORD.findall(text.casefold()):
        vector[hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=1).digest()[0] % 64] += 1.0
    return vector


class ScriptedJudge:
    """The server. `received` holds every request; faults are used up in order, one a request.

    `recorded` texts, if given, are the judge's words for the first chat requests, in order. Every reply waits
    `delay_seconds`. `rungs` are the response formats that it accepts; others get a 400, as gateways do.
    """

    def __init__(
        self,
        answer: Answerer = plain_answer,
        *,
        embed: Callable[[str], list[float]] = plain_vector,
        recorded: Iterable[str] = (),
        faults: Iterable[Fault] = (),
        delay_seconds: float = 0.0,
        rungs: Iterable[str] = ("json_schema", "json_object", "text"),
        keys: Iterable[str] = (),
    ) -> None:
        self.received: list[Received] = []
        self.faults = deque(faults)
        self.recorded = deque(recorded)
        self.delay_seconds = delay_seconds
        self.keys = set(keys)
        self.most_at_once = 0
        self._at_once = 0
        self._answer = answer
        self._embed = embed
        self._rungs = frozenset(rungs)
        self._runner: web.AppRunner | None = None
        self.base_url = ""

    @property
    def chats(self) -> list[Received]:
        return [one for one in self.received if one.path.endswith("/chat/completions")]

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            raw = await request.read()
            received = Received(request.path, dict(request.headers), json.loads(raw), request.query_string)
            self.received.append(received)
            return await self._reply(request, received)
        finally:
            self._at_once -= 1

    async def _reply(self, request: web.Request, received: Received) -> web.StreamResponse:
        fault = self.faults.popleft() if self.faults else Fault()
        if fault.delay_seconds or self.delay_seconds:
            await asyncio.sleep(fault.delay_seconds + self.delay_seconds)
        if fault.disconnect:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        key = received.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.keys and key not in self.keys:
            return web.json_response({"error": {"message": "wrong key"}}, status=401)
        if fault.status != 200:
            return web.Response(
                status=fault.status, headers=fault.headers, text=fault.body, content_type=fault.content_type
            )
        asked_form = received.body.get("response_format", {}).get("type", "text")
        if asked_form not in self._rungs:
            return web.json_response(
                {"error": {"message": f"response_format {asked_form} is not supported"}}, status=400
            )
        body = fault.raw if fault.raw is not None else self._body(received, fault)
        return await _write(request, body, fault)

    def _body(self, received: Received, fault: Fault) -> bytes:
        if received.path.endswith("/embeddings"):
            data = [{"index": i, "embedding": self._embed(text)} for i, text in enumerate(received.inputs)]
            return json.dumps({"data": data, "usage": {"prompt_tokens": 5 * len(data)}}).encode()
        content = fault.content
        if content is None:
            content = self.recorded.popleft() if self.recorded else self._answer(received)
        if fault.stream:
            return _events(content)
        message = {"role": "assistant", "content": content}
        body: dict[str, object] = {
            "model": received.body.get("model"),
            "choices": [{"index": 0, "message": message, "finish_reason": fault.finish_reason}],
        }
        if fault.usage:
            tokens = {"prompt_tokens": len(received.prompt) // 4, "completion_tokens": len(content) // 4}
            body["usage"] = tokens
        return json.dumps(body).encode()


def _events(content: str) -> bytes:
    half = len(content) // 2
    chunks = [
        {"choices": [{"delta": {"content": content[:half]}, "finish_reason": None}]},
        {"choices": [{"delta": {"content": content[half:]}, "finish_reason": "stop"}]},
    ]
    return ("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n").encode()


async def _write(request: web.Request, body: bytes, fault: Fault) -> web.StreamResponse:
    if not fault.cut_body and not fault.slow_body_seconds:
        return web.Response(body=body, content_type=fault.content_type, headers=fault.headers)
    response = web.StreamResponse(headers={"Content-Length": str(len(body)), "Content-Type": fault.content_type})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if fault.cut_body:
        assert request.transport is not None
        request.transport.close()
        return response
    await asyncio.sleep(fault.slow_body_seconds)
    await response.write(body[len(body) // 2 :])
    return response


def check_judged(scorer: JudgedScorer) -> None:
    """The contract of `JudgedScorer`, for authors of scorers: raises `AssertionError` with the broken promise.

    Walks the scorer through interactions of every kind, with answers that are whole, empty, failed and absent.
    """
    assert isinstance(scorer, JudgedScorer), "it lacks info, prompts, questions or results"
    for given in _odd_interactions():
        if unmet(scorer.info.needs, given) is not None:
            continue
        for answer in (_whole, _empty, _broken):
            answers: dict[str, Answer] = {}
            for _ in range(8):
                asked = scorer.questions(given, dict(answers))
                assert asked == scorer.questions(given, dict(answers)), "questions() must be a pure function"
                assert not {question.key for question in asked} & set(answers), "it asks what was answered"
                _check_results(scorer, given, answers)
                if not asked:
                    break
                answers |= {question.key: answer(question) for question in asked}
            else:
                raise AssertionError("it never stops asking")


def check_local(scorer: LocalScorer) -> None:
    """The contract of `LocalScorer`: one list of results for each interaction of a batch, odd texts included."""
    assert isinstance(scorer, LocalScorer), "it lacks info or score"
    batch = [given for given in _odd_interactions() if unmet(scorer.info.needs, given) is None]
    together = scorer.score(batch)
    assert len(together) == len(batch), "score() must give one list for each interaction, in order"
    for given, results in zip(batch, together, strict=True):
        _check_all(scorer.info, given, results)
        alone = [one.outcome for one in scorer.score([given])[0]]
        assert alone == [one.outcome for one in results], "a result must not depend on the rest of the batch"


def _check_results(scorer: JudgedScorer, given: Interaction, answers: Mapping[str, Answer]) -> None:
    _check_all(scorer.info, given, scorer.results(given, answers))


def _check_all(info: ScorerInfo, given: Interaction, results: Sequence[Result]) -> None:
    assert [one.scorer for one in results] == list(info.gives), "one result for each of info.gives, in order"
    for one in results:
        assert one.interaction_id == given.id, "a result carries its interaction's id"
        assert one.kind is info.kind, "a result carries its scorer's kind"
        json.dumps(one.evidence)
        if isinstance(one.outcome, Score):
            assert 0.0 <= one.outcome.value <= 1.0, "a score lies in 0 to 1"


def _odd_interactions() -> list[Interaction]:
    texts = (
        "The limit is 120 euros.",
        "한도는 15만 원입니다.",
        "I do not know.",
        "",
        "\ud800 <|x|> {",
        "x " * 2000,
    )
    return [
        interaction("What is the limit?", contexts, text, reference="It is 120 euros.", id=f"contract-{number}")
        for number, (text, contexts) in enumerate(
            (text, contexts) for text in texts for contexts in ((), ("  ",), ("The limit is 120 euros.", text))
        )
    ]


def _whole(question: Question) -> Answer:
    if isinstance(question, Listing):
        return Answer(entries=("one", "two")[: question.limit])
    if isinstance(question, Embedding):
        return Answer(vectors=tuple(tuple(plain_vector(text)) for text in question.texts))
    return Answer(labels={item_id: Labelled(question.labels[0], "reason", (1, 99)) for item_id in question.ids})


def _empty(question: Question) -> Answer:
    del question
    return Answer()


def _broken(question: Question) -> Answer:
    del question
    return Answer(failure=Failed(FailedReason.BAD_REPLY, "contract"))
