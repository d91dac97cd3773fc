"""Texts read once for all local scorers: sentences, tokens with weights, quantities, names, positions.

`Reader` turns a text into a `Reading` and keeps the readings of passages by content, because passages repeat over
interactions. Nothing here knows what is being scored.
"""

from __future__ import annotations

import math
import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from importlib import resources
from itertools import chain

from scorers.interaction import Interaction
from scorers.lexicon import FUNCTION_GRAMS, FUNCTION_WORDS, NUMBER_WORDS
from scorers.text import (
    DENIAL,
    GRAM_SCRIPTS,
    Quantity,
    clean,
    grams,
    kind,
    language,
    names,
    negations,
    quantities,
    script,
    scripts,
    sentences,
    stem,
    words,
)

MAX_RESPONSE_CHARACTERS = 32_000
MAX_RESPONSE_SENTENCES = 100
MAX_CONTEXT_CHARACTERS = 1_000_000
MAX_CONTEXT_SENTENCES = 8_000
MAX_PASSAGES = 500
"""Bounds of what is read. What lies beyond is not scored and the result is flagged `cut`."""

CITATION = re.compile(
    r"[\[【(]\s*(?:(?:doc(?:ument)?|source|passage|context|ref(?:erence)?|출처|문서|자료|资料|来源|資料|出典|quelle)s?"
    r"\s*[:#]?\s*)?(?P<numbers>\d{1,3}(?:\s*[,;~–-]\s*\d{1,3}){0,20})\s*(?:†[^\]】]{0,40})?[\]】)]",
    re.IGNORECASE,
)
"""A citation of passages by number, "[1]", "[2, 3]", "(source 4)", "【5†x】"; a bare "(6)" matches too."""
_LISTED = re.compile(r"^\s*(?:[-*•#>]+|\d{1,2}[.)])\s+")  # a list's mark is not a number of the answer

_BLOCK = 1024
_FUNCTION_WEIGHT = 0.05
_UNKNOWN_WEIGHT = 1.0
_GRAM_WEIGHT = 0.5
_WORDS_KEPT, _LONGEST_KEPT = 50_000, 32
_FIRST_WORD = 1996  # the vocabulary's line of "the"; from there on it is ordered by frequency


class Weights:
    """How much a word says: 0.05 for function words, else rising with its rarity to 1.

    Rarity is the log rank in the encoder's vocabulary, which lists whole English words by frequency; a word that
    it does not list is rare. Immutable.
    """

    def __init__(self, vocabulary: Iterable[str]) -> None:
        ranked = [word for word in list(vocabulary)[_FIRST_WORD:] if not word.startswith("##")]
        top = math.log(len(ranked) + 1) or 1.0
        self._weights = {word: max(0.15, math.log(rank) / top) for rank, word in enumerate(ranked, start=1)}
        for listed in FUNCTION_WORDS.values():
            self._weights.update(dict.fromkeys(listed, _FUNCTION_WEIGHT))

    def of(self, word: str) -> float:
        """The weight of a case-folded word as written, in [0.05, 1]."""
        return self._weights.get(word, _UNKNOWN_WEIGHT)


def load_vocabulary() -> list[str]:
    """The encoder's vocabulary, one token a line, shipped with the package (see `data/MODEL_CARD.md`)."""
    return resources.files("scorers.local").joinpath("data/vocab.txt").read_text("utf-8").split("\n")


@dataclass(frozen=True, slots=True)
class Word:
    """A word as written, once for all places where it stands: its tokens with their weights, and its `kind`."""

    text: str
    parts: tuple[tuple[str, float], ...]
    kind: int


@dataclass(slots=True)
class Sentence:
    """One sentence as features see it.

    `tokens` are stems, and character pairs in scripts without spaces; `content` maps each distinct token to its
    weight; `bulk` is the sum of these weights. `names` are known when somebody asked the reader for them.
    """

    text: str
    words: list[str]
    tokens: list[str]
    content: dict[str, float]
    bulk: float
    quantities: list[Quantity]
    negated: bool
    names: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Up to 1,026 neighbouring tokens: how many, and for each token the bit mask of its places."""

    size: int
    positions: dict[str, int]


def _block(tokens: Sequence[str]) -> Block:
    places: dict[str, int] = {}
    bit = 1
    for token in tokens:
        places[token] = places.get(token, 0) | bit
        bit <<= 1
    return Block(len(tokens), places)


@dataclass
class Reading:
    """A text read once; `cut` is true where the text was over the bound."""

    text: str
    sentences: list[Sentence]
    cut: bool = False
    vectors: dict[str, object] = field(default_factory=dict)

    @cached_property
    def tokens(self) -> list[str]:
        return list(chain.from_iterable(sentence.tokens for sentence in self.sentences))

    @cached_property
    def content(self) -> dict[str, float]:
        merged: dict[str, float] = {}
        for sentence in self.sentences:
            merged.update(sentence.content)
        return merged

    @cached_property
    def bulk(self) -> float:
        return sum(self.content.values())

    @cached_property
    def blocks(self) -> list[Block]:
        """The tokens in blocks that overlap by two, so that masks stay short however long the text is."""
        tokens = self.tokens
        return [_block(tokens[max(0, at - 2) : at + _BLOCK]) for at in range(0, len(tokens), _BLOCK)]

    @cached_property
    def folded(self) -> frozenset[str]:
        """Every word as written, case-folded."""
        return frozenset(map(str.casefold, chain.from_iterable(sentence.words for sentence in self.sentences)))

    @cached_property
    def values(self) -> dict[str, set[str]]:
        """Each number's value with the units that it stands with."""
        found: dict[str, set[str]] = {}
        for sentence in self.sentences:
            for quantity in sentence.quantities:
                found.setdefault(quantity.value, set()).add(quantity.unit)
        return found

    @cached_property
    def holders(self) -> dict[str, Sequence[int]]:
        """Token to the numbers of the sentences that hold it."""
        found: dict[str, Sequence[int]] = {}
        for number, sentence in enumerate(self.sentences):
            alone = (number,)  # most tokens are in one sentence: one object for all of them
            for token in sentence.content:
                held = found.get(token)
                if held is None:
                    found[token] = alone
                elif isinstance(held, list):
                    held.append(number)
                else:
                    found[token] = [*held, number]
        return found

    @cached_property
    def scripts(self) -> Counter[str]:
        return scripts(self.text)

    @cached_property
    def language(self) -> str | None:
        return language(self.text, self.scripts)


@dataclass
class Exchange:
    """One interaction, read. `contexts` is None where contexts are not known."""

    interaction: Interaction
    question: Reading | None
    response: Reading | None
    contexts: list[Reading] | None
    cut: bool
    memo: dict[str, object] = field(default_factory=dict)


def _size(reading: Reading) -> int:
    """Bytes that a reading takes beside its text when all of it was asked for, as measured on English and Korean
    passages of 60 to 15,000 characters."""
    tokens = sum(len(sentence.tokens) for sentence in reading.sentences)
    entries = sum(len(sentence.content) for sentence in reading.sentences)
    return 1000 + 700 * len(reading.sentences) + 25 * tokens + 75 * entries + 230 * len(reading.content)


class Reader:
    """Reads texts, keeping the readings of the last passages within `cache_bytes` (estimated)."""

    def __init__(self, *, cache_bytes: int = 32 * 1024 * 1024) -> None:
        self._weights = Weights(load_vocabulary())
        self._cache: OrderedDict[bytes, tuple[Reading, int]] = OrderedDict()
        self._cache_bytes = cache_bytes
        self._held = 0
        self._words: dict[str, Word] = {}

    def exchange(self, interaction: Interaction) -> Exchange:
        question = (
            None if interaction.question is None else self.read(interaction.question, MAX_RESPONSE_CHARACTERS)
        )
        response = (
            None if interaction.response is None else self.read(interaction.response, MAX_RESPONSE_CHARACTERS)
        )
        contexts = None if interaction.contexts is None else self._passages([p.text for p in interaction.contexts])
        cut = (
            any(reading.cut for reading in (question, response) if reading is not None)
            or any(reading.cut for reading in contexts or ())
            or (interaction.contexts is not None and len(interaction.contexts) > MAX_PASSAGES)
        )
        return Exchange(interaction, question, response, contexts, cut)

    def _passages(self, texts: Sequence[str]) -> list[Reading]:
        texts = texts[:MAX_PASSAGES]
        allowed = MAX_CONTEXT_CHARACTERS // max(1, len(texts))
        limit = MAX_CONTEXT_SENTENCES // max(1, len(texts))
        return [self._cached(text, allowed, limit) for text in texts]

    def _cached(self, text: str, allowed: int, limit: int) -> Reading:
        head = text[:allowed]
        encoded = head.encode("utf-8", "surrogatepass")
        key = blake2b(encoded, digest_size=16).digest()
        held = self._cache.get(key)
        if held is not None and len(text) <= allowed and len(held[0].sentences) <= limit:
            self._cache.move_to_end(key)
            return held[0]
        reading = self.read(text, allowed, limit, spoken=False)
        size = 2 * len(encoded) + _size(reading)
        if size <= self._cache_bytes // 4 and not reading.cut:
            self._cache[key] = (reading, size)
            self._held += size
            while self._held > self._cache_bytes:
                _, (_, freed) = self._cache.popitem(last=False)
                self._held -= freed
        return reading

    def read(
        self, text: str, allowed: int, limit: int = MAX_RESPONSE_SENTENCES, *, spoken: bool = True
    ) -> Reading:
        """Read at most `allowed` characters and `limit` sentences of `text`; marks of citations and lists are left
        out of what is `spoken` (questions and responses)."""
        cut = len(text) > allowed
        cleaned = clean(text[:allowed])
        found = sentences(cleaned, limit=limit + 1)
        if len(found) > limit:
            cut = True
            found = found[:limit]
        return Reading(cleaned, [self._sentence(sentence, spoken) for sentence in found], cut)

    def _sentence(self, text: str, spoken: bool) -> Sentence:
        read = _LISTED.sub("", CITATION.sub(" ", text)) if spoken else text
        known = self._words
        found = [known.get(word) or self._word(word) for word in words(read)]
        parts = [part for word in found for part in word.parts]
        content = dict(parts)
        kinds = 0
        for word in found:
            kinds |= word.kind
        denials = negations(read, [word.kind for word in found] if kinds & DENIAL else ())
        return Sentence(
            text,
            [word.text for word in found],
            [token for token, _ in parts],
            content,
            sum(content.values()),
            quantities(read, kinds),
            denials % 2 == 1,
        )

    def parts(self, word: str) -> tuple[tuple[str, float], ...]:
        """The tokens of a word as written, with their weights."""
        return self._word(word).parts

    def _word(self, text: str) -> Word:
        word = self._words.get(text)
        if word is None:
            word = Word(text, self._parts(text), kind(text))
            if len(self._words) < _WORDS_KEPT and len(text) <= _LONGEST_KEPT:
                self._words[text] = word
        return word

    def _parts(self, word: str) -> tuple[tuple[str, float], ...]:
        folded = word.casefold()
        if script(folded[0]) in GRAM_SCRIPTS:
            return tuple(
                (gram, _FUNCTION_WEIGHT if gram in FUNCTION_GRAMS else _GRAM_WEIGHT) for gram in grams(folded)
            )
        if folded[0].isdigit():
            return ((folded, 0.8),)
        if folded in NUMBER_WORDS and folded != "one":
            return ((str(NUMBER_WORDS[folded]), 0.8),)
        return ((stem(folded), self._weights.of(folded)),)

    def names(self, sentence: Sentence) -> list[str]:
        """Words of the sentence that look like names, except such as are function words."""
        found = sentence.names
        if found is None:
            found = [
                word for word in names(sentence.words) if self._weights.of(word.casefold()) > _FUNCTION_WEIGHT
            ]
            sentence.names = found
        return found
