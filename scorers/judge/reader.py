"""Reads what judges call JSON. Never raises, linear in time; keeps what is whole and invents nothing.

Accepted beyond JSON: thinking blocks, code fences and prose around the value, single quotes, unquoted keys,
trailing commas, Python's and JavaScript's constants, raw line breaks in strings, and a value that was cut off
(the element that was being written is dropped, all before it stays). A key that occurs twice with different
values is ambiguous and reads as `AMBIGUOUS`, which no caller takes for an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass

MAX_CHARS = 400_000
"""Longer replies are read up to here, so that no reply holds the event loop for long."""
_MAX_DEPTH = 40
_MAX_CANDIDATES = 64
"""Values looked at in one reply; prose with more brackets than this is no answer."""
_BARE = re.compile(r"[^\s,:\]\}\[\{\"']+")
_SPACE = re.compile(r"\s*")
_CLOSES = re.compile(r"\s*(?:[,:}\]]|\Z)|[ \t\r]*\n\s*[\"']")
_OPEN = re.compile(r"[\[{]")
_THOUGHT = re.compile("</(?:think|thinking|reasoning)>", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_STOPS = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}
_NUMBER = re.compile(r"[+-]?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?\Z")
_CONSTANTS = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "undefined": None,
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class _Ambiguous:
    def __repr__(self) -> str:
        return "AMBIGUOUS"


AMBIGUOUS = _Ambiguous()
"""Stands where one key had two different values."""


class _CutOff(Exception):  # control flow inside this file, not an error that anybody sees
    """The text ended, or went wrong, inside a value; the containers around it keep what they have."""


@dataclass(frozen=True, slots=True)
class Reading:
    """`value` is None when nothing was found. `repaired` is false only for clean JSON and nothing beside it."""

    value: object
    repaired: bool = False
    cut: bool = False


def _unite(pairs: list[tuple[str, object]]) -> dict[str, object]:
    united: dict[str, object] = {}
    for key, value in pairs:
        if key in united and united[key] != value:
            united[key] = AMBIGUOUS
        else:
            united[key] = value
    return united


_DECODER = json.JSONDecoder(object_pairs_hook=_unite, parse_constant=lambda _: None)


def read_json(text: str, *, expected: Collection[str] = ()) -> Reading:
    """Find the JSON value in a judge's reply.

    Where a reply holds several values, the one with most of the `expected` keys is taken; the last of equals,
    since models quote first and answer then.
    """
    text = text[:MAX_CHARS]
    stripped = text.strip().removeprefix("\ufeff")
    if stripped[:1] in ("{", "["):
        try:
            return Reading(_DECODER.decode(stripped))
        except (ValueError, RecursionError):
            pass
    stripped = _strip_thinking(stripped)
    best: Reading | None = None
    best_rank = (-1, -1)
    position = 0
    for _ in range(_MAX_CANDIDATES):
        opening = _OPEN.search(stripped, position)
        if opening is None:
            break
        parser = _Parser(stripped, opening.start())
        value = parser.value(0)
        position = max(parser.position, opening.end())
        rank = _rank(value, expected)
        if rank >= best_rank:
            best, best_rank = Reading(value, repaired=True, cut=parser.cut), rank
    return best or Reading(None, repaired=True)


def _strip_thinking(text: str) -> str:
    """What follows the last closing tag of a thinking block, if a value follows there."""
    last = max((tag.end() for tag in _THOUGHT.finditer(text)), default=0)
    return text[last:] if _OPEN.search(text, last) else text


def _rank(value: object, expected: Collection[str]) -> tuple[int, int]:
    if isinstance(value, dict):
        return (sum(1 for key in expected if key in value), 1 if value else 0)
    return (0, 1 if value else 0)


def _pair(text: str) -> str:
    """Escaped surrogates that stand as pairs become the characters that they mean."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Parser:
    """One pass, never back. `position` stands behind what was read; `cut` tells whether the end was missing."""

    def __init__(self, text: str, position: int) -> None:
        self._text = text
        self.position = position
        self.cut = False

    def value(self, depth: int) -> object:
        """The value at `position`; a container that ends early is returned with what is whole in it."""
        char = self._peek()
        if char in ("{", "["):
            if depth >= _MAX_DEPTH:
                raise _CutOff
            return self._object(depth + 1) if char == "{" else self._array(depth + 1)
        if char in _STOPS:
            return self._string(char)
        return self._bare()

    def _peek(self) -> str:
        match = _SPACE.match(self._text, self.position)
        if match is not None:
            self.position = match.end()
        return self._text[self.position : self.position + 1]

    def _object(self, depth: int) -> dict[str, object]:
        pairs: list[tuple[str, object]] = []
        self.position += 1
        try:
            while not self.cut:
                char = self._peek()
                if char == "}":
                    self.position += 1
                    break
                if char == ",":
                    self.position += 1
                    continue
                key = self._string(char) if char in _STOPS else self._token()
                self._colon()
                pairs.append((key, self.value(depth)))
        except _CutOff:
            self.cut = True
        return _unite(pairs)

    def _colon(self) -> None:
        if self._peek() != ":":
            raise _CutOff
        self.position += 1

    def _array(self, depth: int) -> list[object]:
        values: list[object] = []
        self.position += 1
        try:
            while not self.cut:
                char = self._peek()
                if char == "]":
                    self.position += 1
                    break
                if char == ",":
                    self.position += 1
                    continue
                values.append(self.value(depth))
        except _CutOff:
            self.cut = True
        return values

    def _string(self, quote: str) -> str:
        """A quote that nothing of JSON's grammar follows is part of the text, not its end."""
        text, parts, start = self._text, [], self.position + 1
        while True:
            stop = _STOPS[quote].search(text, start)
            if stop is None:
                self.position = len(text)
                raise _CutOff
            parts.append(text[start : stop.start()])
            if stop.group() == quote:
                if _CLOSES.match(text, stop.end()):
                    self.position = stop.end()
                    return _pair("".join(parts))
                parts.append(quote)
                start = stop.end()
                continue
            escape = text[stop.end() : stop.end() + 1]
            start = stop.end() + 1
            if escape == "u" and _HEX.match(text, start):
                parts.append(chr(int(text[start : start + 4], 16)))
                start += 4
            else:
                parts.append(_ESCAPES.get(escape, escape))

    def _token(self) -> str:
        match = _BARE.match(self._text, self.position)
        if match is None:
            raise _CutOff
        self.position = match.end()
        return match.group()

    def _bare(self) -> object:
        token = self._token()
        if self.position >= len(self._text):
            raise _CutOff  # "1" may have been the beginning of "10"
        lowered = token.lower()
        if lowered in _CONSTANTS:
            return _CONSTANTS[lowered]
        if _NUMBER.match(token):
            return float(token) if any(char in token for char in ".eE") else int(token)
        return token
