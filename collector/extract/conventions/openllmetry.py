"""OpenLLMetry: `traceloop.*` on workflows and tasks, and the flattened `gen_ai.prompt.N.*` of its older versions."""

from __future__ import annotations

from collector.extract.conventions.flattened import flat_messages
from collector.extract.documents import documents
from collector.extract.messages import Message, messages
from collector.extract.values import as_text
from collector.extract.view import Payload, Role, Source, View

_ROLES = {"workflow": Role.CHAIN, "task": Role.CHAIN, "agent": Role.AGENT, "tool": Role.TOOL}
_RETRIEVES = ("vector_db_retrieve", "retrieve", "retrieval")
_REQUESTS = {"chat": Role.LLM, "completion": Role.LLM, "embedding": Role.EMBEDDING, "rerank": Role.RERANKER}


class OpenLLMetry:
    """Spans of the opentelemetry-instrumentation packages of Traceloop and of its decorators."""

    name = "openllmetry"
    content_switch = "set TRACELOOP_TRACE_CONTENT=true"
    hints = ("traceloop.", "llm.request.type", "llm.usage.", "gen_ai.")

    def read(self, source: Source) -> View | None:
        attributes = source.attributes
        kind = source.text("traceloop.span.kind")
        request = source.text("llm.request.type")
        flat = "gen_ai.prompt.0.content" in attributes or "gen_ai.prompt.0.role" in attributes
        own = ("gen_ai.completion.0.content", "traceloop.entity.output", "traceloop.entity.input")
        if kind is None and request is None and not flat and not any(key in attributes for key in own):
            return None
        view = View(self.name)
        if kind is not None:
            view.role = _ROLES.get(kind.lower(), Role.CHAIN)
        elif request is not None:
            view.role = _REQUESTS.get(request.lower())
        operation = source.text("gen_ai.operation.name") or ""
        if operation in _RETRIEVES:
            view.role = Role.RETRIEVER
        elif operation in ("chat", "text_completion", "generate_content") or (
            view.role is Role.CHAIN and kind == "task" and self._is_model(source)
        ):
            view.role = Role.LLM
        view.input = source.payload("traceloop.entity.input", "gen_ai.task.input", quoted=True)
        view.output = source.payload("traceloop.entity.output", "gen_ai.task.output", quoted=True)
        if view.input is not None and view.output is not None and _is_empty(view.input):
            given = view.output.value
            inner = given.get("kwargs") if isinstance(given, dict) else None
            if isinstance(inner, dict) and isinstance(inner.get("inputs"), dict):
                begun = view.input.value if isinstance(view.input.value, dict) else {}
                view.input = Payload({**begun, "inputs": inner["inputs"]}, source.max_chars)
        if kind == "task" and view.role is Role.CHAIN and view.output is not None and _gives_nodes(view.output):
            given = view.input.value if view.input is not None else None
            view.role = Role.RERANKER if isinstance(given, dict) and "nodes" in given else Role.RETRIEVER
        if view.role in (Role.RETRIEVER, Role.RERANKER) and view.output is not None:
            view.documents = documents(view.output.value, source.max_chars, loose=True)
        if view.role in (Role.LLM, None) or flat:
            self._model(source, view)
        return view

    def _is_model(self, source: Source) -> bool:
        """Whether a task is a model call: it says which model answered or how many tokens it took."""
        return any(
            key in source.attributes
            for key in ("gen_ai.response.model", "gen_ai.usage.output_tokens", "gen_ai.output.messages")
        )

    def _model(self, source: Source, view: View) -> None:
        view.messages = flat_messages(source.attributes, "gen_ai.prompt.", "")
        view.replies = flat_messages(source.attributes, "gen_ai.completion.", "")
        if view.replies is not None:
            view.replies = tuple(Message("assistant", m.parts, m.results, m.calls, m.hidden) for m in view.replies)
        view.input_tokens = source.count("gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens")
        view.output_tokens = source.count("gen_ai.usage.completion_tokens", "llm.usage.completion_tokens")
        view.streaming = source.attributes.get("llm.is_streaming") in (True, "true", "True")
        if view.messages is None and "gen_ai.input.messages" not in source.attributes and view.input is not None:
            view.messages = messages(view.input.value, source.max_chars)
        if as_text(source.attributes.get("gen_ai.request.model")) is None:
            view.request_model = source.text("llm.request.model")


def _is_empty(given: Payload) -> bool:
    """Whether a run was told of before its input had come, as where inputs are streamed; its end tells it then."""
    raw = given.raw
    return isinstance(raw, str) and raw.startswith('{"inputs": {"input": ""}')


def _gives_nodes(output: Payload) -> bool:
    """Whether a task gives out a list of nodes with scores, as retrievers and rerankers of LlamaIndex do."""
    raw = output.raw
    return isinstance(raw, str) and raw[:1] == "[" and '"node' in raw[:40].replace("\\", "") and "id_" in raw[:200]
