"""Lists of objects that were flattened to keys such as `prefix.3.name`."""

from __future__ import annotations

from collections.abc import Mapping

from collector.extract.messages import TOOL, USER, Message, message, role_of
from collector.extract.values import Json, as_text, looks_encoded, unwrap

MAX_INDEX_DIGITS = 6


def flattened(attributes: Mapping[str, Json], prefix: str) -> list[dict[str, Json]]:
    """The objects under `prefix`, which ends with a dot, in the order of their index as a number, over gaps."""
    start = len(prefix)
    groups: dict[int, dict[str, Json]] = {}
    for key, value in attributes.items():
        if key.startswith(prefix):
            index, _, rest = key[start:].partition(".")
            if index.isdecimal() and len(index) <= MAX_INDEX_DIGITS:
                groups.setdefault(int(index), {})[rest] = value
    return [groups[index] for index in sorted(groups)]


def flat_messages(attributes: Mapping[str, Json], prefix: str, inner: str) -> tuple[Message, ...] | None:
    """Messages whose fields stand under `prefix<N>.<inner>`: role, content, contents.<M>.*, tool_calls.*."""
    found = []
    for item in flattened(attributes, prefix):
        fields = {key.removeprefix(inner): value for key, value in item.items()}
        parts = []
        role = role_of(fields.get("role")) or as_text(fields.get("role")) or USER
        if "tool_call_id" in fields and role == USER:
            role = TOOL
        text = as_text(fields.get("content"))
        if text is not None and text[:2] == "[{" and looks_encoded(text):
            whole = message({"role": role, "content": text})
            if whole is not None and (whole.parts or whole.results or whole.calls):
                found.append(whole)
                continue
        if text is not None:
            parts.append(text)
        for piece in flattened(fields, "contents."):
            kind = piece.get("message_content.type") or piece.get("type")
            text = as_text(piece.get("message_content.text") or piece.get("text"))
            if text is not None and kind not in ("reasoning", "thinking") and text not in parts[:1]:
                parts.append(text)
        names = tuple(
            n for key, value in fields.items() if key.endswith("function.name") and (n := as_text(value))
        )
        calls = any(key.startswith(("tool_calls.", "function_call")) for key in fields)
        results: tuple[Json, ...] = ("\n".join(parts),) if role == TOOL and parts else ()
        if role == TOOL and not results:
            results = tuple(r for n in range(8) if (r := _function_result(item.get(f"function.{n}"))) is not None)
        hidden = not parts and not results and not calls and "content" not in fields
        found.append(Message(role, tuple(parts), results, calls, hidden, names))
    return tuple(found) or None


def _function_result(value: Json) -> Json:
    """The result in a flattened `function.N`, which is JSON with the function's name and its content."""
    value = unwrap(value, 4_194_304)
    return value.get("content") if isinstance(value, dict) else None
