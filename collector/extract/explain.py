"""What to tell a person about interactions that were not found whole, and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence

from collector.extract.conventions import conventions
from collector.extract.options import Options
from collector.records.found import Found, Mark
from scorers.interaction import Damage, Field

_PARTS = (Field.QUESTION, Field.CONTEXTS, Field.RESPONSE)
_WHY = {
    Damage.HIDDEN: "the library left content out",
    Damage.SCRUBBED: "a scrubber put a marker in its place",
    Damage.TRUNCATED: "an attribute length limit cut it: raise OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT and "
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    Damage.DROPPED: "an attribute count limit dropped some of it: raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT "
    "(default 128) and OTEL_SPAN_EVENT_COUNT_LIMIT",
    Damage.UNSPLIT: "the documents stand in the prompt only, in one piece: give `extract.prompt_patterns` for this "
    "service, or emit the retrieved documents with their text",
    Damage.NO_TEXT: "the retriever's span holds no text of the documents: add `content` to each document there, "
    "or name your own attribute in `extract.documents_keys`",
    Damage.TRACE_INCOMPLETE: "the trace was not complete",
}
MAPPING = """\
extract:
  question_keys: [app.question]        # your own attributes; or a path into JSON: body:payload.text
  documents_keys: [app.documents]      # JSON: [{"id": "...", "text": "...", "score": 0.9}, ...]
  response_keys: [app.answer]
  session_keys: [app.session]
  tenant_keys: [app.tenant]
  prompt_patterns:                     # where the documents stand in the prompt alone
    - service: my-service
      context: '(?ms)^\\[(?P<id>[\\w-]+)\\] (?P<text>.+?)(?=^\\[|\\Z)'
      question: '(?s)QUESTION (?P<text>.+)'
"""
"""A snippet of groundwatch.yaml that maps a user's own attributes."""


def content_switches(options: Options) -> dict[str, str]:
    """How the content of each convention's spans is turned on, by the convention's name."""
    return {convention.name: convention.content_switch for convention in conventions(options)}


def explain(found: Sequence[Found], options: Options) -> list[str]:
    """Sentences, one group per service and convention; empty where nothing is amiss."""
    switches = content_switches(options)
    groups: dict[tuple[str, str], list[Found]] = {}
    for item in found:
        groups.setdefault((item.service or "(no service.name)", item.convention or "(none)"), []).append(item)
    lines: list[str] = []
    mapping = False
    for (service, convention), items in sorted(groups.items()):
        said = _of_group(items, switches.get(convention))
        lines.append(
            f"{service} ({convention}): {len(items)} interaction(s)" + ("" if said else ", all parts found")
        )
        lines.extend(f"  - {line}" for line in said)
        mapping = mapping or bool(said)
    if mapping:
        lines.append("To map your own attributes, in groundwatch.yaml:")
        lines.extend("    " + line for line in MAPPING.splitlines())
    return lines


def _of_group(items: Sequence[Found], switch: str | None) -> list[str]:
    lines = []
    total = len(items)
    for part in _PARTS:
        reasons: dict[Damage, int] = {}
        missing = 0
        for item in items:
            damage = item.interaction.damage.get(part)
            if damage is not None:
                reasons[damage] = reasons.get(damage, 0) + 1
            elif getattr(item.interaction, part.value) is None and not (
                part is Field.CONTEXTS and not item.is_rag
            ):
                missing += not (part is Field.RESPONSE and item.error is not None)
        for damage, count in sorted(reasons.items()):
            cure = f"{part.value}: can not be judged in {count} of {total}: {_WHY[damage]}"
            if damage in (Damage.HIDDEN, Damage.SCRUBBED) and switch is not None:
                cure += f". To turn content on: {switch}"
            lines.append(cure)
        if missing:
            lines.append(
                f"{part.value}: not found in {missing} of {total}; name your own attribute in `extract.{_OWN[part]}`"
            )
    not_rag = sum(1 for item in items if not item.is_rag)
    if not_rag:
        lines.append(f"no retrieval in {not_rag} of {total}: RAG metrics are left out there (mark `not_rag`)")
    failed = sum(1 for item in items if Mark.APPLICATION_ERROR in item.marks)
    if failed:
        lines.append(f"the application itself failed in {failed} of {total}")
    unverified = sum(1 for item in items if Mark.UNVERIFIED_CONTEXTS in item.marks)
    if unverified:
        lines.append(
            f"contexts in {unverified} of {total} could not be found again in the prompt (mark `unverified_contexts`)"
        )
    return lines


_OWN = {Field.QUESTION: "question_keys", Field.CONTEXTS: "documents_keys", Field.RESPONSE: "response_keys"}
