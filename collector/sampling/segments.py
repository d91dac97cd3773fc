"""Bounded label values by which estimates are split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from collector.records.found import Found
from collector.sampling.options import OTHER, UNSET, Segment
from collector.sampling.patterns import matcher, texts

_MAX_LABEL_CHARS = 64


class Segments:
    """Gives each interaction its value in every segment: listed, matched (up to the limit), `other` or `unset`."""

    def __init__(self, segments: tuple[Segment, ...]) -> None:
        self._segments = [_Values(segment) for segment in segments]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(values.name for values in self._segments)

    def of(self, found: Found) -> tuple[tuple[str, str], ...]:
        return tuple((values.name, values.of(found)) for values in self._segments)

    def listed(self) -> Iterator[tuple[tuple[str, str], ...]]:
        """Every combination of listed values, in the order of the configuration; none where a segment lists none.
        There may be very many."""
        return product(*([(values.name, value) for value in values.listed] for values in self._segments))


class _Values:
    def __init__(self, segment: Segment) -> None:
        self.name = segment.name
        self._attribute = segment.attribute
        self.listed = dict.fromkeys(segment.values)
        self._room = segment.max_values - len(self.listed)
        self._fits: Callable[[object], bool] | None = matcher(globs=segment.glob) if segment.glob else None
        self._matched: set[str] = set()

    def of(self, found: Found) -> str:
        value = self._value(found)
        if not value:
            return UNSET
        if value in self.listed or value in self._matched:
            return value
        if self._fits is not None and len(self._matched) < self._room and self._fits(value):
            label = value[:_MAX_LABEL_CHARS]
            if label == value and value.isprintable() and value not in (OTHER, UNSET):
                self._matched.add(value)
                return value
        return OTHER

    def _value(self, found: Found) -> str:
        if self._attribute == "service":
            return found.service
        for place in (found.resource, found.attributes):
            if place.get(self._attribute) is not None:
                return next(texts(place[self._attribute]), "")
        return ""
