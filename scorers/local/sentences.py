"""Support of a response by its contexts, as faithfulness and groundedness both see it."""

from __future__ import annotations

from collections.abc import Sequence

from scorers.interaction import Field
from scorers.local.base import EVIDENCE_SENTENCES, LocalBase, Rated, shown
from scorers.local.engine import Engine, comparable
from scorers.local.reading import Exchange
from scorers.local.support import SentenceSupport
from scorers.outcome import Label, NotApplicable, NotApplicableReason, Score, Verdict

SUPPORTED_FROM = 0.5
"""A sentence at or above this calibrated support is labelled supported."""


def sentence_evidence(row: SentenceSupport, support: float) -> dict[str, object]:
    """What a person needs to check one sentence: its support, the nearest context, and what no context has."""
    found: dict[str, object] = {"text": shown(row.sentence.text), "support": round(support, 4)}
    if row.nearest is not None:
        found["nearest"] = {"passage": row.nearest[0], "text": shown(row.nearest[1])}
    found["overlap"] = round(row.values[2], 4)
    missing = {
        "numbers": row.missing_numbers,
        "units": row.other_units,
        "names": row.missing_names,
        "words": row.missing_words,
    }
    found["missing"] = {kind: [shown(text) for text in texts[:12]] for kind, texts in missing.items() if texts}
    if row.denial_differs:
        found["denial_differs"] = True
    return found


def verdicts(rows: Sequence[SentenceSupport], supports: Sequence[float]) -> tuple[Verdict, ...]:
    """One verdict a sentence, with what is missing as its reason."""
    found = []
    for row, support in zip(rows[:EVIDENCE_SENTENCES], supports, strict=False):
        missing = [*row.missing_numbers, *row.other_units, *row.missing_names]
        found.append(
            Verdict(
                shown(row.sentence.text),
                Label.SUPPORTED if support >= SUPPORTED_FROM else Label.UNSUPPORTED,
                shown("not in the contexts: " + ", ".join(missing)) if missing else "",
                (row.nearest[0],) if row.nearest is not None else (),
            )
        )
    return tuple(found)


class SupportScorer(LocalBase):
    """Decides in code what needs no measuring, and measures the rest in `_measure`."""

    version = "1"
    needs = frozenset({Field.RESPONSE, Field.CONTEXTS})

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)

    def _rate(self, exchange: Exchange) -> Rated:
        assert exchange.response is not None and exchange.contexts is not None
        refusal = self._engine.refusal(exchange)
        if refusal.label == "yes":
            return Rated(NotApplicable(NotApplicableReason.REFUSAL), {"rule": refusal.rule})
        if not any(sentence.tokens for sentence in exchange.response.sentences):
            return Rated(NotApplicable(NotApplicableReason.NO_CLAIMS))
        flags = ("maybe_refusal",) if refusal.label == "unsure" else ()
        if not any(reading.tokens for reading in exchange.contexts):
            return Rated(Score(0.0, label="no_contexts"), {"contexts": 0}, flags=flags)
        if self._engine.pair_model is None and not comparable(exchange.response, exchange.contexts):
            return Rated(NotApplicable(NotApplicableReason.LANGUAGE))
        rows = self._engine.support(exchange)
        supports = self._engine.sentence_probabilities(exchange)
        value, evidence = self._measure(exchange, rows, supports)
        return Rated(Score(value), evidence, verdicts(rows, supports), flags)

    def _measure(
        self, exchange: Exchange, rows: Sequence[SentenceSupport], supports: Sequence[float]
    ) -> tuple[float, dict[str, object]]:
        raise NotImplementedError
