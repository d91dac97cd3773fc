"""Reading text in many languages: cleaning, scripts, sentences, tokens, quantities, names, negation.

Pure functions. Each takes any `str` (lone surrogates, controls and bidi marks included), never raises for odd
text, and works in time proportional to its length.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_

import sentencex

from scorers.lexicon import (
    FUNCTION_WORDS,
    MONTHS,
    MULTIPLIERS,
    NEGATOR_PATTERN,
    NEGATORS,
    NUMBER_WORDS,
    UNITS,
)

_SURROGATE = re.compile("[\ud800-\udfff]")
# Zero-width and bidi marks, soft hyphen, variation selectors, tag characters: they hide or reorder text.
_INVISIBLE = re.compile(
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SPLIT_BLOCK = 4000
"""Characters handed to the splitter at once: it takes quadratic time on some texts with many quotes."""


def clean(text: str) -> str:
    """NFKC, without lone surrogates (U+FFFD instead), invisible marks and controls (a space instead)."""
    if text.isascii():
        return _CONTROL.sub(" ", text)
    text = _SURROGATE.sub("\ufffd", text)
    text = _INVISIBLE.sub("", text)
    return _CONTROL.sub(" ", unicodedata.normalize("NFKC", text))


_SCRIPTS = (
    ("latin", 0x0041, 0x024F),
    ("greek", 0x0370, 0x03FF),
    ("cyrillic", 0x0400, 0x052F),
    ("hebrew", 0x0590, 0x05FF),
    ("arabic", 0x0600, 0x08FF),
    ("devanagari", 0x0900, 0x097F),
    ("indic", 0x0980, 0x0DFF),
    ("thai", 0x0E00, 0x0E7F),
    ("lao", 0x0E80, 0x0EFF),
    ("myanmar", 0x1000, 0x109F),
    ("hangul", 0x1100, 0x11FF),
    ("khmer", 0x1780, 0x17FF),
    ("latin", 0x1E00, 0x1EFF),
    ("kana", 0x3040, 0x30FF),
    ("hangul", 0x3130, 0x318F),
    ("han", 0x3400, 0x4DBF),
    ("han", 0x4E00, 0x9FFF),
    ("hangul", 0xAC00, 0xD7AF),
    ("han", 0xF900, 0xFAFF),
    ("han", 0x20000, 0x3134F),
)
GRAM_SCRIPTS = frozenset({"hangul", "kana", "han", "thai", "lao", "myanmar", "khmer"})
"""Scripts read by character pairs: they write no spaces, or glue endings to the words."""


def script(character: str) -> str:
    """The script of one letter by its code point; "" for digits, marks and what is not listed."""
    code = ord(character)
    if code < 0x80:
        return "latin" if character.isalpha() else ""
    for name, low, high in _SCRIPTS:
        if low <= code <= high:
            return name if character.isalpha() or name not in ("latin",) else ""
    return "other" if character.isalpha() else ""


_ASCII_BUT_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())


def scripts(text: str, limit: int = 2000) -> Counter[str]:
    """How many letters of each script the first `limit` characters hold."""
    head = text[:limit]
    if head.isascii():
        letters = len(head.encode().translate(None, _ASCII_BUT_LETTERS))
        return Counter({"latin": letters}) if letters else Counter()
    found: Counter[str] = Counter()
    for character, count in Counter(head).items():  # a text has few distinct characters
        name = script(character)
        if name:
            found[name] += count
    return found


_BY_SCRIPT = {"hangul": "ko", "kana": "ja", "devanagari": "hi", "thai": "th", "greek": "el", "hebrew": "he"}
_BY_SCRIPT |= {"cyrillic": "ru", "arabic": "ar", "han": "zh"}


def language(text: str, found: Counter[str] | None = None) -> str | None:
    """A guess at the BCP 47 primary tag: by script, for Latin by the share of function words.

    None where the text is too short or nothing stands out; a script used by several languages (Cyrillic, Arabic,
    Devanagari) is reported as its most common one. `found` are the text's `scripts` where the caller has them.
    """
    if found is None:
        found = scripts(text)
    total = sum(found.values())
    if total < 2:
        return None
    if found["kana"] * 10 >= total:
        return "ja"
    name, count = found.most_common(1)[0]
    if name != "latin":
        return _BY_SCRIPT.get(name) if count * 10 >= total * 3 else None
    listed = re.findall(r"[^\W\d_]+", text[:600].casefold())
    if len(listed) < 3:
        return None
    hits: dict[str, int] = {}
    for word in listed:
        for tag in _LANGUAGES_OF.get(word, ()):
            hits[tag] = hits.get(tag, 0) + 1
    ranked = [*sorted(hits.items(), key=lambda item: -item[1])[:2], ("", 0), ("", 0)]
    (best, top), (_, second) = ranked[0], ranked[1]
    return best if top >= 2 and top * 6 >= len(listed) and top >= second * 1.2 + 0.5 else None


_LANGUAGES_OF: dict[str, tuple[str, ...]] = {
    word: tuple(tag for tag, listed in FUNCTION_WORDS.items() if word in listed)
    for word in frozenset().union(*FUNCTION_WORDS.values())
}


_INITIAL = re.compile(r"(?:^|\s)(?:[A-ZÀ-ÞА-Я]\.|(?:[^\W\d_]\.){2,})$")
_INITIALED = ("latin", "cyrillic")
_LIST_MARK = re.compile(r"\(?\d{1,2}[.)]")  # "1." before an item is not a sentence
_QUOTATIVE = re.compile(r"^(?:と|って|という)")


def sentences(text: str, tag: str | None = None, limit: int | None = None) -> list[str]:
    """The sentences of `text` in order, stripped, without empty ones; at most `limit` of them.

    `tag` is the language where the caller knows it; splitting is by the `sentencex` rules, mended for initials
    ("M. Dupont") and Japanese quotations. A line break ends a sentence. Text is expected `clean`.
    """
    if tag is None:
        tag = "en" if text.isascii() else language(text) or "en"
    found: list[str] = []
    for block in _blocks(_SURROGATE.sub("\ufffd", text)):
        carried = ""
        for piece in sentencex.segment(tag, block):
            stripped = piece.strip()
            if not stripped:
                continue
            if carried:
                stripped = f"{carried} {stripped}"
                carried = ""
            initial = (
                _may_be_initial(stripped) and _INITIAL.search(stripped) and script(stripped[-2]) in _INITIALED
            )
            if (initial and len(stripped) < 200) or _LIST_MARK.fullmatch(stripped):
                carried = stripped
                continue
            if found and _QUOTATIVE.match(stripped) and found[-1][-1] in "」』":
                found[-1] += stripped
            else:
                found.append(stripped)
        if carried:
            found.append(carried)
        if limit is not None and len(found) >= limit:
            return found[:limit]
    return found


def _may_be_initial(piece: str) -> bool:
    """Whether the letter before the last character stands alone: else `_INITIAL` need not look through the text."""
    return len(piece) < 3 or piece[-3] == "." or piece[-3].isspace()


def _blocks(text: str) -> list[str]:
    blocks: list[str] = []
    for line in text.splitlines():
        rest = line
        while len(rest) > _SPLIT_BLOCK:
            cut = rest.rfind(" ", _SPLIT_BLOCK // 2, _SPLIT_BLOCK) + 1 or _SPLIT_BLOCK
            blocks.append(rest[:cut])
            rest = rest[cut:]
        blocks.append(rest)
    return blocks


_WORD = re.compile(r"\d+(?:[.,:/'’]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|[$€£¥₩%°]")


def words(text: str) -> list[str]:
    """Words, numbers (with inner separators) and currency, percent and degree signs, as written."""
    return _WORD.findall(text)


def stem(word: str) -> str:
    """A case-folded word without its commonest English endings, or cut short in scripts that inflect heavily.

    Not linguistics: both sides of a comparison go through it, so it need only map forms of one word together.
    """
    if len(word) <= 3:
        return word
    if not word.isascii():
        return word[:6] if len(word) > 6 else word
    if word.endswith(("'s", "’s")):
        word = word[:-2]
    for ending, put in (
        ("ies", "y"),
        ("ied", "y"),
        ("sses", "ss"),
        ("ing", ""),
        ("edly", ""),
        ("ed", ""),
        ("ly", ""),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: len(word) - len(ending)] + put
            break
    else:
        if word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsaeiou":
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def grams(word: str) -> list[str]:
    """Neighbouring character pairs of a word; the word itself when it is one character."""
    return [word[i : i + 2] for i in range(len(word) - 1)] or [word]


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """A number with what it counts: `value` canonical ("1200.5"), `unit` a short name of `lexicon.UNITS`, `m01`
    to `m12` for a day of a month, or ""; `text` as written."""

    value: str
    unit: str
    text: str = ""


_NUMBER = re.compile(
    r"(?P<sign>[$€£¥₩]\s?)?(?<![A-Za-z\d.])(?P<number>\d{1,3}(?:[.,'’ ]\d{3})+(?![\d])(?:[.,]\d+)?|\d+(?:[.,]\d+)?)"
    r"(?P<ordinal>st|nd|rd|th|s)?(?P<gap>[\s-]?)(?P<after>[%°][CF]?|[^\W\d_]+\.?)?"
)
_DIGIT = re.compile(r"\d")
_ISO_DATE = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_ASIAN_DATE = re.compile(r"(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일]")
_DAY_MONTH = re.compile(r"(\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?([^\W\d_]{3,10})", re.UNICODE)
_MONTH_DAY = re.compile(r"([^\W\d_]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?(?![\d.,]\d)", re.UNICODE)
_NUMBER_WORD = re.compile(
    r"\b(" + "|".join(sorted(NUMBER_WORDS, key=len, reverse=True)) + r")\b(?:[\s-]([^\W\d_]+))?", re.IGNORECASE
)
_GLUED = sorted((form for form in UNITS if not form.isascii() and len(form) <= 6), key=len, reverse=True)
_GLUED_MULTIPLIERS = tuple(form for form in MULTIPLIERS if not form.isascii())


def canonical_number(text: str) -> str:
    """The number without grouping, with a point, without trailing zeros: "1,200.50" -> "1200.5".

    A single separator before exactly three digits is taken as grouping ("1.000" is a thousand).
    """
    text = re.sub(r"['’ ]", "", text)
    groups = re.split(r"[.,]", text)
    if len(groups) == 1:
        whole, fraction = groups[0], ""
    elif all(len(group) == 3 for group in groups[1:]) and (len(groups) > 2 or groups[0] != "0"):
        whole, fraction = "".join(groups), ""
    else:
        whole, fraction = "".join(groups[:-1]), groups[-1]
    whole = whole.lstrip("0") or "0"
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def _times(value: str, factor: float) -> str:
    if len(value) > 18:
        return value
    return f"{float(value) * factor:.6f}".rstrip("0").rstrip(".")


def _unit_of(after: str, following: str) -> tuple[float, str]:
    """Factor and unit that the letters after a number give; `following` is the text after them."""
    factor = 1.0
    word = after.rstrip(".").casefold()
    if not word.isascii():
        while word and word[0] in _GLUED_MULTIPLIERS:
            factor *= MULTIPLIERS[word[0]]
            word = word[1:]
        for form in _GLUED:
            if word.startswith(form):
                return factor, UNITS[form]
        if factor != 1.0 and not word:
            return factor, _first_unit(following)
        return factor, UNITS.get(word, "")
    if word in MULTIPLIERS:
        return MULTIPLIERS[word], _first_unit(following)
    return factor, UNITS.get(word, "")


def _first_unit(following: str) -> str:
    match = re.match(r"[\s-]?([^\W\d_]+|[%°€$])", following[:40])
    return UNITS.get(match.group(1).casefold(), "") if match else ""


MONTH, NUMBER_WORD, DENIAL = 1, 2, 4


def kind(word: str) -> int:
    """What a word is by the lists: the sum of those of MONTH, NUMBER_WORD and DENIAL that hold."""
    folded = word.casefold()
    return MONTH * (folded in MONTHS) + NUMBER_WORD * (folded in NUMBER_WORDS) + DENIAL * (folded in NEGATORS)


def quantities(text: str, kinds: int | None = None) -> list[Quantity]:
    """The numbers of `clean` text with unit, currency, percent or date, in order of appearance.

    Number words are English only; "one" is left out, since it is mostly a pronoun. `kinds` is what the `kind`
    of any of the text's words holds, where the caller knows it.
    """
    found: list[Quantity] = []
    if kinds is None:
        kinds = reduce(or_, map(kind, words(text)), 0)
    if _DIGIT.search(text) is not None:
        for match in _NUMBER.finditer(text):
            value = canonical_number(match.group("number"))
            after = match.group("after") or ""
            factor, unit = _unit_of(after, text[match.end() : match.end() + 40]) if after else (1.0, "")
            if match.group("gap") == "" and match.group("ordinal") == "s" and not after:
                unit = ""
            if after and len(after) == 1 and match.group("gap") and after.casefold() in ("s", "m", "g", "l", "h"):
                unit = unit if after.islower() else ""
            sign = (match.group("sign") or "").strip()
            if sign:
                unit = UNITS[sign]
            if factor != 1.0:
                value = _times(value, factor)
            shown = match.group(0).strip().rstrip(".") if unit or factor != 1.0 else match.group("number")
            found.append(Quantity(value, unit, shown))
        found.extend(_dates(text, named=bool(kinds & MONTH)))
    if not kinds & NUMBER_WORD:
        return found
    for match in _NUMBER_WORD.finditer(text):
        word = match.group(1).casefold()
        if word == "one":
            continue
        number = NUMBER_WORDS[word]
        after = (match.group(2) or "").casefold()
        following = text[match.end() : match.end() + 40]
        if 20 <= number < 100 and 0 < NUMBER_WORDS.get(after, 0) < 10:
            number += NUMBER_WORDS[after]
            after = ""
        factor, unit = (
            _unit_of(after, following) if after else (1.0, _first_unit(following) if number > 20 else "")
        )
        found.append(Quantity(_times(str(number), factor), unit, match.group(0) if unit or number > 20 else word))
    return found


def _dates(text: str, *, named: bool) -> list[Quantity]:
    """Days of months; `named` tells whether a month's name occurs at all."""
    found = [
        Quantity(str(int(day)), f"m{int(month):02}", f"{year}-{month}-{day}")
        for year, month, day in _ISO_DATE.findall(text)
        if 1 <= int(month) <= 12
    ]
    found += [
        Quantity(str(int(day)), f"m{int(month):02}", f"{month}-{day}")
        for month, day in _ASIAN_DATE.findall(text)
        if 1 <= int(month) <= 12
    ]
    if not named:
        return found
    for day, name in _DAY_MONTH.findall(text):
        if name.casefold() in MONTHS and 1 <= int(day) <= 31:
            found.append(Quantity(str(int(day)), f"m{MONTHS[name.casefold()]:02}", f"{day} {name}"))
    for name, day in _MONTH_DAY.findall(text):
        if name.casefold() in MONTHS and name[0].isupper() and 1 <= int(day) <= 31:
            found.append(Quantity(str(int(day)), f"m{MONTHS[name.casefold()]:02}", f"{name} {day}"))
    return found


def names(found: list[str]) -> list[str]:
    """The words (of one sentence, as written) that look like names: a capital or an inner capital, not at the
    start of the sentence unless the next word is a name too, not "I". Latin, Greek and Cyrillic only."""
    marked = [
        bool(word[0].isupper() and (len(word) > 1 and word.partition("'")[0] != "I"))
        or word[1:] != word[1:].lower()
        for word in found
    ]
    if not found or sum(marked) * 10 > len(found) * 7:
        return []  # a heading or shouting: capitals say nothing
    if marked[0] and not (len(marked) > 1 and marked[1]):
        marked[0] = found[0][1:] != found[0][1:].lower()
    return [word for word, is_name in zip(found, marked, strict=True) if is_name]


_NEGATION = re.compile(NEGATOR_PATTERN)


def negations(text: str, found: Iterable[int]) -> int:
    """How many denials the sentence holds, by the `kind` of its words and by Korean, Japanese, Chinese and "n't"
    parts."""
    count = sum(kind & DENIAL for kind in found) // DENIAL
    if text.isascii():
        return count + text.count("n't")
    return count + len(_NEGATION.findall(text))
