"""Which spans of a trace belong to one interaction: a trace may hold several turns of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from collector.extract.calls import Call, calls_of
from collector.extract.readers import answer_of, question_of
from collector.extract.tree import Node
from collector.extract.values import squeeze
from collector.extract.view import Role

_TURN = (Role.CHAIN, Role.AGENT)
_DEEPEST = 100
"""Branchings, one below the other, down to which turns are looked for."""


def groups(roots: Sequence[Node], max_chars: int, depth: int = 0) -> list[list[Node]]:
    """The trees under `roots`, divided into interactions; each is a list of top nodes, in start order.

    Where a span holds a question and an answer of its own, all below it is one interaction. Below a span that holds
    neither (an HTTP request, a session, a batch), its children are turns when two or more of them each hold a question
    and an answer and either share their name, where one retrieves or each asks something else, or each retrieved for
    itself, one after the other. Children that are no turns go with the turn that follows them, else with the last.
    """
    whole = [list(roots)]
    while len(roots) == 1:
        if not roots[0].children or _is_turn(roots[0], max_chars):
            return whole
        roots = roots[0].children
    if depth >= _DEEPEST:
        return whole
    inner = _divided(roots, max_chars, depth)
    return inner if len(inner) > 1 else whole


def _divided(roots: Sequence[Node], max_chars: int, depth: int) -> list[list[Node]]:
    turns = [node for node in roots if _is_turn(node, max_chars)]
    if len(turns) >= 2 and _separate(turns, max_chars):
        return _by_turn(roots, turns)
    with_turns = [(node, groups([node], max_chars, depth + 1)) for node in roots]
    if any(len(inner) > 1 for _, inner in with_turns):
        return [group for _, inner in with_turns for group in inner]
    return _by_history(roots)


def _is_turn(node: Node, max_chars: int) -> bool:
    view = node.view
    if view is None or view.role not in _TURN or view.input is None or view.output is None:
        return False
    if view.input.hidden or view.output.hidden or not node.works:
        return False
    return (
        question_of(view.input.value, max_chars) is not None
        and answer_of(view.output.value, max_chars) is not None
    )


def _retrieves(node: Node) -> bool:
    return any(n.role is Role.RETRIEVER or (n.view is not None and n.view.documents) for n in node.subtree())


def _asked(node: Node, max_chars: int) -> str:
    given = node.view.input.value if node.view is not None and node.view.input is not None else None
    return squeeze(question_of(given, max_chars) or "")


def _separate(turns: Sequence[Node], max_chars: int) -> bool:
    """Whether nodes that could be turns are turns, and not steps of one."""
    one_after_other = all(a.span.end_unix_nano <= b.span.start_unix_nano for a, b in pairwise(turns))
    retrieving = [node for node in turns if _retrieves(node)]
    if len({node.span.name for node in turns}) == 1:
        return bool(retrieving) or len({_asked(node, max_chars) for node in turns}) == len(turns)
    return len(retrieving) >= 2 and one_after_other and len(retrieving) == len(turns)


def _by_turn(roots: Sequence[Node], turns: Sequence[Node]) -> list[list[Node]]:
    members = {id(node) for node in turns}
    found: list[list[Node]] = []
    waiting: list[Node] = []
    for node in roots:
        waiting.append(node)
        if id(node) in members:
            found.append(waiting)
            waiting = []
    if waiting:
        found[-1].extend(waiting)
    return found


def _by_history(roots: Sequence[Node]) -> list[list[Node]]:
    """Divide siblings behind a model call whose answer a later call holds as a turn of its history."""
    nodes = [n for root in roots for n in root.subtree()]
    calls = [
        call for call in calls_of(nodes) if call.text is not None and not call.asks_tools and not call.node.serves
    ]
    if len(calls) < 2:
        return [list(roots)]
    ends = []
    for call, later in pairwise(calls):
        if _is_answered(call, later):
            ends.append(call.end)
    if not ends:
        return [list(roots)]
    found: list[list[Node]] = [[] for _ in range(len(ends) + 1)]
    for root in roots:
        found[sum(1 for end in ends if root.span.start_unix_nano >= end)].append(root)
    return [group for group in found if group]


def _is_answered(call: Call, later: Call) -> bool:
    """Whether `later` holds the reply of `call` as the assistant's turn, with a new message of the user behind it."""
    wanted = squeeze(call.text or "")
    found = later.messages
    for index, message in enumerate(found):
        if message.role == "assistant" and message.parts and squeeze(message.text) == wanted:
            return any(m.role == "user" and m.parts for m in found[index + 1 :])
    return False
