"""Features of support: how well the contexts carry each sentence of a response.

Every feature rises or stays when text is added to the contexts, and none depends on the order of passages. With
coefficients of one sign this makes the score monotone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from scorers.lexicon import FIRST_PERSON
from scorers.local.reading import Block, Exchange, Reader, Reading, Sentence
from scorers.text import Quantity

FEATURES = (
    "recall",
    "novel_recall",
    "best",
    "best_agreeing",
    "sequence",
    "pairs",
    "triples",
    "numbers",
    "units",
    "names",
    "first_person",
)
"""Per sentence, in [0, 1] or [-1, 0], more is better. `recall`: weighted share of the sentence's tokens that occur
in the contexts. `novel_recall`: the same over tokens that the question does not hold. `best`: the highest
recall by one context sentence; `best_agreeing`: the same where a context sentence that differs in denial or
lacks a number counts for less. `sequence`: longest common subsequence with one passage over the sentence's
length (ROUGE-L precision; Lin 2004). `pairs`, `triples`: share of neighbouring tokens found in one passage.
`numbers`, `units`, `names`, `first_person`: minus the share (capped count) that the contexts do not have; numbers
and names that the question brought up are no claims of the response and do not count."""

_ORDERED_TOKENS = 400  # of a longer sentence only so many are compared in order; that bounds the time


@dataclass(slots=True)
class SentenceSupport:
    """What the contexts have for the response's sentence number `index`.

    `nearest` is (passage rank from 0, sentence text) or None.
    """

    index: int
    sentence: Sentence
    values: list[float]
    nearest: tuple[int, str] | None = None
    missing_numbers: list[str] = field(default_factory=list)
    other_units: list[str] = field(default_factory=list)
    missing_names: list[str] = field(default_factory=list)
    missing_words: list[str] = field(default_factory=list)
    denial_differs: bool = False


def length_of_common_subsequence(tokens: Sequence[str], reading: Reading) -> int:
    """Length of the longest common subsequence, by the bit-vector method of Crochemore et al. (2001).

    One step per token of the sentence on an integer with one bit per token of a block of the passage; over several
    blocks the longest counts.
    """
    return max((_in_block(_masks(tokens, block), block.size) for block in reading.blocks), default=0)


def _masks(tokens: Sequence[str], block: Block) -> list[int]:
    """The places of each token in a block, as bit masks."""
    places = block.positions
    return [places.get(token, 0) for token in tokens]


def _in_block(masks: Sequence[int], size: int) -> int:
    full = (1 << size) - 1
    row = full
    for mask in masks:
        if mask:
            hit = row & mask
            row = ((row + hit) | (row - hit)) & full
    return size - row.bit_count()


def in_order(tokens: Sequence[str], contexts: Sequence[Reading]) -> tuple[int, float, float]:
    """The length of the longest common subsequence with one passage, and the shares of neighbouring token pairs and
    triples that occur side by side in one."""
    pairs = max(0, len(tokens) - 1)
    triples = max(0, len(tokens) - 2)
    found_pairs = bytearray(pairs)
    found_triples = bytearray(triples)
    longest = 0
    for block in (block for reading in contexts for block in reading.blocks):
        masks = _masks(tokens, block)
        longest = max(longest, _in_block(masks, block.size))
        previous = 0
        for i in range(pairs):
            mask = masks[i + 1]
            run = (masks[i] << 1) & mask if mask else 0
            if run:
                found_pairs[i] = 1
                if previous and (previous << 1) & mask:
                    found_triples[i - 1] = 1
            previous = run
    share_pairs = sum(found_pairs) / pairs if pairs else 0.0
    return longest, share_pairs, sum(found_triples) / triples if triples else share_pairs


def _has(quantity: Quantity, units: set[str] | None) -> tuple[bool, bool]:
    """Whether the value occurs, and whether it occurs with a unit that does not deny the quantity's."""
    if units is None:
        return False, False
    return True, not quantity.unit or quantity.unit in units or (units == {""} and quantity.unit[0] != "m")


class Support:
    """Computes support features; holds no state of its own."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def of(self, exchange: Exchange, only: int | None = None) -> list[SentenceSupport]:
        """Support of every response sentence that has a word; by passage `only` where given."""
        if exchange.response is None or exchange.contexts is None:
            return []
        contexts = exchange.contexts if only is None else [exchange.contexts[only]]
        question = exchange.question
        values: dict[str, set[str]] = {}
        for reading in contexts if question is None else [*contexts, question]:
            for value, units in reading.values.items():
                values.setdefault(value, set()).update(units)
        return [
            self._sentence(index, sentence, contexts, question, values)
            for index, sentence in enumerate(exchange.response.sentences)
            if sentence.tokens
        ]

    def _sentence(
        self,
        index: int,
        sentence: Sentence,
        contexts: Sequence[Reading],
        question: Reading | None,
        values: dict[str, set[str]],
    ) -> SentenceSupport:
        found: set[str] = set()
        for reading in contexts:
            found |= sentence.content.keys() & reading.content.keys()
        bulk = sentence.bulk or 1.0
        asked = question.content if question is not None else {}
        named_in = contexts if question is None else [*contexts, question]
        recall = sum(weight for token, weight in sentence.content.items() if token in found) / bulk
        novel = {token: weight for token, weight in sentence.content.items() if token not in asked}
        novel_bulk = sum(novel.values())
        novel_recall = sum(w for t, w in novel.items() if t in found) / novel_bulk if novel_bulk else recall
        best, agreeing, nearest, differs = self._nearest(sentence, contexts, question)
        ordered = sentence.tokens[:_ORDERED_TOKENS]
        sequence, pairs, triples = in_order(ordered, contexts)

        missing_numbers: list[str] = []
        other_units: list[str] = []
        for quantity in sentence.quantities:
            has_value, has_unit = _has(quantity, values.get(quantity.value))
            if not has_value:
                missing_numbers.append(quantity.text)
            elif not has_unit:
                other_units.append(quantity.text)
        named = self._reader.names(sentence)
        missing_names = [
            name for name in named if not any(name.casefold() in reading.folded for reading in named_in)
        ]
        spoken = sum(map(FIRST_PERSON.__contains__, map(str.casefold, sentence.words)))
        if spoken and any(word in reading.folded for word in FIRST_PERSON for reading in contexts):
            spoken = 0
        row = [
            recall,
            novel_recall,
            best,
            agreeing,
            sequence / len(ordered),
            pairs,
            triples,
            -min(2, len(missing_numbers)) / 2,
            -min(2, len(other_units)) / 2,
            -min(3, len(missing_names)) / 3,
            -min(2, spoken) / 2,
        ]
        return SentenceSupport(
            index,
            sentence,
            row,
            nearest,
            missing_numbers,
            other_units,
            missing_names,
            self._missing_words(sentence, found),
            differs,
        )

    def _missing_words(self, sentence: Sentence, found: set[str]) -> list[str]:
        """Up to twelve words, as written, more than half of whose weight no context has; the weightiest first."""
        missing: list[tuple[float, str]] = []
        for word in dict.fromkeys(sentence.words):
            parts = self._reader.parts(word)
            lost = sum([weight for token, weight in parts if token not in found])
            if lost > 0.1 and 2 * lost > sum([weight for _, weight in parts]):
                missing.append((lost, word))
        missing.sort(key=lambda pair: -pair[0])
        return [word for _, word in missing[:12]]

    @staticmethod
    def _nearest(
        sentence: Sentence, contexts: Sequence[Reading], question: Reading | None
    ) -> tuple[float, float, tuple[int, str] | None, bool]:
        best = agreeing = 0.0
        nearest: tuple[int, str] | None = None
        differs = False
        bulk = sentence.bulk or 1.0
        brought = question.values if question is not None else {}
        wanted = {quantity.value for quantity in sentence.quantities if quantity.value not in brought}
        for rank, reading in enumerate(contexts):
            shared: dict[int, float] = {}
            holders = reading.holders
            for token, weight in sentence.content.items():
                for number in holders.get(token, ()):
                    shared[number] = shared.get(number, 0.0) + weight
            for number, weight in shared.items():
                share = weight / bulk
                if share <= agreeing:
                    continue
                other = reading.sentences[number]
                same = other.negated == sentence.negated
                if share > best:
                    best, nearest, differs = share, (rank, other.text), not same
                factor = 1.0 if same else 0.6
                if wanted and not wanted <= {quantity.value for quantity in other.quantities}:
                    factor *= 0.8
                agreeing = max(agreeing, share * factor)
        return best, agreeing, nearest, differs


def summary(rows: Sequence[SentenceSupport]) -> list[float]:
    """The response's features: the mean of each sentence feature weighted by sentence length, then the minimum
    of each, then brevity: minus log2 of the response's tokens over 8, within [-1, 0]."""
    lengths = [len(row.sentence.tokens) for row in rows]
    total = sum(lengths)
    columns = list(zip(*(row.values for row in rows), strict=True))
    means = [math.fsum(v * n for v, n in zip(column, lengths, strict=True)) / total for column in columns]
    return [*means, *(min(column) for column in columns), brevity(total)]


def brevity(tokens: int) -> float:
    """Minus log2 of the number of tokens over 8, within [-1, 0]: the more is said, the more can be wrong."""
    return -min(1.0, math.log2(1 + tokens) / 8)
