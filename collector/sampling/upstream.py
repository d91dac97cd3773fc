"""How many interactions one that arrived stands for, because upstream samplers left others out.

W3C/OpenTelemetry probability sampling: the tracestate's `ot` entry holds the rejection threshold `th` (1 to 14 hex
digits, of which trailing zeros may be left out, T of 2^56) and maybe the randomness `rv` (14 hex digits); without
`rv` the randomness is the last 56 bits of the trace id. A span is kept when R >= T, so u = 2^56 / (2^56 - T).
Source: OpenTelemetry specification, "TraceState: Probability Sampling".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from collector.records.found import Found
from collector.sampling.options import UpstreamMode, UpstreamOptions

_ALL = 1 << 56
_OT = re.compile(r"(?:^|,)[ \t]*ot=([^,]{0,256})")
_THRESHOLD = re.compile(r"[0-9a-f]{1,14}")
_RANDOMNESS = re.compile(r"[0-9a-f]{14}")
_MAX_TRACE_STATE = 4096


class Known(StrEnum):
    """What is known of the sampling before us."""

    NONE = "none"
    RATIO = "ratio"
    UNKNOWN = "unknown"
    READ = "read"
    MISSING = "missing"
    MALFORMED = "malformed"
    INCONSISTENT = "inconsistent"


@dataclass(frozen=True, slots=True)
class Weight:
    """The adjusted count u >= 1. `conditional` where it is not known: u is 1, and estimates speak of what was
    received only."""

    u: float
    known: Known
    conditional: bool = False
    capped: bool = False


class Upstream:
    """Reads the upstream weight of an interaction by its service's setting."""

    def __init__(self, options: UpstreamOptions) -> None:
        self._options = options

    def weight(self, found: Found) -> Weight:
        setting = self._options.services.get(found.service, self._options.default)
        if setting.mode is UpstreamMode.NONE:
            return Weight(1.0, Known.NONE)
        if setting.mode is UpstreamMode.RATIO:
            return self._capped(1.0 / setting.ratio, Known.RATIO)
        if setting.mode is UpstreamMode.UNKNOWN:
            return Weight(1.0, Known.UNKNOWN, conditional=True)
        return self._from_trace_state(found)

    def _from_trace_state(self, found: Found) -> Weight:
        fields = _ot_fields(found.trace_state)
        text = fields.get("th")
        if text is None:
            return Weight(1.0, Known.MISSING, conditional=True)
        trace_id = found.trace_ids[0] if found.trace_ids else ""
        random_text = fields.get("rv", trace_id[-14:])
        if not _THRESHOLD.fullmatch(text) or not _RANDOMNESS.fullmatch(random_text):
            return Weight(1.0, Known.MALFORMED, conditional=True)
        threshold = int(text.ljust(14, "0"), 16)
        if int(random_text, 16) < threshold:
            return Weight(1.0, Known.INCONSISTENT, conditional=True)
        return self._capped(_ALL / (_ALL - threshold), Known.READ)

    def _capped(self, u: float, known: Known) -> Weight:
        limit = self._options.max_adjusted_count
        return Weight(min(u, limit), known, capped=u > limit)


def highest(options: UpstreamOptions) -> float:
    """The highest weight that any interaction can be given."""
    found = 1.0
    for setting in (options.default, *options.services.values()):
        if setting.mode is UpstreamMode.TRACESTATE:
            return options.max_adjusted_count
        if setting.mode is UpstreamMode.RATIO:
            found = max(found, min(1.0 / setting.ratio, options.max_adjusted_count))
    return found


def _ot_fields(trace_state: str) -> dict[str, str]:
    match = _OT.search(trace_state[:_MAX_TRACE_STATE])
    if match is None:
        return {}
    fields: dict[str, str] = {}
    for part in match[1].strip().split(";"):
        name, colon, value = part.partition(":")
        if colon:
            fields.setdefault(name, value)
    return fields
