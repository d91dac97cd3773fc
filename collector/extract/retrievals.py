"""The retrievals of an interaction: nested ones are one, a reranker replaces what it was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from collector.extract.documents import Document, documents
from collector.extract.options import Options
from collector.extract.tree import Node
from collector.extract.values import squeeze
from collector.extract.view import Role


@dataclass(slots=True)
class Retrieval:
    """One retrieval, with the documents it gave."""

    node: Node
    found: tuple[Document, ...]
    reranked: bool = False


def retrievals(group: Sequence[Node], path: Sequence[Node], end: int | None, options: Options) -> list[Retrieval]:
    """The retrievals in start order, nested ones as one: the outermost that has documents with text."""
    on_path = {id(node) for node in path}
    holders = [
        node
        for node in group
        if node.view is not None
        and (node.view.documents is not None or (node.view.collection and node.role is Role.RETRIEVER))
        and (end is None or node.span.start_unix_nano <= end)
    ]
    found: list[Retrieval] = []
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
            event = _around_client(node, given, on_path if end is not None else set(), options)
            if event is None and view.documents is None:
                continue
            event = event or Retrieval(node, given)
        elif not any(d.text for d in given) and below:
            event = _best_below(node, given, below)
        else:
            event = Retrieval(node, given, view.role is Role.RERANKER)
        for inner in event.node.subtree():
            taken.add(id(inner))
        for inner in node.subtree():
            taken.add(id(inner))
        found.append(event)
    return found


def _best_below(node: Node, given: tuple[Document, ...], below: Sequence[Node]) -> Retrieval:
    inner = next((n for n in below if n.view is not None and any(d.text for d in n.view.documents or ())), None)
    if inner is None or inner.view is None:
        return Retrieval(node, given)
    return Retrieval(node, inner.view.documents or (), node.role is Role.RERANKER)


def _around_client(
    node: Node, given: tuple[Document, ...], on_path: set[int], options: Options
) -> Retrieval | None:
    """The fuller list that the application's own span around a store's client call gives out, or None."""
    for above in node.ancestors():
        if id(above) in on_path or above.view is None:
            continue
        if above.role is Role.RETRIEVER and above.view.documents:
            return Retrieval(above, above.view.documents)
        if above.view.output is None:
            continue
        wider = documents(above.view.output.value, options.max_json_bytes, loose=bool(given))
        if wider and len(wider) >= len(given) and _covers(wider, given):
            return Retrieval(above, _richer(wider, given))
    return None


def _covers(wider: Sequence[Document], given: Sequence[Document]) -> bool:
    ids = {d.id for d in wider if d.id}
    texts = {squeeze(d.text) for d in wider if d.text}
    return all((d.id in ids) or (d.text is not None and squeeze(d.text) in texts) for d in given)


class _Pool:
    """Documents, among which the same one as another is looked for: by id where both have one, else by text."""

    def __init__(self, found: Sequence[Document]) -> None:
        self._found = found
        self._by_id: dict[str, int] = {}
        self._by_text: dict[str, int] = {}
        self._nameless: dict[str, int] = {}
        for place, document in enumerate(found):
            if document.id is not None:
                self._by_id.setdefault(document.id, place)
            if document.text is not None:
                text = squeeze(document.text)
                self._by_text.setdefault(text, place)
                if document.id is None:
                    self._nameless.setdefault(text, place)

    def first(self, document: Document) -> Document | None:
        """The first that is the same; None where none is."""
        places = []
        if document.id is not None and document.id in self._by_id:
            places.append(self._by_id[document.id])
        if document.text is not None:
            texts = self._by_text if document.id is None else self._nameless
            if (place := texts.get(squeeze(document.text))) is not None:
                places.append(place)
        return self._found[min(places)] if places else None


def reranked(events: Sequence[Retrieval]) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    """All documents in order, each reranker's output in the place of what it was given; and what it replaced."""
    kept: list[Retrieval] = []
    superseded: list[Document] = []
    for event in events:
        if event.reranked and event.found:
            given = _Pool(event.found)
            before = [e for e in kept if any(given.first(d) is not None for d in e.found)]
            pool = [d for e in before for d in e.found]
            kept = [e for e in kept if e not in before]
            event.found = _richer(event.found, pool)
            given = _Pool(event.found)
            superseded.extend(d for d in pool if given.first(d) is None)
        kept.append(event)
    return tuple(d for event in kept for d in event.found), tuple(superseded)


def _richer(found: Sequence[Document], given: Sequence[Document]) -> tuple[Document, ...]:
    """Reranked documents with the text and metadata that only the retriever's had."""
    pool = _Pool(given)
    return tuple(_with(document, pool.first(document)) for document in found)


def _with(document: Document, other: Document | None) -> Document:
    if other is None:
        return document
    return replace(
        document,
        text=document.text if document.text is not None else other.text,
        id=document.id if document.id is not None else other.id,
        metadata=document.metadata or other.metadata,
    )
