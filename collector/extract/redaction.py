"""Personal values and secrets of an interaction replaced by placeholders, before anything is scored, stored or sent."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b

from collector.extract.redaction_detect import Detector, Hit, Known
from collector.extract.redaction_options import Ids, RedactionOptions
from collector.records.found import Found
from scorers.interaction import Interaction, Metadata, Passage, Turn

_MAX_DEPTH = 16
_TOO_DEEP = "[DEEP]"
_LONG_TEXT = 200
_MOST_CLEAN = 20_000
_LONG_INT = 1_000_000
"""Whole numbers from here on may be telephone numbers, cards or ids."""
_ID_KEYS = frozenset(
    {
        *("user.id", "user_id", "userid", "user.name", "user_name", "username", "user.email", "user.full_name"),
        *("user.hash", "enduser.id", "enduser.pseudo.id", "session.id", "session_id", "sessionid"),
    }
)
"""Last words of attribute keys whose values name a person or a session, in whatever form."""


def pseudonym(seed: str, text: str) -> str:
    """What an id becomes: 16 hexadecimal digits of BLAKE2b-64 of the id, keyed with BLAKE2b-256 of "groundwatch" 0x00
    seed 0x00 "redaction.ids". The same for the same id everywhere, so that sessions stay together."""
    key = blake2b(b"\x00".join((b"groundwatch", seed.encode(), b"redaction.ids")), digest_size=32).digest()
    return f"id-{blake2b(text.encode('utf-8', 'surrogatepass'), key=key, digest_size=8).hexdigest()}"


class Redactor:
    """Redacts interactions. `seed` is the key of hashed ids. Remembers passages without hits; for one thread."""

    def __init__(self, options: RedactionOptions, *, seed: str) -> None:
        self._enabled = options.enabled
        self._hashes = options.ids is Ids.HASH
        self._seed = seed
        self._keep = frozenset(one.casefold() for one in options.keep)
        self._detector = Detector(options.kinds, options.patterns)
        self._clean = _Clean()

    def redact(self, found: Found) -> Found:
        """The interaction with a placeholder for each value, numbered in the order in which they are first met:
        question, contexts, response, reference, history, then all the rest."""
        if not self._enabled:
            return found
        work = _Work(self._detector, self._keep, self._clean, _texts(found.interaction))
        interaction = self._interaction(found.interaction, work)
        ids = {one for one in (found.user, found.session) if one} if self._hashes else set()
        return replace(
            found,
            interaction=interaction,
            service=work.text(found.service),
            service_version=work.optional(found.service_version),
            environment=work.optional(found.environment),
            model=work.optional(found.model),
            request_model=work.optional(found.request_model),
            session=self._id(found.session, work),
            user=self._id(found.user, work),
            tenant=self._name(found.tenant, work),
            response_id=self._name(found.response_id, work),
            rewritten_query=work.optional(found.rewritten_query),
            unused_passages=tuple(_passage(one, work) for one in found.unused_passages),
            error=work.optional(found.error),
            rules={name: work.text(rule) for name, rule in found.rules.items()},
            resource=self._attributes(found.resource, ids, work),
            attributes=self._attributes(found.attributes, ids, work),
            trace_state=work.text(found.trace_state),
        )

    def text(self, text: str) -> str:
        """A text that belongs to no interaction, with placeholders of its own."""
        return _Work(self._detector, self._keep, self._clean, [text]).text(text) if self._enabled else text

    def _interaction(self, interaction: Interaction, work: _Work) -> Interaction:
        contexts = interaction.contexts
        return replace(
            interaction,
            question=work.optional(interaction.question),
            contexts=tuple(_passage(one, work) for one in contexts) if contexts is not None else None,
            response=work.optional(interaction.response),
            reference=work.optional(interaction.reference),
            history=tuple(Turn(work.text(one.role), work.text(one.text)) for one in interaction.history),
            id=self._name(interaction.id, work) or "",
        )

    def _id(self, text: str | None, work: _Work) -> str | None:
        if not text:
            return text
        return pseudonym(self._seed, text) if self._hashes else work.text(text)

    def _name(self, text: str | None, work: _Work) -> str | None:
        """A name that must stay one of its own: two that differ may have the same placeholders in them."""
        return pseudonym(self._seed, text) if text and work.text(text) != text else text

    def _attributes(self, attributes: Mapping[str, object], ids: set[str], work: _Work) -> Mapping[str, object]:
        redacted: dict[str, object] = {}
        for key, value in attributes.items():
            if self._hashes and isinstance(value, str) and value and (value in ids or _names_someone(key)):
                redacted[work.text(key)] = pseudonym(self._seed, value)
            else:
                redacted[work.text(key)] = work.value(value)
        return redacted


class _Clean:
    """Knows long texts in which nothing was found, by a digest: an application retrieves the same passages again and
    again. Bounded in items, about 2 MB."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def hits(self, text: str, detector: Detector) -> list[Hit]:
        if len(text) < _LONG_TEXT:
            return detector.hits(text)
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if digest in self._known:
            self._known.move_to_end(digest)
            return []
        hits = detector.hits(text)
        if not hits:
            self._known[digest] = None
            if len(self._known) > _MOST_CLEAN:
                self._known.popitem(last=False)
        return hits


class _Work:
    """The placeholders of one interaction, whose main texts are `texts`: what is found in one of them is looked for in
    all, so that no answer repeats what was hidden in its contexts."""

    def __init__(self, detector: Detector, keep: frozenset[str], clean: _Clean, texts: Iterable[str]) -> None:
        self._detector = detector
        self._keep = keep
        self._hits = {text: clean.hits(text, detector) for text in texts}
        self._known = Known(
            (hit.name, text[hit.start : hit.end])
            for text, hits in self._hits.items()
            for hit in hits
            if text[hit.start : hit.end].casefold() not in keep
        )
        if self._known:
            self._hits = {}
        self._given: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def text(self, text: str) -> str:
        hits = self._hits.get(text)
        if hits is None:
            hits = self._detector.hits(text, self._known)
        if not hits:
            return text
        parts: list[str] = []
        end = 0
        for hit in hits:
            value = text[hit.start : hit.end]
            if value.casefold() in self._keep:
                continue
            parts += text[end : hit.start], self._placeholder(hit.name, value)
            end = hit.end
        return "".join([*parts, text[end:]])

    def optional(self, text: str | None) -> str | None:
        return self.text(text) if text else text

    def value(self, value: object, depth: int = 0) -> object:
        """Strings anywhere in it, keys too; whole numbers that are something personal become their placeholder."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if -_LONG_INT < value < _LONG_INT:
                return value
            written = str(value)
            redacted = self.text(written)
            return value if redacted == written else redacted
        if isinstance(value, Mapping):
            if depth >= _MAX_DEPTH:
                return _TOO_DEEP
            return {self.text(str(key)): self.value(one, depth + 1) for key, one in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            if depth >= _MAX_DEPTH:
                return _TOO_DEEP
            return [self.value(one, depth + 1) for one in value]
        if value is None or isinstance(value, float | bool):
            return value
        return self.text(str(value))

    def _placeholder(self, name: str, value: str) -> str:
        """Equal values get equal placeholders, however they are written: case, spaces and marks aside."""
        plain = "".join(one for one in value.casefold() if one.isalnum() or one in "@+") or value
        key = (name, plain)
        if key not in self._given:
            self._counts[name] = self._counts.get(name, 0) + 1
            self._given[key] = f"[{name}_{self._counts[name]}]"
        return self._given[key]


def _texts(interaction: Interaction) -> Iterator[str]:
    parts = (interaction.question, interaction.response, interaction.reference)
    yield from (text for text in parts if text)
    yield from (passage.text for passage in interaction.contexts or ())
    yield from (turn.text for turn in interaction.history)


def _passage(passage: Passage, work: _Work) -> Passage:
    metadata: Metadata = passage.metadata
    if metadata:
        redacted = work.value(metadata)
        metadata = redacted if isinstance(redacted, dict) else {}
    return replace(passage, text=work.text(passage.text), id=work.optional(passage.id), metadata=metadata)


def _names_someone(key: str) -> bool:
    key = key.casefold()
    return key in _ID_KEYS or ".".join(key.split(".")[-2:]) in _ID_KEYS
