"""Plain records as they arrive: JSON text of unknown origin to one interaction, within the bounds of extraction."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from collector.extract.conventions.record import UnreadableRecord, at_path, read_record
from collector.extract.options import Options
from collector.extract.values import Json, as_scalar_text, as_text, clean
from collector.records.found import Found, Mark
from scorers.interaction import Damage, Field, Passage

OWN_KEYS = ("schema_version", "interaction_id", "groundwatch_version")
"""What an object has that groundwatch itself wrote: its results are not evaluated."""
_MAX_ID_CHARS = 200
_SECONDS, _MILLIS, _MICROS = 1e11, 1e14, 1e17
"""A number below is a time since 1970 in seconds, milliseconds, microseconds; above, in nanoseconds."""


def found_in(text: bytes, options: Options, *, name: str) -> Found | None:
    """The interaction of a record; None where the record is one of our own results. `name` is its id where it has
    none of its own (or one of more than 200 characters). Raises UnreadableRecord.
    """
    record = _parsed(text)
    if isinstance(record, dict) and all(key in record for key in OWN_KEYS):
        return None
    found = read_record(record, options, fallback_id=name)
    paths = options.record
    if len(found.interaction.id) > _MAX_ID_CHARS:
        found = replace(found, interaction=replace(found.interaction, id=name))
    return replace(
        _bounded(found, options),
        environment=as_scalar_text(at_path(record, paths.environment)),
        attributes=_attributes(at_path(record, paths.attributes), options),
        ended_unix_nano=_time(at_path(record, paths.time)),
    )


def _parsed(text: bytes) -> Json:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:  # the standard parser takes NaN, lone surrogates and control characters, which others emit
        return json.loads(text.decode("utf-8-sig"), strict=False)
    except (ValueError, RecursionError) as error:
        raise UnreadableRecord("record: not JSON") from error


def _bounded(found: Found, options: Options) -> Found:
    """Texts within the configured lengths; what had to be cut is marked, so that it is not judged."""
    item = found.interaction
    damage: dict[Field, Damage] = dict(item.damage)

    def cut(field: Field, text: str | None) -> str | None:
        if text is None or len(text) <= options.max_text_chars:
            return text
        damage[field] = Damage.TRUNCATED
        return text[: options.max_text_chars]

    contexts = item.contexts
    if contexts is not None and (
        len(contexts) > options.max_passages or any(len(one.text) > options.max_context_chars for one in contexts)
    ):
        damage[Field.CONTEXTS] = Damage.TRUNCATED
        contexts = tuple(_short(one, options) for one in contexts[: options.max_passages])
    bounded = replace(
        item,
        question=cut(Field.QUESTION, item.question),
        response=cut(Field.RESPONSE, item.response),
        reference=cut(Field.REFERENCE, item.reference),
        history=tuple(replace(turn, text=turn.text[: options.max_text_chars]) for turn in item.history),
        contexts=contexts,
    )
    if not damage:
        return replace(found, interaction=bounded)
    return replace(
        found, interaction=replace(bounded, damage=damage), marks=found.marks | frozenset({Mark.TRUNCATED})
    )


def _short(passage: Passage, options: Options) -> Passage:
    return replace(passage, text=passage.text[: options.max_context_chars])


def _attributes(value: Json, options: Options) -> dict[str, object]:
    """Scalars for filters and segments."""
    if not isinstance(value, Mapping):
        return {}
    kept: dict[str, object] = {}
    for key, item in value.items():
        if len(kept) >= options.max_attributes:
            break
        if len(key) > _MAX_ID_CHARS:
            continue
        key = clean(key)  # noqa: PLW2901  # the same key, as a text that can be written
        if isinstance(item, str):
            text = as_text(item)
            if text is not None:
                kept[key] = text[: options.max_attribute_chars]
        elif isinstance(item, bool | int | float):
            kept[key] = item
    return kept


def _time(value: Json) -> int:
    """Nanoseconds since 1970 of an ISO 8601 text or of a number; 0 where it is neither."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return 0
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0, int(moment.timestamp() * 1e9))
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return 0
    for limit, factor in ((_SECONDS, 1e9), (_MILLIS, 1e6), (_MICROS, 1e3)):
        if value < limit:
            return int(value * factor)
    return int(value) if value < 2**63 else 0
