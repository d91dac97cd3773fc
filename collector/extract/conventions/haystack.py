"""Haystack's own tracing: `haystack.component.run`, `haystack.pipeline.run`, `haystack.agent.run`."""

from __future__ import annotations

import re

from collector.extract.documents import documents
from collector.extract.messages import messages
from collector.extract.readers import model_of, replies_of, usage_of
from collector.extract.view import Role, Source, View

_KINDS = (
    (re.compile(r"Retriever|WebSearch$|DocumentSearch"), Role.RETRIEVER),
    (re.compile(r"Ranker|Reranker"), Role.RERANKER),
    (re.compile(r"Generator$|ChatModel$|LLM$"), Role.LLM),
    (re.compile(r"Embedder$"), Role.EMBEDDING),
    (re.compile(r"PromptBuilder$"), Role.PROMPT),
    (re.compile(r"ToolInvoker$|Tool$"), Role.TOOL),
    (re.compile(r"Agent$|SuperComponent$|Pipeline$"), Role.AGENT),
)


class Haystack:
    """Spans of a Haystack pipeline; the type of the component tells its role."""

    name = "haystack"
    content_switch = "set HAYSTACK_CONTENT_TRACING_ENABLED=true"
    hints = ("haystack.",)

    def read(self, source: Source) -> View | None:
        if "haystack" not in source.roots:
            return None
        if "haystack.component.type" in source.attributes or "haystack.component.name" in source.attributes:
            return self._component(source)
        if any(key.startswith("haystack.agent.") for key in source.attributes):
            given = source.payload("haystack.agent.input")
            gave = source.payload("haystack.agent.output")
            return View(self.name, Role.AGENT, given, gave)
        if any(key.startswith("haystack.pipeline.") for key in source.attributes):
            given = source.payload("haystack.pipeline.input_data", "haystack.pipeline.inputs")
            gave = source.payload("haystack.pipeline.output_data", "haystack.pipeline.outputs")
            return View(self.name, Role.CHAIN, given, gave)
        return None

    def _component(self, source: Source) -> View:
        kind = source.text("haystack.component.type", "haystack.component.name") or ""
        role = next((role for pattern, role in _KINDS if pattern.search(kind)), Role.OTHER)
        view = View(
            self.name,
            role,
            source.payload("haystack.component.input"),
            source.payload("haystack.component.output"),
        )
        given = view.input.value if view.input is not None else None
        gave = view.output.value if view.output is not None else None
        view.content_off = view.input is None and view.output is None
        if role is Role.LLM:
            view.messages = messages(given, source.max_chars)
            view.replies = replies_of(gave, source.max_chars)
            view.model = model_of(gave)
            view.input_tokens, view.output_tokens = usage_of(gave)
        elif role in (Role.RETRIEVER, Role.RERANKER):
            view.documents = documents(gave, source.max_chars, loose=True)
        elif role is Role.PROMPT and isinstance(given, dict):
            view.variables = {key: value for key, value in given.items() if isinstance(value, str)}
        return view
