"""Google's Agent Development Kit: `gcp.vertex.agent.*`, model requests and responses as JSON."""

from __future__ import annotations

from collector.extract.messages import messages
from collector.extract.readers import model_of, replies_of, usage_of
from collector.extract.view import Role, Source, View


class GoogleADK:
    """Spans of the kit: `call_llm`, `execute_tool X`; its agents' spans hold no content."""

    name = "google_adk"
    content_switch = (
        "set ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true and OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"
    )
    hints = ("gcp.vertex.agent.",)

    def read(self, source: Source) -> View | None:
        if "gcp" not in source.roots:
            return None
        tool = any(
            key in source.attributes
            for key in ("gcp.vertex.agent.tool_response", "gcp.vertex.agent.tool_call_args")
        )
        if "gcp.vertex.agent.llm_request" in source.attributes and not tool:
            view = View(self.name, Role.LLM)
            request = source.parsed("gcp.vertex.agent.llm_request")
            view.messages = messages(request, source.max_chars)
            view.request_model = model_of(request)
            response = source.parsed("gcp.vertex.agent.llm_response")
            if isinstance(response, dict):
                view.replies = replies_of(response.get("content") or response, source.max_chars)
                view.input_tokens, view.output_tokens = usage_of(response)
                view.model = model_of(response)
            return view
        if tool:
            view = View(self.name, Role.TOOL)
            view.input = source.payload("gcp.vertex.agent.tool_call_args")
            view.output = source.payload("gcp.vertex.agent.tool_response")
            return view
        return None
