"""What the judge client tells about itself while it works; the collector turns it into metrics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class CallKind(StrEnum):
    CHAT = "chat"
    EMBEDDINGS = "embeddings"


class CallOutcome(StrEnum):
    """How one HTTP call ended; bounded, so it may be a metric label."""

    OK = "ok"
    AUTH = "auth"
    QUOTA = "quota"
    MODEL_UNKNOWN = "model_unknown"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    DISCONNECTED = "disconnected"  # after the request may have been read: possibly billed
    REFUSED = "refused"
    TOO_LONG = "too_long"
    BAD_REPLY = "bad_reply"


class BreakerState(StrEnum):
    CLOSED = "closed"
    HALF_OPEN = "half_open"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One HTTP call. `cost_usd` is None where the price is unknown; `estimated` tokens were counted by us."""

    endpoint: str
    kind: CallKind
    outcome: CallOutcome
    seconds: float
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class BreakerChange:
    """A circuit breaker moved to `state`.

    `host` is the endpoint's host and port, without path and credentials. `cause` is what holds it open (auth, quota,
    model_unknown, overloaded, unreachable; "" once closed), after `failures` in a row. `pause_seconds` is the time
    until a call may probe, `open_seconds` the time since the breaker was closed last.
    """

    endpoint: str
    host: str
    state: BreakerState
    cause: str = ""
    failures: int = 0
    pause_seconds: float = 0.0
    open_seconds: float = 0.0


class Observer(Protocol):
    """Every method returns at once and never raises. `endpoint` is the configured name, not an address."""

    def call(self, record: CallRecord) -> None: ...

    def cache(self, *, hit: bool) -> None:
        """A verdict was looked up in the cache."""

    def reask(self, missing: int) -> None:
        """A reply left `missing` answers out; they are asked again."""

    def breaker(self, change: BreakerChange) -> None: ...

    def concurrency_limit(self, endpoint: str, limit: int) -> None: ...

    def budget(self, *, period: str, spent_share: float, blown: bool) -> None:
        """`period` is hour or day; `spent_share` the largest share of any of its limits that is spent."""


class SilentObserver:
    """Observes nothing; the default of the library."""

    def call(self, record: CallRecord) -> None:
        return

    def cache(self, *, hit: bool) -> None:
        return

    def reask(self, missing: int) -> None:
        return

    def breaker(self, change: BreakerChange) -> None:
        return

    def concurrency_limit(self, endpoint: str, limit: int) -> None:
        return

    def budget(self, *, period: str, spent_share: float, blown: bool) -> None:
        return
