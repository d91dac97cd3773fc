"""Logfire's own instrumentation of clients: `request_data`, `response_data`, `events` (older), `gen_ai.*` (newer)."""

from __future__ import annotations

from collector.extract.messages import ASSISTANT, Message, messages
from collector.extract.readers import model_of, replies_of, usage_of
from collector.extract.values import as_text
from collector.extract.view import Role, Source, View


class Logfire:
    """Spans of `logfire.instrument_openai`, `_anthropic` and the like.

    With streaming the answer comes in a second record of its own (`logfire.span_type` = log), below the same parent.
    """

    name = "logfire"
    content_switch = (
        "use InstrumentationSettings(include_content=True) for pydantic-ai; for scrubbed values "
        "give logfire.configure(scrubbing=logfire.ScrubbingOptions(callback=...)) or "
        "scrubbing=False"
    )
    hints = ("request_data", "response_data")

    def read(self, source: Source) -> View | None:
        if "request_data" not in source.attributes:
            return None
        request = source.parsed("request_data")
        if not isinstance(request, dict):
            return None
        view = View(self.name, Role.LLM)
        view.request_model = as_text(request.get("model"))
        view.streaming = bool(request.get("stream")) or source.attributes.get("logfire.span_type") == "log"
        view.messages = messages(request, source.max_chars)
        if isinstance(request.get("input"), str) and view.messages is None:
            if "embedding" in (view.request_model or "") or "encoding_format" in request:
                view.role = Role.EMBEDDING
            view.messages = (Message("user", (request["input"],)),)
        events = source.parsed("events")
        if isinstance(events, list):
            found = messages(events, source.max_chars)
            if found:
                last = found[-1].role == ASSISTANT
                view.messages = found[:-1] if last else found
                view.replies = found[-1:] if last else None
        response = source.parsed("response_data")
        if isinstance(response, dict):
            text = as_text(response.get("combined_chunk_content"))
            view.replies = (Message(ASSISTANT, (text,)),) if text else replies_of(response, source.max_chars)
            view.input_tokens, view.output_tokens = usage_of(response)
            view.model = model_of(response)
        return view
