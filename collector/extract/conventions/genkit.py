"""Genkit: `genkit:type`, `genkit:metadata:subtype`, and JSON in `genkit:input` and `genkit:output`."""

from __future__ import annotations

from collector.extract.documents import documents
from collector.extract.messages import messages
from collector.extract.readers import model_of, replies_of, usage_of
from collector.extract.view import Role, Source, View

_ROLES = {
    "flow": Role.CHAIN,
    "flowStep": Role.CHAIN,
    "retriever": Role.RETRIEVER,
    "reranker": Role.RERANKER,
    "model": Role.LLM,
    "background-model": Role.LLM,
    "embedder": Role.EMBEDDING,
    "tool": Role.TOOL,
    "prompt": Role.PROMPT,
    "executable-prompt": Role.PROMPT,
    "evaluator": Role.GUARD,
    "indexer": Role.OTHER,
}


class Genkit:
    """Actions of Genkit and its plugins; `generate`, around one or more model calls, is a step."""

    name = "genkit"
    content_switch = (
        "Genkit always writes inputs and outputs; look at the span processors of your telemetry configuration"
    )
    hints = ("genkit:",)

    def read(self, source: Source) -> View | None:
        kind = source.text("genkit:metadata:subtype", "genkit:type")
        if kind is None:
            return None
        role = _ROLES.get(kind, Role.CHAIN)
        view = View(
            self.name,
            role,
            source.payload("genkit:input", quoted=True),
            source.payload("genkit:output", quoted=True),
        )
        given = view.input.value if view.input is not None else None
        gave = view.output.value if view.output is not None else None
        if role is Role.LLM:
            view.messages = messages(given, source.max_chars)
            view.replies = replies_of(gave, source.max_chars)
            view.model = model_of(gave)
            view.input_tokens, view.output_tokens = usage_of(gave)
        elif role in (Role.RETRIEVER, Role.RERANKER):
            view.documents = documents(gave, source.max_chars, loose=True)
        return view
