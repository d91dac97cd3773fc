"""TruLens' OpenTelemetry spans: `ai.observability.*`."""

from __future__ import annotations

from collector.extract.documents import documents
from collector.extract.view import Payload, Role, Source, View

_ROLES = {
    "record_root": Role.CHAIN,
    "retrieval": Role.RETRIEVER,
    "reranking": Role.RERANKER,
    "generation": Role.LLM,
    "agent": Role.AGENT,
    "tool": Role.TOOL,
    "eval": Role.GUARD,
    "eval_root": Role.GUARD,
    "guardrail": Role.GUARD,
}


class TruLens:
    """Spans of instrumented applications; evaluation spans are none of the application's."""

    name = "trulens"
    content_switch = "give @instrument(attributes={...}) the arguments and the return value of your functions"
    hints = ("ai.observability.",)

    def read(self, source: Source) -> View | None:
        kind = source.text("ai.observability.span_type") if "ai" in source.roots else None
        if kind is None:
            return None
        role = _ROLES.get(kind.lower(), Role.CHAIN)
        view = View(self.name, role)
        view.input = source.payload(
            "ai.observability.record_root.input", "ai.observability.graph_node.input_state"
        )
        view.output = source.payload(
            "ai.observability.record_root.output",
            "ai.observability.call.return",
            "ai.observability.graph_node.output_state",
        )
        if role in (Role.RETRIEVER, Role.RERANKER):
            view.query = source.text(
                "ai.observability.retrieval.query_text", "ai.observability.reranking.query_text"
            )
            for key in (
                "ai.observability.retrieval.retrieved_contexts",
                "ai.observability.reranking.output_context_texts",
            ):
                if key in source.attributes:
                    raw = Payload(source.attributes[key], source.max_chars, quoted=True)
                    view.documents = documents(raw.value, source.max_chars, loose=True)
        return view
