"""Text of a trace as a page may show it."""

from __future__ import annotations

import re

from markupsafe import Markup

# Controls that reorder text beyond their own place (bidirectional embeddings, overrides and isolates), that end a
# line where none is seen, and those of terminals. Left-to-right and right-to-left marks stay: text in Arabic and
# Hebrew needs them, and every foreign text stands in an element of its own direction.
_ACTIVE = re.compile("[\u202a-\u202e\u2066-\u2069\u2028\u2029\ufff9-\ufffb\x00-\x08\x0b-\x0d\x0e-\x1f\x7f-\x9f]")


def visible(value: object) -> object:
    """What a template prints instead of a value: controls that could act on the page's text are named. Markup that a
    template made of such values has been through here before."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    if value.isascii() and value.isprintable():
        return value
    value = value.encode("utf-8", "replace").decode()  # half surrogate pairs
    return _ACTIVE.sub(lambda found: "" if found[0] == "\r" else f"[U+{ord(found[0]):04X}]", value)


def cut(text: str, chars: int) -> tuple[str, int]:
    """The text, or its beginning, and the number of characters that are left out."""
    return (text, 0) if len(text) <= chars else (text[:chars], len(text) - chars)
