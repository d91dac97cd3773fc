"""Step 4: the contexts that went into the final prompt."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from collector.extract.calls import Call
from collector.extract.documents import Document, documents
from collector.extract.messages import SYSTEM, Message
from collector.extract.options import Options
from collector.extract.prompts import Pieces, has_context_label, pieces
from collector.extract.tree import Node
from collector.extract.values import loads, looks_encoded, squeeze, walk
from collector.extract.view import Role

_SEARCH = re.compile(
    r"search|retriev|lookup|look_up|knowledge|(?:^|[_\W])(?:kb|rag|docs?|faq|wiki)(?:$|[_\W])|document|passage|query|find|browse|vector",
    re.IGNORECASE,
)
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


@dataclass(slots=True)
class _Event:
    """One retrieval, with the documents it gave."""

    node: Node
    found: tuple[Document, ...]
    reranked: bool = False


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


def gather(
    group: Sequence[Node], call: Call | None, path: Sequence[Node], options: Options, pattern: str | None
) -> Gathered:
    """The contexts of the interaction whose spans are `group` and whose final model call is `call`."""
    end = call.end if call is not None else None
    events = _events(group, path, end, options)
    result = Gathered(retrieved=any(_retrieves(node) for node in group), nodes=[event.node for event in events])
    prompt = prompt_messages(call)
    haystack = _haystack(prompt, call)
    candidates, superseded = _reranked(events)
    rule = "reranker" if any(event.reranked for event in events) else "retriever"
    if events and not any(document.text for document in candidates) and candidates:
        if not any(d.id or d.score is not None or d.distance is not None for d in candidates):
            result.marker = "scrubbed" if any(d.scrubbed for d in candidates) else "hidden"
            return result
        filled, how = _fill(candidates, group, prompt, call, options)
        if filled is None:
            block = _from_prompt(prompt, call, len(candidates), pattern, options)
            result.used, result.rule = candidates, "ids_only"
            result.unsplit = block is not None
            return result
        candidates, rule = filled, how
    if not events or (not candidates and not any(event.found == () for event in events)):
        return _without_retriever(result, group, path, call, prompt, haystack, pattern, options)
    if not candidates:
        result.used, result.rule = (), rule
        return result
    if any(document.text is None and document.id for document in candidates):
        candidates = tuple(_by_id(candidates, group, prompt, options))
    result.rule = rule
    _compare(result, candidates, superseded, haystack)
    return result


def _retrieves(node: Node) -> bool:
    return node.role in (Role.RETRIEVER, Role.RERANKER) or (node.view is not None and bool(node.view.documents))


def _events(group: Sequence[Node], path: Sequence[Node], end: int | None, options: Options) -> list[_Event]:
    """The retrievals in start order, nested ones as one: the outermost that has documents with text."""
    on_path = {id(node) for node in path}
    holders = [
        node
        for node in group
        if node.view is not None
        and (node.view.documents is not None or (node.view.collection and node.role is Role.RETRIEVER))
        and (end is None or node.span.start_unix_nano <= end)
    ]
    found: list[_Event] = []
    taken: set[int] = set()
    for node in holders:
        if any(id(above) in taken for above in node.ancestors()):
            continue
        view = node.view
        assert view is not None
        given = view.documents or ()
        below = [n for n in node.subtree() if n is not node and n.view is not None and n.view.documents]
        if id(node) in on_path and below:
            continue
        if view.collection:
            event = _around_client(node, given, on_path, options)
            if event is None and view.documents is None:
                continue
            event = event or _Event(node, given)
        elif not any(d.text for d in given) and below:
            event = _best_below(node, given, below)
        else:
            event = _Event(node, given, view.role is Role.RERANKER)
        for inner in event.node.subtree():
            taken.add(id(inner))
        for inner in node.subtree():
            taken.add(id(inner))
        found.append(event)
    return found


def _best_below(node: Node, given: tuple[Document, ...], below: Sequence[Node]) -> _Event:
    inner = next((n for n in below if n.view is not None and any(d.text for d in n.view.documents or ())), None)
    if inner is None or inner.view is None:
        return _Event(node, given)
    return _Event(node, inner.view.documents or (), node.role is Role.RERANKER)


def _around_client(node: Node, given: tuple[Document, ...], on_path: set[int], options: Options) -> _Event | None:
    """The fuller list that the application's own span around a store's client call gives out, or None."""
    for above in node.ancestors():
        if id(above) in on_path or above.view is None:
            continue
        if above.role is Role.RETRIEVER and above.view.documents:
            return _Event(above, above.view.documents)
        if above.view.output is None:
            continue
        wider = documents(above.view.output.value, options.max_json_bytes, loose=False)
        if wider and len(wider) >= len(given) and _covers(wider, given):
            return _Event(above, wider)
    return None


def _covers(wider: Sequence[Document], given: Sequence[Document]) -> bool:
    ids = {d.id for d in wider if d.id}
    texts = {squeeze(d.text) for d in wider if d.text}
    return all((d.id in ids) or (d.text is not None and squeeze(d.text) in texts) for d in given)


def _same(one: Document, other: Document) -> bool:
    if one.id is not None and other.id is not None:
        return one.id == other.id
    return one.text is not None and other.text is not None and squeeze(one.text) == squeeze(other.text)


def _reranked(events: Sequence[_Event]) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    """All documents in order, each reranker's output in the place of what it was given; and what it replaced."""
    kept: list[_Event] = []
    superseded: list[Document] = []
    for event in events:
        if event.reranked and event.found:
            before = [e for e in kept if any(_same(d, f) for d in e.found for f in event.found)]
            pool = [d for e in before for d in e.found]
            kept = [e for e in kept if e not in before]
            event.found = tuple(_richer(d, pool) for d in event.found)
            superseded.extend(d for d in pool if not any(_same(d, f) for f in event.found))
        kept.append(event)
    return tuple(d for event in kept for d in event.found), tuple(superseded)


def _richer(document: Document, pool: Iterable[Document]) -> Document:
    """A reranked document with the text and metadata that only the retriever's had."""
    for other in pool:
        if _same(document, other):
            return replace(
                document,
                text=document.text if document.text is not None else other.text,
                id=document.id if document.id is not None else other.id,
                metadata=document.metadata or other.metadata,
            )
    return document


class _Haystack:
    """The text of the final prompt, in which documents are looked for."""

    def __init__(self, text: str) -> None:
        self.text = squeeze(text)
        self._bare: str | None = None

    def position(self, text: str) -> int:
        """Where a document begins, or -1 where it is not there.

        Looked for as it is, in an encoding that prompts use, or by its letters alone; found by these its place is
        LOOSE, as it can not be compared with the others'. A long document whose beginning is there counts: applications cut documents to fit.
        """
        needle = squeeze(text)
        if not needle:
            return -1
        at = self.text.find(needle)
        if at >= 0:
            return at
        for form in (json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1], html.escape(text)):
            if form != text and (at := self.text.find(squeeze(form))) >= 0:
                return at
        if self._bare is None:
            self._bare = bare(self.text)
        letters = bare(needle)
        if len(letters) < 16:
            return -1
        found = letters in self._bare or (len(letters) > 160 and letters[:120] in self._bare)
        return LOOSE if found else -1


def bare(text: str) -> str:
    """A text's letters and digits in lower case, the escapes of white space taken off."""
    return "".join(_WORDS.findall(_ESCAPES.sub(" ", text))).lower()


def _haystack(prompt: Sequence[Message], call: Call | None) -> _Haystack | None:
    parts: list[str] = []
    for message in prompt:
        for body in (*message.parts, *(r for r in message.results if r not in message.parts)):
            _strings(body, parts)
    if not parts and call is not None:
        for view in call.views:
            if view.input is not None and isinstance(view.input.raw, str) and not view.input.hidden:
                raw = view.input.raw[:2_000_000]
                parts.append(raw.replace("\\n", "\n").replace("\\'", "'"))
                break
    return _Haystack("\n".join(parts)) if parts else None


def _strings(body: object, parts: list[str], layer: int = 0) -> None:
    """All texts in a value, those inside of JSON in texts too."""
    for _, value in walk(body, 50_000):
        if isinstance(value, str):
            inner = loads(value, 1_000_000) if layer < _LAYERS and looks_encoded(value) else None
            if isinstance(inner, dict | list):
                _strings(inner, parts, layer + 1)
            else:
                parts.append(value)


def _compare(
    result: Gathered,
    candidates: tuple[Document, ...],
    superseded: tuple[Document, ...],
    haystack: _Haystack | None,
) -> None:
    """Keep what the final prompt holds; nothing found there says nothing and keeps all, unverified."""
    if haystack is None:
        result.used, result.unused, result.verified = candidates, superseded, False
        return
    places = [haystack.position(d.text) if d.text else -1 for d in candidates]
    inside = [i for i, place in enumerate(places) if place >= 0]
    unknown = [i for i, d in enumerate(candidates) if not d.text or d.cut]
    if not inside:
        result.used, result.unused, result.verified = candidates, superseded, False
        return
    result.verified = True
    keep = sorted({*inside, *unknown})
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


def _ordered(places: Sequence[int]) -> bool:
    """Whether the places tell the order in which the prompt holds the documents: each its own."""
    return LOOSE not in places and len(set(places)) == len(places)


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
    for source, rule in (*_prompt_texts(prompt, call, group), *_other_prompts(group, call)):
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


def _prompt_texts(
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


def _other_prompts(group: Sequence[Node], call: Call | None) -> list[tuple[str | Pieces, str]]:
    """Prompts of the other model calls, such as one that ranked the documents before fewer of them were used."""
    final = {id(node) for node in call.nodes} if call is not None else set()
    found: list[tuple[str | Pieces, str]] = []
    for node in group:
        if node.role is Role.LLM and id(node) not in final and node.view is not None and node.view.messages:
            found.extend((m.text, "other_prompt") for m in node.view.messages if m.role == "user" and m.parts)
    return found


_ONE_LABEL = re.compile(
    r"^\s*(?:\[?\s*(?:document|doc|passage|context|source|chunk|excerpt|snippet|문서|자료)\s*(?:#|no\.?\s*)?\d*\s*\]?\s*(?:\([^)\n]{0,200}\))?\s*[:：\n]|\[\d+\])\s*",
    re.IGNORECASE,
)


def _one_per_message(prompt: Sequence[Message]) -> Pieces | None:
    """Messages that each hold one document, announced at their head by the same kind of label."""
    texts = [m.text for m in prompt[:-1] if m.parts and m.role in ("user", SYSTEM, "tool")]
    labelled = [t for t in texts if _ONE_LABEL.match(t)]
    if not labelled:
        return None
    return Pieces(tuple(Document(_ONE_LABEL.sub("", t, count=1).strip()) for t in labelled), "messages", sure=True)


def _without_retriever(
    result: Gathered,
    group: Sequence[Node],
    path: Sequence[Node],
    call: Call | None,
    prompt: Sequence[Message],
    haystack: _Haystack | None,
    pattern: str | None,
    options: Options,
) -> Gathered:
    """Contexts where no retriever tells its documents: steps' outputs, tools' results, the prompt."""
    start = call.start if call is not None else None
    on_path = {id(node) for node in path}
    for role, rule in ((Role.CHAIN, "step_output"), (Role.TOOL, "tool_result")):
        stages = []
        for node in group:
            view = node.view
            if (
                view is None
                or view.output is None
                or id(node) in on_path
                or node.role is not role
                or view.output.hidden
            ):
                continue
            if start is not None and node.span.end_unix_nano > start:
                continue
            found = documents(view.output.value, options.max_json_bytes, loose=False)
            if found and any(d.text for d in found):
                stages.append((node, found))
        if stages:
            result.retrieved = True
            if role is Role.TOOL:
                candidates = tuple(d for node, found in stages if not _inside(node, stages) for d in found)
            else:
                candidates = max(stages, key=lambda s: (s[0].span.end_unix_nano, -s[0].span.start_unix_nano))[1]
            result.rule = rule
            _compare(result, candidates, (), haystack)
            return result
    given = _step_input(path)
    if given:
        result.retrieved, result.rule = True, "step_input"
        _compare(result, given, (), haystack)
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
    block = _from_prompt(prompt, call, None, pattern, options)
    if block is None:
        block = _tool_text(group, prompt, call)
    if block is None and any(m.role == "tool" and m.hidden for m in prompt):
        result.retrieved = True  # a tool answered, but telemetry does not say what
    if block is not None:
        result.retrieved = True
        result.used, result.rule, result.unsplit = block.found, f"prompt_{block.rule}", not block.sure
        result.verified = True
    return result


_INPUTS = (
    "context", "contexts", "documents", "docs", "passages", "retrieved_documents", "retrieved_docs", "retrieved_contexts",
    "source_documents", "context_documents", "text_chunks", "chunks", "nodes", "sources",
)  # fmt: skip


def _step_input(path: Sequence[Node]) -> tuple[Document, ...] | None:
    """Documents that a step around the model call was given under a name that says so, the nearest step first."""
    for node in reversed(path):
        payload = node.view.input if node.view is not None else None
        if payload is None or payload.hidden or not isinstance(payload.raw, str | dict):
            continue
        value = payload.value
        inner = value.get("kwargs") if isinstance(value, dict) else None
        for item in (value, inner):
            for name in _INPUTS if isinstance(item, dict) else ():
                if isinstance(item.get(name), list):
                    found = documents(item[name], 4_194_304, loose=True)
                    if found and all(d.text for d in found):
                        return found
    return None


def _inside(node: Node, stages: Sequence[tuple[Node, tuple[Document, ...]]]) -> bool:
    holders = {id(other) for other, _ in stages}
    return any(id(above) in holders for above in node.ancestors())


def _from_prompt(
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
    for source, _ in _prompt_texts(prompt, call, ()):
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


def _tool_text(group: Sequence[Node], prompt: Sequence[Message], call: Call | None) -> Pieces | None:
    """Plain texts that a search tool gave: contexts, though their borders are not known."""
    texts = []
    searching = any(node.role is Role.TOOL and _SEARCH.search(_tool_name(node)) for node in group)
    for node in group:
        if (
            node.role is Role.TOOL
            and node.view is not None
            and node.view.output is not None
            and _SEARCH.search(_tool_name(node))
        ):
            value = node.view.output.value
            if isinstance(value, dict):
                value = value.get("output") or value.get("content") or value.get("result")
            if isinstance(value, str) and value.strip() and value not in texts:
                texts.append(value)
    if not texts:
        asked = {name for m in (call.messages if call is not None else ()) for name in m.tools}
        if searching or any(_SEARCH.search(name) for name in asked):
            texts = [r for m in prompt for r in m.results if isinstance(r, str) and r.strip()]
    return Pieces(tuple(Document(text) for text in texts), "tool_text", sure=False) if texts else None


def _tool_name(node: Node) -> str:
    for key in ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name", "tool_name"):
        name = node.span.attributes.get(key)
        if isinstance(name, str):
            return name
    return node.span.name
