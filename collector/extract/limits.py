"""Attribute length limits of an SDK, told from the values they cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from collector.extract.values import MISSING, loads
from collector.otlp.model import Span, Value

_USUAL = frozenset({
    32, 50, 64, 80, 100, 120, 128, 140, 150, 200, 250, 255, 256, 300, 400, 500, 512, 800, 1000, 1023, 1024, 1200, 1500,
    2000,
    2048, 2500, 3000, 4000, 4095, 4096, 5000, 8000, 8191, 8192, 10000, 12000, 12288, 16000, 16383, 16384, 20000, 32000,
    32766, 32767, 32768, 50000, 64000, 65535, 65536, 100000, 131072,
})  # fmt: skip
"""Lengths that people set as a limit. A limit of another length is found only by the JSON that it broke."""


class Limits:
    """Per service process, the length at which its SDK cuts attribute values, where the values show one.

    Evidence: the greatest length of all is a usual limit, and several different values have it, or one ends without
    any mark that ends a text; or one is JSON that breaks off.
    """

    def __init__(self, spans: Iterable[Span], max_chars: int) -> None:
        self._limits: dict[str, int] = {}
        groups: dict[str, tuple[int, set[str]]] = {}
        for span in spans:
            key = process(span)
            longest, values = groups.get(key, (31, set()))
            for value in _values(span):
                if isinstance(value, str):
                    size = len(value)
                    if size > longest:
                        longest, values = size, {value}
                    elif size == longest and len(values) < 32:
                        values.add(value)
            groups[key] = (longest, values)
        for key, (longest, values) in groups.items():
            if not values:
                continue
            broken = any(_breaks_off(value, max_chars) for value in values)
            usual = longest in _USUAL and (len({v[:20] for v in values}) >= 2 or any(map(_open_end, values)))
            if broken or usual:
                self._limits[key] = longest

    def cut(self, span: Span, text: str) -> bool:
        """Whether the limit of the span's process cut the text."""
        return len(text) == self._limits.get(process(span), -1)

    def ends(self, span: Span, text: str) -> bool:
        """Whether the text stands at the end of a value of the span that the limit cut."""
        limit = self._limits.get(process(span))
        return limit is not None and any(
            isinstance(v, str) and len(v) == limit and v.endswith(text[-40:]) for v in _values(span)
        )

    def touches(self, span: Span) -> bool:
        """Whether the limit cut some value of the span itself."""
        limit = self._limits.get(process(span))
        return limit is not None and any(isinstance(v, str) and len(v) == limit for v in _values(span))


def _values(span: Span) -> Iterator[Value]:
    """The values of a span and of its events."""
    yield from span.attributes.values()
    for event in span.events:
        yield from event.attributes.values()


def _open_end(value: str) -> bool:
    """Whether a text does not end as texts end."""
    return value[-1:].isalnum() and " " in value


def process(span: Span) -> str:
    """A name of the process that emitted a span."""
    attributes = span.resource.attributes
    return f"{attributes.get('service.instance.id')!r}|{attributes.get('service.name')!r}"


def _breaks_off(value: str, max_chars: int) -> bool:
    head = value[:2].lstrip()[:1]
    if head not in ("{", "[") or len(value) > max_chars:
        return False
    counts = Counter(value[:4096])
    if counts['"'] < 2 or value.rstrip()[-1:] in ("}", "]"):
        return False
    return loads(value, max_chars) is MISSING
