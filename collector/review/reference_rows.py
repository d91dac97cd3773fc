"""What went wrong, told with a reference answer: rows that each stand alone, unlike the causes of live traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Finding(StrEnum):
    """What the scores of one answer with a reference say; several may hold at once."""

    EVIDENCE_CUT = "evidence_cut"  # precise contexts that lack evidence: top-k too small, or chunking lost it
    DOCUMENT_WRONG = "document_wrong"  # faithful and false: the retrieved document itself is wrong or stale
    OWN_MEMORY = "own_memory"  # right and unsupported: the model answered from its own memory
    DETAILS_GARBLED = "details_garbled"  # wrong by a relevant passage: chunking or prompt loses details
    IRRELEVANT_LEAKS = "irrelevant_leaks"  # wrong by an irrelevant passage: retrieval is not clean
    HALLUCINATION = "hallucination"  # wrong, unsupported, and from no passage


@dataclass(frozen=True, slots=True)
class ReferenceThresholds:
    """Scores from which each is high, 0 to 1."""

    context_precision_reference: float = 0.7
    context_recall: float = 0.7
    faithfulness: float = 0.7
    factual_correctness: float = 0.5
    noise_sensitivity_relevant: float = 0.3
    noise_sensitivity_irrelevant: float = 0.3


def findings(scores: Mapping[str, float], thresholds: ReferenceThresholds | None = None) -> dict[Finding, bool]:
    """Which rows hold, for those that the scores can tell; a row with a missing score is absent.

    precision high, recall low                              evidence cut
    faithfulness high, factual correctness low              the document is wrong
    faithfulness low, factual correctness high              own memory
    noise sensitivity (relevant) high                       details garbled
    noise sensitivity (irrelevant) high                     irrelevant documents leak
    both noise sensitivities, faithfulness, factual low     hallucination
    """
    limits = thresholds or ReferenceThresholds()

    def high(name: str) -> bool | None:
        return scores[name] >= getattr(limits, name) if name in scores else None

    precise, recalled = high("context_precision_reference"), high("context_recall")
    faithful, right = high("faithfulness"), high("factual_correctness")
    garbled, leaked = high("noise_sensitivity_relevant"), high("noise_sensitivity_irrelevant")
    found: dict[Finding, bool] = {}
    if precise is not None and recalled is not None:
        found[Finding.EVIDENCE_CUT] = precise and not recalled
    if faithful is not None and right is not None:
        found[Finding.DOCUMENT_WRONG] = faithful and not right
        found[Finding.OWN_MEMORY] = right and not faithful
    if garbled is not None:
        found[Finding.DETAILS_GARBLED] = garbled
    if leaked is not None:
        found[Finding.IRRELEVANT_LEAKS] = leaked
    if faithful is not None and right is not None and garbled is not None and leaked is not None:
        found[Finding.HALLUCINATION] = not (faithful or right or garbled or leaked)
    return found
