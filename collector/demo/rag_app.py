"""A small, real RAG application for the demo: it answers questions about rented electric bicycles.

It imports nothing of groundwatch. It retrieves with BM25 over `corpus.json`, asks a model over the OpenAI API with
the public `openai` client, and is traced as an application would be: the model's span comes from
`openinference-instrumentation-openai`, the chain's and the retriever's are written by hand in the OpenInference
conventions. Spans go wherever the standard OTEL_* variables say (OTEL_EXPORTER_OTLP_ENDPOINT,
OTEL_EXPORTER_OTLP_PROTOCOL = http/protobuf or grpc, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES).

A share of the questions is answered from the wrong documents (a planted fault of the retriever). Each interaction
is reported as one JSON line on standard output, as the application itself knew it. Ends after `--duration`, on
SIGINT or SIGTERM, or when the process that started it is gone; spans are flushed first.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import openai
from openinference.instrumentation import get_attributes_from_context, using_attributes
from openinference.instrumentation.openai import OpenAIInstrumentor
from openinference.semconv.trace import (
    DocumentAttributes,
    OpenInferenceMimeTypeValues,
    OpenInferenceSpanKindValues,
    SpanAttributes,
)
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

INSTRUCTIONS = (
    "You answer riders' questions from the numbered passages only. If they do not hold the answer, say so."
)
PASSAGES = 3
WORKERS = 4


@dataclass(frozen=True, slots=True)
class Document:
    id: str
    topic: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    document: Document
    score: float


@dataclass(frozen=True, slots=True)
class Rider:
    """Who asks: a session of a user of a tenant."""

    session: str
    user: str
    tenant: str


def tokens(text: str) -> list[str]:
    """Lower-case words with a plural s cut off. Frequent words need no list: BM25 gives them little weight."""
    found = re.findall(r"[a-z0-9]+", text.lower())
    return [word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word for word in found]


class Retriever:
    """Okapi BM25 (Robertson and Zaragoza 2009) with k1 = 1.2, b = 0.75."""

    def __init__(self, documents: list[Document], *, k1: float = 1.2, b: float = 0.75) -> None:
        self._documents = documents
        self._bags = [Counter(tokens(document.text)) for document in documents]
        lengths = [sum(bag.values()) for bag in self._bags]
        mean = sum(lengths) / len(lengths)
        self._k1 = k1
        self._norms = [k1 * (1 - b + b * length / mean) for length in lengths]
        holding = Counter(word for bag in self._bags for word in bag)
        count = len(documents)
        self._idf = {word: math.log(1 + (count - n + 0.5) / (n + 0.5)) for word, n in holding.items()}

    def search(self, query: str, limit: int) -> list[Hit]:
        """The `limit` best documents, best first; ties in the corpus's order."""
        asked = set(tokens(query)) & self._idf.keys()
        hits = [
            Hit(
                document,
                sum(self._idf[w] * bag[w] * (self._k1 + 1) / (bag[w] + norm) for w in sorted(asked) if bag[w]),
            )
            for document, bag, norm in zip(self._documents, self._bags, self._norms, strict=True)
        ]
        return sorted(hits, key=lambda hit: -hit.score)[:limit]


class Questions:
    """Varied questions from the corpus's templates, in sessions of one to four; repeatable from the seed."""

    def __init__(self, corpus: dict[str, list[dict[str, object]]], *, dice: random.Random, label: str) -> None:
        self._answerable = [str(ask) for entry in corpus["documents"] for ask in _list(entry["ask"])]
        self._unanswerable = [str(ask) for ask in corpus["unanswerable"]]
        self._openings = [str(opening) for opening in corpus["openings"]]
        self._tenants = [str(tenant) for tenant in corpus["tenants"]]
        self._dice = dice
        self._label = label
        self._sessions = 0
        self._left = 0
        self._rider = Rider("", "", "")

    def next(self) -> tuple[str, Rider]:
        if self._left == 0:
            self._sessions += 1
            self._left = self._dice.randint(1, 4)
            user = self._dice.randrange(40)
            tenant = self._tenants[user % len(self._tenants)]
            self._rider = Rider(f"{self._label}-{self._sessions:05d}", f"rider-{user:02d}", tenant)
        self._left -= 1
        asks = self._unanswerable if self._dice.random() < 0.04 else self._answerable
        return self._dice.choice(self._openings) + self._dice.choice(asks), self._rider

    def another(self) -> str:
        """A question that somebody else might have asked: what a broken cache would look up."""
        return self._dice.choice(self._answerable)


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


class Assistant:
    """The pipeline: retrieve, fill the prompt, ask the model."""

    def __init__(self, retriever: Retriever, client: openai.OpenAI, tracer: trace.Tracer, *, model: str) -> None:
        self._retriever = retriever
        self._client = client
        self._tracer = tracer
        self._model = model

    def answer(self, question: str, rider: Rider, *, looked_up: str, seed: int) -> dict[str, object]:
        """What happened, as the application knows it; `looked_up` differs from the question when planted."""
        with (
            using_attributes(
                session_id=rider.session, user_id=rider.user, metadata={"tenant": rider.tenant, "channel": "chat"}
            ),
            self._tracer.start_as_current_span("answer_rider") as span,
        ):
            span.set_attributes(
                {
                    SpanAttributes.OPENINFERENCE_SPAN_KIND: OpenInferenceSpanKindValues.CHAIN.value,
                    SpanAttributes.INPUT_VALUE: question,
                    SpanAttributes.INPUT_MIME_TYPE: OpenInferenceMimeTypeValues.TEXT.value,
                    **dict(get_attributes_from_context()),
                }
            )
            hits = self._retrieve(question, looked_up)
            text: str | None = None
            try:
                text = self._ask(question, hits, seed)
            except openai.APIError as error:
                span.record_exception(error)
                span.set_status(trace.StatusCode.ERROR, type(error).__name__)
            else:
                span.set_attribute(SpanAttributes.OUTPUT_VALUE, text)
                span.set_attribute(SpanAttributes.OUTPUT_MIME_TYPE, OpenInferenceMimeTypeValues.TEXT.value)
            return {
                "trace_id": f"{span.get_span_context().trace_id:032x}",
                "question": question,
                "contexts": [
                    {"id": hit.document.id, "text": hit.document.text, "score": hit.score} for hit in hits
                ],
                "response": text,
                "model": self._model,
                "session": rider.session,
                "user": rider.user,
                "tenant": rider.tenant,
                "wrong_documents": looked_up != question,
            }

    def _retrieve(self, question: str, looked_up: str) -> list[Hit]:
        with self._tracer.start_as_current_span("search_help_pages") as span:
            hits = self._retriever.search(looked_up, PASSAGES)
            span.set_attributes(
                {
                    SpanAttributes.OPENINFERENCE_SPAN_KIND: OpenInferenceSpanKindValues.RETRIEVER.value,
                    SpanAttributes.INPUT_VALUE: question,
                    SpanAttributes.INPUT_MIME_TYPE: OpenInferenceMimeTypeValues.TEXT.value,
                    **dict(get_attributes_from_context()),
                }
            )
            for rank, hit in enumerate(hits):
                prefix = f"{SpanAttributes.RETRIEVAL_DOCUMENTS}.{rank}."
                span.set_attributes(
                    {
                        prefix + DocumentAttributes.DOCUMENT_ID: hit.document.id,
                        prefix + DocumentAttributes.DOCUMENT_CONTENT: hit.document.text,
                        prefix + DocumentAttributes.DOCUMENT_SCORE: hit.score,
                        prefix + DocumentAttributes.DOCUMENT_METADATA: json.dumps({"topic": hit.document.topic}),
                    }
                )
            return hits

    def _ask(self, question: str, hits: list[Hit], seed: int) -> str:
        passages = "\n".join(f"[{number}] {hit.document.text}" for number, hit in enumerate(hits, 1))
        completion = self._client.chat.completions.create(
            model=self._model,
            seed=seed,
            messages=[
                {"role": "system", "content": INSTRUCTIONS},
                {"role": "user", "content": f"Passages:\n{passages}\n\nQuestion: {question}"},
            ],
        )
        return completion.choices[0].message.content or ""


def exporter() -> SpanExporter:
    """The OTLP exporter that OTEL_EXPORTER_OTLP_PROTOCOL names; its address comes from the environment."""
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        return Grpc()
    if protocol == "http/protobuf":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http

        return Http()
    raise SystemExit(f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}; use 'http/protobuf' or 'grpc'")


def load_corpus() -> tuple[dict[str, list[dict[str, object]]], list[Document]]:
    corpus = json.loads(Path(__file__).with_name("corpus.json").read_text(encoding="utf-8"))
    return corpus, [Document(e["id"], e["topic"], e["text"]) for e in corpus["documents"]]


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small RAG application that sends its spans over OTLP.")
    parser.add_argument("--llm", required=True, help="base URL of an OpenAI-compatible server (.../v1)")
    parser.add_argument("--model", required=True, help="model name that is asked for")
    parser.add_argument("--release", default="1.0.0", help="service.version of this release")
    parser.add_argument("--rate", type=float, default=5.0, help="questions per second, above 0 and at most 50")
    parser.add_argument("--duration", type=float, default=60.0, help="seconds after which it ends by itself")
    parser.add_argument("--seed", type=int, default=7, help="the same seed asks the same questions")
    parser.add_argument("--wrong-documents", type=float, default=0.04, help="share answered from wrong documents")
    options = parser.parse_args(argv)
    if not 0 < options.rate <= 50:
        parser.error(f"--rate is {options.rate}; it must be above 0 and at most 50")
    return options


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    stop = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda _number, _frame: stop.set())
    parent = os.getppid()
    provider = TracerProvider(resource=Resource.create({"service.version": options.release}))
    provider.add_span_processor(BatchSpanProcessor(exporter()))
    OpenAIInstrumentor().instrument(tracer_provider=provider)

    corpus, documents = load_corpus()
    dice = random.Random(f"{options.seed}/{options.release}")  # noqa: S311 - varied traffic, nothing secret
    questions = Questions(corpus, dice=dice, label=f"ride-{options.release}")
    output = threading.Lock()
    client = openai.OpenAI(base_url=options.llm, api_key="not-needed", max_retries=0, timeout=10.0)
    tracer = provider.get_tracer("fjordling.assistant", options.release)
    assistant = Assistant(Retriever(documents), client, tracer, model=options.model)

    def serve(question: str, rider: Rider, looked_up: str, seed: int) -> None:
        told = json.dumps(assistant.answer(question, rider, looked_up=looked_up, seed=seed))
        with output:
            sys.stdout.write(told + "\n")
            sys.stdout.flush()

    ends = time.monotonic() + options.duration
    due = time.monotonic()
    number = 0
    # A slow model makes the application wait, as real callers would; it never piles up work without bound.
    free = threading.Semaphore(2 * WORKERS)
    with ThreadPoolExecutor(WORKERS) as workers:
        while not stop.is_set() and (now := time.monotonic()) < ends and os.getppid() == parent:
            if now < due:
                stop.wait(min(due - now, 0.2))
                continue
            if not free.acquire(timeout=0.2):
                continue
            number += 1
            due = max(due + 1 / options.rate, now - 1.0)
            question, rider = questions.next()
            looked_up = questions.another() if dice.random() < options.wrong_documents else question
            done = workers.submit(serve, question, rider, looked_up, number)
            done.add_done_callback(lambda _done: free.release())
    client.close()
    provider.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
