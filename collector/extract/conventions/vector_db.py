"""Vector stores' client spans: `db.*` attributes and one event per hit."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from collector.extract.documents import Document, complete, documents, metadata_of, with_text
from collector.extract.values import Json, as_number, as_scalar_text
from collector.extract.view import Role, Source, View

_HIT = "db.query.result"
_READS = (
    "query",
    "search",
    "retrieve",
    "scroll",
    "recommend",
    "hybrid",
    "near",
    "similarity",
    "fetch",
    "query_points",
)
_STORES = {
    "chroma", "chromadb", "qdrant", "pinecone", "weaviate", "milvus", "lancedb", "marqo", "vespa", "pgvector",
    "vectordb", "opensearch_vector", "turbopuffer", "vertex_vector_search",
    "pg_vector", "astra", "astradb",
}  # fmt: skip


class VectorDB:
    """Queries to vector stores as their client libraries' instrumentations write them."""

    name = "vector_db"
    content_switch = (
        "the stores' own client spans seldom hold documents: trace the function around the search, with its result"
    )
    hints = (
        "db.query.result", "db.search.result", "db.vector.", "chroma", "qdrant", "Qdrant", "pinecone", "Pinecone",
        "weaviate", "Weaviate", "milvus", "Milvus", "lancedb", "marqo", "vespa", "pgvector", "pg_vector", "vectordb",
        "astra",
    )  # fmt: skip

    def read(self, source: Source) -> View | None:
        attributes = source.attributes
        hits = [
            event
            for event in source.span.events
            if event.name.startswith((_HIT, "pinecone.query.result", "db.search.result"))
        ]
        system = (source.text("db.system.name", "db.system") or "").lower()
        if not hits and system not in _STORES:
            return None
        operation = (source.text("db.operation.name", "db.operation") or source.span.name).lower()
        if not hits and not any(word in operation for word in _READS):
            return None
        view = View(self.name, Role.RETRIEVER, collection=True)
        view.query = source.text("db.vector.query.content", "db.query.vector.text")
        found: list[Document] = []
        for event in hits:
            one = _hit(event.name, dict(event.attributes), source.max_chars)
            if one is not None:
                found.append(one)
        if found:
            view.documents = _nearest_first(found)
            wanted = source.count("db.chroma.query.n_results", "db.n_results", "db.vector.query.top_k")
            view.partial = len(found) == 1 and wanted is not None and wanted > 1
        else:
            for key in (
                "db.vector.query.response.documents",
                "db.query.results",
                "db.response.documents",
                "db.vector.query.results",
            ):
                if key in attributes:
                    view.documents = documents(attributes[key], source.max_chars, loose=True)
        return view


def _nearest_first(found: list[Document]) -> tuple[Document, ...]:
    """The hits; what is called a distance, but falls from the best hit to the worst, is a score."""
    given = [d.distance for d in found if d.distance is not None and d.score is None]
    falls = len(given) == len(found) and given[0] > given[-1] and all(a >= b for a, b in pairwise(given))
    return tuple(replace(d, score=d.distance, distance=None) if falls else d for d in found)


def _hit(event: str, fields: dict[str, Json], max_chars: int) -> Document | None:
    """One hit; its fields stand under the event's name, with or without an index."""
    values = {key.removeprefix(event).rpartition(".")[2]: value for key, value in fields.items()}
    text = next(
        (values[k] for k in ("document", "text", "content", "payload", "page_content", "entity") if values.get(k)),
        None,
    )
    meta = metadata_of(values.get("metadata") or values.get("payload") or values.get("entity"), max_chars)
    if isinstance(text, str) and text[:1] == "{":
        inner = metadata_of(text, max_chars)
        text = next((inner[k] for k in ("text", "page_content", "content", "document") if k in inner), text)
    if text is None:
        text = next(
            (meta[k] for k in ("text", "page_content", "content", "document") if isinstance(meta.get(k), str)),
            None,
        )
    ident = as_scalar_text(values.get("id"))
    if text is None and ident is None:
        return None
    return complete(
        with_text(
            text,
            id=ident,
            score=as_number(values.get("score")),
            distance=as_number(values.get("distance")),
            metadata=meta,
        )
    )
