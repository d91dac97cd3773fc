"""The tree of a trace: nodes in start order, parents that are missing, cycles and duplicates taken care of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collector.extract.view import Role, View
from collector.otlp.model import Span

BELOW = (Role.RETRIEVER, Role.RERANKER, Role.TOOL, Role.EMBEDDING, Role.GUARD)
"""A model call below one of these works for it and does not answer the user."""


class Node:
    """One span in its place, which `build` gives it. `view` is None where no convention says anything of it.

    `serves` tells whether the span is below a retriever, a tool or a guard, `works` whether a model call or a retrieval
    is here or below.
    """

    __slots__ = ("children", "parent", "serves", "span", "view", "works")

    def __init__(self, span: Span, view: View | None) -> None:
        self.span = span
        self.view = view
        self.parent: Node | None = None
        self.children: list[Node] = []
        self.serves = False
        self.works = False

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

    A parent chain that runs in a circle is opened at its last node. Takes time by the number of nodes alone, however
    deep they lie.
    """
    by_id = {node.span.span_id: node for node in nodes}
    parents = [by_id.get(node.span.parent_span_id) for node in nodes]
    opened = _in_circles(nodes, parents)
    for node, parent in zip(nodes, parents, strict=True):
        if parent is not None and id(node) not in opened:
            node.parent = parent
            parent.children.append(node)
    roots = [node for node in nodes if node.parent is None]
    below = [node for root in roots for node in root.subtree()]
    for node in below:
        if node.parent is not None:
            node.serves = node.parent.serves or node.parent.role in BELOW
    for node in reversed(below):
        node.works = node.works or node.role in (Role.LLM, Role.RETRIEVER)
        if node.works and node.parent is not None:
            node.parent.works = True
    return roots


def _in_circles(nodes: Sequence[Node], parents: Sequence[Node | None]) -> set[int]:
    """The identity of the last node of each circle that the parents run in."""
    place = {id(node): index for index, node in enumerate(nodes)}
    walk = [-1] * len(nodes)  # in which walk up the parents a node was met first
    last: set[int] = set()
    for start in range(len(nodes)):
        at: int | None = start
        while at is not None and walk[at] < 0:
            walk[at] = start
            parent = parents[at]
            at = place[id(parent)] if parent is not None else None
        if at is None or walk[at] != start:
            continue  # it ended, or came to where an earlier walk had been
        circle = [at]
        while (parent := parents[circle[-1]]) is not None and (up := place[id(parent)]) != at:
            circle.append(up)
        last.add(id(nodes[max(circle)]))
    return last
