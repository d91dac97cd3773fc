"""Features of relevance: how well a text (a passage, or a response) fits a question."""

from __future__ import annotations

import math
import re

from scorers.local.reading import Reader, Reading, Sentence
from scorers.local.support import length_of_common_subsequence

FEATURES = ("recall", "best_typed", "sequence", "typed", "short")
"""In [-1, 1], more is better. `recall`: weighted share of the question's tokens that occur in the text;
`best_typed`: the highest such share in one sentence of the text, where a sentence without the wanted kind of answer
counts 0.6; `sequence`: longest common subsequence over the question's length; `typed`: whether the text holds the
wanted kind of answer (0.5 where the question does not say); `short`: minus log2 of the text's tokens over 10, within
[-1, 0]. More features (pairs, names, heaviest word missing, precision) were measured and added nothing on sets that
played no part in fitting."""

_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "number",
        re.compile(
            r"\bhow (?:many|much|old|long|far|tall|high|big|large|often|deep|fast)\b|"
            r"\bwhat (?:percent|number|year|age|date|day|population|time)|\bwhich year\b|"
            r"\bwie ?(?:viel|lange|oft|hoch|alt)|\bcombien\b|\bcuánt|\bquant[oiae]\b|\bсколько\b|"
            r"몇|얼마|いくつ|いくら|何[年人個回時日]|多少|几[个個年天]|कितन|كم ",
            re.IGNORECASE,
        ),
    ),
    (
        "time",
        re.compile(
            r"\bwhen\b|\bwann\b|\bquand\b|\bcuándo\b|\bquando\b|\bкогда\b|언제|いつ|何时|什么时候|कब|متى",
            re.IGNORECASE,
        ),
    ),
    (
        "name",
        re.compile(
            r"\bwho(?:se|m)?\b|\bwhere\b|\bwer\b|\bwem\b|\bwo\b|\bqui\b|\boù\b|\bquién\b|\bdónde\b|\bchi\b|\bdove\b|\bquem\b|"
            r"\bonde\b|\bкто\b|\bгде\b",
            re.IGNORECASE,
        ),
    ),
)
_TIME_WORDS = re.compile(
    r"\d|january|february|march|april|june|july|august|september|october|november|december|monday|tuesday|wednesday|"
    r"thursday|friday|saturday|sunday|century|year|day|season|spring|summer|autumn|winter",
    re.IGNORECASE,
)


def wanted_kind(question: str) -> str | None:
    """The kind of answer that the question's words ask for: number, time, name, or None where they do not say."""
    for kind, pattern in _KINDS:
        if pattern.search(question):
            return kind
    return None


class Relevance:
    """Computes relevance features; holds no state of its own."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def _has_kind(self, kind: str | None, sentence: Sentence, asked: dict[str, float]) -> bool:
        if kind is None:
            return True
        if kind == "number":
            return bool(sentence.quantities)
        if kind == "time":
            return _TIME_WORDS.search(sentence.text) is not None
        return any(
            token not in asked for name in self._reader.names(sentence) for token, _ in self._reader.parts(name)
        )

    def of(self, question: Reading, kind: str | None, text: Reading) -> list[float]:
        """The features of `text` for `question`, which asks for that kind of answer; both must hold a token."""
        asked = question.content
        bulk = question.bulk or 1.0
        shared: dict[int, float] = {}
        found = 0.0
        for token, weight in asked.items():
            holders = text.holders.get(token)
            if holders is None:
                continue
            found += weight
            for number in holders:
                shared[number] = shared.get(number, 0.0) + weight
        best_typed = 0.0
        for number, weight in shared.items():
            if weight > best_typed:
                factor = 1.0 if self._has_kind(kind, text.sentences[number], asked) else 0.6
                best_typed = max(best_typed, weight * factor)
        typed = 0.5 if kind is None else float(any(self._has_kind(kind, s, asked) for s in text.sentences))
        tokens = question.tokens[:400]
        return [
            found / bulk,
            best_typed / bulk,
            length_of_common_subsequence(tokens, text) / len(tokens),
            typed,
            -min(1.0, math.log2(1 + len(text.tokens)) / 10),
        ]
