"""Which questions share a call. Pure.

`standard`: questions share a call when they look at the same material (contexts or none, reference or none) and
belong to the same sitting; a question that must see nothing else goes alone. `fused`: one call per sitting, in
which listings carry the labels of their entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from scorers.interaction import Field
from scorers.judge.form import Asked, Call
from scorers.judge.material import Material
from scorers.judge.question import Labelling, Listing

_RESERVE_TOKENS = 200
_LISTING_TOKENS = 400


def pack(questions: Iterable[Asked], material: Material, *, fused: bool, max_output_tokens: int) -> list[Call]:
    """Group questions into calls, in the order in which they were first asked.

    A call's reply is expected to fit into `max_output_tokens`: large labellings are cut in pieces, and a group
    that is too large for one reply becomes several calls.
    """
    room = max(1, max_output_tokens - _RESERVE_TOKENS)
    groups: dict[object, list[Asked]] = {}
    for question in questions:
        for piece in _pieces(question, max(1, room // _label_tokens(question))):
            groups.setdefault(_group(piece, fused=fused), []).append(piece)
    return [
        Call(tuple(filled), material, fused=fused) for group in groups.values() for filled in _filled(group, room)
    ]


def _filled(group: list[Asked], room: int) -> list[list[Asked]]:
    calls: list[list[Asked]] = [[]]
    used = 0
    for question in group:
        size = _LISTING_TOKENS if isinstance(question, Listing) else _label_tokens(question) * len(question.ids)
        if calls[-1] and used + size > room:
            calls.append([])
            used = 0
        calls[-1].append(question)
        used += size
    return calls


def _label_tokens(question: Asked) -> int:
    return 85 if isinstance(question, Listing) or question.reasons else 25


def _pieces(question: Asked, most: int) -> list[Asked]:
    """Labellings of more items than one reply can hold, in several; about passages, each with only its own."""
    if isinstance(question, Listing) or len(question.items) <= most:
        return [question]
    items = question.items
    pieces = [replace(question, items=items[start : start + most]) for start in range(0, len(items), most)]
    if question.by_passage:
        return [replace(piece, passages=tuple(int(item.id) for item in piece.items)) for piece in pieces]
    return list(pieces)


def _group(question: Asked, *, fused: bool) -> object:
    sitting = question.sitting if isinstance(question, Labelling) else 0
    first = question.items[0].id if isinstance(question, Labelling) and question.items else ""
    piece = first if first not in ("", "1") else ""  # pieces of one labelling must not meet again in one call
    reference = Field.REFERENCE in question.needs
    if fused:
        return (sitting, reference, piece)
    if isinstance(question, Listing) and question.exact:
        return (question.key,)
    return (sitting, reference, Field.CONTEXTS in question.needs, piece)
