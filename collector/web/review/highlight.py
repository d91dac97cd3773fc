"""Where the claims of a response stand in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from scorers.outcome import Label
from scorers.text import sentences, words

MAX_CLAIMS = 200
"""Claims that are looked for; later ones are listed beside the response."""
MAX_CHARS = 40_000
"""Characters of a response in which they are looked for."""
_MAX_SENTENCES = 400
_LEAST_OVERLAP = 0.5
_STOP = re.compile("[.!?。！？…]+")
_SPACE = re.compile(r"\s+")
_WORST_FIRST = (Label.CONTRADICTED, Label.UNSUPPORTED, Label.UNKNOWN, Label.SUPPORTED)


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the response. `claims` are the indexes of those that stand there, `ends` of those that end with it;
    `label` is the worst of their verdicts, None where no claim stands."""

    text: str
    claims: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    label: Label | None = None


def segments(response: str, claims: Sequence[tuple[str, Label]]) -> list[Segment]:
    """The response in pieces that add up to it; a claim that is found nowhere is in none of them.

    A claim stands where its words occur verbatim (but for case and white space), else in the sentence that shares
    most of its words, at least half of them: judges restate claims so that they stand alone.
    """
    places = _places(response[:MAX_CHARS], [claim for claim, _ in claims[:MAX_CLAIMS]])
    borders = sorted({0, len(response), *(at for place in places.values() for at in place)})
    found = []
    for start, end in pairwise(borders):
        here = tuple(index for index, (first, last) in places.items() if first <= start and end <= last)
        labels = {claims[index][1] for index in here}
        worst = next((label for label in _WORST_FIRST if label in labels), None)
        ends = tuple(index for index in here if places[index][1] == end)
        found.append(Segment(response[start:end], here, ends, worst))
    return found


def _places(response: str, claims: Sequence[str]) -> dict[int, tuple[int, int]]:
    places: dict[int, tuple[int, int]] = {}
    parts: list[tuple[int, int, frozenset[str]]] | None = None
    for index, claim in enumerate(claims):
        place = _verbatim(response, claim)
        if place is None:
            parts = _sentences(response) if parts is None else parts
            place = _nearest(parts, claim)
        if place is not None:
            places[index] = place
    return places


def _verbatim(response: str, claim: str) -> tuple[int, int] | None:
    pieces = _SPACE.split(claim.strip().rstrip(".。"))
    if not any(pieces) or len(pieces) > 300:
        return None
    found = re.search(r"\s+".join(map(re.escape, pieces)), response, re.IGNORECASE)
    if found is None:
        return None
    stop = _STOP.match(response, found.end())
    return found.start(), stop.end() if stop else found.end()


def _sentences(response: str) -> list[tuple[int, int, frozenset[str]]]:
    found, at = [], 0
    for sentence in sentences(response, limit=_MAX_SENTENCES):
        start = response.find(sentence, at)
        if start < 0:  # the splitter joined pieces over white space
            continue
        at = start + len(sentence)
        found.append((start, at, _words(sentence)))
    return found


def _nearest(parts: Sequence[tuple[int, int, frozenset[str]]], claim: str) -> tuple[int, int] | None:
    wanted = _words(claim)
    if not wanted:
        return None
    shares = [(len(wanted & have) / len(wanted), -start, start, end) for start, end, have in parts]
    share, _, start, end = max(shares, default=(0.0, 0, 0, 0))
    return (start, end) if share >= _LEAST_OVERLAP else None


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in words(text))
