"""The demo's pipeline, traced by another public library: OpenLLMetry's instrumentation of the OpenAI client.

Run by path. The model's span is the library's own; workflow and retrieval are written by hand as the decorators of
that family write them (`traceloop.*`). Each interaction is told as one JSON line on standard output, as the
application itself knew it. Spans go where the standard OTEL_* variables say.
"""

from __future__ import annotations

import argparse
import json
import random
import sys

import openai
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from collector.demo.rag_app import INSTRUCTIONS, PASSAGES, Questions, Retriever, exporter, load_corpus


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--llm", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--questions", type=int, required=True)
    options = parser.parse_args()
    provider = TracerProvider(resource=Resource.create({}))
    provider.add_span_processor(BatchSpanProcessor(exporter()))
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    tracer = provider.get_tracer("traceloop.tracer")
    corpus, documents = load_corpus()
    questions = Questions(corpus, dice=random.Random(11), label="llmetry")
    retriever = Retriever(documents)
    client = openai.OpenAI(base_url=options.llm, api_key="not-needed", max_retries=0, timeout=10.0)
    for number in range(options.questions):
        question, _ = questions.next()
        call = json.dumps({"args": [question], "kwargs": {}})
        with tracer.start_as_current_span("rag_pipeline.workflow") as root:
            root.set_attributes(
                {
                    "traceloop.span.kind": "workflow",
                    "traceloop.entity.name": "rag_pipeline",
                    "traceloop.entity.input": call,
                }
            )
            with tracer.start_as_current_span("retrieve.task") as span:
                hits = retriever.search(question, PASSAGES)
                contexts = [{"id": h.document.id, "text": h.document.text, "score": h.score} for h in hits]
                span.set_attributes(
                    {
                        "traceloop.span.kind": "task",
                        "traceloop.entity.name": "retrieve",
                        "traceloop.entity.input": call,
                        "traceloop.entity.output": json.dumps(contexts),
                    }
                )
            passages = "\n".join(f"[{rank}] {one['text']}" for rank, one in enumerate(contexts, 1))
            text = None
            try:
                completion = client.chat.completions.create(
                    model=options.model,
                    seed=number,
                    messages=[
                        {"role": "system", "content": INSTRUCTIONS},
                        {"role": "user", "content": f"Passages:\n{passages}\n\nQuestion: {question}"},
                    ],
                )
                text = completion.choices[0].message.content or ""
                root.set_attribute("traceloop.entity.output", json.dumps(text))
            except openai.APIError as error:
                root.record_exception(error)
            told = {
                "trace_id": f"{root.get_span_context().trace_id:032x}",
                "question": question,
                "contexts": contexts,
                "response": text,
            }
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
    client.close()
    provider.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
