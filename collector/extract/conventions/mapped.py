"""The user's own attributes, as the configuration names them."""

from __future__ import annotations

from collector.extract.documents import documents
from collector.extract.options import Options
from collector.extract.values import as_text
from collector.extract.view import Payload, Role, Source, View


class Mapped:
    """Attributes named in `extract.question_keys`, `response_keys`, `documents_keys`, `query_keys`."""

    name = "mapped"
    content_switch = (
        "put the question, the documents (JSON) and the answer on the attributes that `extract:` names"
    )

    def __init__(self, options: Options) -> None:
        self._question = options.question_keys
        self._response = options.response_keys
        self._documents = options.documents_keys
        self._query = options.query_keys
        self.hints = (*self._question, *self._response, *self._documents, *self._query)

    def read(self, source: Source) -> View | None:
        if not self.hints:
            return None
        view = View(self.name)
        view.input = source.payload(*self._question)
        view.output = source.payload(*self._response)
        view.query = source.text(*self._query)
        for key in self._documents:
            raw = source.attributes.get(key)
            if raw is None:
                raw = next(
                    (event.attributes[key] for event in source.span.events if key in event.attributes), None
                )
            if raw is not None:
                view.documents = documents(
                    Payload(raw, source.max_chars, quoted=True).value, source.max_chars, loose=True
                )
                if view.documents is None and isinstance(raw, str) and as_text(raw):
                    view.documents = documents([raw], source.max_chars, loose=True)
                break
        if view.input is None and view.output is None and view.query is None and view.documents is None:
            return None
        if view.documents is not None and view.output is None:
            view.role = Role.RETRIEVER
        elif view.input is not None or view.output is not None:
            view.role = Role.CHAIN
        return view
