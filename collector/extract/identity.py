"""Session, user, tenant, reference, and the scalar attributes that filters and segments use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from collector.extract.options import Options
from collector.extract.paths import attribute_of, pick
from collector.extract.tree import Node
from collector.extract.values import Json, as_scalar_text, clean, is_redacted, is_scrubbed, unwrap
from collector.otlp.model import Attributes

SESSION = (
    "session.id",
    "session_id",
    "sessionId",
    "conversation.id",
    "conversation_id",
    "conversationId",
    "thread_id",
    "threadId",
    "chat_id",
    "chatId",
)
USER = (
    "user.id",
    "user_id",
    "userId",
    "enduser.id",
    "end_user_id",
    "endUserId",
    "enduser.pseudo.id",
    "llm.user",
    "gen_ai.request.user",
)
TENANT = ("tenant", "tenant.id", "tenant_id", "tenantId", "tenant.name", "tenant_name")
"""Last names of attributes that hold an identity, the surest first. A key matches when it is one, or ends with one
behind a dot (`traceloop.association.properties.session_id`)."""
_LEAVES = frozenset({*SESSION, *USER, *TENANT})
_MAX_LAYERS = 4
_MAX_OBJECTS = 64
_IN_METADATA = {"session": ("session", "thread"), "user": ("user", "username"), "tenant": ()}
"""Bare names that count only inside of metadata: elsewhere they are too common."""
_METADATA = re.compile(
    r"(?:^|[._])(?:metadata|properties|association|tracetag|trace|customattributes|custom_attributes|baggage)\.[^.]+$",
    re.IGNORECASE,
)
_MACHINE_MADE = re.compile(
    r"^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})$", re.IGNORECASE
)
"""Where a scrubber took an identity away, an id that a library made up for its run is no substitute for it."""
_NOT_OURS = (
    "langsmith.trace.",
    "process.",
    "code.",
    "thread.",
    "http.",
    "service.",
    "user_agent.",
    "telemetry.",
    "host.",
    "os.",
    "k8s.",
    "logfire.",
)
_CONTENT = re.compile(
    r"message|content|prompt|completion|input|output|document|query|question|answer|response\.text|result|variables|"
    r"embedding|schema|tool|\.events?$|exception|stacktrace|logfire\.|function|arguments|instructions|snippet|reference",
    re.IGNORECASE,
)
HINTS = (*SESSION, *USER, *TENANT)
_CONTAINERS = (
    "metadata",
    "langfuse.trace.metadata",
    "langfuse.observation.metadata",
    "langsmith.metadata",
    "ai.telemetry.metadata",
    "custom_metadata",
    "attributes",
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asked. None where telemetry does not say, or a scrubber took it away (`scrubbed`)."""

    session: str | None = None
    user: str | None = None
    tenant: str | None = None
    reference: str | None = None
    scrubbed: bool = False
    rules: tuple[tuple[str, str], ...] = ()


class Identities:
    """Finds identities by the configured keys, then by the well-known ones."""

    def __init__(self, options: Options) -> None:
        self._max_chars = options.max_json_bytes
        self._names = {
            "session": (options.session_keys, SESSION),
            "user": (options.user_keys, USER),
            "tenant": (options.tenant_keys, TENANT),
            "reference": ((), options.reference_keys),
        }
        known = (*options.session_keys, *options.user_keys, *options.tenant_keys)
        self._paths = tuple(key for key in known if ":" in key)
        self.hints = (*HINTS, *(attribute_of(key) for key in known), *options.reference_keys, "metadata")

    def read(self, nodes: Sequence[Node]) -> Identity:
        """The identity of an interaction, from its nodes in the order of their authority and then their resources."""
        values: dict[str, str | None] = {}
        rules: list[tuple[str, str]] = []
        scrubbed = False
        masked: set[str] = set()
        sources: list[Attributes] = [node.span.attributes for node in nodes]
        seen = {id(source) for source in sources}
        for node in nodes:
            if id(node.span.resource.attributes) not in seen:
                seen.add(id(node.span.resource.attributes))
                sources.append(node.span.resource.attributes)
        for attributes in sources:
            if len(values) == len(self._names):
                break
            missing = [name for name in self._names if name not in values]
            pairs = list(self._pairs(attributes))
            for name in missing:
                found = self._find(name, pairs)
                if found is None:
                    continue
                key, text = found
                if is_scrubbed(text) or is_redacted(text):
                    scrubbed = True
                    masked.add(name)
                elif name in masked and _MACHINE_MADE.match(text):
                    continue
                else:
                    values[name] = text
                    rules.append((name, key))
        return Identity(
            values.get("session"),
            values.get("user"),
            values.get("tenant"),
            values.get("reference"),
            scrubbed,
            tuple(rules),
        )

    def told(self, inputs: Iterable[Json]) -> dict[str, tuple[str, str]]:
        """Identities by their well-known names in what an application's own functions were given, with those names."""
        found: dict[str, tuple[str, str]] = {}
        for value in inputs:
            leaves: dict[str, str] = {}
            layer: list[Json] = [value]
            for _ in range(_MAX_LAYERS):
                below: list[Json] = []
                for item in layer[:_MAX_OBJECTS]:
                    for key, inner in list(item.items())[:_MAX_OBJECTS] if isinstance(item, dict) else ():
                        if isinstance(inner, dict):
                            below.append(inner)
                        elif key in _LEAVES and (text := _scalar(inner, self._max_chars)) is not None:
                            leaves.setdefault(key, text)
                layer = below
            for name, (_, known) in self._names.items():
                key = next((key for key in known if key in leaves), None)
                if name != "reference" and name not in found and key is not None:
                    text = leaves[key]
                    if not is_scrubbed(text) and not is_redacted(text):
                        found[name] = (text, f"input {key}")
        return found

    def _pairs(self, attributes: Attributes) -> Iterator[tuple[str, Json]]:
        """Attributes, what stands in those that hold metadata as an object, and under configured paths."""
        for key in self._paths:
            found = pick(attributes, key, self._max_chars)
            if not isinstance(found, list | dict) and found is not None:
                yield key, found
        for key, value in attributes.items():
            if key.startswith(_NOT_OURS):
                continue
            if key in _CONTAINERS or key.endswith(".metadata"):
                inner = unwrap(value, self._max_chars)
                if isinstance(inner, dict) and len(inner) <= 256:
                    for name, item in inner.items():
                        if isinstance(item, dict) and name in ("metadata", "configurable"):
                            for deep, deeper in item.items():
                                yield f"metadata.{deep}", deeper
                        yield f"metadata.{name}", item
                    continue
            if not isinstance(value, list | dict):
                yield key, value

    def _find(self, name: str, pairs: Sequence[tuple[str, Json]]) -> tuple[str, str] | None:
        configured, known = self._names[name]
        by_key = dict(pairs)
        for key in configured:
            for full in (key, f"metadata.{key}"):
                text = _scalar(by_key.get(full), self._max_chars)
                if text is not None:
                    return full, text
        for last in known:
            ending = "." + last
            for key, value in pairs:
                if (key == last or key.endswith(ending)) and (text := _scalar(value, self._max_chars)) is not None:
                    return key, text
        for last in _IN_METADATA.get(name, ()):
            for key, value in pairs:
                if (
                    key.endswith("." + last)
                    and _METADATA.search(key)
                    and (text := _scalar(value, self._max_chars)) is not None
                ):
                    return key, text
        return None


def _scalar(value: Json, max_chars: int) -> str | None:
    if isinstance(value, str) and len(value) > 2 and value[0] == '"' == value[-1]:
        value = unwrap(value, max_chars)
    text = as_scalar_text(value)
    return text if text is not None and len(text) <= 10_000 else None


def scalars(nodes: Sequence[Node], options: Options) -> dict[str, object]:
    """Scalar attributes of the nodes, the first node's first; content, and what is over the bounds, left out."""
    found: dict[str, object] = {}
    for node in nodes:
        for key, value in _flat(node.span.attributes):
            if len(found) >= options.max_attributes:
                return found
            if key in found or _CONTENT.search(key) or len(key) > 200:
                continue
            if isinstance(value, str):
                if value and not is_scrubbed(value):
                    found[key] = clean(value[: options.max_attribute_chars])
            elif isinstance(value, bool | int | float):
                found[key] = value
    return found


def _flat(attributes: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    for key, value in attributes.items():
        if key == "metadata" and isinstance(value, str | dict):
            inner = unwrap(value, 100_000)
            if isinstance(inner, dict):
                for name, item in list(inner.items())[:64]:
                    yield clean(f"metadata.{name}"), item
        else:
            yield key, value
