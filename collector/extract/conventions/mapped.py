"""The user's own attributes, as the configuration names them."""

from __future__ import annotations

from collections.abc import Sequence

from collector.extract.documents import documents, with_columns
from collector.extract.options import Options
from collector.extract.paths import attribute_of, pick
from collector.extract.values import Json, as_count, as_text
from collector.extract.view import Payload, Role, Source, View


class Mapped:
    """Attributes named in `extract.question_keys`, `response_keys`, `documents_keys`, `query_keys` and the like."""

    name = "mapped"
    content_switch = (
        "put the question, the documents (JSON) and the answer on the attributes that `extract:` names"
    )

    def __init__(self, options: Options) -> None:
        self._options = options
        keys = (
            *options.question_keys,
            *options.response_keys,
            *options.documents_keys,
            *options.query_keys,
            *options.model_keys,
            *options.input_tokens_keys,
            *options.output_tokens_keys,
        )
        self.hints = tuple(dict.fromkeys(attribute_of(key) for key in keys))

    def read(self, source: Source) -> View | None:
        if not self.hints:
            return None
        options = self._options
        view = View(self.name)
        view.input = _payload(source, options.question_keys)
        view.output = _payload(source, options.response_keys)
        view.query = as_text(_first(source, options.query_keys))
        view.model = as_text(_first(source, options.model_keys))
        view.input_tokens = as_count(_first(source, options.input_tokens_keys))
        view.output_tokens = as_count(_first(source, options.output_tokens_keys))
        self._documents(source, view)
        if view.input is None and view.output is None and view.query is None and view.documents is None:
            told = (view.model, view.input_tokens, view.output_tokens)
            return None if told == (None, None, None) else view
        if view.documents is not None and view.output is None:
            view.role = Role.RETRIEVER
        elif view.input is not None or view.output is not None:
            view.role = Role.CHAIN
        return view

    def _documents(self, source: Source, view: View) -> None:
        options = self._options
        raw = _first(source, options.documents_keys, events=True)
        if raw is None:
            return
        value = Payload(raw, source.max_chars, quoted=True).value
        view.documents = documents(value, source.max_chars, loose=True)
        if view.documents is None and isinstance(raw, str) and as_text(raw):
            view.documents = documents([raw], source.max_chars, loose=True)
        if view.documents:
            ids, scores = (
                Payload(_first(source, keys, events=True), source.max_chars, quoted=True).value
                for keys in (options.context_ids_keys, options.context_scores_keys)
            )
            view.documents = with_columns(view.documents, ids, scores)


def _first(source: Source, keys: Sequence[str], *, events: bool = False) -> Json:
    """What the first of the keys holds that holds anything, on the span, or else on one of its events."""
    places = [source.attributes, *(event.attributes for event in source.span.events if events)]
    for key in keys:
        for attributes in places:
            if (found := pick(attributes, key, source.max_chars)) not in (None, ""):
                return found
    return None


def _payload(source: Source, keys: Sequence[str]) -> Payload | None:
    raw = _first(source, keys)
    return Payload(raw, source.max_chars) if raw is not None else None
