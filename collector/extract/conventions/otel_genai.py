"""OpenTelemetry GenAI: attributes, structured log events, and the older per-message log and span events."""

from __future__ import annotations

from collections.abc import Iterable

from collector.extract.documents import Document, documents
from collector.extract.messages import ASSISTANT, SYSTEM, TOOL, USER, Message, content_text, message, messages
from collector.extract.values import Json, as_text
from collector.extract.view import Payload, Role, Source, View
from collector.otlp.model import Attributes, Status, Value

_ROLES = {
    "chat": Role.LLM,
    "text_completion": Role.LLM,
    "generate_content": Role.LLM,
    "completion": Role.LLM,
    "responses": Role.LLM,
    "embeddings": Role.EMBEDDING,
    "retrieval": Role.RETRIEVER,
    "retrieve": Role.RETRIEVER,
    "vector_db_retrieve": Role.RETRIEVER,
    "rerank": Role.RERANKER,
    "execute_tool": Role.TOOL,
    "invoke_agent": Role.AGENT,
    "create_agent": Role.OTHER,
    "invoke_workflow": Role.CHAIN,
    "execute_task": Role.CHAIN,
    "framework": Role.CHAIN,
    "execute_event_loop_cycle": Role.CHAIN,
    "chain": Role.CHAIN,
}
_MESSAGE_EVENTS = {
    "gen_ai.system.message": SYSTEM,
    "gen_ai.user.message": USER,
    "gen_ai.assistant.message": ASSISTANT,
    "gen_ai.tool.message": TOOL,
}
_DETAILS = "gen_ai.client.inference.operation.details"
_VARIABLE = "gen_ai.prompt.variable."


class OTelGenAI:
    """The semantic conventions for generative AI, from 1.27 to the latest experimental ones."""

    name = "otel_genai"
    content_switch = (
        "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true (newer packages: "
        "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and the value SPAN_ONLY or "
        "SPAN_AND_EVENT); with content in log events send the logs to groundwatch too"
    )
    hints = ("gen_ai.",)

    def read(self, source: Source) -> View | None:
        if "gen_ai" not in source.roots and not self._logged(source):
            return None
        attributes = source.attributes
        operation = source.text("gen_ai.operation.name")
        view = View(self.name, _role_of(operation.lower()) if operation else self._role(source))
        self._content(attributes, view, source.max_chars)
        for event in source.span.events:
            if event.name in (_DETAILS, "gen_ai.operation.details"):
                self._content(event.attributes, view, source.max_chars)
        for record in source.logs:
            self._content(record.attributes, view, source.max_chars)
            if isinstance(record.body, dict):
                self._content(record.body, view, source.max_chars)
        if view.messages is None and view.replies is None:
            self._events(source, view)
        if view.role is Role.RETRIEVER or "gen_ai.retrieval.documents" in attributes or view.role is None:
            self._retrieval(source, view)
        elif view.role is Role.TOOL:
            view.input = source.payload("gen_ai.tool.call.arguments")
            view.output = source.payload(
                "gen_ai.tool.call.result", "gen_ai.tool.call.output", "gen_ai.tool.output"
            )
            if view.output is None and view.replies:
                view.output = Payload(view.replies[-1].text, source.max_chars)
        variables = {
            key.removeprefix(_VARIABLE): text
            for key, value in attributes.items()
            if key.startswith(_VARIABLE) and (text := as_text(value)) is not None
        }
        view.variables = variables
        view.model = source.text("gen_ai.response.model") or view.model
        view.request_model = source.text("gen_ai.request.model")
        view.response_id = source.text("gen_ai.response.id")
        view.input_tokens = source.count("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
        view.output_tokens = source.count("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
        hidden = [m.hidden for m in (*(view.messages or ()), *(view.replies or ()))]
        view.content_off = bool(hidden) and any(hidden) and not any(m.parts for m in view.messages or ())
        return view

    def _logged(self, source: Source) -> bool:
        return any(record.event_name.startswith("gen_ai.") for record in source.logs)

    def _role(self, source: Source) -> Role | None:
        """The role of a span that does not say its operation."""
        attributes = source.attributes
        if "gen_ai.retrieval.documents" in attributes or "gen_ai.retrieval.query.text" in attributes:
            return Role.RETRIEVER
        if "gen_ai.tool.name" in attributes or "gen_ai.tool.call.id" in attributes:
            return Role.TOOL
        if "gen_ai.request.model" in attributes and (
            "gen_ai.usage.output_tokens" in attributes
            or "gen_ai.usage.completion_tokens" in attributes
            or "gen_ai.response.finish_reasons" in attributes
            or any(event.name in ("gen_ai.choice", "gen_ai.content.completion") for event in source.span.events)
            or self._logged(source)
        ):
            return Role.LLM
        if "gen_ai.output.messages" in attributes:
            return Role.LLM
        if (
            "gen_ai.request.model" in attributes
            and source.span.status is Status.ERROR
            and "embed" not in source.span.name
        ):
            return Role.LLM
        return None

    def _content(self, attributes: Attributes, view: View, max_chars: int) -> None:
        """The attributes of content, on a span (JSON) or on a log record (structured)."""
        if view.messages is None and "gen_ai.input.messages" in attributes:
            view.messages = messages(attributes["gen_ai.input.messages"], max_chars)
            system = attributes.get("gen_ai.system_instructions")
            if view.messages is not None and (text := _system(system, max_chars)):
                view.messages = (Message(SYSTEM, (text,)), *view.messages)
        if view.replies is None and "gen_ai.output.messages" in attributes:
            found = messages(attributes["gen_ai.output.messages"], max_chars)
            if found is None and (text := as_text(attributes["gen_ai.output.messages"])):
                found = (Message(ASSISTANT, (text,)),)
            view.replies = found
        if view.model is None:
            view.model = as_text(attributes.get("gen_ai.response.model"))

    def _events(self, source: Source, view: View) -> None:
        """The older forms: one log record or span event per message."""
        asked: list[Message] = []
        replied: list[tuple[str, bool, Message]] = []
        records: Iterable[tuple[str, Json]] = (
            *((record.event_name, _body(record.body, record.attributes)) for record in source.logs),
            *((event.name, _event_body(event.attributes)) for event in source.span.events),
        )
        for name, body in records:
            if name in _MESSAGE_EVENTS:
                role = _MESSAGE_EVENTS[name]
                one = message(body, role) if isinstance(body, dict) else message([role, body])
                asked.append(one if one is not None else Message(role, hidden=True))
            elif name == "gen_ai.choice":
                one = _choice(body, source.max_chars)
                if one is not None and isinstance(body, dict):
                    index = str(body.get("index", len(replied)))
                    replied.append((index, body.get("finish_reason") is not None, one))
        if asked:
            view.messages = tuple(asked)
        if replied:
            view.replies = _choices(replied)

    def _retrieval(self, source: Source, view: View) -> None:
        view.query = source.text("gen_ai.retrieval.query.text", "gen_ai.retrieval.query")
        raw: Value = source.attributes.get("gen_ai.retrieval.documents")
        if raw is None:
            for event in source.span.events:
                raw = event.attributes.get("gen_ai.retrieval.documents", raw)
            for record in source.logs:
                raw = record.attributes.get("gen_ai.retrieval.documents", raw)
        if raw is not None:
            view.documents = documents(raw, source.max_chars, loose=True)
            view.role = view.role or Role.RETRIEVER
            if view.documents is None:
                view.documents = _many(raw, source.max_chars)


def _choices(told: list[tuple[str, bool, Message]]) -> tuple[Message, ...]:
    """The choices that were told, or the one of which each piece of a stream was told as a choice.

    Pieces repeat the index, or only the last of them says why it ended.
    """
    found = tuple(one for _, _, one in told)
    again = len({index for index, _, _ in told}) < len(told)
    if len(told) < 2 or not (again or (told[-1][1] and not any(ended for _, ended, _ in told[:-1]))):
        return found
    text = "".join(one.text for one in found)
    results = tuple(result for one in found for result in one.results)
    return (Message(found[0].role, (text,) if text else (), results, any(one.calls for one in found)),)


def _many(raw: Value, max_chars: int) -> tuple[Document, ...] | None:
    """Documents of a list whose items are each a JSON string, or whose values are bare ids."""
    if isinstance(raw, list):
        return documents(raw, max_chars, loose=True)
    return None


def _system(value: Json, max_chars: int) -> str | None:
    if value is None:
        return None
    payload = Payload(value, max_chars, quoted=True).value
    return content_text(payload)


def _body(body: Json, attributes: Attributes) -> Json:
    if isinstance(body, dict):
        return body
    text = as_text(body)
    if text is not None:
        inner = Payload(text, 4_194_304).value
        return inner if isinstance(inner, dict) else {"content": text}
    return dict(attributes)


def _event_body(attributes: Attributes) -> Json:
    """The body of a span event: its attributes, or the JSON that they hold as one."""
    for key in ("gen_ai.event.content", "event_body", "gen_ai.event.body"):
        raw = attributes.get(key)
        if isinstance(raw, str):
            inner = Payload(raw, 4_194_304).value
            return inner if isinstance(inner, dict) else {"content": raw}
    return dict(attributes)


def _role_of(operation: str) -> Role | None:
    """The role of an operation, also of names that libraries made up before there were fixed ones."""
    known = _ROLES.get(operation)
    if known is not None:
        return known
    if operation.startswith(("chat", "text_completion", "text.completion", "generate", "messages.")):
        return Role.LLM
    if operation.startswith("embed"):
        return Role.EMBEDDING
    return None


def _choice(body: Json, max_chars: int) -> Message | None:
    if not isinstance(body, dict):
        return None
    inner = body.get("message")
    if isinstance(inner, str):
        value = Payload(inner, max_chars).value
        text = content_text(value)
        if isinstance(value, list | dict):
            one = message({"role": ASSISTANT, "content": value} if isinstance(value, list) else value, ASSISTANT)
            return one if one is not None else (Message(ASSISTANT, (text,)) if text else None)
        return Message(ASSISTANT, (text,)) if text else None
    if isinstance(inner, dict):
        return message(inner, ASSISTANT)
    flat = {key.removeprefix("message."): value for key, value in body.items()}
    return message(flat, ASSISTANT)
