"""Keys of the configuration: an attribute, or an attribute and a path into the JSON that it holds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from collector.extract.values import MAX_NODES, Json, unwrap

_STEP = re.compile(r"\[(\d+|\*)\]|([^.\[\]]+)")


def attribute_of(key: str) -> str:
    """The attribute's part of a key."""
    return key.rpartition(":")[0] or key


def pick(attributes: Mapping[str, Json], key: str, max_chars: int) -> Json:
    """What stands under a key; None where nothing does.

    The key is an attribute's name, else, parted at its last colon, a name and a path: names of fields with dots
    between them, `[2]` or `2` for an item of a list, `[*]` or `*` for all of its items, an optional `$` at the start.
    """
    if key in attributes:
        return attributes[key]
    name, _, path = key.rpartition(":")
    raw = attributes.get(name) if name else None
    if raw is None:
        return None
    found = [unwrap(raw, max_chars)]
    many = False
    for index, field in _STEP.findall(path.removeprefix("$")):
        step = index or field
        many |= step == "*"
        found = [unwrap(item, max_chars) for value in found for item in _below(value, step)][:MAX_NODES]
    return found if many else next(iter(found), None)


def _below(value: Json, step: str) -> list[Json]:
    if isinstance(value, list):
        if step == "*":
            return value
        return [value[int(step)]] if step.isdecimal() and len(step) < 10 and int(step) < len(value) else []
    if isinstance(value, dict):
        if step == "*":
            return list(value.values())
        return [value[step]] if step in value else []
    return []
