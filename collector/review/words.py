"""Words to search by, in any script; what people type is never query syntax."""

from __future__ import annotations

import re

MAX_INDEXED = 50_000
"""Characters of a question and of a response that are indexed."""
_MAX_TEXT = 1_000
_MAX_TERMS = 30
# Scripts that put no space between words (Thai, Lao, Burmese, Khmer, kana, Han): each character is a word, and a
# word of them is a phrase. A tokenizer for each of these languages would find words, and be wrong differently.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')
_LONE = re.compile("[\ud800-\udfff\x00]")


def indexable(text: str | None) -> str:
    """What the index is given of a text; the same for the same text in every version of a file's format, since
    the index takes a text out again by being given it."""
    if not text:
        return ""
    return _UNSPACED.sub(r" \g<0> ", _LONE.sub(" ", text[:MAX_INDEXED]))


def terms(text: str) -> list[tuple[str, bool]]:
    """The words and phrases of a search, as `indexable` text, each with whether it stands for a beginning."""
    found: list[tuple[str, bool]] = []
    for quoted, plain in _TERM.findall(text[:_MAX_TEXT]):
        term = quoted or plain
        beginning = not quoted and term.endswith("*")
        if any(character.isalnum() for character in term):
            found.append((indexable(term).strip(), beginning))
    return found[:_MAX_TERMS]


def match(text: str) -> str | None:
    """The search as an FTS5 expression in which every term is quoted; None where nothing can be found by it."""
    parts = [f'"{term.replace(chr(34), " ")}"' + ("*" if beginning else "") for term, beginning in terms(text)]
    return " AND ".join(parts) or None
