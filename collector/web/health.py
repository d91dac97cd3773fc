"""Alive and ready: what orchestrators ask, with the reason in words when the answer is no."""

from __future__ import annotations


class Health:
    """Collects reasons against readiness. Ready = started, and no reason stands.

    A component names itself and says why it is not ready; it takes the reason back with None. Being not ready
    never means "restart me": that is what liveness, the answering event loop itself, is for.
    """

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {"service": "starting"}

    def set(self, component: str, reason: str | None) -> None:
        """Say why `component` is not ready, or that it is (None)."""
        if reason is None:
            self._reasons.pop(component, None)
        else:
            self._reasons[component] = reason

    @property
    def reasons(self) -> dict[str, str]:
        return dict(self._reasons)

    @property
    def ready(self) -> bool:
        return not self._reasons
