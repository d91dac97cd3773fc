"""What of the retrieved documents went into the final prompt."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from collector.extract.calls import Call
from collector.extract.documents import Document
from collector.extract.messages import SYSTEM, Message
from collector.extract.prompts import Pieces
from collector.extract.tree import Node
from collector.extract.values import loads, looks_encoded, squeeze, walk
from collector.extract.view import Role

_CONTEXT_VARIABLES = (
    "context",
    "contexts",
    "context_str",
    "documents",
    "docs",
    "passages",
    "sources",
    "chunks",
    "knowledge",
)
_LAYERS = 3
LOOSE = 2**62
"""The place of a document that is in the prompt, but not letter by letter."""
_WORDS = re.compile(r"[^\W_]+")
_ESCAPES = re.compile(r"\\[nrt]")
_ONE_LABEL = re.compile(
    r"^\s*+(?:\[?\s{0,9}(?:document|doc|passage|context|source|chunk|excerpt|snippet|문서|자료)\s{0,9}(?:#|no\.?\s{0,9})?"
    r"\d*+\s{0,9}\]?\s{0,9}(?:\([^)\n]{0,200}\))?\s{0,9}[:：\n]|\[\d+\])\s*",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Gathered:
    """The contexts of one interaction, and what is to be said of them.

    `used` None: nothing is known of contexts. `retrieved` tells that a retrieval took place.
    """

    used: tuple[Document, ...] | None = None
    unused: tuple[Document, ...] = ()
    rule: str = ""
    retrieved: bool = False
    verified: bool | None = None
    unsplit: bool = False
    marker: str = ""
    """`hidden` or `scrubbed` where markers stand in the place of every document, and nothing else is told of them."""
    nodes: list[Node] = field(default_factory=list)


def prompt_messages(call: Call | None) -> list[Message]:
    """The messages in which this turn's contexts may stand: system, the last of the user, and what follows."""
    if call is None:
        return []
    found = call.messages
    last = max((i for i, m in enumerate(found) if m.role == "user" and m.parts), default=None)
    if last is None:
        return list(found)
    start = last
    while start > 0 and found[start - 1].role in ("user", "tool", SYSTEM) and not found[start - 1].calls:
        start -= 1  # one message per document before the question
    head = [m for m in found[:start] if m.role == SYSTEM]
    return [*head, *found[start:]]


class PromptText:
    """The text of the final prompt, in which documents are looked for."""

    def __init__(self, text: str, *, whole: bool = True) -> None:
        self.text = squeeze(text)
        self.whole = whole
        self._bare: str | None = None

    def position(self, text: str) -> int:
        """Where a document begins, or -1 where it is not there.

        Looked for as it is, in an encoding that prompts use, or by its letters alone; found by these its place is
        LOOSE, as it can not be compared with the others'. A long document whose beginning is there counts:
        applications cut documents to fit.
        """
        needle = squeeze(text)
        if not needle:
            return -1
        at = self.text.find(needle)
        if at >= 0:
            return at
        for form in _forms(text):
            if form != text and (at := self.text.find(squeeze(form))) >= 0:
                return at
        letters = bare(needle)
        if len(letters) < 16:
            return -1
        found = letters in self.bare or (len(letters) > 160 and letters[:120] in self.bare)
        return LOOSE if found else -1

    @property
    def bare(self) -> str:
        if self._bare is None:
            self._bare = bare(self.text)
        return self._bare

    def times(self, text: str) -> int | None:
        """How often a document stands in the prompt, in whichever form; None where it is not found there."""
        for form in (text, *_forms(text)):
            if count := self.text.count(squeeze(form)):
                return count
        letters = bare(text)
        return self.bare.count(letters) or None if len(letters) >= 16 else None


def _forms(text: str) -> tuple[str, ...]:
    """How a prompt may hold a text that was encoded once."""
    return json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1], html.escape(text)


def bare(text: str) -> str:
    """A text's letters and digits in lower case, the escapes of white space taken off."""
    return "".join(_WORDS.findall(_ESCAPES.sub(" ", text))).lower()


def prompt_text(
    prompt: Sequence[Message], call: Call | None, *, whole: bool, earlier: Sequence[Call] = ()
) -> PromptText | None:
    """What the final prompt says; `whole` is false where a length limit cut values of its span.

    `earlier` are calls that may have worked for this one: where the reply of such a call stands in the prompt, as when
    an answer is refined or put together from parts, what that call was given went into the answer too.
    """
    parts: list[str] = []
    said = squeeze("\n".join(m.text for m in prompt)) if earlier else ""
    for other in earlier:
        text = squeeze(other.text or "")
        if len(text) >= 20 and text in said:
            for message in prompt_messages(other):
                for body in message.parts:
                    _strings(body, parts)
    for message in prompt:
        for body in (*message.parts, *(r for r in message.results if r not in message.parts)):
            _strings(body, parts)
    if not parts and call is not None:
        for view in call.views:
            if view.input is not None and isinstance(view.input.raw, str) and not view.input.hidden:
                raw = view.input.raw[:2_000_000]
                parts.append(raw.replace("\\n", "\n").replace("\\'", "'"))
                break
    return PromptText("\n".join(parts), whole=whole) if parts else None


def answered_from(documents: Sequence[str], call: Call, calls: Sequence[Call], group: Sequence[Node]) -> Call:
    """The call that answered from the documents, where the last one saw neither them nor what was answered: it made a
    title for the chat, say, and nothing tells the application's own answer.

    A call that writes a query or a grade is none: what came of it stands between it and the last.
    """
    own = _prompt_of(call)
    if own is None or not documents or any(own.position(text) >= 0 for text in documents):
        return call
    for other in reversed(calls):
        said = other.text
        if other is call or said is None or other.asks_tools or other.node.serves:
            continue
        if own.position(said) >= 0:
            return call
        theirs = _prompt_of(other)
        if theirs is None or not any(theirs.position(text) >= 0 for text in documents):
            continue
        led_on = any(
            node.role is not Role.LLM and other.end <= node.span.start_unix_nano <= call.start for node in group
        )
        return call if led_on or len(said.split(None, 3)) <= 3 or looks_encoded(said) else other
    return call


def _prompt_of(call: Call) -> PromptText | None:
    """All that a call was given, earlier turns too."""
    return prompt_text(call.messages, call, whole=True) if call.messages else None


def _strings(body: object, parts: list[str], layer: int = 0) -> None:
    """All texts in a value, those inside of JSON in texts too."""
    for _, value in walk(body, 50_000):
        if isinstance(value, str):
            inner = loads(value, 1_000_000) if layer < _LAYERS and looks_encoded(value) else None
            if isinstance(inner, dict | list):
                _strings(inner, parts, layer + 1)
            else:
                parts.append(value)


def compare(
    result: Gathered,
    candidates: tuple[Document, ...],
    superseded: tuple[Document, ...],
    searched: PromptText | None,
) -> None:
    """Keep what the final prompt holds. Nothing found there says nothing and keeps all, unverified; so does a part of a
    prompt that was cut."""
    if searched is None:
        result.used, result.unused, result.verified = candidates, superseded, False
        return
    candidates = _as_often(candidates, searched)
    places = [searched.position(d.text) if d.text else -1 for d in candidates]
    inside = [i for i, place in enumerate(places) if place >= 0]
    unknown = [i for i, d in enumerate(candidates) if not d.text or d.cut]
    if not inside:
        result.used, result.unused, result.verified = candidates, superseded, False
        return
    result.verified = True
    keep = sorted({*inside, *unknown})
    if len(keep) < len(candidates) and not searched.whole:
        result.used, result.unused, result.verified = candidates, superseded, False
        return
    if len(keep) < len(candidates):
        if not unknown and _ordered([places[i] for i in inside]):
            keep = sorted(keep, key=lambda i: places[i])
        result.used = tuple(candidates[i] for i in keep)
        left = tuple(d for i, d in enumerate(candidates) if i not in set(keep))
        result.unused = (*left, *superseded)
        result.rule += "_in_prompt"
    else:
        if not unknown and _ordered(places):
            keep = sorted(keep, key=lambda i: places[i])
        result.used, result.unused = tuple(candidates[i] for i in keep), superseded


def _as_often(candidates: tuple[Document, ...], searched: PromptText) -> tuple[Document, ...]:
    """The documents without repetitions that the prompt does not repeat: several searches gave one document, and the
    application put it in once. The first of them stays."""
    texts = [squeeze(d.text) if d.text else "" for d in candidates]
    if len(set(texts)) == len(texts) or not searched.whole:
        return candidates
    left: dict[str, int | None] = {text: searched.times(text) for text in set(texts) if text}
    kept = []
    for document, text in zip(candidates, texts, strict=True):
        more = left.get(text)
        if more == 0:
            continue
        if more is not None:
            left[text] = more - 1
        kept.append(document)
    return tuple(kept)


def _ordered(places: Sequence[int]) -> bool:
    """Whether the places tell the order in which the prompt holds the documents: each its own."""
    return LOOSE not in places and len(set(places)) == len(places)


def prompt_texts(
    prompt: Sequence[Message], call: Call | None, group: Sequence[Node]
) -> list[tuple[str | Pieces, str]]:
    """Texts in which contexts may stand, the narrowest first, each with the name of its rule."""
    found: list[tuple[str | Pieces, str]] = []
    for view in call.views if call is not None else ():
        for name in _CONTEXT_VARIABLES:
            if view.variables.get(name):
                found.append((view.variables[name], "variable_text"))
    users = [m for m in prompt if m.role == "user" and m.parts]
    if users:
        if len(users[-1].parts) > 1:
            found.append(
                (Pieces(tuple(Document(p) for p in users[-1].parts[:-1]), "parts", sure=True), "message_parts")
            )
        found.append((users[-1].text, "prompt_text"))
    many = _one_per_message(prompt)
    if many is not None:
        found.append((many, "messages"))
    found.extend((m.text, "prompt_text") for m in prompt if m.role == SYSTEM and m.parts)
    found.extend((r, "tool_text") for m in prompt for r in m.results if isinstance(r, str))
    return found


def _one_per_message(prompt: Sequence[Message]) -> Pieces | None:
    """Messages that each hold one document, announced at their head by the same kind of label."""
    texts = [m.text for m in prompt[:-1] if m.parts and m.role in ("user", SYSTEM, "tool")]
    labelled = [t for t in texts if _ONE_LABEL.match(t)]
    if not labelled:
        return None
    return Pieces(tuple(Document(_ONE_LABEL.sub("", t, count=1).strip()) for t in labelled), "messages", sure=True)
