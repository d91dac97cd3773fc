"""Step 4: the contexts that went into the final prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from collector.extract.calls import Call, calls_of
from collector.extract.documents import Document, documents
from collector.extract.fallback import from_prompt, without_retriever
from collector.extract.inprompt import Gathered, compare, prompt_messages, prompt_text, prompt_texts
from collector.extract.limits import Limits
from collector.extract.messages import Message
from collector.extract.options import Options
from collector.extract.prompts import Pieces, pieces
from collector.extract.retrievals import Retrieval, reranked, retrievals
from collector.extract.tree import Node
from collector.extract.values import looks_encoded
from collector.extract.view import Role


def gather(
    group: Sequence[Node],
    call: Call | None,
    path: Sequence[Node],
    *,
    options: Options,
    pattern: str | None,
    limits: Limits,
) -> Gathered:
    """The contexts of the interaction whose spans are `group` and whose final model call is `call`."""
    end = call.end if call is not None else None
    events = retrievals(group, path, end, options)
    result = Gathered(retrieved=any(_retrieves(node) for node in group), nodes=[event.node for event in events])
    prompt = prompt_messages(call)
    whole = call is None or not any(limits.touches(node.span) for node in call.nodes)
    searched = prompt_text(prompt, call, whole=whole, earlier=_earlier(group, events, call))
    candidates, superseded = reranked(events)
    rule = "reranker" if any(event.reranked for event in events) else "retriever"
    if events and not any(document.text for document in candidates) and candidates:
        if not any(d.id or d.score is not None or d.distance is not None for d in candidates):
            result.marker = "scrubbed" if any(d.scrubbed for d in candidates) else "hidden"
            return result
        filled, how = _fill(candidates, group, prompt, call, options)
        if filled is None:
            block = from_prompt(prompt, call, len(candidates), pattern, options)
            result.used, result.rule = candidates, "ids_only"
            result.unsplit = block is not None
            return result
        candidates, rule = filled, how
    if not events or (not candidates and not any(event.found == () for event in events)):
        return without_retriever(
            result, group, path, call, prompt=prompt, searched=searched, pattern=pattern, options=options
        )
    if not candidates:
        result.used, result.rule = (), rule
        return result
    if any(document.text is None and document.id for document in candidates):
        candidates = tuple(_by_id(candidates, group, prompt, options))
    result.rule = rule
    compare(result, candidates, superseded, searched)
    return result


def _earlier(group: Sequence[Node], events: Sequence[Retrieval], call: Call | None) -> list[Call]:
    """The calls between the first retrieval and the final call, without those that work for a tool or a retriever."""
    if call is None or not events:
        return []
    after = min(event.node.span.start_unix_nano for event in events)
    return [
        c
        for c in calls_of(group)
        if c.end <= call.start and c.start >= after and c.text is not None and not c.node.serves
    ]


def _retrieves(node: Node) -> bool:
    return node.role in (Role.RETRIEVER, Role.RERANKER) or (node.view is not None and bool(node.view.documents))


def _fill(
    candidates: tuple[Document, ...],
    group: Sequence[Node],
    prompt: Sequence[Message],
    call: Call | None,
    options: Options,
) -> tuple[tuple[Document, ...] | None, str]:
    """Texts for documents that are known by id alone: from tools' results by id, else from the prompt in order."""
    filled = tuple(_by_id(candidates, group, prompt, options))
    if any(d.text for d in filled):
        return filled, "ids_with_tool_text"
    if not options.split_prompts:
        return None, ""
    for source, rule in (*prompt_texts(prompt, call, group), *_other_prompts(group, call)):
        split = source if isinstance(source, Pieces) else pieces(source, known=len(candidates))
        if split is None or not split.sure or len(split.found) != len(candidates):
            continue
        by_id = {piece.id: piece for piece in split.found if piece.id}
        if len(by_id) == len(candidates) and all(d.id in by_id for d in candidates if d.id):
            return tuple(
                replace(d, text=by_id[d.id].text if d.id in by_id else None) for d in candidates
            ), f"ids_with_{rule}"
        if by_id and any(d.id for d in candidates) and not set(by_id) & {d.id for d in candidates}:
            ordinal = all(i.isdecimal() for i in by_id if i)
            if not ordinal:
                continue
        pairs = zip(candidates, split.found, strict=True)
        return tuple(replace(d, text=piece.text) for d, piece in pairs), f"ids_with_{rule}"
    return None, ""


def _by_id(
    candidates: Sequence[Document], group: Sequence[Node], prompt: Sequence[Message], options: Options
) -> list[Document]:
    """Documents with the texts that tools' results, or other steps' outputs, give under the same id."""
    texts: dict[str, str] = {}
    sources: list[object] = [r for m in prompt for r in m.results]
    for node in group:
        if node.view is not None and node.role in (Role.TOOL, Role.CHAIN) and node.view.output is not None:
            sources.append(node.view.output.value)
    for source in sources:
        if isinstance(source, str) and not looks_encoded(source):
            continue
        for found in documents(source, options.max_json_bytes, loose=False) or ():
            if found.id and found.text:
                texts.setdefault(found.id, found.text)
    return [replace(d, text=texts.get(d.id)) if d.text is None and d.id in texts else d for d in candidates]


def _other_prompts(group: Sequence[Node], call: Call | None) -> list[tuple[str | Pieces, str]]:
    """Prompts of the other model calls, such as one that ranked the documents before fewer of them were used."""
    final = {id(node) for node in call.nodes} if call is not None else set()
    found: list[tuple[str | Pieces, str]] = []
    for node in group:
        if node.role is Role.LLM and id(node) not in final and node.view is not None and node.view.messages:
            found.extend((m.text, "other_prompt") for m in node.view.messages if m.role == "user" and m.parts)
    return found
