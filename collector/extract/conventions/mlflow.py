"""MLflow tracing over OTLP: every attribute value is JSON (`mlflow.spanType` = `"RETRIEVER"`, quotes included)."""

from __future__ import annotations

from collector.extract.documents import documents
from collector.extract.messages import messages
from collector.extract.readers import model_of, replies_of, usage_of
from collector.extract.values import as_text
from collector.extract.view import Role, Source, View

_ROLES = {
    "CHAIN": Role.CHAIN,
    "LLM": Role.LLM,
    "CHAT_MODEL": Role.LLM,
    "RETRIEVER": Role.RETRIEVER,
    "RERANKER": Role.RERANKER,
    "EMBEDDING": Role.EMBEDDING,
    "TOOL": Role.TOOL,
    "AGENT": Role.AGENT,
    "WORKFLOW": Role.CHAIN,
    "TASK": Role.CHAIN,
    "PARSER": Role.OTHER,
    "GUARDRAIL": Role.GUARD,
    "EVALUATOR": Role.GUARD,
    "UNKNOWN": Role.CHAIN,
}


class MLflow:
    """Spans of MLflow's tracer and its autologging."""

    name = "mlflow"
    content_switch = (
        "MLflow exports content unless a span processor removes it: look at "
        "mlflow.tracing.configure(span_processors=...)"
    )
    hints = ("mlflow.",)

    def read(self, source: Source) -> View | None:
        if "mlflow" not in source.roots:
            return None
        kind = as_text(source.parsed("mlflow.spanType"))
        given = source.payload("mlflow.spanInputs", "mlflow.span.inputs", quoted=True)
        gave = source.payload("mlflow.spanOutputs", "mlflow.span.outputs", quoted=True)
        if kind is None and given is None and gave is None:
            return None
        role = _ROLES.get((kind or "UNKNOWN").upper(), Role.CHAIN)
        view = View(self.name, role, given, gave)
        if role is Role.LLM:
            view.messages = messages(given.value, source.max_chars) if given is not None else None
            view.replies = replies_of(gave.value, source.max_chars) if gave is not None else None
            view.request_model = as_text(source.parsed("mlflow.llm.model")) or (
                model_of(given.value) if given is not None else None
            )
            view.model = model_of(gave.value) if gave is not None else None
            view.input_tokens, view.output_tokens = usage_of(source.parsed("mlflow.chat.tokenUsage"))
            if view.input_tokens is None and gave is not None:
                view.input_tokens, view.output_tokens = usage_of(gave.value)
        elif role in (Role.RETRIEVER, Role.RERANKER) and gave is not None:
            view.documents = documents(gave.value, source.max_chars, loose=True)
        return view
