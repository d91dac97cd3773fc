"""What a judged scorer asks, and what it gets back. Values only: nothing is rendered and nothing is sent here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources

from scorers.interaction import Field
from scorers.outcome import Failed

MANY = 64
"""Entries of a listing that sets no limit of its own."""
WHOLE = ""
"""The id under which the label of a labelling without items is found."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The instruction of one question: a name, a version that its author raises, and the text."""

    name: str
    version: str
    text: str
    digest: str = field(init=False, compare=False, repr=False)
    """16 hex digits over all three: what the judge is really told, whatever the version says."""

    def __post_init__(self) -> None:
        raw = f"{self.name}\0{self.version}\0{self.text}".encode("utf-8", "surrogatepass")
        object.__setattr__(self, "digest", hashlib.blake2b(raw, digest_size=8).hexdigest())

    @classmethod
    def load(cls, name: str) -> Prompt:
        """Read `judged/prompts/NAME.md`: the first line is `version: N`, the text follows."""
        raw = resources.files("scorers.judged").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")
        head, _, text = raw.partition("\n")
        key, _, version = head.partition(":")
        if key.strip() != "version" or not version.strip():
            raise ValueError(f"prompts/{name}.md: the first line is {head!r}; it must be 'version: N'")
        return cls(name, version.strip(), text.strip())


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to label. The judge's label comes back by `id`, never by position."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Inline:
    """The labels that a fused call asks of every entry of a listing at once.

    They answer the labelling with the key `key` without another call.
    """

    key: str
    prompt: Prompt
    labels: tuple[str, ...]
    needs: frozenset[Field]


@dataclass(frozen=True, slots=True)
class Listing:
    """Asks for a list of short texts. `exact`: the judge must see nothing but `needs` (unless calls are fused)."""

    key: str
    prompt: Prompt
    needs: frozenset[Field]
    limit: int = MANY
    exact: bool = False
    inline: Inline | None = None
    windowed: Field | None = None
    """The part that may be cut in windows, whose lists are then joined, when it is too long for one call."""


@dataclass(frozen=True, slots=True)
class Labelling:
    """Asks for one label per item, or one label for the whole where there are no items.

    `labels` are in order of precedence: where contexts are cut in windows, the first of these labels that any
    window gave stands. `passages` restricts the judgement to passages of these ranks (from 1). Questions of
    different `sitting` never share a call: they are independent opinions. `by_passage`: every item is the
    passage of the rank that is its id, and is judged on it alone.
    """

    key: str
    prompt: Prompt
    needs: frozenset[Field]
    labels: tuple[str, ...]
    items: tuple[Item, ...] = ()
    passages: tuple[int, ...] | None = None
    cites: bool = False
    sitting: int = 0
    reasons: bool = True
    by_passage: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple([item.id for item in self.items]) if self.items else (WHOLE,)


@dataclass(frozen=True, slots=True)
class Embedding:
    """Asks for one vector per text, from the embeddings endpoint."""

    key: str
    texts: tuple[str, ...]


Question = Listing | Labelling | Embedding


@dataclass(frozen=True, slots=True)
class Labelled:
    """One label as the judge gave it. `passages` are the ranks it names; from the cache, reasons are empty."""

    label: str
    reason: str = ""
    passages: tuple[int, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one question.

    `entries` answers a listing, `labels` a labelling (by item id; ids that stayed unanswered are missing),
    `vectors` an embedding. `failure` says why something is missing; None means that the answer is whole.
    """

    entries: tuple[str, ...] = ()
    labels: Mapping[str, Labelled] = field(default_factory=dict)
    vectors: tuple[tuple[float, ...], ...] = ()
    failure: Failed | None = None
    flags: tuple[str, ...] = ()

    @property
    def label(self) -> Labelled | None:
        """The label of a labelling without items."""
        return self.labels.get(WHOLE)
