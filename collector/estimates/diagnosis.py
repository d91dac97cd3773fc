"""One cause for each interaction, from its scores together."""

from __future__ import annotations

from collections.abc import Sequence

from collector.estimates.options import DiagnosisOptions, Thresholds
from collector.records.decision import Fate
from collector.records.diagnosis import Cause, Diagnosis
from collector.records.settled import Settled
from scorers.interaction import Field
from scorers.outcome import NotApplicable, NotApplicableReason, Outcome, Result, Score
from scorers.scorer import Tier


def diagnose(results: Sequence[Result], thresholds: Thresholds, *, nothing_retrieved: bool) -> Cause:
    """The first row that fits, from the top (C context relevance, F faithfulness, R response relevancy):

    nothing retrieved; C low and noncommittal; C high and noncommittal; C and F low; C low, F high; C high, F low;
    C and F high, R low; all high and average precision low while precision@k is high or not below it; all high and
    average precision high, precision@k low; all high.

    A score that a row asks for and that is missing makes the cause `undetermined`. Only response relevancy and the
    two precisions may be absent, where no scorer for them runs: the rows that ask for them being low are skipped.
    """
    if nothing_retrieved:
        return Cause.NOTHING_RETRIEVED
    outcomes: dict[str, Outcome] = {result.scorer: result.outcome for result in results if not result.attempt}
    relevance = _value(outcomes.get("context_relevance"))
    if relevance is None:
        return Cause.UNDETERMINED
    relevant = relevance >= thresholds.context_relevance
    if _refuses(outcomes, thresholds):
        return Cause.NEEDLESS_REFUSAL if relevant else Cause.KNOWLEDGE_GAP
    support = _value(outcomes.get("faithfulness"))
    if support is None:
        return Cause.UNDETERMINED
    faithful = support >= thresholds.faithfulness
    if not relevant:
        return Cause.WRONG_DOCUMENTS if faithful else Cause.RETRIEVAL_MISS
    if not faithful:
        return Cause.UNSUPPORTED
    if "response_relevancy" in outcomes:
        relevancy = _value(outcomes["response_relevancy"])
        if relevancy is None:
            return Cause.UNDETERMINED
        if relevancy < thresholds.response_relevancy:
            return Cause.BESIDE_THE_QUESTION
    return _ranks(outcomes, thresholds)


def _ranks(outcomes: dict[str, Outcome], thresholds: Thresholds) -> Cause:
    order = _value(outcomes.get("context_precision"))
    share = _value(outcomes.get("precision_at_k", outcomes.get("passage_relevance")))
    if order is None or share is None:
        return Cause.FINE
    if order < thresholds.average_precision:
        return Cause.RANKING if share >= min(thresholds.precision_at_k, order) else Cause.FINE
    return Cause.TOO_MANY_CONTEXTS if share < thresholds.precision_at_k else Cause.FINE


def _refuses(outcomes: dict[str, Outcome], thresholds: Thresholds) -> bool:
    said = _value(outcomes.get("noncommittal"))
    if said is not None:
        return said >= thresholds.noncommittal
    return any(
        isinstance(outcome, NotApplicable) and outcome.reason is NotApplicableReason.REFUSAL
        for outcome in outcomes.values()
    )


def _value(outcome: Outcome | None) -> float | None:
    return outcome.value if isinstance(outcome, Score) else None


class Diagnoser:
    """Tells an interaction's causes at its settlement."""

    def __init__(self, options: DiagnosisOptions) -> None:
        self._options = options

    def __call__(self, settled: Settled) -> Diagnosis:
        """The cause by the judge's results where it was judged, and by those of the fast local tier where there are
        any. A filtered interaction has none."""
        if settled.decision.fate is Fate.FILTERED:
            return Diagnosis(None, None)
        interaction = settled.found.interaction
        nothing = interaction.contexts == () and Field.CONTEXTS not in interaction.damage
        judged = local = None
        if settled.judged and settled.decision.fate is Fate.QUEUED:
            judged = diagnose(settled.judged, self._options.judged, nothing_retrieved=nothing)
        fast = [result for result in settled.local if result.tier is not Tier.FULL]
        if fast:
            local = diagnose(fast, self._options.local, nothing_retrieved=nothing)
        return Diagnosis(judged, local)
