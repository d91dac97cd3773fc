"""Model calls of a group of spans: double spans of one call are one, and which of them gave the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collector.extract.messages import Message, last_user
from collector.extract.tree import Node
from collector.extract.values import is_redacted, is_scrubbed, squeeze
from collector.extract.view import Role, View
from collector.otlp.model import Status


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model: its innermost span first, then the spans around it that tell of the same call."""

    nodes: tuple[Node, ...]

    @property
    def node(self) -> Node:
        return self.nodes[0]

    @property
    def views(self) -> list[View]:
        return [node.view for node in self.nodes if node.view is not None]

    @property
    def text(self) -> str | None:
        """The text of the reply; None where there is none, or a marker stands in its place."""
        for view in self.views:
            text = reply_text(view.replies)
            if text is not None:
                return text
        return None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The prompt's messages, from the innermost span that has their text."""
        for view in self.views:
            if view.messages and any(m.parts or m.results for m in view.messages):
                return view.messages
        return ()

    @property
    def asks_tools(self) -> bool:
        return any(m.calls for view in self.views for m in view.replies or ())

    @property
    def failed(self) -> bool:
        return any(node.span.status is Status.ERROR for node in self.nodes)

    @property
    def start(self) -> int:
        return min(node.span.start_unix_nano for node in self.nodes)

    @property
    def end(self) -> int:
        return self.node.span.end_unix_nano

    @property
    def user_text(self) -> str | None:
        last = last_user(self.messages)
        return last.text if last is not None else None


def reply_text(replies: tuple[Message, ...] | None) -> str | None:
    """The text of the first choice among a model's replies that has one; no text beside calls of tools."""
    for reply in replies or ():
        if reply.parts and reply.role not in ("user", "system"):
            text = reply.text
            if not is_redacted(text) and not is_scrubbed(text):
                return text
    return None


def calls_of(nodes: Sequence[Node]) -> list[Call]:
    """The calls among the nodes, by the end of their innermost span."""
    found = []
    for node in nodes:
        if node.role is not Role.LLM or _holds_call(node):
            continue
        around = []
        for above in node.ancestors():
            if above.role is Role.LLM:
                around.append(above)
            elif above.role is not None and above.role is not Role.OTHER:
                break
        found.append(Call((node, *around)))
    found.sort(key=lambda call: (call.end, call.start, call.node.span.span_id))
    return found


def _holds_call(node: Node) -> bool:
    """Whether a model call stands below, not counting those that tools below make."""
    stack = list(node.children)
    while stack:
        child = stack.pop()
        if child.role is Role.LLM:
            return True
        if child.role not in (Role.TOOL, Role.RETRIEVER, Role.EMBEDDING):
            stack.extend(child.children)
    return False


def final_call(calls: Sequence[Call], answer: str | None) -> Call | None:
    """The call that gave the answer: the last that says it, else the last that is no helper of a tool or retriever."""
    own = [call for call in calls if not call.node.serves]
    if not own:
        return None
    if answer is not None:
        wanted = squeeze(answer)
        for call in reversed(own):
            text = call.text
            if text is not None and squeeze(text) == wanted:
                return call
        for call in reversed(own):
            text = call.text
            if text is not None and len(text) > 20 and (squeeze(text) in wanted or wanted in squeeze(text)):
                return call
    spoken = [call for call in own if call.text is not None]
    last = own[-1]
    if last.text is not None:
        return last
    if last.failed:
        return last
    if spoken and (last.asks_tools or any(view.replies for view in last.views) or _silent_twin(last, spoken[-1])):
        return spoken[-1]
    return spoken[-1] if spoken and not last.messages and not _hidden(last) else last


def _silent_twin(call: Call, spoken: Call) -> bool:
    """Whether two records tell of one streamed call, and the one with the answer ended first."""
    return (
        call.node.parent is not None
        and call.node.parent is spoken.node.parent
        and any(v.streaming for v in spoken.views)
    )


def _hidden(call: Call) -> bool:
    return any(view.content_off for view in call.views)
