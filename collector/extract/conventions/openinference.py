"""OpenInference: `openinference.span.kind`, `input.value`, `llm.*`, `retrieval.documents.N.document.*`."""

from __future__ import annotations

from dataclasses import replace

from collector.extract.conventions.flattened import flat_messages, flattened
from collector.extract.documents import Document, complete, documents, metadata_of, with_text
from collector.extract.messages import TOOL, Message, messages
from collector.extract.readers import model_of, replies_of, usage_of
from collector.extract.values import Json, as_number, as_scalar_text, as_text
from collector.extract.view import Payload, Role, Source, View

_ROLES = {
    "CHAIN": Role.CHAIN,
    "LLM": Role.LLM,
    "RETRIEVER": Role.RETRIEVER,
    "RERANKER": Role.RERANKER,
    "EMBEDDING": Role.EMBEDDING,
    "TOOL": Role.TOOL,
    "AGENT": Role.AGENT,
    "PROMPT": Role.PROMPT,
    "GUARDRAIL": Role.GUARD,
    "EVALUATOR": Role.GUARD,
}
_LISTS = {
    Role.RETRIEVER: ("retrieval.documents.",),
    Role.RERANKER: ("reranker.output_documents.", "retrieval.documents."),
}


class OpenInference:
    """Spans of the openinference-instrumentation packages, and of applications that use its attributes."""

    name = "openinference"
    content_switch = (
        "unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS, "
        "OPENINFERENCE_HIDE_INPUT_MESSAGES, OPENINFERENCE_HIDE_OUTPUT_MESSAGES (and the *_TEXT "
        "ones), or TraceConfig(hide_inputs=False, hide_outputs=False)"
    )
    hints = ("openinference.", "input.value", "output.value", "llm.", "retrieval.", "reranker.")

    def read(self, source: Source) -> View | None:
        kind = source.attributes.get("openinference.span.kind")
        roots = source.roots
        if kind is None and not ("llm" in roots and "llm.input_messages.0.message.role" in source.attributes):
            if "retrieval.documents.0.document.content" not in source.attributes:
                return None
            kind = "RETRIEVER"
        role = _ROLES.get(kind.upper(), Role.OTHER) if isinstance(kind, str) else Role.LLM
        view = View(self.name, role)
        view.input = source.payload("input.value", quoted=_is_json(source, "input.mime_type"))
        view.output = source.payload("output.value", quoted=_is_json(source, "output.mime_type"))
        view.content_off = _hidden(view.input) or _hidden(view.output)
        if role is Role.LLM:
            self._llm(source, view)
        elif role in _LISTS:
            self._retriever(source, view, role)
        elif role is Role.PROMPT or "llm.prompt_template.variables" in source.attributes:
            view.variables = variables(source.parsed("llm.prompt_template.variables"))
        return view

    def _llm(self, source: Source, view: View) -> None:
        attributes = source.attributes
        view.messages = flat_messages(attributes, "llm.input_messages.", "message.")
        view.replies = flat_messages(attributes, "llm.output_messages.", "message.")
        if view.messages is None and view.input is not None and not view.input.hidden:
            prompts = [
                p for item in flattened(attributes, "llm.prompts.") if (p := as_text(item.get("prompt.text")))
            ]
            view.messages = (
                messages([("user", text) for text in prompts], source.max_chars)
                if prompts
                else messages(view.input.value, source.max_chars)
            )
        elif view.messages is not None and view.input is not None:
            view.messages = _with_results(view.messages, view.input, source.max_chars)
        if view.replies is None and view.output is not None and not view.output.hidden:
            choices = [
                c for item in flattened(attributes, "llm.choices.") if (c := as_text(item.get("completion.text")))
            ]
            view.replies = replies_of(choices[0] if choices else view.output.value, source.max_chars)
        view.variables = variables(source.parsed("llm.prompt_template.variables"))
        view.request_model = source.text("llm.model_name")
        view.input_tokens = source.count("llm.token_count.prompt")
        view.output_tokens = source.count("llm.token_count.completion")
        if view.output is not None and not view.output.hidden:
            view.messages = _own_calls(view, source.max_chars) or view.messages
            served = model_of(view.output.value)
            view.model = served
            if view.input_tokens is None and view.output_tokens is None:
                view.input_tokens, view.output_tokens = usage_of(view.output.value)
        if view.request_model is None:
            view.request_model = model_of(source.parsed("llm.invocation_parameters"))
        view.content_off |= any(m.text == "__REDACTED__" for m in view.messages or ())

    def _retriever(self, source: Source, view: View, role: Role) -> None:
        found: tuple[Document, ...] | None = None
        for prefix in _LISTS[role]:
            items = flattened(source.attributes, prefix)
            if items:
                found = tuple(_document(item, source.max_chars) for item in items)
                break
        whole = None
        if view.output is not None and not view.output.hidden and not view.output.broken:
            whole = documents(view.output.value, source.max_chars, loose=role is Role.RETRIEVER)
        if found is None:
            view.documents = whole
        else:
            view.documents = _joined(found, whole)
        view.query = source.text("reranker.query") if role is Role.RERANKER else None
        if role is Role.RETRIEVER and found and whole is None and self._answers(view, found):
            view.role = Role.CHAIN

    def _answers(self, view: View, found: tuple[Document, ...]) -> bool:
        """Whether a retriever's output is an answer: a text of its own, as where one service does both."""
        raw = view.output.value if view.output is not None and not view.output.hidden else None
        if not isinstance(raw, str) or not as_text(raw):
            return False
        return not any(d.text and (d.text[:40] in raw or raw[:40] in d.text) for d in found)


def _own_calls(view: View, max_chars: int) -> tuple[Message, ...] | None:
    """The whole conversation where the client library called tools on its own, and tells of it in its response."""
    raw = view.output.raw if view.output is not None else None
    if not isinstance(raw, str) or "automatic_function_calling_history" not in raw or view.output is None:
        return None
    value = view.output.value
    told = (
        messages(value.get("automatic_function_calling_history"), max_chars) if isinstance(value, dict) else None
    )
    system = tuple(m for m in view.messages or () if m.role == "system")
    return (*system, *told) if told else None


def _with_results(found: tuple[Message, ...], given: Payload, max_chars: int) -> tuple[Message, ...]:
    """The flattened messages, with results of tools that only the input's JSON has."""
    if not any(m.role == TOOL and m.hidden for m in found) or given.hidden:
        return found
    fuller = messages(given.value, max_chars)
    if fuller is None or len(fuller) != len(found):
        return found
    return tuple(f if m.hidden else m for m, f in zip(found, fuller, strict=True))


def _joined(found: tuple[Document, ...], whole: tuple[Document, ...] | None) -> tuple[Document, ...]:
    """The flattened documents, with the id that only the JSON of the output has; and those that were dropped."""
    if not whole:
        return found
    if len(whole) > len(found) and all(document.text for document in whole):
        return whole  # an attribute limit dropped some of the flattened ones
    if len(whole) != len(found):
        return found
    result = []
    for flat, rich in zip(found, whole, strict=True):
        same = flat.text is None or rich.text is None or flat.text.strip() == rich.text.strip()
        if not same:
            return found
        result.append(
            replace(
                flat,
                text=flat.text if flat.text is not None else rich.text,
                id=flat.id if flat.id is not None else rich.id,
                score=flat.score if flat.score is not None else rich.score,
                distance=flat.distance if flat.distance is not None else rich.distance,
                metadata=flat.metadata or rich.metadata,
            )
        )
    return tuple(result)


def _document(item: dict[str, Json], max_chars: int) -> Document:
    return complete(
        with_text(
            item.get("document.content"),
            id=as_scalar_text(item.get("document.id")),
            score=as_number(item.get("document.score")),
            metadata=metadata_of(item.get("document.metadata"), max_chars),
        )
    )


def variables(value: Json) -> dict[str, str]:
    """Variables of a prompt template that are texts."""
    if not isinstance(value, dict):
        return {}
    return {str(key): text for key, item in list(value.items())[:64] if (text := as_text(item)) is not None}


def _is_json(source: Source, key: str) -> bool:
    kind = source.attributes.get(key)
    return isinstance(kind, str) and "json" in kind


def _hidden(payload: object) -> bool:
    return bool(getattr(payload, "hidden", False))
