"""What a value of unknown shape says: an answer, a question, a model's reply, its name, its tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping

from collector.extract.messages import (
    ASSISTANT,
    Message,
    content_text,
    last_assistant,
    last_user,
    message,
    messages,
)
from collector.extract.values import Json, as_count, as_text, is_fields, is_repr, looks_encoded, unwrap

QUESTION_KEYS = (
    "question", "user_question", "userQuestion", "query", "user_query", "userQuery", "query_str", "input", "user_input",
    "userInput", "user_message", "userMessage", "q", "task", "message", "prompt", "search_query", "text", "topic",
    "request",
    "utterance", "user_prompt", "new_message",
    "inputs",
)  # fmt: skip
"""Names that a question goes by, the surest first."""
_QUESTION_NESTS = (
    "messages", "inputs", "kwargs", "args", "data", "state", "query_bundle", "str_or_query_bundle", "qb", "params",
    "body", "payload", "json", "content", "chat_history", "contents",
)  # fmt: skip
ANSWER_KEYS = (
    "answer", "final_answer", "finalAnswer", "final_result", "final_output", "finalOutput", "response", "output",
    "outputs", "output_text", "outputText", "result", "reply", "replies", "completion", "generation", "response_text",
    "text", "content", "message", "messages", "choices", "generations", "candidates", "llm_output", "return_values",
    "raw", "value", "data", "chat_response", "blocks",
)  # fmt: skip
"""Names that an answer goes by, the surest first."""
_OBJECT = re.compile(
    r"^<?[\w.]*\b(?:object|instance|function|class|module|built-in)\b.{0,200}0x[0-9a-f]+>?|^<[\w.]+ .{0,200}>$"
)
_PRINTED = re.compile(
    r"^<[\w.<> ]{0,100}\b(?:object|instance|coroutine|function|method|class|module)\b[^<>\n]{0,200}>$"
)
"""How Python prints an object that has no text: a stream that was not read yet, say."""
_IDENTIFIER = re.compile(
    r"(?:^|[_.-])(?:id|uuid|key|token|url|uri|path|model|name|type|role|lang|language)$", re.IGNORECASE
)
_MAX_DEPTH = 8


def answer_of(value: Json, max_chars: int, depth: int = 0) -> str | None:
    """The text that an output gives as its answer; None where it gives none, or more than one without a name."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, str):
        printed = is_repr(value)
        inner = (
            unwrap(value, max_chars)
            if printed or is_fields(value) or (depth and looks_encoded(value) and value[:1] == "{")
            else value
        )
        if isinstance(inner, dict):
            return answer_of(inner, max_chars, depth + 1) or (None if printed else as_text(value))
        return None if printed or _PRINTED.match(value[:400]) else as_text(value)
    if isinstance(value, dict):
        return _answer_of_object(value, max_chars, depth)
    if isinstance(value, list):
        return _answer_of_list(value, max_chars, depth)
    return None


def _answer_of_object(value: dict[str, Json], max_chars: int, depth: int) -> str | None:
    if "page_content" in value or value.get("type") == "Document":
        return None
    one = message(value)
    if one is not None and "messages" not in value and "choices" not in value:
        return one.text if one.role == ASSISTANT and one.parts else None
    for key in ANSWER_KEYS:
        item = value.get(key)
        if item is None or (depth and key == "data" and isinstance(item, str)):
            continue
        text = answer_of(item, max_chars, depth + 1)
        if text is not None:
            return text
    found = {
        text
        for item in list(value.values())[:64]
        if isinstance(item, dict) and (text := _named_answer(item, max_chars, depth + 1)) is not None
    }
    return found.pop() if len(found) == 1 else None


def _named_answer(value: dict[str, Json], max_chars: int, depth: int) -> str | None:
    """An answer one layer down, as in an output by component: only under a name that leaves no doubt."""
    for key in (
        "replies",
        "answers",
        "answer",
        "response",
        "output",
        "result",
        "messages",
        "generations",
        "choices",
    ):
        if key in value and (text := answer_of(value[key], max_chars, depth + 1)) is not None:
            return text
    return None


def _answer_of_list(value: list[Json], max_chars: int, depth: int) -> str | None:
    if not value:
        return None
    found = messages(value, max_chars)
    if found is not None:
        last = last_assistant(found)
        return last.text if last is not None and not found[-1].calls else None
    if len(value) == 1 or isinstance(value[0], list):
        return answer_of(value[0], max_chars, depth + 1)
    if all(
        isinstance(item, dict)
        and isinstance(item.get("text"), str)
        and item.get("type") in ("text", "output_text")
        for item in value
    ):
        return content_text(value)
    if isinstance(value[0], dict) and value[0].keys() & {"message", "generation_info", "finish_reason"}:
        return answer_of(value[0], max_chars, depth + 1)
    return None


def question_of(value: Json, max_chars: int, depth: int = 0) -> str | None:
    """The text that an input gives as the question; None where it gives none."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, str):
        printed = is_repr(value)
        inner = (
            unwrap(value, max_chars)
            if printed or is_fields(value) or (depth and looks_encoded(value) and value[:1] in "{[")
            else value
        )
        if isinstance(inner, dict | list):
            return question_of(inner, max_chars, depth + 1) or (None if printed else as_text(value))
        if printed:
            return None
        text = as_text(value)
        return None if text is None or _OBJECT.match(text[:1_000]) else text
    if isinstance(value, list):
        return _question_of_list(value, max_chars, depth)
    if isinstance(value, dict):
        return _question_of_object(value, max_chars, depth)
    return None


def _question_of_list(value: list[Json], max_chars: int, depth: int) -> str | None:
    found = messages(value, max_chars)
    if found is not None:
        last = last_user(found)
        return last.text if last is not None else None
    for item in value[:8]:  # the arguments of a call: the first that is a text, or holds a question
        if (text := question_of(item, max_chars, depth + 1)) is not None:
            return text
    return None


def _question_of_object(value: dict[str, Json], max_chars: int, depth: int) -> str | None:
    one = message(value)
    if one is not None and "messages" not in value:
        return one.text if one.role == "user" and one.parts else None
    lowered = {key.lower(): item for key, item in value.items() if isinstance(key, str)}
    for key in QUESTION_KEYS:
        item = lowered.get(key.lower())
        if item is not None and (text := question_of(item, max_chars, depth + 1)) is not None:
            return text
    for key in _QUESTION_NESTS:
        item = value.get(key)
        if isinstance(item, dict | list) and (text := question_of(item, max_chars, depth + 1)) is not None:
            return text
    texts = [(key, item) for key, item in value.items() if isinstance(item, str) and as_text(item)]
    if len(texts) == 1 and len(value) == 1 and not _IDENTIFIER.search(texts[0][0]):
        return question_of(texts[0][1], max_chars, depth + 1)
    return _component_question(value, max_chars, depth)


def _component_question(value: dict[str, Json], max_chars: int, depth: int) -> str | None:
    """The question of inputs by component name, by the surest of the names that any component uses."""
    inner = [item for item in list(value.values())[:64] if isinstance(item, dict)]
    for key in QUESTION_KEYS:
        for item in inner:
            if isinstance(item.get(key), str) and (text := as_text(item[key])) is not None:
                return text
    for item in inner:
        if (text := question_of(item, max_chars, depth + 1)) is not None:
            return text
    return None


def replies_of(value: Json, max_chars: int) -> tuple[Message, ...] | None:
    """What a model's output says, as messages; None where nothing of it can be read."""
    if isinstance(value, str) and (is_repr(value) or (looks_encoded(value) and value[:1] in "{[")):
        value = unwrap(value, max_chars)
    if isinstance(value, str):
        text = None if is_repr(value) else as_text(value.removeprefix("assistant: "))
        return (Message(ASSISTANT, (text,)),) if text else None
    if isinstance(value, list):
        if value and isinstance(value[0], list | str) and (len(value) == 1 or isinstance(value[0], list)):
            return replies_of(value[0], max_chars)
        return messages(value, max_chars) or (replies_of(value[0], max_chars) if len(value) == 1 else None)
    if not isinstance(value, dict):
        return None
    return _reply_of_object(value, max_chars)


def _reply_of_object(value: dict[str, Json], max_chars: int) -> tuple[Message, ...] | None:
    for key in ("choices", "generations", "candidates", "replies", "outputs", "output", "message", "messages"):
        item = value.get(key)
        if not isinstance(item, list | dict) or not item:
            continue
        if isinstance(item, list) and key in ("choices", "generations", "candidates"):
            head = item[0]
            while isinstance(head, list) and head:
                head = head[0]
            if isinstance(head, dict):
                inner = head.get("message") or head.get("content") or head.get("delta")
                one = message(inner, ASSISTANT) if isinstance(inner, dict) else None
                if one is not None and (one.parts or one.calls):
                    return (Message(ASSISTANT, one.parts, calls=one.calls),)
                if (text := as_text(head.get("text"))) is not None:
                    return (Message(ASSISTANT, (text,)),)
                if one is not None:
                    return (one,)
            continue
        found = replies_of(item, max_chars) if key != "message" else None
        if found is None and isinstance(item, dict):
            one = message(item, ASSISTANT)
            found = (one,) if one is not None else None
        if found:
            return found
    one = message(value, ASSISTANT)
    if one is not None and (one.parts or one.calls or one.hidden):
        return (one,)
    for key in (
        "output_text",
        "text",
        "content",
        "completion",
        "generation",
        "response",
        "answer",
        "output",
        "result",
    ):
        if isinstance(value.get(key), str | list) and (text := content_text(value[key])) is not None:
            return (Message(ASSISTANT, (text,)),)
    return None


_MODEL_PATHS = (
    ("model",), ("model_name",), ("llm_output", "model_name"), ("raw", "model"), ("modelVersion",), ("model_version",),
    ("response_metadata", "model_name"), ("response_metadata", "model"), ("meta", "model"),
    ("data", "response_metadata", "model_name"),
    ("kwargs", "response_metadata", "model_name"), ("inputs", "kwargs", "response_metadata", "model_name"),
    ("input", "response_metadata", "model_name"),
)  # fmt: skip
_NESTS = (
    "choices",
    "generations",
    "replies",
    "messages",
    "message",
    "outputs",
    "output",
    "kwargs",
    "additional_kwargs",
    "response",
)


def model_of(value: Json) -> str | None:
    """The name of the model that a model's output says answered."""
    for item in _objects(value):
        for path in _MODEL_PATHS:
            if (name := as_text(_at(item, path))) is not None and len(name) < 200:
                return name
    return None


_INPUTS = (
    "input_tokens", "prompt_tokens", "inputTokens", "promptTokens", "input", "prompt_token_count", "promptTokenCount",
    "prompt", "input_token_count", "inputTokenCount", "prompt_eval_count",
)  # fmt: skip
_OUTPUTS = (
    "output_tokens", "completion_tokens", "outputTokens", "completionTokens", "output", "candidates_token_count",
    "candidatesTokenCount", "completion", "output_token_count", "outputTokenCount", "eval_count",
)  # fmt: skip
_USAGES = ("usage", "token_usage", "usage_metadata", "usageMetadata", "tokenUsage", "usage_details")


def usage_of(value: Json) -> tuple[int | None, int | None]:
    """Input and output tokens of a usage object, or of the usage that an output holds."""
    if isinstance(value, dict):
        found = _usage(value)
        if found != (None, None):
            return found
    for item in _objects(value):
        for key in _USAGES:
            if isinstance(item.get(key), dict):
                found = _usage(item[key])
                if found != (None, None):
                    return found
    return None, None


def _usage(value: Mapping[str, Json]) -> tuple[int | None, int | None]:
    given = next((count for key in _INPUTS if (count := as_count(value.get(key))) is not None), None)
    gave = next((count for key in _OUTPUTS if (count := as_count(value.get(key))) is not None), None)
    return given, gave


def _objects(value: Json, depth: int = 0) -> list[dict[str, Json]]:
    """The objects of a model's output in which its name or usage may stand, the outer ones first."""
    found: list[dict[str, Json]] = []
    layer: list[Json] = [value]
    while layer and depth < _MAX_DEPTH and len(found) < 64:
        below: list[Json] = []
        for item in layer:
            if isinstance(item, list):
                below.extend(item[-1:] if item and isinstance(item[-1], dict) else item[:2])
            elif isinstance(item, dict):
                found.append(item)
                below.extend(
                    item[key]
                    for key in (*_NESTS, "llm_output", "response_metadata", "raw", "meta", "data")
                    if isinstance(item.get(key), dict | list)
                )
        layer, depth = below, depth + 1
    return found


def _at(value: Json, path: tuple[str, ...]) -> Json:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
