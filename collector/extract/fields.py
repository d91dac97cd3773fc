"""Small fields of an interaction: what its model call, its resource, or the user's own attributes say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collector.extract.calls import Call
from collector.extract.conventions.mapped import Mapped
from collector.extract.tree import Node
from collector.extract.view import View
from collector.otlp.model import Attributes
from collector.records.found import TokenUsage


def usage_of_call(call: Call | None) -> TokenUsage | None:
    given, gave = first_count(call, "input_tokens"), first_count(call, "output_tokens")
    return None if given is None and gave is None else TokenUsage(given, gave)


def mapped(group: Sequence[Node]) -> Iterator[View]:
    """Views of the user's own attributes, which may tell of a model call that has no span of its own."""
    return (n.view for n in group if n.view is not None and n.view.convention == Mapped.name)


def told_usage(group: Sequence[Node]) -> TokenUsage | None:
    counts = ((view.input_tokens, view.output_tokens) for view in mapped(group))
    return next((TokenUsage(*pair) for pair in counts if pair != (None, None)), None)


def first(call: Call | None, name: str) -> str | None:
    for view in call.views if call is not None else ():
        value = getattr(view, name)
        if isinstance(value, str):
            return value
    return None


def first_count(call: Call | None, name: str) -> int | None:
    for view in call.views if call is not None else ():
        value = getattr(view, name)
        if isinstance(value, int):
            return value
    return None


def resource_text(attributes: Attributes, *keys: str) -> str | None:
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and value:
            return value
    return None
