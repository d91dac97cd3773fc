"""Where a text holds something personal or secret.

Every search is linear in the text: one pass for beginnings, repetitions that are bounded or give nothing back, and
numbers looked at in windows of bounded length.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ahocorasick_rs import AhoCorasick

from collector.extract.redaction_numbers import (
    DIGITS_AND_LETTER,
    LETTERED,
    iban_end,
    is_card,
    is_digits_and_letter_id,
    is_national_id,
    lettered_id_end,
)
from collector.extract.redaction_options import Personal, UserPattern
from collector.extract.redaction_phones import opening, phone_groups
from collector.extract.redaction_secrets import Secrets


@dataclass(frozen=True, slots=True)
class Hit:
    """One value: where it stands, and the name that its placeholder has."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class Group:
    """Digits that stand together."""

    start: int
    end: int
    digits: str


_EMAIL = re.compile(
    r"(?<![\w.+%-])[\w.+%'-]{1,64}+@(?:[\w-]{1,63}+\.(?=\w)){1,8}(?:[^\W\d_]{2,24}+|xn--[\w-]{1,59}+)(?![\w-])"
)
_RUN = re.compile(r"\d[\d ().\-/\u00a0\u2009\u202f\u2010\u2011]{4,}+")
_DIGITS = re.compile(r"\d+")
_IPV4 = re.compile(r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?!\d|\.\d)")
_IPV6 = re.compile(r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,8}+(?:%\w{1,16}+)?")
_COLONS = re.compile(r":[0-9A-Fa-f]{0,4}:")
_VERSION = re.compile(
    r"(?<![^\W\d_])(?:v|ver|version|release|section|chapter|clause|§|№|no\.)[.:]?\s?$", re.IGNORECASE
)
_SHORTEST = 7
"""Digits of the shortest number that can be personal."""
_SHORTEST_LITERAL = 4
_SHORTEST_ID = 9
_LONE = re.compile("[\ud800-\udfff]")
_MOST_GROUPS = 8
_LONGEST = 19


class Known:
    """Values that were found in one text of an interaction, and are such in its other texts too, also where nothing
    beside them says so: numbers by their digits, all else letter by letter."""

    def __init__(self, found: Iterable[tuple[str, str]]) -> None:
        """`found` are names and values."""
        self.numbers: dict[str, str] = {}
        literals: dict[str, str] = {}
        for name, value in found:
            digits = "".join(one for one in value if one.isdecimal())
            if len(digits) >= _SHORTEST and not any(one.isalpha() for one in value):
                self.numbers.setdefault(digits, name)
            elif len(value) >= _SHORTEST_LITERAL and not _LONE.search(value):
                literals.setdefault(value, name)
        self._names = list(literals.values())
        self._search = AhoCorasick(list(literals)) if literals else None

    def __bool__(self) -> bool:
        return bool(self.numbers or self._names)

    def hits(self, text: str) -> Iterator[Hit]:
        if self._search is None:
            return
        for number, start, end in self._search.find_matches_as_indexes(text, overlapping=True):
            inside = (start and text[start - 1].isalnum()) or (end < len(text) and text[end].isalnum())
            if not inside:
                yield Hit(start, end, self._names[number])


_NOTHING = Known(())


class Detector:
    """Finds values of `kinds` and of the user's `patterns`. Immutable."""

    def __init__(self, kinds: Collection[Personal], patterns: Sequence[UserPattern]) -> None:
        self._kinds = frozenset(kinds)
        self._secrets = Secrets() if Personal.SECRET in self._kinds else None
        self._patterns = [(one.name, re.compile(one.pattern)) for one in patterns]

    def hits(self, text: str, known: Known = _NOTHING) -> list[Hit]:
        """In order, apart from each other: of two that overlap, one that covers both has the first's name."""
        try:
            found = [hit for hit in self._found(text, known) if hit.end > hit.start]
        except UnicodeEncodeError:  # half surrogate pairs; one character for another, so that places stay
            return self.hits(_LONE.sub("\ufffd", text), known)
        if len(found) < 2:
            return found
        # What is found first has the surer form, so it gives the name; what overlaps it in part goes with it.
        ranked = sorted(enumerate(found), key=lambda one: (one[1].start, one[0]))
        apart: list[tuple[int, Hit]] = []
        for rank, hit in ranked:
            if apart and hit.start < apart[-1][1].end:
                other_rank, other = apart[-1]
                name = hit.name if rank < other_rank else other.name
                apart[-1] = (min(rank, other_rank), Hit(other.start, max(hit.end, other.end), name))
            else:
                apart.append((rank, hit))
        return [hit for _, hit in apart]

    def _found(self, text: str, known: Known) -> Iterator[Hit]:
        yield from known.hits(text)
        for name, pattern in self._patterns:
            group = "secret" if "secret" in pattern.groupindex else 0
            for match in pattern.finditer(text):
                yield Hit(match.start(group), match.end(group), name)
        if self._secrets is not None:
            for start, end in self._secrets.spans(text):
                yield Hit(start, end, "SECRET")
        if Personal.EMAIL in self._kinds and "@" in text:
            for match in _EMAIL.finditer(text):
                yield Hit(match.start(), match.end(), "EMAIL")
        yield from self._lettered(text)
        yield from self._in_runs(text, known.numbers)
        if Personal.IP in self._kinds:
            yield from _ipv6(text)

    def _lettered(self, text: str) -> Iterator[Hit]:
        ibans, ids = Personal.IBAN in self._kinds, Personal.NATIONAL_ID in self._kinds
        if ibans or ids:
            for match in LETTERED.finditer(text):
                start = match.start()
                if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
                    continue
                end = iban_end(text, start) if ibans else None
                if end is not None:
                    yield Hit(start, end, "IBAN")
                    continue
                end = lettered_id_end(text, start) if ids else None
                if end is not None:
                    yield Hit(start, end, "ID")

    def _in_runs(self, text: str, known: Mapping[str, str]) -> Iterator[Hit]:
        """Numbers in what is written of digits and what people put between them."""
        for run in _RUN.finditer(text):
            groups = [Group(one.start(), one.end(), one[0]) for one in _DIGITS.finditer(text, *run.span())]
            if sum(len(group.digits) for group in groups) >= _SHORTEST:
                yield from self._numbers_in(text, groups, known)
            if Personal.NATIONAL_ID in self._kinds:
                yield from _digits_and_letter(text, groups)
            if Personal.IP in self._kinds and len(groups) >= 4:
                yield from _ipv4(text, run)

    def _numbers_in(self, text: str, groups: list[Group], known: Mapping[str, str]) -> Iterator[Hit]:
        last = groups[-1].end
        if last < len(text) and (text[last].isalpha() or text[last] == "_"):
            groups = groups[:-1]  # the beginning of a word, such as a hexadecimal one
        first = 0
        if (
            groups
            and groups[0].start
            and (text[groups[0].start - 1].isalpha() or text[groups[0].start - 1] == "_")
        ):
            first = 1  # the end of one
        while first < len(groups):
            taken, hit = self._at(text, groups, first, known)
            if hit is not None:
                yield hit
            first += taken

    def _at(
        self, text: str, groups: Sequence[Group], first: int, known: Mapping[str, str]
    ) -> tuple[int, Hit | None]:
        """How many groups the number that begins at `first` takes; one where none does."""
        start, digits = groups[first].start, ""
        windows: list[tuple[int, str]] = []
        for group in groups[first : first + _MOST_GROUPS]:
            digits += group.digits
            if len(digits) > _LONGEST:
                break
            windows.append((group.end, digits))
        if not windows or len(windows[-1][1]) in (len(windows), *range(_SHORTEST)):
            return 1, None  # too few digits, or a list of single ones
        decimals = start > 1 and text[start - 1] in ".," and text[start - 2].isdigit()
        for size in range(len(windows), 0, -1):
            end, digits = windows[size - 1]
            if digits in known:
                return size, Hit(opening(text, start, end), end, known[digits])
            if decimals or len(digits) < _SHORTEST_ID:
                continue
            if Personal.CARD in self._kinds and is_card(digits) and _evenly(groups[first : first + size]):
                return size, Hit(start, end, "CARD")
            if (
                Personal.NATIONAL_ID in self._kinds
                and len(digits) <= 15
                and is_national_id(text[start:end], digits)
            ):
                return size, Hit(start, end, "ID")
        if Personal.PHONE in self._kinds:
            found = phone_groups(text, groups, first)
            if found is not None:
                return found, Hit(
                    opening(text, start, groups[first + found - 1].end), groups[first + found - 1].end, "PHONE"
                )
        return 1, None


def _digits_and_letter(text: str, groups: Sequence[Group]) -> Iterator[Hit]:
    for group in groups:
        if len(group.digits) >= 6 and not (group.start and text[group.start - 1].isalnum()):
            match = DIGITS_AND_LETTER.match(text, group.start)
            if match is not None and is_digits_and_letter_id(match[0]):
                yield Hit(group.start, match.end(), "ID")


def _evenly(groups: Sequence[Group]) -> bool:
    """A card's number is written in one piece, by fours, or as 4 6 5: other groups are other numbers side by side."""
    lengths = [len(group.digits) for group in groups]
    by_fours = all(length == 4 for length in lengths[:-1]) and lengths[-1] <= 4
    return len(lengths) == 1 or by_fours or lengths in ([4, 6, 5], [4, 6, 4])


def _ipv4(text: str, run: re.Match[str]) -> Iterator[Hit]:
    for match in _IPV4.finditer(text, *run.span()):
        start, end = match.span()
        if (start and (text[start - 1].isalnum() or text[start - 1] in "._-")) or text[end : end + 1].isalnum():
            continue
        if _is_address(match[0]) and not _VERSION.search(text[max(0, start - 12) : start]):
            yield Hit(start, end, "IP")


def _ipv6(text: str) -> Iterator[Hit]:
    done = 0
    for middle in _COLONS.finditer(text):
        if middle.start() < done:
            continue
        match = _IPV6.match(text, _hex_before(text, middle.start()))
        if match is None:
            continue
        start, done = match.span()
        beside = (start and (text[start - 1].isalnum() or text[start - 1] in "_.:")) or (
            done < len(text) and (text[done].isalnum() or text[done] in "_:")
        )
        # Letters alone may be names set apart by colons.
        if not beside and len(match[0]) > 5 and any(one.isdigit() for one in match[0]) and _is_address(match[0]):
            yield Hit(start, done, "IP")


def _hex_before(text: str, end: int) -> int:
    """Where the hexadecimal digits before `end` begin, four at most."""
    start = end
    while start and end - start < 4 and text[start - 1] in "0123456789abcdefABCDEF":
        start -= 1
    return start


def _is_address(text: str) -> bool:
    """An address of a machine, and not the local one or none at all."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast)
