"""Whole groups of a request that are telemetry of our own evaluations."""

from __future__ import annotations

from collector.assembly.hints import is_own
from collector.otlp.batch import Group

_KNOWN = 1024
_KNOWN_BYTES = 4096


class OwnGroups:
    """Looks for our markers in resources and scopes; bounded, it remembers what it saw."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, bool] = {}

    def holds(self, group: Group) -> bool:
        """Whether the group's resource or scope bears one of our markers."""
        known = self._known
        for data in (group.resource, group.scope):
            own = known.get(data)
            if own is None:
                own = is_own(data)
                if len(data) <= _KNOWN_BYTES:
                    if len(known) >= _KNOWN:
                        known.clear()
                    known[data] = own
            if own:
                return True
        return False
