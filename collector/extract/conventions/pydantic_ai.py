"""pydantic-ai: agent runs with all their messages, tool calls; instrumentation versions 1 to 5."""

from __future__ import annotations

from collector.extract.messages import messages
from collector.extract.view import Role, Source, View


class PydanticAI:
    """What pydantic-ai puts beside the OpenTelemetry GenAI attributes.

    Version 1 writes the messages as JSON in `events`; 2 to 5 as `gen_ai.input.messages`.
    """

    name = "pydantic_ai"
    content_switch = "use InstrumentationSettings(include_content=True)"
    hints = ("pydantic_ai.", "final_result", "all_messages", "tool_response", "model_request_parameters")

    def read(self, source: Source) -> View | None:
        attributes = source.attributes
        if "tool_response" in attributes or "tool_arguments" in attributes:
            view = View(self.name, Role.TOOL)
            view.input = source.payload("tool_arguments")
            view.output = source.payload("tool_response")
            return view
        history = next(
            (k for k in ("pydantic_ai.all_messages", "all_messages_events", "all_messages") if k in attributes),
            None,
        )
        if history is None and "final_result" not in attributes:
            if "model_request_parameters" not in attributes:
                return None
            return self._model(source)
        view = View(self.name, Role.AGENT)
        if history is not None:
            view.input = source.payload(history)
        view.output = source.payload("final_result")
        return view

    def _model(self, source: Source) -> View | None:
        view = View(self.name, Role.LLM)
        if "events" in source.attributes:
            found = messages(source.parsed("events"), source.max_chars)
            if found:
                last = found[-1].role == "assistant"
                view.messages = found[:-1] if last else found
                view.replies = found[-1:] if last else None
        return view
