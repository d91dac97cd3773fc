"""Faults planted in clean interactions by code, to measure what local scorers see and to fit mismatch features.

Each kind changes one thing of a row whose response is supported, so that the changed row is not.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from scorers.interaction import Interaction
from scorers.lexicon import MONTHS
from scorers.text import clean, names, quantities, sentences, words

_UNIT_SWAPS: Mapping[str, str] = {
    "years": "months",
    "year": "month",
    "months": "years",
    "month": "year",
    "weeks": "days",
    "days": "weeks",
    "day": "hour",
    "hours": "minutes",
    "minutes": "hours",
    "seconds": "hours",
    "km": "miles",
    "kilometers": "miles",
    "miles": "kilometers",
    "feet": "meters",
    "meters": "feet",
    "metres": "feet",
    "kg": "tons",
    "pounds": "tons",
    "percent": "dollars",
    "%": " dollars",
    "dollars": "euros",
    "people": "years",
    "times": "years",
    "일": "개월",
    "주": "년",
    "개월": "일",
    "년": "개월",
    "시간": "일",
    "분": "시간",
    "원": "달러",
    "달러": "원",
    "명": "개",
    "개": "명",
    "번": "년",
    "회": "년",
}
_UNIT = re.compile(
    r"(\d)(\s?)("
    + "|".join(re.escape(unit) for unit in sorted(_UNIT_SWAPS, key=len, reverse=True))
    + r")(?![A-Za-z])"
)
_ENGLISH_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_KOREAN_DENIALS: Sequence[tuple[str, str]] = (
    ("하지 않습니다", "합니다"),
    ("하지 않는다", "한다"),
    ("지 않았다", "았다"),
    ("없습니다", "있습니다"),
    ("있습니다", "없습니다"),
    ("없다", "있다"),
    ("있다", "없다"),
    ("했습니다", "하지 않았습니다"),
    ("합니다", "하지 않습니다"),
    ("됩니다", "되지 않습니다"),
    ("되었다", "되지 않았다"),
    ("됐다", "되지 않았다"),
    ("했다", "하지 않았다"),
    ("하였다", "하지 않았다"),
    ("한다", "하지 않는다"),
    ("된다", "되지 않는다"),
    ("입니다", "이 아닙니다"),
    ("이다", "이 아니다"),
    ("좋다", "좋지 않다"),
    ("좋아요", "좋지 않아요"),
    ("해요", "하지 않아요"),
)
_AUXILIARY = r"\b(?:is|are|was|were|can|could|will|would|has been|have been|should|may|must)\b"
_KOREAN_NOUN = re.compile(r"([가-힣]{2,6})(은|는|이|가|을|를|의|에서|에게|와|과)(?=\s)")
_REFUSALS = {
    "en": (
        "I'm sorry, but I could not find an answer to that in the documents.",
        "I don't know.",
        "The provided context does not contain this information.",
        "Unfortunately I am unable to answer this question.",
    ),
    "ko": (
        "죄송하지만 해당 내용을 찾을 수 없습니다.",
        "잘 모르겠습니다.",
        "제공된 문서에는 관련 정보가 없습니다.",
        "답변해 드릴 수 없습니다.",
    ),
}

Planter = Callable[[Interaction, Interaction, random.Random], Interaction | None]


def _texts(interaction: Interaction) -> str:
    return "\n".join(passage.text for passage in interaction.contexts or ())


def _korean(interaction: Interaction) -> bool:
    return re.search("[가-힣]", interaction.response or "") is not None


def _number(row: Interaction, donor: Interaction, rng: random.Random) -> Interaction | None:
    response = row.response or ""
    spots = list(re.finditer(r"(?<![\w.,])\d+(?![\w]*[.,]\d)", response))
    if not spots:
        return None
    spot = rng.choice(spots)
    old = int(spot.group(0)[:9])
    held = {quantity.value for quantity in quantities(clean(_texts(row)))}
    for _ in range(20):
        new = str(max(2, old + rng.choice((-1, 1)) * rng.randint(1, max(3, old // 3))))
        if new not in held and int(new) != old:
            return replace(row, response=response[: spot.start()] + new + response[spot.end() :])
    return None


def _unit(row: Interaction, donor: Interaction, rng: random.Random) -> Interaction | None:
    response = row.response or ""
    spots = list(_UNIT.finditer(response))
    if not spots:
        return None
    spot = rng.choice(spots)
    put = f"{spot.group(1)}{spot.group(2)}{_UNIT_SWAPS[spot.group(3)]}"
    return replace(row, response=response[: spot.start()] + put + response[spot.end() :])


def _date(row: Interaction, donor: Interaction, rng: random.Random) -> Interaction | None:
    response = row.response or ""
    texts = _texts(row)
    spots: list[tuple[int, int, str]] = []
    for match in re.finditer(r"(?<!\d)(1[5-9]|20)(\d\d)(?!\d)", response):
        spots.append((match.start(), match.end(), str(int(match.group(0)) + rng.choice((-7, -3, -1, 1, 2, 5)))))
    for match in re.finditer(r"\b[A-Z][a-z]{2,8}\b", response):
        if match.group(0).casefold() in MONTHS and match.group(0) in _ENGLISH_MONTHS:
            other = _ENGLISH_MONTHS[(MONTHS[match.group(0).casefold()] + rng.randint(1, 9)) % 12]
            spots.append((match.start(), match.end(), other))
    for match in re.finditer(r"(?<!\d)(\d{1,2})월", response):
        spots.append((match.start(), match.end(), f"{int(match.group(1)) % 12 + 1}월"))
    spots = [spot for spot in spots if spot[2] not in texts]
    if not spots:
        return None
    start, end, put = rng.choice(spots)
    return replace(row, response=response[:start] + put + response[end:])


def _name(row: Interaction, donor: Interaction, rng: random.Random) -> Interaction | None:
    response, texts = row.response or "", _texts(row)
    if _korean(row):
        mine = [match for match in _KOREAN_NOUN.finditer(response) if match.group(1) in texts]
        theirs = [match.group(1) for match in _KOREAN_NOUN.finditer(_texts(donor)) if match.group(1) not in texts]
        if not mine or not theirs:
            return None
        spot = rng.choice(mine)
        return replace(row, response=response[: spot.start(1)] + rng.choice(theirs) + response[spot.end(1) :])

    def named(text: str) -> list[str]:
        found = [name for s in sentences(clean(text), "en") for name in names(words(s))]
        return [name for name in found if len(name) > 2 and name.casefold() not in MONTHS]

    own = [name for name in named(response) if name in texts]
    other = [name for name in named(_texts(donor)) if name.casefold() not in texts.casefold()]
    if not own or not other:
        return None
    old, new = rng.choice(own), rng.choice(other)
    return replace(row, response=re.sub(rf"\b{re.escape(old)}\b", lambda _: new, response))


def _negation(row: Interaction, donor: Interaction, rng: random.Random) -> Interaction | None:
    response = row.response or ""
    if _korean(row):
        for old, new in _KOREAN_DENIALS:
            place = response.rfind(old)
            if place >= 0:
                return replace(row, response=response[:place] + new + response[place + len(old) :])
        return None
    denied = re.search(r"\b(?:not |never )", response)
    if denied is not None:
        return replace(row, response=response[: denied.start()] + response[denied.end() :])
    spots = list(re.finditer(_AUXILIARY, response))
    if not spots:
        return None
    spot = rng.choice(spots)
    return replace(row, response=response[: spot.end()] + " not" + response[spot.end() :])


def _inserted(row: Interaction, donor: Interaction, rng: random.Random) -> Interaction | None:
    found = [s for s in sentences(clean(_texts(donor))) if len(s) >= 20]
    if not found:
        return None
    return replace(row, response=f"{(row.response or '').rstrip()} {rng.choice(found)}")


def _swapped(row: Interaction, donor: Interaction, rng: random.Random) -> Interaction | None:
    return replace(row, contexts=donor.contexts) if donor.contexts else None


def _emptied(row: Interaction, donor: Interaction, rng: random.Random) -> Interaction | None:
    return replace(row, contexts=())


def _refusal(row: Interaction, donor: Interaction, rng: random.Random) -> Interaction | None:
    return replace(row, response=rng.choice(_REFUSALS["ko" if _korean(row) else "en"]))


PLANTERS: Mapping[str, Planter] = {
    "number": _number,
    "unit": _unit,
    "date": _date,
    "name": _name,
    "negation": _negation,
    "inserted": _inserted,
    "swapped": _swapped,
    "emptied": _emptied,
    "refusal": _refusal,
}
"""Kind of fault to the function (row, row of another document, random) that plants it; None where the row has no
place for it. An empty `contexts` or a refusal is a fault to notice, not an unsupported claim."""


def donor_of(rows: Sequence[Interaction], groups: Sequence[str], place: int) -> Interaction | None:
    """A row of another document, half the list away; None where all rows share one document."""
    for ahead in range(len(rows)):
        other = (place + len(rows) // 2 + ahead) % len(rows)
        if groups[other] != groups[place] and rows[other].contexts:
            return rows[other]
    return None
