"""The last guard against evaluating evaluations; ingest has refused most of them already."""

from __future__ import annotations

from collector.records.found import Found, Mark
from scorers.judge.marker import HEADER, MARKER


def is_own_evaluation(found: Found) -> bool:
    """Whether an interaction is a call of a groundwatch judge: by extraction's mark, by our header among its
    attributes, or by the first line of what was asked."""
    if Mark.OWN_EVALUATION in found.marks:
        return True
    if any(name.lower().endswith(HEADER) for name in (*found.attributes, *found.resource)):
        return True
    interaction = found.interaction
    asked = (interaction.question, *(turn.text for turn in interaction.history))
    return any(text is not None and text.lstrip().startswith(MARKER) for text in asked)
