"""Faithfulness, local: the mean calibrated support of the response's sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scorers.local.base import EVIDENCE_SENTENCES
from scorers.local.reading import Exchange
from scorers.local.sentences import SupportScorer, sentence_evidence
from scorers.local.support import SentenceSupport


class Faithfulness(SupportScorer):
    """The counterpart of supported / claims: each sentence counts once, by its probability of being supported."""

    name = "faithfulness"
    scale = "mean calibrated support of the response's sentences, 0 to 1"

    def _measure(
        self, exchange: Exchange, rows: Sequence[SentenceSupport], supports: Sequence[float]
    ) -> tuple[float, dict[str, object]]:
        listed = [sentence_evidence(*pair) for pair in zip(rows[:EVIDENCE_SENTENCES], supports, strict=False)]
        return math.fsum(supports) / len(supports), {"sentences": listed, "sentence_count": len(rows)}
