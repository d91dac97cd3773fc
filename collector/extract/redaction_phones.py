"""Telephone numbers, in the ways in which people write them.

There is no check digit, so a form must be one in which other numbers are hardly written: an international prefix, a
trunk zero with groups, the grouping of North America, a mobile number of China, or a word before it that says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

_CUE = re.compile(
    r"(?:(?<![^\W\d_])(?:phone|telephone|tel|mobile|cell|cellular|fax|whatsapp|hotline|telefon|mobiltelefon|handy|mobil|rufnummer|téléphone|tél|"
    r"portable|teléfono|celular|móvil|telefone|telefono|cellulare|telefoon|телефон|тел)|电话|手机|電話|携帯|전화|휴대폰)"
    r"(?:\s?(?:number|no|nr|nummer|#|is|:))?[\s.:=#(]{0,4}$",
    re.IGNORECASE,
)
_CUE_CHARS = 32
_AFTER_TRUNK = (" ", "/", " / ", "-", " - ", ".", ") ", ")", "\u00a0", ")-", " (", "\u2011", "\u2010")
"""What may stand between the prefix and the rest."""
_MOST, _FEWEST = 15, 7
"""Digits of the longest number (ITU-T E.164), and of the shortest that is taken."""
_MOST_SPOKEN = 6
"""Groups of a number that only a word before it makes one."""


class Digits(Protocol):
    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def digits(self) -> str: ...


def opening(text: str, start: int, end: int) -> int:
    """Where a number begins whose first digit stands at `start`: its bracket and its plus sign go with it."""
    if start and text[start - 1] == "(" and ")" in text[start:end]:
        start -= 1
    return start - 1 if start and text[start - 1] == "+" else start


def phone_groups(text: str, groups: Sequence[Digits], first: int) -> int | None:
    """How many groups the telephone number takes that begins with group `first`; None where there is none."""
    size = _take(text, groups, first, most=_MOST)
    if _count(groups, first, size) < _FEWEST:
        return None
    start = groups[first].start
    before = text[start - 1] if start else ""
    if before == "(" and start > 1:
        start -= 1
        before = text[start - 1]
    earlier = text[start - 2] if start > 1 else ""
    if before == "+" and not earlier.isalnum():
        size = _take(text, groups, first, most=13)
        return size if _count(groups, first, size) >= 8 else None
    if (before and before in "+-.,$€£¥#" and earlier.isalnum()) or _is_date(text, groups, first):
        return None  # part of a longer expression
    found = _prefixed(text, groups, first) or _north_american(text, groups, first)
    if found:
        return found
    digits = groups[first].digits
    if len(digits) == 11 and digits[0] == "1" and digits[1] in "3456789":
        return 1
    return size if size <= _MOST_SPOKEN and _CUE.search(text[max(0, start - _CUE_CHARS) : start]) else None


def _prefixed(text: str, groups: Sequence[Digits], first: int) -> int:
    """A trunk or international zero, then groups: 030 1234567, 01 23 45 67 89, 090-1234-5678, 0049 30 1234567."""
    digits = groups[first].digits
    if digits[0] != "0" or len(digits) < 2:
        return 0
    if digits.startswith("00"):
        size = _take(text, groups, first, most=14)
        return (
            size if len(digits) > 2 and digits[2] != "0" and size > 1 and _count(groups, first, size) >= 11 else 0
        )
    size = _take(text, groups, first, most=11)
    count = _count(groups, first, size)
    if size == 1:
        return size if count in (10, 11) else 0
    parts = groups[first : first + size]
    between = [text[one.end : other.start] for one, other in pairwise(parts)]
    if count < 9 or between[0] not in _AFTER_TRUNK or len(set(between[1:])) > 1 or "/" in "".join(between[1:]):
        return 0
    if (
        len(digits) == 2
        and parts[1].digits[:2] in ("19", "20")
        and len(parts[1].digits) == 4
        and between[0] in "/-."
    ):
        return 0  # a month and a year
    # Groups of one digit are a list, not a number.
    return size if all(len(part.digits) > 1 for part in parts) else 0


def _north_american(text: str, groups: Sequence[Digits], first: int) -> int:
    """(212) 555-0123, 212-555-0123, 212.555.0123, with or without a 1 before it."""
    offset = 1 if groups[first].digits == "1" else 0
    parts = groups[first + offset : first + offset + 3]
    if (
        [len(part.digits) for part in parts] != [3, 3, 4]
        or parts[0].digits[0] in "01"
        or parts[1].digits[0] in "01"
    ):
        return 0
    before, after = text[parts[0].end : parts[1].start], text[parts[1].end : parts[2].start]
    grouped = after in "-.\u2010\u2011" and (before == after or before in (") ", ")", ")-"))
    spaced = before == after == " " and bool(
        _CUE.search(text[max(0, parts[0].start - _CUE_CHARS) : parts[0].start])
    )
    spaced = spaced or (before == ") " and after == " ")
    return 3 + offset if grouped or spaced else 0


def _is_date(text: str, groups: Sequence[Digits], first: int) -> bool:
    """A day, a month and a year in any order, with the same mark between them."""
    parts = groups[first : first + 3]
    if len(parts) < 3:
        return False
    marks = {text[one.end : other.start] for one, other in pairwise(parts)}
    lengths = [len(part.digits) for part in parts]
    small = [int(part.digits) <= 31 for part in parts if len(part.digits) <= 2]
    return (
        len(marks) == 1
        and marks <= {"-", "/", ".", " "}
        and (
            (lengths[0] <= 2 and lengths[1] <= 2 and lengths[2] == 4)
            or (lengths[0] == 4 and max(lengths[1:]) <= 2)
        )
        and all(small)
    )


def _take(text: str, groups: Sequence[Digits], first: int, *, most: int) -> int:
    """How many groups go together: as long as what is between them is short and the digits are not too many."""
    count, size = 0, 0
    for place in range(first, len(groups)):
        group = groups[place]
        between = text[groups[place - 1].end : group.start] if size else ""
        if (len(between) > 2 and between.strip("() -")) or len(between) > 3 or count + len(group.digits) > most:
            break
        count += len(group.digits)
        size += 1
    return size


def _count(groups: Sequence[Digits], first: int, size: int) -> int:
    return sum(len(group.digits) for group in groups[first : first + size])
