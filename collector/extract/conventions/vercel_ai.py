"""Vercel AI SDK: `ai.operationId`, `ai.prompt`, `ai.response.*`, `ai.toolCall.*`; the keys of versions 3 and 4 too."""

from __future__ import annotations

from collector.extract.documents import documents
from collector.extract.messages import ASSISTANT, USER, Message, messages
from collector.extract.values import Json, as_text
from collector.extract.view import Role, Source, View


class VercelAI:
    """Spans of the `ai` package. An outer span (`ai.generateText`) holds one or more model calls (`.doGenerate`)."""

    name = "vercel_ai"
    content_switch = "pass experimental_telemetry: { isEnabled: true, recordInputs: true, recordOutputs: true }"
    hints = (
        "ai.operationId",
        "ai.prompt",
        "ai.response.",
        "ai.result.",
        "ai.toolCall",
        "ai.telemetry.",
        "ai.model.",
    )

    def read(self, source: Source) -> View | None:
        if "ai" not in source.roots:
            return None
        operation = source.text("ai.operationId") or ""
        if not operation:
            name = source.span.name
            operation = name.split(" ", 1)[0] if name.startswith("ai.") else ""
        if not operation.startswith("ai."):
            return None
        if operation.startswith("ai.toolCall"):
            view = View(self.name, Role.TOOL)
            view.input = source.payload("ai.toolCall.args", "ai.toolCall.input", quoted=True)
            view.output = source.payload("ai.toolCall.result", "ai.toolCall.output", quoted=True)
            return view
        if operation.startswith("ai.embed"):
            return View(self.name, Role.EMBEDDING)
        if operation.startswith("ai.rerank"):
            view = View(self.name, Role.RERANKER)
            view.documents = documents(source.parsed("ai.ranking"), source.max_chars, loose=False)
            return view
        inner = ".do" in operation
        view = View(self.name, Role.LLM if inner else Role.CHAIN)
        view.input = source.payload("ai.prompt", "ai.prompt.messages", quoted=True)
        view.output = source.payload(
            "ai.response.text", "ai.result.text", "ai.response.object", "ai.result.object"
        )
        view.model = source.text("ai.response.model")
        view.request_model = source.text("ai.model.id")
        view.response_id = source.text("ai.response.id")
        view.streaming = "stream" in operation
        if not inner:
            return view
        given = source.parsed("ai.prompt.messages")
        view.messages = messages(given if given is not None else self._prompt(source), source.max_chars)
        text = view.output.raw if view.output is not None else None
        calls = source.attributes.get("ai.response.toolCalls") or source.attributes.get("ai.result.toolCalls")
        words = as_text(text)
        if words is not None or calls:
            view.replies = (Message(ASSISTANT, (words,) if words else (), calls=bool(calls)),)
        view.input_tokens = source.count(
            "ai.usage.inputTokens", "ai.usage.promptTokens", "gen_ai.usage.input_tokens"
        )
        view.output_tokens = source.count(
            "ai.usage.outputTokens", "ai.usage.completionTokens", "gen_ai.usage.output_tokens"
        )
        return view

    def _prompt(self, source: Source) -> Json:
        value = source.parsed("ai.prompt")
        if isinstance(value, dict) and isinstance(value.get("prompt"), str):
            return [{"role": USER, "content": value["prompt"]}]
        return value
