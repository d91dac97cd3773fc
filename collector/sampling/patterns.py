"""Matching of attribute values, in bounded time whatever the value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate

MAX_VALUE_CHARS = 256
"""Values are cut to this before they are compared."""
_MAX_UNBOUNDED = 2
_WIDE = 10
"""A repeat that may differ by more than so many times counts as unbounded."""
_MAX_WAYS = 1000
"""In how many ways all narrower repeats together may divide a text."""
_MAX_PATTERN_CHARS = 500
_REPEAT = re.compile(r"[*+?]|\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\}")
_ESCAPES = frozenset("dDwWsSbBAZtnrfv0")


def check_regex(pattern: str) -> None:
    """Refuse what could take exponential or high polynomial time. Raises ValueError that says what to change."""
    if len(pattern) > _MAX_PATTERN_CHARS:
        raise ValueError(f"regex of {len(pattern)} characters: at most {_MAX_PATTERN_CHARS}; use several")
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"regex {pattern!r} can not be read: {error}") from error
    groups: list[bool] = [False]  # for each open group: does it hold a repeat or alternatives?
    unbounded, ways = 0, 1
    closed: bool | None = None  # the group that ended just before, if one did
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            if pattern[at + 1] not in _ESCAPES and pattern[at + 1].isalnum():
                raise ValueError(f"regex {pattern!r}: \\{pattern[at + 1]} is not supported; match the text itself")
            closed, at = None, at + 2
        elif char == "[":
            closed, at = None, _end_of_set(pattern, at)
        elif char == "(":
            if pattern[at + 1] == "?" and pattern[at + 2] != ":":
                raise ValueError(f"regex {pattern!r}: only plain groups and (?:...) are supported")
            groups.append(False)
            closed, at = None, at + (3 if pattern[at + 1] == "?" else 1)
        elif char == ")":
            closed = groups.pop()
            groups[-1] = groups[-1] or closed
            at += 1
        elif char == "|":
            groups[-1] = True
            closed, at = None, at + 1
        elif char in "*+?{" and (repeat := _REPEAT.match(pattern, at)):
            if closed:
                raise ValueError(
                    f"regex {pattern!r}: a repeated group must hold no repeat and no alternatives; "
                    "write the alternatives as several patterns"
                )
            width = _width(repeat)
            if width is None or width > _WIDE:
                unbounded += 1
            else:
                ways *= width + 1
            groups[-1] = True
            closed, at = None, repeat.end()
            if pattern[at : at + 1] in ("?", "+"):
                at += 1
        else:
            closed, at = None, at + 1
    if unbounded > _MAX_UNBOUNDED:
        raise ValueError(
            f"regex {pattern!r} has {unbounded} unbounded or wide repeats, at most {_MAX_UNBOUNDED}: use glob"
        )
    if ways > _MAX_WAYS:
        raise ValueError(
            f"regex {pattern!r} has too many optional parts: write it as several patterns, or use glob"
        )


def _width(repeat: re.Match[str]) -> int | None:
    """By how many times a repeat may differ; None where nothing bounds it."""
    if repeat[0] in "*+":
        return None
    if repeat[0] == "?":
        return 1
    least, comma, most = repeat["least"] or "0", repeat["comma"], repeat["most"]
    if not comma:
        return 0
    return int(most) - int(least) if most else None


def _end_of_set(pattern: str, at: int) -> int:
    at += 1
    if pattern[at] == "^":
        at += 1
    if pattern[at] == "]":
        at += 1
    while pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def texts(value: object) -> Iterator[str]:
    """A value as the texts it is compared by: itself, or the elements of a list."""
    if isinstance(value, list | tuple):
        for element in value[:64]:
            yield _text(element)
    else:
        yield _text(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)[:MAX_VALUE_CHARS]


def matcher(
    *,
    equals: Iterable[object] = (),
    globs: Iterable[str] = (),
    regexes: Iterable[str] = (),
    ignore_case: bool = False,
) -> Callable[[object], bool]:
    """A test of one attribute value; without anything to compare with, every value fits."""
    flags = re.IGNORECASE if ignore_case else 0
    exact = frozenset(_folded(_text(value), ignore_case) for value in equals)
    patterns = [re.compile(translate(glob), flags).match for glob in globs]
    patterns += [re.compile(regex, flags).fullmatch for regex in regexes]
    if not exact and not patterns:
        return lambda value: True

    def fits(value: object) -> bool:
        return any(
            _folded(text, ignore_case) in exact or any(pattern(text) for pattern in patterns)
            for text in texts(value)
        )

    return fits


def _folded(text: str, ignore_case: bool) -> str:
    return text.casefold() if ignore_case else text
