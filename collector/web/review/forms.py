"""What the labelling form sends, and the labels that it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from starlette.requests import Request

from collector.review.labels import BadLabel, Draft, Label, LabelKind, Labelled, Value

MAX_BODY_BYTES = 512 * 1024
_MAX_FIELDS = 2_000


class BadForm(ValueError):
    """A body that is none of our forms."""


class TooLarge(BadForm):
    pass


async def body(request: Request, limit: int = MAX_BODY_BYTES) -> bytes:
    """The request's body. Raises TooLarge as soon as it is over the limit."""
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > limit:
            raise TooLarge(f"more than {limit} bytes were sent")
    return bytes(found)


async def fields(request: Request) -> dict[str, str]:
    """The fields of a form; of two with one name the last. Raises BadForm."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise BadForm(f"a form is needed (application/x-www-form-urlencoded), not {kind[:100]!r}")
    try:
        text = (await body(request)).decode()
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except (UnicodeDecodeError, ValueError) as error:
        if isinstance(error, BadForm):
            raise
        raise BadForm(f"the form can not be read: {error}") from error


@dataclass(frozen=True, slots=True)
class Typed:
    """What the controls of the form hold, by their names: from the author's labels, or from what was sent."""

    values: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str) -> str:
        return self.values.get(name, "")


def held(effect: Labelled, author: str | None) -> Typed:
    """The author's labels that hold, as the form shows them."""
    values = {
        _name(one): _shown(one.value) for one in effect.labels if one.author == author and one.kind in _FIELDS
    }
    return Typed({**values, "golden": "true" if effect.golden else ""})


def drafts(typed: Mapping[str, str], effect: Labelled, author: str) -> list[Draft]:
    """The labels that what was typed adds to what the author already said. Raises BadLabel, naming the control."""
    before = held(effect, author).values
    found = []
    for name, text in typed.items():
        kind, _, rest = name.partition(":")
        if kind not in _NAMES:
            continue
        said = text.replace("\r\n", "\n").strip()
        if said and said != before.get(name):
            found.append(_draft(_NAMES[kind], rest, said))
    if "shown_golden" in typed and bool(typed.get("golden")) != effect.golden:
        found.append(Draft(LabelKind.GOLDEN, bool(typed.get("golden"))))
    return found


def _draft(kind: LabelKind, rest: str, text: str) -> Draft:
    if kind is LabelKind.SCORE:
        try:
            return Draft(kind, float(text.replace(",", ".")), metric=rest)
        except ValueError as error:
            raise BadLabel(f"corrected score of {rest[:80]}: {text[:40]!r} is no number from 0 to 1") from error
    if kind in (LabelKind.CLAIM, LabelKind.PASSAGE):
        number, _, metric = rest.partition(":")
        if not (number.isascii() and number.isdigit() and len(number) < 9):
            raise BadLabel(f"label {kind.value}: {number[:20]!r} is no number of one")
        return Draft(kind, text, metric=metric, target=int(number))
    return Draft(kind, text, metric=rest)


_FIELDS = frozenset(
    {
        LabelKind.AGREE,
        LabelKind.CLAIM,
        LabelKind.PASSAGE,
        LabelKind.SCORE,
        LabelKind.COMMENT,
        LabelKind.REFERENCE,
    }
)
_NAMES = {kind.value: kind for kind in _FIELDS}


def _name(label: Label) -> str:
    kind = label.kind.value
    if label.kind is LabelKind.CLAIM:
        return f"{kind}:{label.target}:{label.metric}"
    if label.kind is LabelKind.PASSAGE:
        return f"{kind}:{label.target}"
    return f"{kind}:{label.metric}" if label.metric else kind


def _shown(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
