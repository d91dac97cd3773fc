"""What is known of each part, and what of it can not be judged: hidden, scrubbed, truncated, dropped, unsplit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from collector.extract.answer import Text
from collector.extract.calls import Call
from collector.extract.documents import Document
from collector.extract.inprompt import Gathered
from collector.extract.limits import Limits
from collector.extract.options import Options
from collector.extract.tree import Node
from collector.extract.values import as_text, is_scrubbed, says_truncated, squeeze
from collector.extract.view import Role
from collector.otlp.model import Status
from collector.records.found import Mark
from scorers.interaction import Damage, Field, Passage

_MAX_ERROR = 300
ERROR_HINT = "exception."
"""The prefix of the attributes of exception events: a span that failed tells why there is no answer."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What extraction found of one interaction before it is judged."""

    group: Sequence[Node]
    path: Sequence[Node]
    call: Call | None
    answered: Text | None
    put: Text | None
    gathered: Gathered
    complete: bool


@dataclass(slots=True)
class Assessed:
    """The parts as they are handed on."""

    question: str | None = None
    response: str | None = None
    passages: tuple[Passage, ...] | None = None
    unused: tuple[Passage, ...] = ()
    error: str | None = None
    damage: dict[Field, Damage] = field(default_factory=dict)
    marks: set[Mark] = field(default_factory=set)
    rules: dict[str, str] = field(default_factory=dict)


_MARK = {
    Damage.HIDDEN: Mark.HIDDEN,
    Damage.SCRUBBED: Mark.SCRUBBED,
    Damage.TRUNCATED: Mark.TRUNCATED,
    Damage.DROPPED: Mark.ATTRIBUTES_DROPPED,
    Damage.UNSPLIT: Mark.UNSPLIT,
    Damage.NO_TEXT: Mark.NO_CONTEXT_TEXT,
    Damage.TRACE_INCOMPLETE: Mark.INCOMPLETE_TRACE,
}


def assess(found: Findings, limits: Limits, options: Options) -> Assessed:
    """The parts with their damage and marks."""
    result = Assessed()
    result.error = _error(found)
    _texts(found, result, limits, options)
    _contexts(found, result, limits, options)
    if not found.complete:
        for part in (Field.QUESTION, Field.CONTEXTS, Field.RESPONSE):
            result.damage.setdefault(part, Damage.TRACE_INCOMPLETE)
    if any(
        n.span.dropped_attributes_count or n.span.dropped_events_count for n in found.group if n.view is not None
    ):
        result.marks.add(Mark.ATTRIBUTES_DROPPED)
    for damage in result.damage.values():
        result.marks.add(_MARK[damage])
    if found.call is not None and any(view.streaming for view in found.call.views):
        result.marks.add(Mark.STREAMING)
    if result.question is None:
        result.marks.add(Mark.NO_QUESTION)
    if result.response is None:
        result.marks.add(Mark.NO_RESPONSE)
    if result.error is not None:
        result.marks.add(Mark.APPLICATION_ERROR)
    return result


def _texts(found: Findings, result: Assessed, limits: Limits, options: Options) -> None:
    hidden = _content_off(found)
    for part, text in ((Field.QUESTION, found.put), (Field.RESPONSE, found.answered)):
        if text is None:
            if part is Field.RESPONSE and result.error is not None:
                continue
            if _scrubbed(found):
                result.damage[part] = Damage.SCRUBBED
            elif hidden:
                result.damage[part] = Damage.HIDDEN
            elif any(limits.touches(n.span) for n in (*found.path, *(found.call.nodes if found.call else ()))):
                result.damage[part] = Damage.TRUNCATED
            continue
        words = text.text
        node = text.node or (found.call.node if found.call is not None else None)
        cut = node is not None and (limits.cut(node.span, words) or limits.ends(node.span, words))
        if len(words) > options.max_text_chars:
            words, cut = words[: options.max_text_chars], True
            _put(result, part, words)
            result.damage[part] = Damage.TRUNCATED
        elif cut:
            result.damage[part] = Damage.TRUNCATED  # a text that breaks off is not what was asked or answered
        else:
            if says_truncated(words) or (part is Field.RESPONSE and _broke_off(found, text)):
                result.damage[part] = Damage.TRUNCATED
            _put(result, part, words)
        result.rules[part.value] = text.rule


def _broke_off(found: Findings, answer: Text) -> bool:
    """Whether the model's call failed with a part of its answer out already, as a stream does."""
    call = found.call
    return (
        call is not None and call.failed and call.text is not None and squeeze(answer.text) in squeeze(call.text)
    )


def _put(result: Assessed, part: Field, words: str) -> None:
    if part is Field.QUESTION:
        result.question = words
    else:
        result.response = words


def _contexts(found: Findings, result: Assessed, limits: Limits, options: Options) -> None:
    gathered = found.gathered
    used = gathered.used
    if used is None:
        if gathered.marker:
            result.damage[Field.CONTEXTS] = Damage.SCRUBBED if gathered.marker == "scrubbed" else Damage.HIDDEN
        elif _content_off(found) and (gathered.retrieved or not _sees_prompt(found)):
            result.damage[Field.CONTEXTS] = Damage.HIDDEN
        elif gathered.retrieved:
            truncated = any(limits.touches(n.span) for n in found.group if n.role is Role.RETRIEVER)
            result.damage[Field.CONTEXTS] = Damage.TRUNCATED if truncated else Damage.NO_TEXT
        elif not _sees_prompt(found) and found.call is not None and result.error is None:
            result.damage[Field.CONTEXTS] = Damage.HIDDEN
        else:
            result.marks.add(Mark.NOT_RAG)
        return
    result.rules[Field.CONTEXTS.value] = gathered.rule
    damage = _worst(found, used, limits, options)
    if damage is not None:
        result.damage[Field.CONTEXTS] = damage
    if gathered.verified is False and used:
        result.marks.add(Mark.UNVERIFIED_CONTEXTS)
    result.passages = _passages(used, options)
    result.unused = _passages(gathered.unused, options)


def _worst(found: Findings, used: Sequence[Document], limits: Limits, options: Options) -> Damage | None:
    """The damage of the contexts that weighs most, or None."""
    holders = found.gathered.nodes
    if any(d.scrubbed for d in used):
        return Damage.SCRUBBED
    if any(d.hidden for d in used):
        return Damage.HIDDEN
    if len(used) > options.max_passages or any(
        d.cut or len(d.text or "") > options.max_context_chars for d in used
    ):
        return Damage.TRUNCATED
    if any(d.text and any(limits.cut(n.span, d.text) for n in holders) for d in used):
        return Damage.TRUNCATED
    if _clipped(found, limits):
        return Damage.TRUNCATED
    if any(n.span.dropped_attributes_count or n.span.dropped_events_count for n in holders):
        return Damage.DROPPED
    if any(n.view is not None and n.view.partial for n in holders):
        return Damage.DROPPED
    if any(d.text is None for d in used):
        return Damage.UNSPLIT if found.gathered.unsplit else Damage.NO_TEXT
    if found.gathered.unsplit:
        return Damage.UNSPLIT
    return None


def _clipped(found: Findings, limits: Limits) -> bool:
    """Whether a length limit cut what the contexts were read from: a retriever's documents, or, where they were
    gathered from steps and prompts, any value of the interaction."""
    if found.gathered.rule.startswith(("retriever", "reranker")):
        unread = [
            n for n in found.group if n.role in (Role.RETRIEVER, Role.RERANKER) and n.view and not n.view.documents
        ]
        around = [
            a for n in found.gathered.nodes if n.view is not None and n.view.collection for a in n.ancestors()
        ]
        return any(limits.touches(n.span) for n in (*unread, *around))
    return any(limits.touches(n.span) for n in found.group)


def _passages(found: Sequence[Document], options: Options) -> tuple[Passage, ...]:
    return tuple(
        Passage(
            (d.text or "")[: options.max_context_chars],
            d.id,
            d.score,
            d.distance,
            dict(d.metadata),
        )
        for d in found[: options.max_passages]
    )


def _sees_prompt(found: Findings) -> bool:
    return found.call is not None and bool(found.call.messages)


def _content_off(found: Findings) -> bool:
    """Whether content was left out on purpose: a marker says so, or a model call has neither prompt nor reply."""
    if any(n.view is not None and n.view.content_off for n in found.group):
        return True
    call = found.call
    return call is not None and not call.messages and call.text is None and not call.failed


def _scrubbed(found: Findings) -> bool:
    return any(
        isinstance(value, str) and is_scrubbed(value)
        for node in (*found.path, *(found.call.nodes if found.call is not None else ()))
        for key, value in node.span.attributes.items()
        if "message" in key or "input" in key or "output" in key or "question" in key
    )


def _error(found: Findings) -> str | None:
    """What failed, in one line: the exception's type or the status message; None where nothing did."""
    nodes: list[Node] = []
    if found.call is not None and found.call.failed and found.answered is None:
        nodes.extend(found.call.nodes)
    nodes.extend(node for node in found.path if node.span.status is Status.ERROR)
    if found.answered is None:
        nodes.extend(n for n in reversed(found.group) if n.span.status is Status.ERROR)
    for node in nodes:
        if node.span.status is Status.ERROR:
            return describe(node)
    return None


def describe(node: Node) -> str:
    """The error of a span that failed, without its stack."""
    name = as_text(node.span.attributes.get("error.type"))
    for event in node.span.events:
        if event.name == "exception":
            name = as_text(event.attributes.get("exception.type")) or name
            words = as_text(event.attributes.get("exception.message"))
            line = words.splitlines()[0] if words else ""
            return (f"{name}: {line}" if name and line else name or line or "error")[:_MAX_ERROR]
    words = as_text(node.span.status_message)
    line = words.splitlines()[0] if words else ""
    return (f"{name}: {line}" if name and line else name or line or "error")[:_MAX_ERROR]
