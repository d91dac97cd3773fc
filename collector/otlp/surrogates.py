"""Halves of surrogate pairs in JSON text, which is what is left where JavaScript cut a string."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def mend_surrogates(text: bytes) -> bytes:
    """`text` with escaped halves of surrogate pairs replaced by U+FFFD; the same object where there are none.

    JavaScript cuts strings in the middle of a pair (attribute length limits do so), and then writes such a half.
    """
    if b"\\ud" not in text and b"\\uD" not in text:
        return text
    mended, changed = _ESCAPES.subn(lambda match: b"\\ufffd" if match[1] else match[0], text)
    return mended if changed and mended != text else text
