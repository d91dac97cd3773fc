"""Plain JSON records, one interaction each: `{id, question, contexts, response, reference?, ...}`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from collector.extract.documents import documents
from collector.extract.messages import messages
from collector.extract.options import Options
from collector.extract.values import Json, as_scalar_text, as_text, clean
from collector.records.found import Found, Mark
from scorers.interaction import Interaction, Passage, Turn


class UnreadableRecord(ValueError):
    """A record that is no interaction; names the path, the value and the cure."""


def read_record(record: Json, options: Options, *, fallback_id: str = "") -> Found:
    """The interaction of a record.

    Contexts may be strings or objects with a text under one of its usual names. The id is the record's, else
    `fallback_id` (such as topic/partition/offset), else a hash of the content. Raises UnreadableRecord where the
    record is no object, a text is no text, or contexts are no list.
    """
    if not isinstance(record, dict):
        raise UnreadableRecord(f"record: expected a JSON object, got {type(record).__name__}")
    paths = options.record
    marks: set[Mark] = set()
    question = _text(record, paths.question)
    response = _text(record, paths.response)
    contexts = _contexts(record, paths.contexts, options)
    if question is None:
        marks.add(Mark.NO_QUESTION)
    if response is None:
        marks.add(Mark.NO_RESPONSE)
    if contexts is None:
        marks.add(Mark.NOT_RAG)
    ident = as_scalar_text(at_path(record, paths.id)) or fallback_id or _hash(record)
    turns = messages(at_path(record, paths.history), options.max_json_bytes) or ()
    return Found(
        interaction=Interaction(
            id=ident,
            question=question,
            contexts=contexts,
            response=response,
            reference=_text(record, paths.reference),
            history=tuple(Turn(m.role, m.text) for m in turns if m.parts)[
                -options.max_history_turns or len(turns) :
            ],
        ),
        convention="record",
        service=as_scalar_text(at_path(record, paths.service)) or "",
        model=as_scalar_text(at_path(record, paths.model)),
        session=as_scalar_text(at_path(record, paths.session)),
        user=as_scalar_text(at_path(record, paths.user)),
        tenant=as_scalar_text(at_path(record, paths.tenant)),
        marks=frozenset(marks),
        rules={"question": paths.question, "contexts": paths.contexts, "response": paths.response},
    )


def _contexts(record: Mapping[str, Json], path: str, options: Options) -> tuple[Passage, ...] | None:
    value = at_path(record, path)
    if value is None:
        return None
    if isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value):
        # Texts by their place: elsewhere a word alone may be a document's id, here it is called a context.
        return tuple(Passage(clean(text)) for text in value if isinstance(text, str))
    found = documents(value, options.max_json_bytes, loose=True) if isinstance(value, list | dict) else None
    if found is None or any(document.text is None for document in found):
        raise UnreadableRecord(
            f"{path}: expected a list of texts or of objects with a text, got {str(value)[:80]!r}"
        )
    return tuple(Passage(d.text or "", d.id, d.score, d.distance, dict(d.metadata)) for d in found)


def _text(record: Mapping[str, Json], path: str) -> str | None:
    value = at_path(record, path)
    if value is None or isinstance(value, str):
        return as_text(value)
    raise UnreadableRecord(f"{path}: expected a text, got {str(value)[:80]!r}")


def at_path(value: Json, path: str) -> Json:
    """The value at a dotted path; a key that itself holds the dots wins; None where there is nothing."""
    if isinstance(value, dict) and path in value:
        return value[path]
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _hash(record: Mapping[str, Json]) -> str:
    body = json.dumps(record, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.blake2b(body.encode(), digest_size=16).hexdigest()
