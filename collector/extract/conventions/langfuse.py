"""Langfuse: `langfuse.observation.*` (SDK 3 and later), and the older key of the observation's input and output."""

from __future__ import annotations

from collector.extract.documents import documents
from collector.extract.messages import Message, messages
from collector.extract.readers import model_of, replies_of, usage_of
from collector.extract.view import Payload, Role, Source, View

_ROLES = {
    "span": Role.CHAIN,
    "chain": Role.CHAIN,
    "generation": Role.LLM,
    "retriever": Role.RETRIEVER,
    "agent": Role.AGENT,
    "tool": Role.TOOL,
    "embedding": Role.EMBEDDING,
    "evaluator": Role.GUARD,
    "guardrail": Role.GUARD,
    "event": Role.OTHER,
}


class Langfuse:
    """Observations of the Langfuse SDKs and of its integrations."""

    name = "langfuse"
    content_switch = (
        "set LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=true, call "
        "@observe(capture_input=True, capture_output=True), and look at the `mask` function of "
        "the client"
    )
    hints = ("langfuse.",)

    def read(self, source: Source) -> View | None:
        if "langfuse" not in source.roots:
            return None
        kind = source.text("langfuse.observation.type", "langfuse.type")
        given = source.payload("langfuse.observation.input", quoted=True)
        gave = source.payload("langfuse.observation.output", quoted=True)
        if given is None and gave is None:
            given = source.payload("langfuse.trace.input", quoted=True)
            gave = source.payload("langfuse.trace.output", quoted=True)
        model = source.text("langfuse.observation.model.name", "langfuse.observation.model")
        if kind is None and given is None and gave is None and model is None:
            return None
        role = _ROLES.get(kind.lower(), Role.CHAIN) if kind else (Role.LLM if model else Role.CHAIN)
        view = View(self.name, role, given, gave, request_model=model)
        view.content_off = any(p is not None and p.hidden for p in (given, gave))
        if role is Role.LLM:
            self._generation(source, view)
        elif role is Role.RETRIEVER and gave is not None:
            view.documents = documents(gave.value, source.max_chars, loose=True)
        return view

    def _generation(self, source: Source, view: View) -> None:
        if view.input is not None:
            view.messages = messages(view.input.value, source.max_chars) or _plain(view.input)
        if view.output is not None:
            view.replies = replies_of(view.output.value, source.max_chars)
            view.model = model_of(view.output.value)
        usage = source.parsed("langfuse.observation.usage_details") or source.parsed("langfuse.observation.usage")
        view.input_tokens, view.output_tokens = usage_of(usage)


def _plain(payload: Payload) -> tuple[Message, ...] | None:
    return (Message("user", (payload.value,)),) if isinstance(payload.value, str) else None
