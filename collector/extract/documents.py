"""Documents in the many shapes in which retrievers, stores and tools give them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from collector.extract.messages import role_of
from collector.extract.values import (
    MAX_DEPTH,
    Json,
    as_number,
    as_scalar_text,
    as_text,
    clean,
    is_embedding,
    is_redacted,
    is_scrubbed,
    looks_encoded,
    says_truncated,
    unwrap,
)

TEXT_KEYS = (
    "page_content", "pageContent", "content", "text", "document", "body", "chunk", "passage", "snippet",
    "chunk_text", "chunkText", "chunk_content", "page_text", "raw_content", "excerpt", "document_content",
    "contents", "text_content", "textContent", "context", "value", "data",
)  # fmt: skip
ID_KEYS = (
    "id", "doc_id", "docId", "document_id", "documentId", "id_", "_id", "node_id", "nodeId", "chunk_id", "chunkId",
    "uuid", "pk", "key", "file_id", "fileId", "ref_doc_id", "passage_id", "source_id",
)  # fmt: skip
_WEAK_ID_KEYS = frozenset({"pk", "key", "ref_doc_id", "source_id", "uuid"})
SCORE_KEYS = (
    "score", "relevance_score", "relevanceScore", "similarity", "similarity_score", "similarityScore", "_score",
    "rerank_score", "rerankScore", "@search.score", "@search.reranker_score", "certainty", "relevance",
    "confidence", "rank_score",
)  # fmt: skip
DISTANCE_KEYS = ("distance", "_distance", "cosine_distance", "dist", "vector_distance", "l2_distance")
META_KEYS = (
    "metadata",
    "meta",
    "meta_data",
    "chunk_metadata",
    "cmetadata",
    "extra_info",
    "custom_metadata",
    "attributes",
)
_NESTS = (
    "document", "node", "kwargs", "payload", "_source", "entity", "properties", "record", "item", "chunk",
    "retrievedContext", "retrieved_context", "web", "doc", "point", "fields",
)  # fmt: skip
LIST_KEYS = (
    "documents", "docs", "retrieved_documents", "retrievedDocuments", "source_documents", "sourceDocuments",
    "context_documents", "source_nodes", "sourceNodes", "nodes", "results", "hits", "matches", "passages", "chunks",
    "contexts", "context", "sources", "items", "points", "retrievalResults", "retrieval_results", "citations",
    "records", "search_results", "snippets", "output", "outputs", "result", "data", "value", "artifact",
    "structuredContent", "groundingChunks", "reranked_documents", "retrieved_docs", "retrieved_context",
    "documents_list", "objects",
)  # fmt: skip
_MESSAGE_KEYS = frozenset(
    {"tool_calls", "additional_kwargs", "tool_call_id", "response_metadata", "usage_metadata"}
)
MAX_DOCUMENTS = 2_000
_NAME = re.compile(r"^(?=.*[\d._:/#-])[A-Za-z0-9_.:/#@-]{1,64}$")
"""A string in a list of documents that is one of these is an id: no sentence is one word with digits or signs."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document as telemetry holds it. `text` is None where only its id or score is known.

    `scrubbed`, `hidden` and `cut` say what stands in the place of the text or happened to it.
    """

    text: str | None
    id: str | None = None
    score: float | None = None
    distance: float | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    scrubbed: bool = False
    hidden: bool = False
    cut: bool = False


def with_text(text: Json, **rest: Json) -> Document:
    """A document of a text that may be a marker instead."""
    words = as_text(text)
    if words is not None and is_scrubbed(words):
        return Document(None, scrubbed=True, **rest)
    if words is not None and is_redacted(words):
        return Document(None, hidden=True, **rest)
    return Document(words, cut=words is not None and says_truncated(words), **rest)


def metadata_of(value: Json, max_chars: int) -> dict[str, Json]:
    """Metadata as a mapping: an object, or JSON of one; else empty."""
    value = unwrap(value, max_chars)
    if not isinstance(value, dict):
        return {}
    return {
        str(key): clean(item) if isinstance(item, str) else item
        for key, item in list(value.items())[:64]
        if not (isinstance(item, list) and is_embedding(item))
    }


def first(value: Mapping[str, Json], keys: tuple[str, ...]) -> Json:
    for key in keys:
        item = value.get(key)
        if item is not None:
            return item
    return None


def complete(document: Document) -> Document:
    """The document with id, score and distance from its metadata where it has none of its own."""
    meta = document.metadata
    if not meta:
        return document
    score = document.score if document.score is not None else as_number(first(meta, SCORE_KEYS))
    distance = document.distance if document.distance is not None else as_number(first(meta, DISTANCE_KEYS))
    ident = document.id
    if ident is None:
        for key in ID_KEYS:
            if key not in _WEAK_ID_KEYS and (ident := as_scalar_text(meta.get(key))) is not None:
                break
    if (score, distance, ident) == (document.score, document.distance, document.id):
        return document
    return replace(document, id=ident, score=score, distance=distance)


def document(value: Json, max_chars: int, *, loose: bool, depth: int = 0) -> Document | None:
    """One document of a value, or None where it is none.

    `loose`: the place says that documents stand here (a retriever's output), so that a bare string or an object
    with nothing but a text is one. Otherwise an object needs a text and something that only documents have.
    """
    if depth > 4:
        return None
    if isinstance(value, str):
        value = unwrap(value, max_chars) if looks_encoded(value) else value
        if isinstance(value, str):
            if not loose or not value.strip():
                return None
            return Document(None, id=value) if _NAME.match(value) else with_text(value)
    if isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], dict | str) and isinstance(value[1], int | float):
            inner = document(value[0], max_chars, loose=isinstance(value[0], dict), depth=depth + 1)
            return replace(inner, score=as_number(value[1])) if inner is not None else None
        return None
    if not isinstance(value, dict) or not value:
        return None
    if value.keys() & _MESSAGE_KEYS or role_of(value.get("role")) or role_of(value.get("type")):
        return None
    return _object(value, max_chars, loose=loose, depth=depth)


def _object(value: dict[str, Json], max_chars: int, *, loose: bool, depth: int) -> Document | None:
    ident = as_scalar_text(first(value, ID_KEYS))
    if isinstance(value.get("id"), list):  # a serialised class names its path here
        ident = None
    score = as_number(first(value, SCORE_KEYS))
    distance = as_number(first(value, DISTANCE_KEYS))
    meta = metadata_of(first(value, META_KEYS), max_chars)
    text = _text(value)
    if text is None:
        nested = _nested(value, max_chars, depth)
        if nested is not None:
            return complete(
                replace(
                    nested,
                    id=nested.id or ident,
                    score=score if score is not None else nested.score,
                    distance=distance if distance is not None else nested.distance,
                    metadata=nested.metadata or meta,
                )
            )
        text = _text(meta)
        if text is not None:
            meta = {key: item for key, item in meta.items() if item != text}
        elif score is not None or distance is not None:
            text = _only_sentence(value)
    if text is None:
        known = ident is not None and (score is not None or distance is not None or (loose and len(value) <= 4))
        return Document(None, ident, score, distance, meta) if known else None
    if not meta:
        meta = _rest(value)
    typed = "page_content" in value or "pageContent" in value or value.get("type") == "Document"
    strong = typed or score is not None or distance is not None or (ident is not None and len(value) >= 2)
    if not strong and not loose and not first(value, META_KEYS) and "source" not in value and "title" not in value:
        return None
    return complete(with_text(text, id=ident, score=score, distance=distance, metadata=meta))


def _text(value: Mapping[str, Json]) -> str | None:
    for key in TEXT_KEYS:
        item = value.get(key)
        if isinstance(item, str) and item.strip():
            return item
        if isinstance(item, dict) and key in ("content", "text", "data"):
            inner = item.get("text")
            if isinstance(inner, str) and inner.strip():
                return inner
        if isinstance(item, list) and key == "content" and item and all(isinstance(p, dict) for p in item):
            texts = [p["text"] for p in item if isinstance(p.get("text"), str)]
            if texts and len(texts) == len(item):
                return "\n".join(texts)
    resource = value.get("text_resource")
    if isinstance(resource, dict) and isinstance(resource.get("text"), str):
        return str(resource["text"])
    return None


def _only_sentence(value: Mapping[str, Json]) -> str | None:
    """The one text of several words beside a score, whatever it is called (`name`, in a template that many copy)."""
    found = [item for item in value.values() if isinstance(item, str) and len(item.split(None, 3)) > 3]
    return found[0] if len(found) == 1 else None


def _nested(value: dict[str, Json], max_chars: int, depth: int) -> Document | None:
    for key in _NESTS:
        if isinstance(value.get(key), dict):
            inner = document(value[key], max_chars, loose=True, depth=depth + 1)
            if inner is not None:
                return inner
    return None


def _rest(value: dict[str, Json]) -> dict[str, Json]:
    """Scalars that some libraries put beside the text instead of under metadata."""
    taken = {*TEXT_KEYS, *ID_KEYS[:1], *SCORE_KEYS, *DISTANCE_KEYS, *META_KEYS, "type", "embedding", "lc", "blob"}
    rest = {}
    for key, item in list(value.items())[:64]:
        if key not in taken and isinstance(item, str | int | float | bool):
            rest[str(key)] = clean(item) if isinstance(item, str) else item
    return rest


def columns(value: dict[str, Json], max_chars: int) -> tuple[Document, ...] | None:
    """Documents of a result that has one list per column (`ids`, `documents`, `distances`, `metadatas`), or None."""
    texts = value.get("documents")
    if not isinstance(texts, list) or not isinstance(value.get("ids"), list):
        return None

    def column(name: str) -> list[Json]:
        items = value.get(name)
        if isinstance(items, list) and items and isinstance(items[0], list):
            items = [item for inner in items if isinstance(inner, list) for item in inner]
        return items if isinstance(items, list) else []

    ids, distances, scores, metas = column("ids"), column("distances"), column("scores"), column("metadatas")
    found = []
    for index, text in enumerate(column("documents")[:MAX_DOCUMENTS]):
        found.append(
            complete(
                with_text(
                    text,
                    id=as_scalar_text(ids[index]) if index < len(ids) else None,
                    distance=as_number(distances[index]) if index < len(distances) else None,
                    score=as_number(scores[index]) if index < len(scores) else None,
                    metadata=metadata_of(metas[index], max_chars) if index < len(metas) else {},
                )
            )
        )
    return tuple(found)


def with_columns(
    found: tuple[Document, ...], ids: Json = None, scores: Json = None, distances: Json = None
) -> tuple[Document, ...]:
    """The documents with ids, scores and distances of lists that run beside theirs; not of lists of another length."""

    def column(value: Json) -> list[Json]:
        return value if isinstance(value, list) and len(value) == len(found) else [None] * len(found)

    return tuple(
        replace(
            document,
            id=document.id if document.id is not None else as_scalar_text(ident),
            score=document.score if document.score is not None else as_number(score),
            distance=document.distance if document.distance is not None else as_number(distance),
        )
        for document, ident, score, distance in zip(
            found, column(ids), column(scores), column(distances), strict=True
        )
    )


def documents(value: Json, max_chars: int, *, loose: bool, depth: int = 0) -> tuple[Document, ...] | None:
    """The documents of a value, in order; `()` for an empty list where documents stand; None where none are.

    Looks for a list of documents, for the keys that hold one, and one layer deeper each, in document order.
    """
    if depth > 6:
        return None
    value = unwrap(value, max_chars)
    if isinstance(value, list):
        return _list(value, max_chars, loose=loose, depth=depth)
    if isinstance(value, dict):
        if (found := columns(value, max_chars)) is not None:
            return found
        for key in LIST_KEYS:
            if isinstance(value.get(key), list | dict | str):
                inner = value[key]
                if isinstance(inner, str) and not looks_encoded(inner):
                    continue
                strict = key in LIST_KEYS[:14] or loose
                got = documents(inner, max_chars, loose=strict, depth=depth + 1)
                if got is not None and (got or strict):
                    return got
        own = document(value, max_chars, loose=False)
        if own is not None and own.text is not None:
            return (own,)
        for inner in list(value.values())[:64]:
            if isinstance(inner, dict | list):
                got = documents(inner, max_chars, loose=False, depth=depth + 1)
                if got:
                    return got
        return None
    if isinstance(value, str) and loose and depth > 0 and value.strip():
        return None
    return None


def _encoded_part(item: Json, max_chars: int) -> list[Json] | dict[str, Json] | None:
    """What a piece of a tool's result holds, where it is nothing but a text that is JSON."""
    if not isinstance(item, dict) or not item.keys() <= {"type", "text"} or not isinstance(item.get("text"), str):
        return None
    inner = unwrap(item["text"], max_chars)
    return inner if isinstance(inner, list | dict) else None


def _list(value: list[Json], max_chars: int, *, loose: bool, depth: int) -> tuple[Document, ...] | None:
    if not value:
        return () if loose else None
    if is_embedding(value) or depth > MAX_DEPTH:
        return None
    found: list[Document] = []
    for item in value[:MAX_DOCUMENTS]:
        if (part := _encoded_part(item, max_chars)) is not None:
            inner = documents(part, max_chars, loose=loose, depth=depth + 1)
            if inner is None:
                return tuple(found) or None
            found.extend(inner)
            continue
        one = document(item, max_chars, loose=loose)
        if one is None:
            if isinstance(item, list | dict):
                inner = documents(item, max_chars, loose=False, depth=depth + 1)
                if inner:
                    found.extend(inner)
                    continue
            if isinstance(item, dict) and found and loose:
                continue
            return tuple(found) or None
        found.append(one)
    return tuple(found)
