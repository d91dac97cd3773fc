"""Where an interaction went wrong: one cause, told from its scores together."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scorers.scorer import Kind


class Cause(StrEnum):
    """Causes in the order in which they are tried; the first that fits is the one. Bounded, so it is a label."""

    NOTHING_RETRIEVED = "nothing_retrieved"  # retrieval is known to have found nothing
    KNOWLEDGE_GAP = "knowledge_gap"  # irrelevant contexts, and the answer rightly refuses
    NEEDLESS_REFUSAL = "needless_refusal"  # relevant contexts, and the answer refuses all the same
    RETRIEVAL_MISS = "retrieval_miss"  # irrelevant contexts, unsupported answer: start with retrieval
    WRONG_DOCUMENTS = "wrong_documents"  # irrelevant contexts, faithfully repeated: wrong documents or index
    UNSUPPORTED = "unsupported"  # relevant contexts, unsupported answer: generation
    BESIDE_THE_QUESTION = "beside_the_question"  # relevant, supported, and does not answer what was asked
    RANKING = "ranking"  # fine, but the relevant contexts stand behind others
    TOO_MANY_CONTEXTS = "too_many_contexts"  # fine, but many contexts are irrelevant
    FINE = "fine"
    UNDETERMINED = "undetermined"  # a score that would decide is missing


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The cause by the judge's scores (None where the interaction was not judged) and by local ones."""

    judged: Cause | None
    local: Cause | None

    @property
    def cause(self) -> Cause | None:
        """The judge's where it could decide, else the local one."""
        return self.local if self.kind is Kind.LOCAL else self.judged

    @property
    def kind(self) -> Kind:
        """Whose scores `cause` comes from."""
        judged = self.judged is not None and (self.judged is not Cause.UNDETERMINED or self.local is None)
        return Kind.JUDGED if judged else Kind.LOCAL
