"""Lists of objects that were flattened to keys such as `prefix.3.name`."""

from __future__ import annotations

from collections.abc import Mapping

from collector.extract.messages import TOOL, USER, Message, role_of
from collector.extract.values import Json, as_text

MAX_INDEX_DIGITS = 6


def flattened(attributes: Mapping[str, Json], prefix: str) -> list[dict[str, Json]]:
    """The objects under `prefix`, which ends with a dot, in the order of their index as a number; gaps are passed over."""
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
        if (text := as_text(fields.get("content"))) is not None:
            parts.append(text)
        for piece in flattened(fields, "contents."):
            kind = piece.get("message_content.type") or piece.get("type")
            text = as_text(piece.get("message_content.text") or piece.get("text"))
            if text is not None and kind not in ("reasoning", "thinking"):
                parts.append(text)
        calls = any(key.startswith("tool_calls.") or key.startswith("function_call") for key in fields)
        role = role_of(fields.get("role")) or as_text(fields.get("role")) or USER
        results = ("\n".join(parts),) if role == TOOL and parts else ()
        found.append(Message(role, tuple(parts), results, calls, not parts and not calls and "content" not in fields))
    return tuple(found) or None
