"""Whether an interaction has what a scorer needs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from scorers.interaction import Field, Interaction
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason

_UNKNOWN: Mapping[Field, NotApplicableReason] = {
    Field.QUESTION: NotApplicableReason.NO_QUESTION,
    Field.CONTEXTS: NotApplicableReason.NO_CONTEXTS,
    Field.RESPONSE: NotApplicableReason.NO_RESPONSE,
    Field.REFERENCE: NotApplicableReason.NO_REFERENCE,
    Field.HISTORY: NotApplicableReason.NO_HISTORY,
}
_ORDER = tuple(_UNKNOWN)


def unmet(needs: Collection[Field], interaction: Interaction) -> NotApplicable | Failed | None:
    """Why a scorer with these needs can not run on this interaction; None when it can.

    A damaged part makes it *failed: incomplete*, an unknown one *not applicable*; damage goes first, since it
    says that the part exists. A question or reference of white space is unknown; an empty response is known.
    """
    wanted = [part for part in _ORDER if part in needs]
    for part in wanted:
        if part in interaction.damage:
            return Failed(FailedReason.INCOMPLETE, f"{part} is {interaction.damage[part]}")
    for part in wanted:
        if not _known(part, interaction):
            return NotApplicable(_UNKNOWN[part])
    return None


def _known(part: Field, interaction: Interaction) -> bool:
    if part is Field.CONTEXTS:
        return interaction.contexts is not None
    if part is Field.RESPONSE:
        return interaction.response is not None
    if part is Field.HISTORY:
        return bool(interaction.history)
    text = interaction.question if part is Field.QUESTION else interaction.reference
    return text is not None and bool(text.strip())
