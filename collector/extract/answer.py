"""Step 2 and 3: the response and the question of one interaction."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from collector.extract.calls import Call
from collector.extract.messages import last_user, messages
from collector.extract.options import Options
from collector.extract.prompts import announced_task, has_context_label, labelled_question
from collector.extract.readers import QUESTION_KEYS, answer_of, question_of
from collector.extract.tree import Node
from collector.extract.values import Json, is_redacted, is_scrubbed, squeeze
from collector.extract.view import Role
from collector.otlp.model import Status

_STRONG = frozenset({
    "answer", "final_answer", "finalAnswer", "final_result", "final_output", "finalOutput", "response", "output",
    "outputs", "output_text", "outputText", "result", "reply", "replies", "completion", "response_text", "messages",
    "message", "role", "content", "choices", "raw",
})  # fmt: skip
_CARRIERS = (Role.CHAIN, Role.AGENT, Role.OTHER)
_THOUGHT = re.compile(r"\s*Thought:.*\n[ \t]*(?:Final )?Answer:\s*(?P<answer>\S.*)", re.DOTALL)
"""The reply of an agent that writes its thoughts down before its answer."""
_THINKS = "</think>"
"""Ends the thoughts of a model whose server does not set them apart; their beginning may stand in the prompt."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text that was found, and the rule that found it."""

    text: str
    rule: str
    node: Node | None = None


def usable(text: str | None) -> str | None:
    """The text, unless a marker stands in its place."""
    return None if text is None or is_redacted(text) or is_scrubbed(text) else text


def carriers(path: Sequence[Node]) -> list[Node]:
    """The nodes of a path, top first, that can hold the application's own input and output."""
    return [node for node in path if node.view is not None and node.role in _CARRIERS]


def top_answer(path: Sequence[Node], options: Options) -> Text | None:
    """What the topmost span with an output gives as the answer."""
    for node in carriers(path):
        payload = node.view.output if node.view is not None else None
        if payload is None or payload.hidden or payload.broken:
            continue
        text = usable(answer_of(payload.value, options.max_json_bytes))
        if text is not None and node.span.status is Status.ERROR and _tells_error(node, text):
            continue
        if text is not None:
            value = payload.value
            named = not isinstance(value, dict) or not value.keys().isdisjoint(_STRONG)
            return Text(text, "top_output" if named else "top_output_weak", node)
    return None


def _tells_error(node: Node, text: str) -> bool:
    """Whether the output of a span that failed is the message of its failure, or of one below it."""
    said = squeeze(text)
    return any(
        said in squeeze(words) or squeeze(words) in said
        for n in node.subtree()
        if n.span.status is Status.ERROR
        for words in (
            n.span.status_message,
            *(str(e.attributes.get("exception.message") or "") for e in n.span.events if e.name == "exception"),
        )
        if words
    )


def response(call: Call | None, top: Text | None) -> Text | None:
    """The response: the application's output where it gives one, else the model's reply."""
    spoken = call.text if call is not None else None
    if top is not None and (said := _behind_thoughts(top.text)) is not None:
        return Text(said, "answer_of_thoughts", top.node)
    said = _behind_thoughts(spoken) if spoken is not None else None
    if said is not None and (top is None or squeeze(top.text) in (squeeze(spoken or ""), squeeze(said))):
        return Text(said, "answer_of_thoughts", call.node if call is not None else None)
    if top is None:
        return Text(spoken, "model_reply", call.node if call else None) if spoken is not None else None
    if spoken is None:
        return None if top.rule == "top_output_weak" else top
    if squeeze(top.text) == squeeze(spoken):
        return Text(spoken, "model_reply", call.node if call is not None else None)
    if top.rule == "top_output_weak" and squeeze(spoken) not in squeeze(top.text):
        return Text(spoken, "model_reply", call.node if call is not None else None)
    return top


def _behind_thoughts(text: str) -> str | None:
    """The answer behind thoughts that were written down; None where there are none, or nothing is behind them."""
    thoughts, mark, rest = text.rpartition(_THINKS)
    if mark and thoughts.strip() and rest.strip():
        return rest.strip()
    thought = _THOUGHT.match(text[:200_000])
    return thought.group("answer").strip() if thought is not None else None


@dataclass(frozen=True, slots=True)
class Asked:
    """What may tell the question: texts of the documents, and queries that ran before any model did."""

    known: tuple[str, ...]
    early: tuple[str, ...]
    only_query: str | None
    verified: bool
    """Whether the documents stand in the prompt word for word, so that a text without them is not that prompt."""
    pattern: str | None


def question(
    path: Sequence[Node], group: Sequence[Node], call: Call | None, asked: Asked, options: Options
) -> Text | None:
    """The question as the user put it, by the first rule that finds it."""
    prompts: list[str] = []
    for node in carriers(path):
        payload = node.view.input if node.view is not None else None
        if payload is None or payload.hidden:
            continue
        if payload.broken:
            query = _query_in_cut(payload.raw, asked.early)
            if query is not None and not prompts:
                return Text(query, "query_in_cut_input", None)
            continue
        text = usable(question_of(payload.value, options.max_json_bytes))
        if text is None:
            continue
        mapped = node.view is not None and node.view.convention == "mapped"
        if not mapped and (_holds_documents(text, asked) if asked.verified else _is_prompt(text, asked)):
            prompts.append(text)
            continue
        return Text(text, "top_input", node)
    said = usable(call.user_text) if call is not None else None
    for border in prompts:
        inside = said is not None and len(border) < len(said) and squeeze(border) in squeeze(said)
        if inside and not _holds_documents(border, asked):
            return Text(border, "top_input")  # the prompt was made around it
    for node in group:
        if node.view is not None and node.view.variables and not node.serves:
            lowered = {key.lower(): value for key, value in node.view.variables.items()}
            for key in QUESTION_KEYS:
                text = usable(lowered.get(key.lower()))
                if text is not None and not _is_prompt(text, asked):
                    return Text(text, "prompt_variable", node)
    user = usable(call.user_text) if call is not None else None
    if user is not None and (task := announced_task(user)) is not None:
        return Text(task, "announced_task", call.node if call is not None else None)
    if user is not None and not _is_prompt(user, asked):
        return Text(user, "last_user_message", call.node if call is not None else None)
    for prompt in (user, *prompts):
        if prompt is not None and (found := from_prompt(prompt, asked)) is not None:
            return found
    for prompt in prompts:
        if not _holds_documents(
            prompt, asked
        ):  # a question that speaks of documents, at the application's own border
            return Text(prompt, "top_input")
    cut = any(n.view is not None and n.view.input is not None and n.view.input.broken for n in carriers(path))
    if asked.only_query is not None and usable(asked.only_query) is not None and not cut:
        return Text(asked.only_query, "retrieval_query")
    return None


def asked_before(text: str, call: Call | None, calls: Sequence[Call]) -> Call | None:
    """The first call whose reply stands in what `call` was asked, as where an answer is put into other words: the user
    asked that one."""
    said = squeeze(text)
    for other in calls:
        reply = squeeze(other.text or "")
        if other is not call and len(reply.split(None, 3)) > 3 and reply in said:
            return other
    return None


def _query_in_cut(raw: Json, queries: Sequence[str]) -> str | None:
    """The query of a retrieval that stands whole, as a value of its own, in an input that a limit cut further on."""
    if not isinstance(raw, str):
        return None
    for query in queries:
        if any(form in raw for form in (json.dumps(query), json.dumps(query, ensure_ascii=False), f"'{query}'")):
            return query
    return None


def from_prompt(prompt: str, asked: Asked) -> Text | None:
    """The question inside of a prompt that holds contexts too."""
    if asked.pattern is not None:
        match = re.search(asked.pattern, prompt[:400_000])
        if match is not None and match.group("text").strip():
            return Text(match.group("text").strip(), "prompt_pattern")
    for query in asked.early:
        if query.strip() and _stands_in(query.strip(), prompt, asked.known):
            return Text(query, "query_in_prompt")
    text = labelled_question(prompt, asked.known)
    return Text(text, "prompt_label") if text is not None else None


def _stands_in(query: str, prompt: str, known: Sequence[str]) -> bool:
    """Whether a query stands in a prompt as a piece of its own, outside of the documents."""
    for match in itertools.islice(re.finditer(re.escape(query), prompt[:400_000]), 50):
        before, behind = prompt[: match.start()].rstrip(" \t"), prompt[match.end() :].lstrip(" \t")
        if (not before or before[-1] in "\n:：>\"“«'([") and (not behind or behind[0] in "\n<\"”»')]"):
            around = prompt[max(0, match.start() - 200) : match.end() + 200]
            if not any(query in text and text in around for text in known):
                return True
    return False


def _is_prompt(text: str, asked: Asked) -> bool:
    """Whether a text is a prompt rather than a question: contexts are in it."""
    return _holds_documents(text, asked) or (has_context_label(text) and ("\n" in text or len(text) > 200))


def _holds_documents(text: str, asked: Asked) -> bool:
    squeezed = squeeze(text) if asked.known else ""
    return any(len(known) >= 12 and squeeze(known) in squeezed for known in asked.known)


def history(call: Call | None, path: Sequence[Node], options: Options) -> list[tuple[str, str]]:
    """Earlier messages of the user and the assistant, oldest first, contexts taken off."""
    found = call.messages if call is not None else ()
    if not found:
        for node in carriers(path):
            payload = node.view.input if node.view is not None else None
            if payload is not None and not payload.hidden and isinstance(payload.value, dict | list):
                found = messages(payload.value, options.max_json_bytes) or ()
                if found:
                    break
    last = last_user(found)
    turns: list[tuple[str, str]] = []
    for item in found:
        if item is last:
            break
        if item.role in ("user", "assistant") and item.parts and not item.calls:
            text = item.text
            if item.role == "user" and has_context_label(text):
                text = labelled_question(text) or text
            turns.append((item.role, text))
    return turns[-options.max_history_turns :] if options.max_history_turns else []
