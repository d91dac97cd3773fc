"""Values that hide in strings: JSON (in several layers), Python literals; bounded in time and memory."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from typing import Any

import msgspec

Json = Any
"""A parsed value of unknown shape; every reader checks what it meets."""

MAX_LITERAL_CHARS = 262_144
"""A Python literal costs about a hundred times its length while it is parsed, so the bound is lower than JSON's."""
MAX_DEPTH = 40
"""No emitted value that was seen is deeper than 20; a walk stops here."""
MAX_NODES = 200_000
_LAYERS = 3
_BRACKETS = re.compile(r"[\[({]")
_STRING = r"""'(?:[^'\\]|\\.)*+(?:'|\\?\Z)|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)"""
"""A quoted text; one that is not closed goes on to the end, so that none is looked for at each quote inside of it."""
_ANGLES = re.compile(
    rf"""({_STRING})|<[A-Za-z_][\w.]*: ('(?:[^'\\]|\\.)*+'|-?\d+)>|<[^<>'"\n]{{1,300}}>""", re.DOTALL
)
_CONSTRUCTOR = re.compile(r"^\s*[A-Z]\w{1,60}\(\s*(?:[a-zA-Z_]\w{0,60}\s*[=:]|\))")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SCRUBBED = re.compile(r"^\s*\[(?:scrubbed|redacted|filtered|masked)\b[^\]]{0,200}\]\s*$", re.IGNORECASE)
_REDACTED = re.compile(
    r"^\s*(?:__redacted__|<redacted(?:[^>]{0,80})>|\[redacted\]|\*{3,}redacted\*{3,}|redacted(?:[_ -]by[^\n]{0,80})?"
    r"|<hidden>|\[hidden\]|__hidden__|content (?:hidden|redacted|omitted)|\*{6,})\s*$",
    re.IGNORECASE,
)
_CUT = re.compile(r"(?:\.{3}|…)?\s*[\[(<]?\s*(?:truncated|…truncated)\b[^\])>]{0,60}[\])>]?\s*$", re.IGNORECASE)
_FIELDS = re.compile(r"^[a-z_]\w{0,60}=(?:['\"\[{(\d]|None\b|True\b|False\b|[A-Za-z_.]{1,60}\()")
_GAP = r"(?<![,(]) (?=[a-z_]\w{0,60}=)"
_SOME_FIELD = re.compile(rf"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|{_GAP}""", re.DOTALL)
_NEXT_FIELD = re.compile(rf"({_STRING})|{_GAP}", re.DOTALL)
EMBEDDING_RUN = 64
"""A list of this many numbers is an embedding: nothing in it is looked at."""


class _Missing:
    """What a string gave that is no JSON and no literal."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


def clean(text: str) -> str:
    """Text that can be encoded as UTF-8: lone surrogates become the replacement character."""
    return _SURROGATE.sub("�", text) if _SURROGATE.search(text) else text


def is_scrubbed(text: str) -> bool:
    """Whether a scrubber's marker stands in the place of the value."""
    return len(text) < 300 and _SCRUBBED.match(text) is not None


def is_redacted(text: str) -> bool:
    """Whether a content switch's marker stands in the place of the value."""
    return len(text) < 200 and _REDACTED.match(text) is not None


def says_truncated(text: str) -> bool:
    """Whether the text ends with a marker that something cut it."""
    return _CUT.search(text[-100:]) is not None


def looks_encoded(text: str) -> bool:
    """Whether a string may be JSON or a Python literal of a container or a quoted string."""
    head = text[:64].lstrip()[:1]
    tail = text[-64:].rstrip()[-1:]
    if (head, tail) in {("{", "}"), ("[", "]"), ('"', '"'), ("(", ")"), ("'", "'")}:
        return True
    return (tail == ")" and is_repr(text)) or is_fields(text)


def is_repr(text: str) -> bool:
    """Whether a text begins like the `repr` of a Python object (`Name(field=...`): no text that a person wrote."""
    return _CONSTRUCTOR.match(text[:200]) is not None


def is_fields(text: str) -> bool:
    """Whether a text begins like the `str` of a model's fields: `id='1' source='user' content='...'`."""
    return _FIELDS.match(text[:200]) is not None and _SOME_FIELD.search(text[:2_000]) is not None


def _comma(match: re.Match[str]) -> str:
    return match.group(1) if match.group(1) is not None else ", "


def loads(text: str, max_chars: int) -> Json:
    """One layer of JSON or, failing that, a Python literal; MISSING where it is neither or too long."""
    if len(text) > max_chars:
        return MISSING
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        pass
    head = text[:64].lstrip()[:1]
    if head not in {"{", "[", "(", '"', "'"}:
        if is_repr(text):
            return _literal(text)
        return _literal(f"F({_NEXT_FIELD.sub(_comma, text)})") if is_fields(text) else MISSING
    try:  # the standard parser takes NaN, lone surrogates and control characters, which others emit
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return _literal(text)


def _literal(text: str) -> Json:
    """A Python literal, or the `repr` of objects, whose constructor calls become objects of their keywords.

    Only the syntax is read: nothing is looked up, called or evaluated.
    """
    if len(text) > MAX_LITERAL_CHARS or len(_BRACKETS.findall(text)) > 20_000 or text.lstrip()[:1] == '"':
        return MISSING
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the parser warns of odd escapes in a text that is not our code
            tree = ast.parse(_ANGLES.sub(_angle, text.strip()), mode="eval")
        return _plain(tree.body)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return MISSING


def _angle(match: re.Match[str]) -> str:
    """`<Role.USER: 'user'>` as 'user', other `<...>` as None; strings as they are."""
    if match.group(1) is not None:
        return match.group(1)
    return match.group(2) if match.group(2) is not None else "None"


def _plain(node: ast.expr, depth: int = 0) -> Json:
    """A syntax tree of literals as plain values; tuples and sets as lists, keys as strings, names as their text."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(node, ast.Constant):
        value = node.value
        return value if isinstance(value, str | bool | int | float) or value is None else str(value)
    if isinstance(node, ast.Dict):
        return {
            str(_plain(key, depth + 1)): _plain(item, depth + 1)
            for key, item in zip(node.keys, node.values, strict=True)
            if key is not None
        }
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_plain(item, depth + 1) for item in node.elts]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _plain(node.operand, depth + 1)
        return -number if isinstance(number, int | float) else None
    if isinstance(node, ast.Call):
        return _call(node, depth)
    if isinstance(node, ast.Attribute):
        return node.attr.lower()
    if isinstance(node, ast.Name):
        return {"nan": None, "inf": None, "true": True, "false": False, "null": None}.get(node.id, node.id)
    raise ValueError("no literal")


def _call(node: ast.Call, depth: int) -> Json:
    keywords = {word.arg: _plain(word.value, depth + 1) for word in node.keywords if word.arg is not None}
    if keywords:
        return keywords
    values = [_plain(item, depth + 1) for item in node.args]
    return values[0] if len(values) == 1 else values


def unwrap(value: Json, max_chars: int) -> Json:
    """A value with the layers of JSON strings around it taken off (up to three); other strings stay."""
    for _ in range(_LAYERS):
        if not isinstance(value, str) or not looks_encoded(value):
            return value
        inner = loads(value, max_chars)
        if inner is MISSING or not isinstance(inner, str | list | dict):
            return value
        value = inner
    return value


def as_text(value: Json) -> str | None:
    """A non-empty string, else None; `None` and `null` as words are what some exporters make of an absent value."""
    if isinstance(value, str):
        text = clean(value)
        return text if text.strip() and text not in {"None", "null", "undefined", "NOT_GIVEN", '""'} else None
    return None


def as_scalar_text(value: Json) -> str | None:
    """A non-empty string, or a number as text; for ids and names."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value) if abs(value) < 10**40 else None
    if isinstance(value, float):
        return repr(value)
    return as_text(value)


def as_number(value: Json) -> float | None:
    """A finite number, also from a string such as '0.67'; else None."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        if len(value) > 40:
            return None
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if number - number == 0 else None
    return None


def as_count(value: Json) -> int | None:
    """A whole number >= 0, also from a string or a float without fraction; else None."""
    number = as_number(value)
    if number is None or number < 0 or number != int(number) or number > 10**12:
        return None
    return int(number)


def is_embedding(value: list[Json]) -> bool:
    """Whether a list is a run of numbers; only its ends are looked at."""
    return len(value) >= EMBEDDING_RUN and all(
        isinstance(item, int | float) and not isinstance(item, bool) for item in (value[0], value[1], value[-1])
    )


def walk(value: Json, max_nodes: int = MAX_NODES) -> Iterator[tuple[str, Json]]:
    """All values below `value` in document order with the key each stands under (lists keep their key).

    Depth-first, bounded in depth and in the number of values; embeddings are passed over.
    """
    stack: list[tuple[str, Json, int]] = [("", value, 0)]
    seen = 0
    while stack:
        key, item, depth = stack.pop()
        seen += 1
        if seen > max_nodes:
            return
        yield key, item
        if depth >= MAX_DEPTH:
            continue
        if isinstance(item, dict):
            stack.extend((str(k), v, depth + 1) for k, v in reversed(item.items()))
        elif isinstance(item, list) and not is_embedding(item):
            stack.extend((key, v, depth + 1) for v in reversed(item))


def squeeze(text: str) -> str:
    """Text with each run of white space as one blank, for comparison."""
    return " ".join(text.split())
