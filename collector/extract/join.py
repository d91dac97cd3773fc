"""One interaction in two traces: a retrieval and a model call that no parent joins."""

from __future__ import annotations

from collections.abc import Sequence

from collector.extract.calls import calls_of
from collector.extract.identity import Identities
from collector.extract.tree import Node
from collector.extract.values import squeeze
from collector.extract.view import Role

MAX_GAP_NANO = 300 * 10**9
"""A retrieval belongs to a model call that begins within five minutes after it."""


def partners(traces: Sequence[list[Node]], identities: Identities) -> list[list[list[Node]]]:
    """The traces, each in a group with those that are joined to it; the one with the model call first.

    Joined are a trace that only retrieves and a later one that only calls a model, when every retrieved text stands
    in the prompt and the sessions, where both have one, are the same.
    """
    searching = [nodes for nodes in traces if _retrieves(nodes) and not calls_of(nodes)]
    used: set[int] = set()
    groups = []
    for nodes in traces:
        if any(nodes is other for other in searching):
            continue
        group = [nodes]
        if calls_of(nodes) and not _retrieves(nodes):
            for other in searching:
                if id(other) not in used and _belongs(other, nodes, identities):
                    used.add(id(other))
                    group.append(other)
        groups.append(group)
    groups.extend([nodes] for nodes in searching if id(nodes) not in used)
    return groups


def _retrieves(nodes: Sequence[Node]) -> bool:
    return any(node.role is Role.RETRIEVER or (node.view is not None and node.view.documents) for node in nodes)


def _belongs(search: Sequence[Node], answer: Sequence[Node], identities: Identities) -> bool:
    sessions = {s for nodes in (search, answer) if (s := identities.read(nodes).session) is not None}
    if len(sessions) > 1:
        return False
    ended = max(node.span.end_unix_nano for node in search)
    begun = min(node.span.start_unix_nano for node in answer)
    if not 0 <= begun - ended <= MAX_GAP_NANO:
        return False
    prompts = squeeze(" ".join(m.text for call in calls_of(answer) for m in call.messages))
    texts = [
        document.text
        for node in search
        for document in (node.view.documents if node.view is not None else None) or ()
        if document.text
    ]
    return bool(texts) and all(squeeze(text) in prompts for text in texts)
