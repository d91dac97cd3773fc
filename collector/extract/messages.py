"""Chat messages in the many shapes in which libraries write them down."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from collector.extract.values import Json, as_text, loads, looks_encoded, unwrap

USER, ASSISTANT, SYSTEM, TOOL = "user", "assistant", "system", "tool"

_ROLES = {
    "user": USER,
    "human": USER,
    "humanmessage": USER,
    "humanmessagechunk": USER,
    "chatrole.user": USER,
    "messagerole.user": USER,
    "assistant": ASSISTANT,
    "ai": ASSISTANT,
    "aimessage": ASSISTANT,
    "aimessagechunk": ASSISTANT,
    "model": ASSISTANT,
    "bot": ASSISTANT,
    "chatbot": ASSISTANT,
    "chatrole.assistant": ASSISTANT,
    "messagerole.assistant": ASSISTANT,
    "system": SYSTEM,
    "systemmessage": SYSTEM,
    "developer": SYSTEM,
    "chatrole.system": SYSTEM,
    "messagerole.system": SYSTEM,
    "tool": TOOL,
    "tool-response": TOOL,
    "tool_response": TOOL,
    "tool-call": ASSISTANT,
    "tool_call": ASSISTANT,
    "toolmessage": TOOL,
    "function": TOOL,
    "functionmessage": TOOL,
    "chatrole.tool": TOOL,
    "messagerole.tool": TOOL,
    "environment": TOOL,
}
_TEXT_PARTS = {"text", "input_text", "output_text", "textcontent", "markdown", "message_content.text", "refusal"}
_CALL_PARTS = {
    "tool_call",
    "tool-call",
    "tool_use",
    "tooluse",
    "function_call",
    "functioncall",
    "server_tool_use",
    "server_tool_call",
    "builtin-tool-call",
    "file_search_call",
    "web_search_call",
    "custom_tool_call",
    "mcp_call",
}
_RESULT_PARTS = {
    "tool_call_response",
    "tool_call_result",
    "tool-result",
    "tool_result",
    "toolresult",
    "tool-return",
    "function_call_output",
    "functionresponse",
    "server_tool_call_response",
    "builtin-tool-return",
    "retry-prompt",
    "custom_tool_call_output",
}
_SILENT_PARTS = {
    *("reasoning", "thinking", "redacted_thinking", "reasoning_content"),
    *("image", "image_url", "input_image", "audio", "input_audio", "video", "blob", "binary", "input_file"),
}
_RESULT_KEYS = ("response", "result", "output", "content", "value", "text")
_LISTS = ("messages", "input", "contents", "prompt", "kwargs", "data", "inputs", "chat_history", "new_messages")
MAX_MESSAGES = 2_000


@dataclass(frozen=True, slots=True)
class Message:
    """One message: `role` is user, assistant, system, tool, or as emitted where it is none of these.

    `parts` are its pieces of text in order, `results` the outcomes of tool calls that it carries, `calls` whether
    it asks for tools. `hidden` is true where the message has pieces but their text was left out.
    """

    role: str
    parts: tuple[str, ...] = ()
    results: tuple[Json, ...] = ()
    calls: bool = False
    hidden: bool = False
    tools: tuple[str, ...] = ()
    """Names of the tools that it asks for or answers for, where it tells them."""

    @property
    def text(self) -> str:
        return self.parts[0] if len(self.parts) == 1 else "\n".join(self.parts)


def role_of(value: Json) -> str | None:
    """A known role's name, or None."""
    return _ROLES.get(value.strip().lower()) if isinstance(value, str) and len(value) < 40 else None


@dataclass(slots=True)
class _Content:
    parts: list[str]
    results: list[Json]
    calls: bool = False
    hidden: bool = False
    tools: list[str] = field(default_factory=list)

    def add(self, value: Json, depth: int = 0) -> None:
        if value is None or depth > 6:
            return
        if isinstance(value, str):
            if text := as_text(value):
                self.parts.append(text)
            return
        if isinstance(value, list):
            for item in value[:MAX_MESSAGES]:
                self.add(item, depth + 1)
            return
        if isinstance(value, dict):
            self._part(value, depth)

    def _part(self, part: dict[str, Json], depth: int) -> None:
        kind = part.get("type") or part.get("part_kind") or part.get("block_type") or part.get("kind") or ""
        kind = kind.lower() if isinstance(kind, str) else ""
        if kind in _SILENT_PARTS:
            return
        if kind in _CALL_PARTS or any(
            part.get(key) for key in ("functionCall", "function_call", "toolUse", "tool_call", "toolRequest")
        ):
            self.calls = True
            self.tools.extend(tool_names(part))
            if "results" in part:  # a search that the provider ran itself gives its hits with the call
                self.results.append(part["results"])
            return
        if kind in _RESULT_PARTS:
            self._result(part)
            return
        for key in (
            "toolResult", "toolResponse", "functionResponse", "function_response", "tool_call_result", "tool_result"
        ):  # fmt: skip
            if isinstance(part.get(key), dict):
                self._result(part[key])
                return
        if "result" in part and "origin" in part:
            self._result(part)
            return
        for key in ("text", "content", "parts", "value", "input_text"):
            if key in part:
                self.add(part[key], depth + 1)
                return
        if kind in _TEXT_PARTS:
            self.hidden = True

    def _result(self, part: dict[str, Json]) -> None:
        self.tools.extend(tool_names(part))
        for key in _RESULT_KEYS:
            if key in part:
                self.results.append(part[key])
                return
        self.hidden = True


def message(value: Json, default_role: str | None = None) -> Message | None:
    """One message, or None where `value` is not shaped like one."""
    if isinstance(value, list):
        if len(value) == 2 and role_of(value[0]) and isinstance(value[1], str | list):
            content = _Content([], [])
            content.add(value[1])
            return Message(role_of(value[0]) or USER, tuple(content.parts))
        return None
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("message"), dict) and not value.get("role"):
        return message(value["message"], default_role or ASSISTANT)
    inner = value.get("kwargs") if "lc" in value or "kwargs" in value else value.get("data")
    if isinstance(inner, dict) and ("content" in inner):
        kind = value.get("type")
        names = value.get("id")
        name = names[-1] if isinstance(names, list) and names else kind
        role = role_of(inner.get("type")) or role_of(name) or role_of(inner.get("role")) or role_of(kind)
        return _build(inner, role or default_role)
    kind = str(value["type"]) if isinstance(value.get("type"), str) else ""
    if kind in _CALL_PARTS and "role" not in value:
        results = (value["results"],) if isinstance(value.get("results"), list) else ()
        return Message(ASSISTANT, results=results, calls=True)
    if kind in _RESULT_PARTS and "role" not in value:
        return _build({"content": [value]}, TOOL)
    role = (
        role_of(value.get("role"))
        or role_of(value.get("_role"))
        or role_of(value.get("author"))
        or role_of(kind)
        or _event_role(value.get("event.name"))
    )
    if role is None and isinstance(value.get("source"), str) and kind.endswith(("Message", "Event")):
        if kind.endswith("Event"):
            return Message(TOOL, results=(value["content"],) if "content" in value else ())
        role = USER if value["source"] == USER else ASSISTANT
    if role is None and value.get("kind") in ("request", "response") and isinstance(value.get("parts"), list):
        return _native(value)
    if role is None and isinstance(value.get("role"), str) and len(value["role"]) < 40:
        role = value["role"]
    if role is None:
        role = default_role
    if role is None or not value.keys() & {
        "content", "parts", "_content", "text", "blocks", "tool_calls", "message", "contents"
    }:  # fmt: skip
        return None
    return _build(value, role)


def _event_role(value: Json) -> str | None:
    if isinstance(value, str) and value.startswith("gen_ai.") and value.endswith(".message"):
        return role_of(value[7:-8])
    return ASSISTANT if value == "gen_ai.choice" else None


def _native(value: dict[str, Json]) -> Message:
    """A request or response whose parts each carry their own role (`user-prompt`, `system-prompt`, `text`)."""
    role = ASSISTANT if value["kind"] == "response" else TOOL
    content = _Content([], [])
    for part in value["parts"]:
        kind = part.get("part_kind", "") if isinstance(part, dict) else ""
        if kind == "user-prompt":
            role = USER
        if kind != "system-prompt":
            content.add(part)
    return Message(role, tuple(content.parts), tuple(content.results), content.calls, content.hidden)


def _build(value: dict[str, Json], role: str | None) -> Message | None:
    if role is None:
        return None
    content = _Content([], [])
    for key in ("parts", "_content", "content", "contents", "blocks", "text", "message"):
        if value.get(key) not in (None, "", []):
            body = value[key]
            if isinstance(body, str) and body[:2] in ("[{", '["') and looks_encoded(body):
                inner = loads(body, 4_194_304)
                if isinstance(inner, list) and all(_is_part(item) for item in inner):
                    body = inner
            content.add(body)
            break
    else:
        content.hidden = "content" not in value and "parts" not in value
    calls = content.calls or bool(value.get("tool_calls") or value.get("toolCalls") or value.get("function_call"))
    extra = value.get("additional_kwargs")
    if isinstance(extra, dict) and extra.get("tool_calls"):
        calls = True
    names = [*content.tools, *(n for call in _calls_of(value) for n in tool_names(call))]
    if role == TOOL:
        names.extend(tool_names(value))
    results = content.results
    if role == USER and results and not content.parts:
        role = TOOL
    if role == TOOL and not results and content.parts:
        results = ["\n".join(content.parts)]
    return Message(
        role, tuple(content.parts), tuple(results), calls, content.hidden and not content.parts, tuple(names)
    )


def _calls_of(value: dict[str, Json]) -> list[Json]:
    calls = value.get("tool_calls") or value.get("toolCalls")
    return calls[:64] if isinstance(calls, list) else []


def tool_names(value: Json) -> list[str]:
    """The name of the tool of a call or a result, in the places where it stands."""
    if not isinstance(value, dict):
        return []
    for key in ("name", "toolName", "tool_name"):
        if isinstance(value.get(key), str):
            return [value[key]]
    for key in (
        "function",
        "functionCall",
        "function_call",
        "toolUse",
        "toolRequest",
        "tool_call",
        "origin",
        "functionResponse",
        "toolResponse",
    ):
        if isinstance(value.get(key), dict):
            return tool_names(value[key])
    return []


def _is_part(item: Json) -> bool:
    return isinstance(item, dict) and bool(
        item.keys() & {"toolUse", "toolResult", "functionCall", "functionResponse"}
        or (isinstance(item.get("text"), str) and len(item) <= 2)
        or item.get("type") in _TEXT_PARTS | _CALL_PARTS | _RESULT_PARTS | _SILENT_PARTS
    )


def messages(value: Json, max_chars: int, depth: int = 0) -> tuple[Message, ...] | None:
    """The messages in a value: a list of them, a list of such a list, or an object that holds one; else None."""
    value = unwrap(value, max_chars)
    if depth > 5:
        return None
    if isinstance(value, dict):
        own = message(value)
        if own is not None and "messages" not in value:
            return (own,)
        found: list[Message] = []
        for key in _LISTS:
            if key in value and isinstance(value[key], list | dict | str):
                inner = messages(value[key], max_chars, depth + 1) if not isinstance(value[key], str) else None
                if inner is None and isinstance(value[key], str) and looks_encoded(value[key]):
                    inner = messages(value[key], max_chars, depth + 1)
                if inner:
                    found.extend(inner)
                    break
        if not found:
            return None
        for key in ("system", "instructions", "system_instruction", "systemInstruction"):
            if text := content_text(value.get(key)):
                found.insert(0, Message(SYSTEM, (text,)))
                break
        return tuple(found)
    if not isinstance(value, list) or not value:
        return None
    if len(value) == 1 and isinstance(value[0], list) and message(value[0]) is None:
        return messages(value[0], max_chars, depth + 1)
    found = []
    for item in value[:MAX_MESSAGES]:
        if isinstance(item, str):
            item = unwrap(item, max_chars)  # noqa: PLW2901  # each message may be a JSON string of its own
        one = message(item)
        if one is None:
            if isinstance(item, dict) and item.get("type") in _SILENT_PARTS | {"item_reference"}:
                continue
            return None
        found.append(one)
    return tuple(found) or None


def content_text(value: Json) -> str | None:
    """The text of a message's content, whichever shape it has; None where there is none."""
    content = _Content([], [])
    content.add(value)
    return "\n".join(content.parts) or None


def last_user(found: Iterable[Message]) -> Message | None:
    """The last message in which the user says something; tool results in a user's message do not count, nor do those
    that agents without native tools write down as an observation."""
    result = None
    answered = False
    for item in found:
        if item.role == USER and item.parts and not (answered and item.text.lstrip().startswith("Observation:")):
            result = item
        answered = answered or (item.role == ASSISTANT and "Action:" in item.text)
    return result


def last_assistant(found: Iterable[Message]) -> Message | None:
    """The last message in which the assistant says something that is not only a call of a tool."""
    result = None
    for item in found:
        if item.role == ASSISTANT and item.parts:
            result = item
    return result


def flat_prompt(text: str) -> tuple[Message, ...] | None:
    """Messages from one flat text with `role: ` at line starts, as some libraries write a prompt; else None.

    A line that starts so inside a message can not be told from a new message, except by role: a new message
    begins only at roles that the conversation's own first line shows to be written like this.
    """
    import re

    marks = list(re.finditer(r"^(system|user|assistant|tool|human|ai|developer):[ \t]?", text, re.MULTILINE))
    if not marks or marks[0].start() != 0:
        return None
    found = []
    for index, mark in enumerate(marks[:MAX_MESSAGES]):
        end = marks[index + 1].start() if index + 1 < len(marks) else len(text)
        body = text[mark.end() : end].rstrip("\n") if index + 1 < len(marks) else text[mark.end() :]
        role = _ROLES[mark.group(1)]
        found.append(
            Message(role, (body,) if body.strip() else (), (body,) if role == TOOL and body.strip() else ())
        )
    return tuple(found)
