"""Spans and log records of released traces to interactions."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice

from collector.extract.answer import Asked, Text, asked_before, history, question, response, top_answer
from collector.extract.calls import Call, calls_of, final_call, reply_text
from collector.extract.contexts import gather
from collector.extract.conventions import conventions
from collector.extract.conventions.generic import Generic
from collector.extract.damage import ERROR_HINT, Findings, assess
from collector.extract.fields import first, mapped, resource_text, told_usage, usage_of_call
from collector.extract.identity import Identities, Identity, scalars
from collector.extract.inprompt import Gathered, answered_from
from collector.extract.join import partners
from collector.extract.limits import Limits
from collector.extract.messages import USER, Message, last_user
from collector.extract.options import Options
from collector.extract.readers import answer_of, question_of
from collector.extract.tree import Node, build, unique
from collector.extract.turns import groups
from collector.extract.values import squeeze, walk
from collector.extract.view import Convention, Payload, Role, Source, View, merge
from collector.otlp.model import LogRecord, Span, Status
from collector.records.found import Found, Mark
from collector.records.hints import Hints
from scorers.interaction import Interaction, Turn

OWN_MARKER = "groundwatch.evaluation"
"""The attribute that groundwatch puts on its own judge calls; what carries it is never scored."""


class Seen(StrEnum):
    """What a released trace held, where it held no interaction; and that it did."""

    INTERACTION = "interaction"
    RETRIEVAL_ONLY = "retrieval_only"
    OWN_EVALUATION = "own_evaluation"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was found in a trace. `seen` tells why `found` is empty, when it is."""

    found: tuple[Found, ...]
    seen: Seen


def hints(options: Options) -> tuple[bytes, ...]:
    """Byte strings, at least one of which stands in every span and log record that tells extraction anything.

    Made from the keys that the conventions and the identities declare; one that holds another is left out.
    """
    declared = {hint for convention in conventions(options) for hint in convention.hints}
    declared |= {*Identities(options).hints, OWN_MARKER, ERROR_HINT}
    texts = sorted((text for text in declared if text), key=len)
    kept: list[str] = []
    for text in texts:
        if not any(other in text for other in kept):
            kept.append(text)
    return tuple(text.encode() for text in sorted(kept))


def trace_hints(options: Options) -> Hints:
    """The hints by what they tell: that a trace may hold an interaction, or only that a span may add to one.

    Identities, errors and what applications call a question or an answer stand in ordinary traces too, of which
    none can become an interaction.
    """
    wanted = {h for c in conventions(options) if not isinstance(c, Generic) for h in c.hints if h}
    return Hints(
        wanted=tuple(hint.encode() for hint in sorted(wanted)),
        wanted_keys=tuple(key.encode() for key in Generic.wanted_keys),
        content=hints(options),
    )


def interaction_id(trace_id: str, span_id: str) -> str:
    """The id of the interaction whose response is that span's: BLAKE2b over both ids, 16 bytes as hex."""
    return hashlib.blake2b(f"{trace_id}:{span_id}".encode(), digest_size=16).hexdigest()


class Extractor:
    """Finds interactions. Holds no state between calls; safe to use from several threads."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._conventions: tuple[Convention, ...] = conventions(options)
        self._identities = Identities(options)

    def extract(self, spans: Sequence[Span], logs: Sequence[LogRecord], *, complete: bool) -> Extraction:
        """The interactions of one trace (or of several), in the order in which they ended.

        Any order, division and duplication of the same spans gives the same result. `complete` false marks each
        interaction INCOMPLETE_TRACE. Never raises on any content of spans.
        """
        by_trace: dict[str, list[Span]] = defaultdict(list)
        for span in unique(spans)[: self._options.max_spans]:
            by_trace[span.trace_id].append(span)
        records: dict[tuple[str, str], list[LogRecord]] = defaultdict(list)
        told: set[str] = set()
        for record in sorted(logs, key=lambda r: r.time_unix_nano):
            if _first_time(record, told):
                records[(record.trace_id, record.span_id)].append(record)
        found: list[Found] = []
        seen: set[Seen] = set()
        traces: list[list[Node]] = []
        for trace_spans in by_trace.values():
            own = next((span for span in trace_spans if OWN_MARKER in span.attributes), None)
            if own is not None:
                found.append(_own(own))
                seen.add(Seen.OWN_EVALUATION)
                continue
            traces.append([Node(s, self.view(s, records.get((s.trace_id, s.span_id), ()))) for s in trace_spans])
        joined = partners(traces, self._identities) if self._options.join_traces else [[t] for t in traces]
        for group in joined:
            got, what = self._interactions(group, complete=complete)
            found.extend(got)
            seen.add(what)
        found.sort(key=lambda f: (f.ended_unix_nano, f.interaction.id))
        for what in (Seen.INTERACTION, Seen.OWN_EVALUATION, Seen.RETRIEVAL_ONLY):
            if what in seen:
                return Extraction(tuple(found), what)
        return Extraction(tuple(found), Seen.NOTHING)

    def view(self, span: Span, logs: Sequence[LogRecord] = ()) -> View | None:
        """What the conventions make of one span; None where none of them knows it, or its content was cut."""
        if span.cut:
            return None
        source = Source(span, logs, self._options.max_json_bytes)
        views = [view for convention in self._conventions if (view := convention.read(source)) is not None]
        if not views:
            return None
        view = merge(views)
        if view.role is None:
            has_content = view.input is not None or view.output is not None
            view.role = Role.RETRIEVER if view.documents is not None else Role.CHAIN if has_content else Role.OTHER
            if view.replies is not None or (view.messages is not None and view.model is not None):
                view.role = Role.LLM
        if view.role in (Role.CHAIN, Role.AGENT):
            _carry(view, self._options.max_json_bytes)
        elif view.role is Role.LLM and view.messages is None and view.input is not None:
            view.messages = _asked_as_text(view.input, self._options.max_json_bytes)
        return view

    def _interactions(self, traces: Sequence[list[Node]], *, complete: bool) -> tuple[list[Found], Seen]:
        """The interactions of one trace, or of several that are joined."""
        nodes = sorted((node for trace in traces for node in trace), key=lambda n: n.order)
        if all(node.view is None for node in nodes):
            return [], Seen.NOTHING
        roots = build(nodes)
        limits = Limits([node.span for node in nodes], self._options.max_json_bytes)
        divided = groups(roots, self._options.max_json_bytes) if len(traces) == 1 else [roots]
        found = []
        for tops in divided:
            one = _Builder(self._options, self._identities, tops, limits, complete=complete).build()
            if one is not None:
                found.append(one)
        if found:
            return found, Seen.INTERACTION
        retrieves = any(node.role is Role.RETRIEVER for node in nodes)
        return [], Seen.RETRIEVAL_ONLY if retrieves else Seen.NOTHING


def _first_time(record: LogRecord, told: set[str]) -> bool:
    """Whether none like it was told before; by its text, since comparing each with each takes minutes of thousands."""
    said = repr(
        (record.trace_id, record.span_id, record.event_name, record.time_unix_nano, record.body, record.attributes)
    )
    known = said in told
    told.add(said)
    return not known


def _asked_as_text(given: Payload, max_chars: int) -> tuple[Message, ...] | None:
    """What a model was asked, where its input is no messages but an object that names a text (`{"input": ...}`)."""
    if given.hidden or given.broken or not isinstance(given.value, dict):
        return None
    text = question_of(given.value, max_chars)
    return (Message(USER, (text,)),) if text is not None else None


def _carry(view: View, max_chars: int) -> None:
    """Give an agent or a workflow that tells its messages an input and an output."""
    if view.input is None and view.messages:
        last = last_user(view.messages)
        if last is not None:
            view.input = Payload(last.text, max_chars)
    if view.output is None and view.replies:
        text = reply_text(view.replies)
        if text is not None:
            view.output = Payload(text, max_chars)


def _own(span: Span) -> Found:
    return Found(
        Interaction(interaction_id(span.trace_id, span.span_id)),
        trace_ids=(span.trace_id,),
        span_id=span.span_id,
        service=span.resource.service_name,
        marks=frozenset({Mark.OWN_EVALUATION, Mark.NOT_RAG}),
        trace_state=span.trace_state,
        ended_unix_nano=span.end_unix_nano,
    )


class _Builder:
    """One interaction from its top nodes."""

    def __init__(
        self, options: Options, identities: Identities, tops: Sequence[Node], limits: Limits, *, complete: bool
    ) -> None:
        self._options = options
        self._identities = identities
        self._tops = tops
        self._limits = limits
        self._complete = complete
        members = {id(n) for top in tops for n in top.subtree()}
        self._above = list(reversed(list(tops[0].ancestors()))) if tops[0].parent is not None else []
        self._group = sorted((n for top in tops for n in top.subtree()), key=lambda n: n.order)
        self._members = members

    def build(self) -> Found | None:
        options = self._options
        calls = calls_of(self._group)
        own = [call for call in calls if not call.node.serves]
        guess = own[-1] if own else None
        path = self._path(guess.node if guess is not None else None)
        top = top_answer(path, options)
        call = final_call(calls, top.text if top is not None else None)
        if top is None and call is not None and len(own) > 1:
            call = answered_from(self._texts(), call, own, self._group)
        if call is not None and guess is not None and call is not guess:
            path = self._path(call.node)
            top = top_answer(path, options)
        answered = response(call, top)
        if call is not None and answered is None and call.asks_tools and not call.failed and path == [call.node]:
            return None  # a step of an agent whose other calls are in traces of their own
        anchor = (
            call.node
            if call is not None
            else (answered.node if answered is not None and answered.node else path[0])
        )
        service = anchor.span.resource.service_name
        gathered = gather(
            self._group,
            call,
            path,
            options=options,
            pattern=self._pattern(service, "context"),
            limits=self._limits,
        )
        if call is None and not self._speaks_without_model(answered, gathered, path) and not self._unanswered():
            return None
        asked = self._asked(gathered, calls, call, self._pattern(service, "question"))
        put = question(path, self._group, call, asked, options)
        if put is not None and put.rule == "last_user_message" and (before := asked_before(put.text, call, own)):
            put = question(path, self._group, before, asked, options) or put
        return self._found(
            call=call, path=path, anchor=anchor, answered=answered, gathered=gathered, put=put, calls=calls
        )

    def _path(self, node: Node | None) -> list[Node]:
        """The nodes from the top of the interaction down to above the model call, or else around the retrieval."""
        goal = node
        if goal is None:
            goal = next((n for n in self._group if n.role in (Role.RETRIEVER, Role.RERANKER)), None)
        if goal is None:
            goal = next(
                (n for n in self._group if n.view is not None and n.view.documents is not None), self._tops[0]
            )
        path = [n for n in reversed(list(goal.ancestors())) if id(n) in self._members]
        if node is None and goal.role in (Role.CHAIN, Role.AGENT):
            path.append(goal)
        return path or [goal]

    def _texts(self) -> list[str]:
        """The first of the texts that were retrieved."""
        given = (d.text for n in self._group if n.view is not None for d in n.view.documents or () if d.text)
        return [text for text in islice(given, 50) if len(text) >= 20]

    def _retrieves(self) -> bool:
        return any(n.role in (Role.RETRIEVER, Role.RERANKER) or (n.view and n.view.documents) for n in self._group)

    def _speaks_without_model(self, answered: Text | None, gathered: Gathered, path: Sequence[Node]) -> bool:
        """Whether the application's own spans tell an answer to retrieved contexts, or an agent's, though no model
        call was recorded."""
        if answered is None:
            return False
        said = squeeze(answered.text)
        if any(d.text and len(d.text) >= 20 and squeeze(d.text) in said for d in gathered.used or ()):
            return False  # what a search gave out, not what was made of it
        return gathered.retrieved or bool(gathered.used) or any(n.role is Role.AGENT for n in self._group)

    def _unanswered(self) -> bool:
        """Whether something was retrieved for an answer that failed, or whose spans are missing.

        Missing: the parent of the topmost span is in its own process, by the flags, and was never seen.
        """
        top = self._tops[0]
        if top.span.status is Status.ERROR and any(n.role is Role.AGENT for n in self._group):
            return True
        if not self._retrieves():
            return False
        lost = bool(top.span.parent_span_id) and top.parent is None and top.span.parent_is_remote is False
        return lost or any(n.span.status is Status.ERROR for n in self._group)

    def _pattern(self, service: str, which: str) -> str | None:
        for pattern in self._options.prompt_patterns:
            if pattern.service in ("*", service):
                chosen = pattern.context if which == "context" else pattern.question
                if chosen is not None:
                    return chosen
        return None

    def _asked(self, gathered: Gathered, calls: Sequence[Call], call: Call | None, pattern: str | None) -> Asked:
        texts = tuple(
            d.text for d in (*(gathered.used or ()), *gathered.unused) if d.text and not gathered.unsplit
        )
        first_call = min((c.end for c in calls), default=None)
        early: list[str] = []
        only: list[str] = []
        for node in self._group:
            view = node.view
            if view is None or view.role not in (Role.RETRIEVER, Role.RERANKER, Role.EMBEDDING):
                continue
            if first_call is not None and node.span.start_unix_nano >= first_call:
                continue
            for query in _queries(view, self._options.max_json_bytes):
                if query not in early:
                    early.append(query)
                if view.role is Role.RETRIEVER and query not in only:
                    only.append(query)
        early.sort(key=len, reverse=True)
        candidates = only or early
        return Asked(
            texts,
            tuple(early),
            candidates[0] if len(candidates) == 1 else None,
            verified=bool(texts) and gathered.verified is True,
            pattern=pattern,
        )

    def _found(
        self,
        *,
        call: Call | None,
        path: Sequence[Node],
        anchor: Node,
        answered: Text | None,
        gathered: Gathered,
        put: Text | None,
        calls: Sequence[Call],
    ) -> Found:
        options = self._options
        findings = assess(
            Findings(self._group, path, call, answered, put, gathered, complete=self._complete),
            self._limits,
            options,
        )
        order = [*path, anchor, *self._above, *self._group]
        identity = self._identity(order, path)
        marks = set(findings.marks)
        if identity.scrubbed:
            marks.add(Mark.SCRUBBED)
        rules = dict(findings.rules)
        rules.update(identity.rules)
        turns = tuple(Turn(role, text) for role, text in history(call, path, options))
        resource = anchor.span.resource.attributes
        usage = usage_of_call(call) or told_usage(self._group)
        interaction = Interaction(
            id=interaction_id(anchor.span.trace_id, anchor.span.span_id),
            question=findings.question,
            contexts=findings.passages,
            response=findings.response,
            reference=identity.reference,
            history=turns,
            damage=findings.damage,
        )
        return Found(
            interaction=interaction,
            trace_ids=tuple(dict.fromkeys((anchor.span.trace_id, *(n.span.trace_id for n in self._group)))),
            span_id=anchor.span.span_id,
            service=anchor.span.resource.service_name,
            service_version=resource_text(resource, "service.version", "langfuse.release"),
            environment=resource_text(
                resource, "deployment.environment.name", "deployment.environment", "langfuse.environment"
            ),
            convention=anchor.view.convention if anchor.view is not None else "",
            model=self._model(call, findings.response),
            request_model=first(call, "request_model"),
            session=identity.session,
            user=identity.user,
            tenant=identity.tenant,
            usage=usage,
            response_id=first(call, "response_id"),
            rewritten_query=self._rewritten(findings.question, calls, call),
            unused_passages=findings.unused,
            error=findings.error,
            marks=frozenset(marks),
            rules=rules,
            resource=dict(resource),
            attributes=scalars(order, options),
            trace_state=anchor.span.trace_state,
            ended_unix_nano=max(n.span.end_unix_nano for n in (*path, anchor) if id(n) in self._members),
        )

    def _identity(self, order: Sequence[Node], path: Sequence[Node]) -> Identity:
        """By the attributes, else by what the functions on the path were given."""
        identity = self._identities.read(order)
        missing = [n for n in ("session", "user", "tenant") if getattr(identity, n) is None]
        if not missing or identity.scrubbed:
            return identity
        payloads = [n.view.input for n in path if n.view is not None and n.view.input is not None]
        told = self._identities.told(p.value for p in payloads if not p.hidden)
        kept = {name: told[name] for name in missing if name in told}
        return replace(
            identity,
            session=identity.session or kept.get("session", (None,))[0],
            user=identity.user or kept.get("user", (None,))[0],
            tenant=identity.tenant or kept.get("tenant", (None,))[0],
            rules=(*identity.rules, *((name, rule) for name, (_, rule) in kept.items())),
        )

    def _model(self, call: Call | None, text: str | None) -> str | None:
        """The model that answered: as the call says, else as a later step says of the same message, else as another
        call of the same requested model says, else the requested one."""
        served, wanted = first(call, "model"), first(call, "request_model")
        if call is None:
            return next((view.model for view in mapped(self._group) if view.model is not None), None)
        if served is not None and served != wanted:
            return served
        if text is not None:
            for node in self._group:
                if node.view is None or node.role is Role.LLM:
                    continue
                for payload in (node.view.input, node.view.output):
                    raw = payload.raw if payload is not None else None
                    if (
                        payload is None
                        or not isinstance(raw, str)
                        or '"model_name"' not in raw
                        or text[:40] not in raw
                    ):
                        continue
                    for key, value in walk(payload.value, 20_000):
                        if key == "model_name" and isinstance(value, str) and value:
                            return value
        for node in self._group:
            view = node.view
            if (
                view is not None
                and view.role is Role.LLM
                and view.model is not None
                and view.request_model == wanted
            ):
                return view.model
        return served or wanted

    def _rewritten(self, question_text: str | None, calls: Sequence[Call], call: Call | None) -> str | None:
        """The query of a retrieval that an earlier model call wrote in place of the question."""
        if question_text is None:
            return None
        said = {squeeze(c.text) for c in calls if c is not call and c.text is not None}
        for node in self._group:
            if node.view is None:
                continue
            if node.role is not Role.RETRIEVER:
                if node.role is Role.CHAIN and node.view.output is not None and not node.view.output.hidden:
                    text = answer_of(node.view.output.value, self._options.max_json_bytes)
                    if text is not None and len(text) < 2_000:
                        said.add(squeeze(text))
                continue
            for query in _queries(node.view, self._options.max_json_bytes):
                if squeeze(query) != squeeze(question_text) and squeeze(query) in said:
                    return query
        return None


def _queries(view: View, max_chars: int) -> list[str]:
    """The texts that a retrieval or an embedding was asked for."""
    found = []
    if view.query:
        found.append(view.query)
    elif view.input is not None and not view.input.hidden:
        text = question_of(view.input.value, max_chars)
        if text is not None:
            found.append(text)
    if not found and view.role is Role.EMBEDDING:
        found.extend(m.text for m in (view.messages or ())[:8] if m.parts)
    return found
