"""Applications' own spans that follow no convention, but name what they hold in plain words."""

from __future__ import annotations

from collector.extract.documents import Document, documents, with_columns
from collector.extract.view import Payload, Role, Source, View

_DOCUMENTS = frozenset({
    "documents", "retrieved_documents", "retrieved_docs", "contexts", "retrieved_contexts", "passages",
    "retrieved_passages", "chunks", "retrieved_chunks", "search_results",
})  # fmt: skip
_SEARCHES = ("retriev", "search", "rag", "knowledge")
_FOUND = frozenset({"result", "results", "hits", "matches", "items", "nodes", "docs", "sources", "output"})
_RETURN = "return"
_PLAIN_ANSWERS = ("response", "output", "result", "reply")
"""Answers' names that are too common to count, except on a span that holds a question and documents."""
_QUERIES = ("query", "q", "search_query", "question")
_QUESTIONS = frozenset({"question", "user_question", "user_query", "user_input"})
_ANSWERS = frozenset({"answer", "final_answer", "response_text"})


_HINTS = ("retriev", "search.", "rag.", "knowledge", _RETURN)


class Generic:
    """Spans with an attribute whose last name is `documents`, `contexts`, `passages` and the like, and holds documents.

    A `question` and an `answer` of such spans, or of their parents, are taken for the application's own.
    """

    name = "generic"
    content_switch = "put the question, the documents (JSON) and the answer on your own spans"
    hints = (*sorted(_DOCUMENTS | _QUESTIONS | _ANSWERS), *_HINTS)
    # Without documents, or a model call that another convention tells, there is no interaction.
    wanted_keys = (*sorted(_DOCUMENTS), _RETURN)

    def read(self, source: Source) -> View | None:
        view = View(self.name)
        for key, value in source.attributes.items():
            prefix, _, last = key.rpartition(".")
            if prefix.startswith(("gen_ai", "db", "http", "url", "messaging")) or not isinstance(
                value, str | list | dict
            ):
                continue
            name = last.lower()
            searched = name in _FOUND and any(word in prefix.lower() for word in _SEARCHES)
            if (searched or name == _RETURN) and view.documents is None:
                found = documents(Payload(value, source.max_chars).value, source.max_chars, loose=False)
                if found and all(d.text for d in found):
                    view.documents, view.role = found, Role.RETRIEVER
                    view.query = source.text(*(f"{prefix}.{query}" if prefix else query for query in _QUERIES))
            elif name in _DOCUMENTS and view.documents is None:
                found = documents(
                    Payload(value, source.max_chars, quoted=True).value, source.max_chars, loose=True
                )
                if found is not None:
                    view.documents = found
                    view.role = Role.RETRIEVER
                    dotted = f"{prefix}." if prefix else ""
                    view.documents = _with_siblings(view.documents, dotted + last, source)
                    view.query = source.text(*(dotted + query for query in _QUERIES))
            elif name in _QUESTIONS and view.input is None:
                view.input = Payload(value, source.max_chars)
            elif name in _ANSWERS and view.output is None:
                view.output = Payload(value, source.max_chars)
        if view.documents is not None and view.input is not None and view.output is None:
            view.output = source.payload(*_PLAIN_ANSWERS)
        if view.documents is None and view.input is None and view.output is None:
            return None
        if view.role is Role.RETRIEVER and view.output is not None:
            view.role = Role.CHAIN
        return view


def _with_siblings(found: tuple[Document, ...], key: str, source: Source) -> tuple[Document, ...]:
    """The documents with ids and scores of lists beside theirs: `contexts`, `context_ids`, `context_scores`."""
    one = key[:-1]  # the name of the list, as that of one of its items
    columns = {
        name: source.parsed(f"{one}_{name}") or source.parsed(f"{key}_{name}")
        for name in ("ids", "scores", "distances")
    }
    return with_columns(found, columns["ids"], columns["scores"], columns["distances"])
