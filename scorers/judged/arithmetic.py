"""The numbers behind the judged metrics: pure functions over verdicts, ratings and vectors.

Sources: Es et al. 2023, "RAGAS: Automated Evaluation of Retrieval Augmented Generation", and the metrics of the
Ragas library, whose values these functions give for equal verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul


def average_precision(relevant: Sequence[bool]) -> float:
    """Sum over ranks k of precision@k at relevant ranks, divided by the number of relevant; none relevant: 0."""
    hits, total = 0, 0.0
    for rank, is_relevant in enumerate(relevant, start=1):
        if is_relevant:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


def cosine(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Cosine similarity in [-1, 1]; None where a vector has no direction."""
    length = math.hypot(*first) * math.hypot(*second)
    if not length or not math.isfinite(length):
        return None
    if len(first) != len(second):
        raise ValueError(f"vectors of {len(first)} and {len(second)} dimensions have no angle between them")
    dot: float = sum(map(mul, first, second))
    return dot / length


def f_beta(*, precision: float, recall: float, beta: float) -> float:
    """Weighted harmonic mean; beta above 1 weighs recall more. 0 where both are 0."""
    weight = beta * beta
    below = weight * precision + recall
    return (1 + weight) * precision * recall / below if below else 0.0


def noise_sensitivity(
    *,
    wrong: Sequence[bool],
    supports_response: Sequence[Sequence[bool]],
    supports_reference: Sequence[Sequence[bool]],
) -> tuple[float, float]:
    """(relevant, irrelevant): shares of response statements that are wrong and come from such a passage.

    `wrong[s]`: the reference does not support response statement s. `supports_response[p][s]` and
    `supports_reference[p][r]`: passage p supports response statement s, reference statement r. A passage is
    relevant if it supports any reference statement. Needs at least one response statement.
    """
    relevant = [any(row) for row in supports_reference]
    from_relevant = from_irrelevant = 0
    for index, is_wrong in enumerate(wrong):
        if not is_wrong:
            continue
        sources = {relevant[p] for p, row in enumerate(supports_response) if row[index]}
        from_relevant += True in sources
        from_irrelevant += sources == {False}
    return from_relevant / len(wrong), from_irrelevant / len(wrong)
