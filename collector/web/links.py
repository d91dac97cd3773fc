"""The address of a trace in the user's tracing backend, from a template."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

_PLACE = re.compile(r"\{(trace_id|span_id|service|session)\}")
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")


class BadTemplate(ValueError):
    """A template that no safe address can come from; the text says what is wrong."""


class TraceLink:
    """Fills `template`. Only {trace_id}, {span_id}, {service} and {session} are places; other braces stay, since
    Grafana's addresses hold JSON. Values are quoted whole, so that they can not leave their place.

    Raises BadTemplate unless it is an http or https address with a host that no place can change, and with {trace_id}.
    """

    def __init__(self, template: str) -> None:
        if _UNSAFE.search(template):
            raise BadTemplate("trace_link: white space, control characters and backslashes are not allowed")
        try:
            parts = urlsplit(template)
            host = parts.hostname
        except ValueError as error:
            raise BadTemplate(f"trace_link: {template!r} is no address: {error}") from error
        if parts.scheme not in ("http", "https") or not host:
            raise BadTemplate(f"trace_link: {template!r} must begin with http:// or https:// and a host")
        if _PLACE.search(parts.netloc):
            raise BadTemplate("trace_link: the host must not depend on the trace")
        if "{trace_id}" not in template:
            raise BadTemplate("trace_link: {trace_id} is missing")
        self._template = template

    def of(self, *, trace_id: str, span_id: str = "", service: str = "", session: str = "") -> str:
        values = {"trace_id": trace_id, "span_id": span_id, "service": service, "session": session}
        return _PLACE.sub(lambda found: quote(values[found[1]], safe="", errors="replace"), self._template)
