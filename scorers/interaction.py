"""The values that scorers judge: one RAG exchange. No parsing happens here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Metadata = Mapping[str, object]


class Field(StrEnum):
    """The parts of an interaction that a scorer can need."""

    QUESTION = "question"
    CONTEXTS = "contexts"
    RESPONSE = "response"
    REFERENCE = "reference"
    HISTORY = "history"


class Damage(StrEnum):
    """Why a part of an interaction that exists can not be judged.

    A damaged part makes every scorer that needs it *failed: incomplete*; it is never scored on what is left.
    """

    HIDDEN = "hidden"  # the instrumentation's content switch is off
    SCRUBBED = "scrubbed"  # a scrubber or a redaction marker stands in the place of the text
    TRUNCATED = "truncated"  # an attribute length limit cut it
    DROPPED = "dropped"  # an attribute count limit dropped some of it
    UNSPLIT = "unsplit"  # contexts only as one block of text inside a prompt
    NO_TEXT = "no_text"  # documents by id and score only
    TRACE_INCOMPLETE = "trace_incomplete"  # released without its local root, evicted, or drained


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved context, in the rank order in which the application used it.

    `score` (higher is nearer) and `distance` (lower is nearer) are the retriever's own and are kept apart;
    both are optional, ranking is by position.
    """

    text: str
    id: str | None = None
    score: float | None = None
    distance: float | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier message of the conversation: `role` as emitted (user, assistant, ...), and its text."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Interaction:
    """One RAG exchange.

    `None` always means "not known"; `contexts=()` means that retrieval is known to have found nothing.
    `damage` names the parts that exist but can not be judged, with the reason.
    `language` is a BCP 47 primary tag where the caller knows it; it goes along with the results. Scorers tell the
    language of each text by themselves, since question, contexts and response may differ in it.
    """

    id: str
    question: str | None = None
    contexts: tuple[Passage, ...] | None = None
    response: str | None = None
    reference: str | None = None
    history: tuple[Turn, ...] = ()
    damage: Mapping[Field, Damage] = field(default_factory=dict)
    language: str | None = None
