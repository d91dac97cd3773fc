"""LangSmith's OpenTelemetry export: `langsmith.span.kind`, inputs and outputs as JSON in `gen_ai.prompt` and
`gen_ai.completion`."""

from __future__ import annotations

from collector.extract.documents import documents
from collector.extract.messages import messages
from collector.extract.readers import model_of, replies_of, usage_of
from collector.extract.view import Role, Source, View

_ROLES = {
    "chain": Role.CHAIN,
    "llm": Role.LLM,
    "chat": Role.LLM,
    "retriever": Role.RETRIEVER,
    "tool": Role.TOOL,
    "embedding": Role.EMBEDDING,
    "prompt": Role.PROMPT,
    "parser": Role.OTHER,
    "agent": Role.AGENT,
}


class LangSmith:
    """Spans of langsmith's OTel exporter. Their content is JSON of a run's inputs and outputs."""

    name = "langsmith"
    content_switch = (
        "unset LANGSMITH_HIDE_INPUTS and LANGSMITH_HIDE_OUTPUTS, or Client(hide_inputs=False, hide_outputs=False)"
    )
    hints = ("langsmith.", "gen_ai.")

    def read(self, source: Source) -> View | None:
        if "langsmith" not in source.roots:
            return None
        kind = source.text("langsmith.span.kind")
        if kind is None:
            return None
        role = _ROLES.get(kind.lower(), Role.OTHER)
        view = View(self.name, role, exclusive=True)
        view.input = source.payload("gen_ai.prompt", "input.value", quoted=True)
        view.output = source.payload("gen_ai.completion", "output.value", quoted=True)
        view.input_tokens = source.count("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
        view.output_tokens = source.count("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
        view.request_model = source.text("gen_ai.request.model", "langsmith.metadata.ls_model_name")
        view.model = source.text("gen_ai.response.model")
        if role is Role.LLM:
            if view.input is not None:
                view.messages = messages(view.input.value, source.max_chars)
            if view.output is not None:
                view.replies = replies_of(view.output.value, source.max_chars)
                view.model = model_of(view.output.value) or view.model
                if view.input_tokens is None and view.output_tokens is None:
                    view.input_tokens, view.output_tokens = usage_of(view.output.value)
        elif role is Role.RETRIEVER and view.output is not None:
            view.documents = documents(view.output.value, source.max_chars, loose=True)
        return view
