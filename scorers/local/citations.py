"""Citations, local: do the markers in the response point to passages that carry the sentence?"""

from __future__ import annotations

import re
from dataclasses import dataclass

from scorers.interaction import Field
from scorers.local.base import EVIDENCE_SENTENCES, LocalBase, Rated, shown
from scorers.local.reading import CITATION, Exchange
from scorers.local.sentences import SUPPORTED_FROM
from scorers.outcome import NotApplicable, NotApplicableReason, Score

_NAMED = re.compile(r"[\[【]\s*(?P<id>[^\[\]【】\n]{1,120}?)\s*[\]】]")
_MAX_MARKERS = 200


@dataclass(frozen=True, slots=True)
class _Cited:
    sentence: int
    marker: str
    passage: int | None


def _numbers(written: str) -> list[int]:
    found: list[int] = []
    for part in re.split(r"\s*[,;]\s*", written):
        ends = [int(number) for number in re.findall(r"\d+", part)]
        if len(ends) == 2 and 0 <= ends[1] - ends[0] <= 20:
            found.extend(range(ends[0], ends[1] + 1))
        else:
            found.extend(ends)
    return found


class Citations(LocalBase):
    """The share of citations that point to an existing passage which by itself supports the sentence.

    Numbers count passages from 1, or from 0 where the response cites 0; a bracketed passage id is a citation too, and
    a number that is a passage's id is that id. Round brackets count only with a word ("(source 2)"), since "(2019)" is
    none. Not applicable without a marker.
    """

    name = "citations"
    version = "2"
    needs = frozenset({Field.RESPONSE, Field.CONTEXTS})
    scale = "share of citations whose passage exists and supports the sentence, 0 to 1"

    def _rate(self, exchange: Exchange) -> Rated:
        assert exchange.contexts is not None
        cited = self._cited(exchange)
        if not cited:
            return Rated(NotApplicable(NotApplicableReason.NO_CLAIMS))
        good = 0
        listed: list[dict[str, object]] = []
        for citation in cited:
            support = self._support(exchange, citation)
            fine = support is not None and support >= SUPPORTED_FROM
            good += fine
            if len(listed) < EVIDENCE_SENTENCES:
                listed.append(
                    {
                        "marker": shown(citation.marker),
                        "passage": citation.passage,
                        "support": None if support is None else round(support, 4),
                        "problem": None if fine else ("no_such_passage" if support is None else "not_supported"),
                    }
                )
        return Rated(Score(good / len(cited)), {"citations": listed, "count": len(cited)})

    def _support(self, exchange: Exchange, citation: _Cited) -> float | None:
        if citation.passage is None:
            return None
        rows = self._engine.support_by(exchange, citation.passage)
        for row, support in zip(rows, self._engine.probability_by(exchange, citation.passage), strict=True):
            if row.index == citation.sentence:
                return support
        return 0.0

    def _cited(self, exchange: Exchange) -> list[_Cited]:
        assert exchange.response is not None and exchange.contexts is not None
        passages = (exchange.interaction.contexts or ())[: len(exchange.contexts)]
        ids = {passage.id: rank for rank, passage in enumerate(passages) if passage.id}
        found: list[tuple[int, str, int | str]] = []
        prefixed = CITATION.match(exchange.response.sentences[0].text) if exchange.response.sentences else None
        for place, sentence in enumerate(exchange.response.sentences):
            named = {m.start(): m for m in _NAMED.finditer(sentence.text) if m.group("id") in ids}
            numbered = {m.start(): m for m in CITATION.finditer(sentence.text) if m.start() not in named}
            led = 0
            for start, match in sorted((named | numbered).items()):
                # markers after the full stop are split off with the next sentence, and belong to the one before
                leading = place > 0 and not prefixed and not sentence.text[led:start].strip(" \t)]】")
                owner, led = (place - 1, match.end()) if leading else (place, led)
                if start in named:
                    found.append((owner, match.group(0), match.group("id")))
                elif match.group(0)[0] != "(" or match.group("numbers") != match.group(0)[1:-1].strip():
                    found.extend((owner, match.group(0), number) for number in _numbers(match.group("numbers")))
            if len(found) >= _MAX_MARKERS:
                break
        first = 0 if any(cited == 0 for _, _, cited in found) else 1
        cited_by: list[_Cited] = []
        for owner, marker, target in found[:_MAX_MARKERS]:
            rank = ids.get(str(target))
            if rank is None and isinstance(target, int) and 0 <= target - first < len(passages):
                rank = target - first
            cited_by.append(_Cited(owner, marker, rank))
        return cited_by
