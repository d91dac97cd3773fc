"""The tree of a trace: nodes in start order, parents that are missing, cycles and duplicates taken care of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collector.extract.view import Role, View
from collector.otlp.model import Span

BELOW = (Role.RETRIEVER, Role.RERANKER, Role.TOOL, Role.EMBEDDING, Role.GUARD)
"""A model call below one of these works for it and does not answer the user."""


class Node:
    """One span in its place. `view` is None where no convention says anything of it."""

    __slots__ = ("children", "parent", "span", "view")

    def __init__(self, span: Span, view: View | None) -> None:
        self.span = span
        self.view = view
        self.parent: Node | None = None
        self.children: list[Node] = []

    @property
    def role(self) -> Role | None:
        return self.view.role if self.view is not None else None

    def ancestors(self) -> Iterator[Node]:
        """The nodes above, the nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def subtree(self) -> Iterator[Node]:
        """This node and all below it, in start order of siblings, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    @property
    def order(self) -> tuple[int, int, str]:
        return (self.span.start_unix_nano, -self.span.end_unix_nano, self.span.span_id)

    @property
    def serves(self) -> bool:
        """Whether the span is below a retriever, a tool or a guard."""
        return any(node.role in BELOW for node in self.ancestors())


def unique(spans: Sequence[Span]) -> list[Span]:
    """Spans without duplicates by id, in start order; of two that differ the fuller one stays."""
    best: dict[tuple[str, str], Span] = {}
    for span in spans:
        key = (span.trace_id, span.span_id)
        other = best.get(key)
        if other is None or _weight(span) > _weight(other):
            best[key] = span
    return sorted(best.values(), key=lambda s: (s.start_unix_nano, -s.end_unix_nano, s.span_id))


def _weight(span: Span) -> tuple[bool, int, int, int, str]:
    return (not span.cut, len(span.attributes), len(span.events), span.end_unix_nano, span.name)


def build(nodes: Sequence[Node]) -> list[Node]:
    """Link nodes of one trace, given in start order, and give the roots: those whose parent is not here.

    A parent chain that runs in a circle is opened at its earliest node.
    """
    by_id = {node.span.span_id: node for node in nodes}
    for node in nodes:
        parent = by_id.get(node.span.parent_span_id)
        if parent is None or parent is node or _reaches(parent, node):
            continue
        node.parent = parent
        parent.children.append(node)
    return [node for node in nodes if node.parent is None]


def _reaches(start: Node, goal: Node) -> bool:
    node: Node | None = start
    for _ in range(10_000):
        if node is None:
            return False
        if node is goal:
            return True
        node = node.parent
    return True
