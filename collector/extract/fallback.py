"""Contexts where no retriever tells its documents: steps, tools, the prompt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from collector.extract.calls import Call
from collector.extract.documents import Document, documents
from collector.extract.inprompt import Gathered, PromptText, compare, prompt_texts
from collector.extract.messages import TOOL, Message, content_text
from collector.extract.messages import message as read_message
from collector.extract.options import Options
from collector.extract.prompts import Pieces, has_context_label, pieces
from collector.extract.tree import Node
from collector.extract.values import Json, as_text, is_redacted, is_scrubbed, looks_encoded, squeeze
from collector.extract.view import Role

_SEARCH = re.compile(
    r"search|retriev|lookup|look_up|knowledge|(?:^|[_\W])(?:kb|rag|docs?|faq|wiki)(?:$|[_\W])|document|passage|query|find|browse|vector",
    re.IGNORECASE,
)
_INPUTS = (
    "context", "contexts", "documents", "docs", "passages", "retrieved_documents", "retrieved_docs",
    "retrieved_contexts",
    "source_documents", "context_documents", "text_chunks", "chunks", "nodes", "sources",
)  # fmt: skip


_NOTHING = frozenset({"[]", "{}", "()"})
_LEAST = 20
"""Characters of a text that no one would put in a prompt by chance."""
Stage = tuple[Node, tuple[Document, ...]]
"""A step and the documents that it gave out, or was given."""


def without_retriever(
    result: Gathered,
    group: Sequence[Node],
    path: Sequence[Node],
    call: Call | None,
    *,
    prompt: Sequence[Message],
    searched: PromptText | None,
    pattern: str | None,
    options: Options,
) -> Gathered:
    """Contexts where no retriever tells its documents: steps' outputs, tools' results, the prompt."""
    start = call.start if call is not None else None
    on_path = {id(node) for node in path}
    for role, side, rule in (
        (Role.CHAIN, "output", "step_output"),
        (Role.TOOL, "output", "tool_result"),
        (Role.CHAIN, "input", "step_documents"),
    ):
        stages = []
        for node in group:
            if (
                node.role is not role
                or id(node) in on_path
                or (start is not None and _too_late(node, start) and not _within(node, call))
            ):
                continue
            payload = getattr(node.view, side)  # of a node with a role, so there is a view
            if payload is None or payload.hidden:
                continue
            found = documents(payload.value, options.max_json_bytes, loose=False)
            if found and any(d.text for d in found):
                stages.append((node, found))
        if stages:
            result.retrieved = True
            if role is Role.TOOL:
                holders = {id(node) for node, _ in stages}
                candidates = tuple(d for node, found in stages if not _inside(node, holders) for d in found)
            else:
                candidates = _of_stages(stages, searched)
            result.rule = rule
            compare(result, candidates, (), searched)
            return result
    given = _step_input(path)
    if given:
        result.retrieved, result.rule = True, "step_input"
        compare(result, given, (), searched)
        return result
    from_messages = tuple(
        d
        for m in (
            *prompt,
            *(reply for view in (call.views if call is not None else ()) for reply in view.replies or ()),
        )
        for r in m.results
        if not isinstance(r, str) or looks_encoded(r)
        for d in documents(r, options.max_json_bytes, loose=False) or ()
        if d.text
    )
    if from_messages:
        result.retrieved, result.used, result.rule, result.verified = True, from_messages, "tool_message", True
        return result
    block = from_prompt(prompt, call, None, pattern, options)
    if block is None:
        block = _tool_text(result, group, prompt, call)
    if block is None and searched is not None:
        block = _step_text(group, searched, options)
    if block is None and any(m.role == "tool" and m.hidden for m in prompt):
        result.retrieved = True  # a tool answered, but telemetry does not say what
    if block is not None:
        result.retrieved = True
        result.used, result.rule, result.unsplit = block.found, f"prompt_{block.rule}", not block.sure
        result.verified = True
    return result


def _too_late(node: Node, start: int) -> bool:
    """Whether a step can not have given anything to the call that began at `start`.

    A tool's own end does not tell: clocks that count whole milliseconds let it end behind the call's begin.
    """
    if node.role is Role.TOOL:
        return node.span.start_unix_nano > start
    return node.span.end_unix_nano > start


def _within(node: Node, call: Call | None) -> bool:
    """Whether a step is part of the call itself, as a tool is that the client library runs on its own."""
    inside = {id(n) for n in call.nodes} if call is not None else set()
    return node.role is Role.TOOL and any(id(above) in inside for above in node.ancestors())


def _of_stages(stages: Sequence[Stage], searched: PromptText | None) -> tuple[Document, ...]:
    """The documents of the last step, and before them those of earlier ones that the prompt holds besides: steps pass
    documents on, and several searches give their own."""
    ordered = sorted(stages, key=lambda s: (s[0].span.end_unix_nano, -s[0].span.start_unix_nano))
    found = list(ordered[-1][1])
    if searched is None:
        return tuple(found)
    counts = Counter(squeeze(d.text) for d in found if d.text)
    for _, earlier in reversed(ordered[:-1]):
        more = []
        for document in earlier:
            text = squeeze(document.text or "")
            if text and searched.position(text) >= 0 and counts[text] < (searched.times(text) or 1):
                counts[text] += 1
                more.append(document)
        found[:0] = more
    return tuple(found)


def _step_input(path: Sequence[Node]) -> tuple[Document, ...] | None:
    """Documents that a step around the model call was given under a name that says so, the nearest step first."""
    for node in reversed(path):
        payload = node.view.input if node.view is not None else None
        if payload is None or payload.hidden or not isinstance(payload.raw, str | dict):
            continue
        value = payload.value
        if not isinstance(value, dict):
            continue
        inner = value.get("kwargs")
        for item in (value, inner) if isinstance(inner, dict) else (value,):
            for name in _INPUTS:
                if isinstance(item.get(name), list):
                    found = documents(item[name], 4_194_304, loose=True)
                    if found and all(d.text for d in found):
                        return found
    return None


def _step_text(group: Sequence[Node], searched: PromptText, options: Options) -> Pieces | None:
    """A text that a step was given under the name of a context, and that the prompt holds: contexts in one piece."""
    for node in group:
        payload = node.view.input if node.view is not None and node.role in (Role.CHAIN, Role.PROMPT) else None
        if payload is None or payload.hidden or payload.broken or not isinstance(payload.value, dict):
            continue
        value = payload.value
        for item in (value, value.get("inputs"), value.get("kwargs")):
            if not isinstance(item, dict):
                continue
            for name in _INPUTS:
                text = as_text(item.get(name))
                if text is not None and len(text) >= _LEAST and searched.position(text) >= 0:
                    return pieces(text[: options.max_text_chars]) or Pieces(
                        (Document(text),), "step_text", sure=False
                    )
    return None


def _inside(node: Node, holders: set[int]) -> bool:
    return any(id(above) in holders for above in node.ancestors())


def from_prompt(
    prompt: Sequence[Message], call: Call | None, known: int | None, pattern: str | None, options: Options
) -> Pieces | None:
    """The passages of a prompt that announces contexts; one block, not sure, where they can not be told apart."""
    if not options.split_prompts:
        return None
    if pattern is not None:
        found = _by_pattern(prompt, pattern)
        if found:
            return Pieces(found, "pattern", sure=True)
    best: Pieces | None = None
    for source, _ in prompt_texts(prompt, call, ()):
        if isinstance(source, Pieces):
            if source.rule == "messages":
                return source
            continue
        announced = has_context_label(source) or _is_json_context(source)
        if not announced:
            continue
        split = pieces(source, known=known)
        if split is not None and split.sure:
            return split
        if split is not None and best is None:
            best = Pieces(_whole_block(source, split), split.rule, sure=False)
    return best


def _is_json_context(text: str) -> bool:
    body = text.strip()
    return body[:1] in "{[" and looks_encoded(body) and len(body) > 60


def _whole_block(text: str, split: Pieces) -> tuple[Document, ...]:
    """All that stands in the context block, as one text."""
    joined = "\n\n".join(d.text for d in split.found if d.text)
    return (Document(joined),) if joined else split.found


def _by_pattern(prompt: Sequence[Message], pattern: str) -> tuple[Document, ...]:
    found = []
    for message in prompt:
        for match in re.finditer(pattern, message.text[:400_000]):
            groups = match.groupdict()
            if groups["text"].strip():
                found.append(Document(groups["text"].strip(), id=groups.get("id")))
            if len(found) >= 2_000:
                return tuple(found)
    return tuple(found)


def _tool_text(
    result: Gathered, group: Sequence[Node], prompt: Sequence[Message], call: Call | None
) -> Pieces | None:
    """Plain texts that a search tool gave: contexts, though their borders are not known; none where all are empty."""
    given: list[Json] = []
    searches = [n for n in group if n.role is Role.TOOL and _SEARCH.search(_tool_name(n))]
    for node in searches:
        if node.view is not None and node.view.output is not None:
            value = node.view.output.value
            if isinstance(value, dict):
                value = next((value[k] for k in ("output", "content", "result") if value.get(k)), value)
            given.append(value)
    if not given:
        asked = {name for m in (call.messages if call is not None else ()) for name in m.tools}
        unnamed = not asked and not any(node.role is Role.TOOL for node in group)
        if searches or unnamed or any(_SEARCH.search(name) for name in asked):
            given = [r for m in prompt for r in m.results]
    if given and all(_is_nothing(value) for value in given):
        return Pieces((), "tool_empty", sure=True)
    texts = list(dict.fromkeys(text for value in given if (text := _plain_text(value)) is not None))
    told = [text for text in texts if not is_redacted(text) and not is_scrubbed(text)]
    result.retrieved |= len(told) < len(texts)
    return Pieces(tuple(Document(text) for text in told), "tool_text", sure=False) if told else None


def _is_nothing(value: Json) -> bool:
    """Whether a tool's result is an empty list, as it is or as text."""
    return value == [] or (isinstance(value, str) and value.strip() in _NOTHING)


def _plain_text(value: Json) -> str | None:
    """The text of a tool's result that is plain, or a list of pieces of text."""
    told = read_message(value) if isinstance(value, dict) else None
    if told is not None and told.role == TOOL:
        value = told.text
    if isinstance(value, list) and value and all(isinstance(item, dict) and "text" in item for item in value):
        value = content_text(value)
    return value if isinstance(value, str) and value.strip() else None


def _tool_name(node: Node) -> str:
    for key in ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name", "tool_name"):
        name = node.span.attributes.get(key)
        if isinstance(name, str):
            return name
    return node.span.name
