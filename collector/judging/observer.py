"""The judge's calls as metrics and in the ledger; when it is lost and found again, in the log."""

from __future__ import annotations

from collections.abc import Sequence

from collector.judging.ledger import Ledger
from collector.telemetry import metrics
from collector.telemetry.events import Event, Events, Level, Plain
from collector.telemetry.instruments import Telemetry
from scorers.judge.observer import BreakerChange, BreakerState, CallKind, CallOutcome, CallRecord

_CAUSES = frozenset(CallOutcome)
_LASTING = frozenset({"auth", "quota", "model_unknown"})
"""Causes that end by a person's doing, not by waiting."""
_MEANWHILE = "local scoring goes on; what is to be judged waits, for judging.max_age_seconds at most"
_BESIDE = "what needs this endpoint fails; all else is judged"


class JudgeTelemetry:
    """The judge client's observer (`scorers.judge.observer.Observer`).

    `endpoints` are the configured names; their series, cost apart, are born at 0. The first of them is the judge
    itself, without which judging waits. `events` gets a line when an endpoint's breaker opens, when a probe fails, and
    when it closes.
    """

    def __init__(
        self, telemetry: Telemetry, ledger: Ledger, endpoints: Sequence[str] = (), events: Events | None = None
    ) -> None:
        self._telemetry = telemetry
        self._ledger = ledger
        self._judge = endpoints[0] if endpoints else ""
        self._events = events
        self._cache = {
            hit: telemetry.counter(metrics.JUDGE_CACHE, result="hit" if hit else "miss") for hit in (True, False)
        }
        for endpoint in endpoints:
            for kind in CallKind:
                telemetry.histogram(metrics.JUDGE_CALL_TIME, endpoint=endpoint, kind=kind)
                for outcome in CallOutcome:
                    telemetry.counter(metrics.JUDGE_CALLS, endpoint=endpoint, kind=kind, outcome=outcome)
            for direction in ("input", "output", "cached"):
                telemetry.counter(metrics.JUDGE_TOKENS, endpoint=endpoint, direction=direction, source="reported")
            telemetry.counter(metrics.JUDGE_UNPRICED, endpoint=endpoint)
            self._show(endpoint, BreakerState.CLOSED)

    def call(self, record: CallRecord) -> None:
        count = self._telemetry
        endpoint = record.endpoint
        count.inc(metrics.JUDGE_CALLS, endpoint=endpoint, kind=record.kind, outcome=record.outcome)
        count.histogram(metrics.JUDGE_CALL_TIME, endpoint=endpoint, kind=record.kind).observe(record.seconds)
        source = "estimated" if record.estimated else "reported"
        for direction, tokens in (
            ("input", record.input_tokens),
            ("output", record.output_tokens),
            ("cached", record.cached_tokens),
        ):
            count.inc(metrics.JUDGE_TOKENS, tokens, endpoint=endpoint, direction=direction, source=source)
        tokens = record.input_tokens + record.output_tokens
        if record.cost_usd is not None:
            count.inc(metrics.JUDGE_COST, record.cost_usd, endpoint=endpoint)
        elif tokens:
            count.inc(metrics.JUDGE_UNPRICED, endpoint=endpoint)
        self._ledger.call(tokens=tokens, cost_usd=record.cost_usd)

    def cache(self, *, hit: bool) -> None:
        self._cache[hit].inc()

    def reask(self, missing: int) -> None:
        self._telemetry.inc(metrics.JUDGE_REASKED, missing)

    def breaker(self, change: BreakerChange) -> None:
        self._show(change.endpoint, change.state)
        if change.state is BreakerState.OPEN:
            named = change.cause if change.cause in _CAUSES else "other"
            self._telemetry.inc(metrics.JUDGE_BREAKER_CHANGES, endpoint=change.endpoint, cause=named)
        if self._events is not None and change.state is not BreakerState.HALF_OPEN:
            self._events.tell(self._told(change))

    def _show(self, endpoint: str, state: BreakerState) -> None:
        for each in BreakerState:
            self._telemetry.set(metrics.JUDGE_BREAKER, float(each is state), endpoint=endpoint, state=each)

    def _told(self, change: BreakerChange) -> Event:
        where: dict[str, Plain] = {"endpoint": change.endpoint, "host": change.host}
        down = round(change.open_seconds, 1)
        if change.state is BreakerState.CLOSED:
            return Event(
                "judge_back", Level.INFO, "the judge's endpoint answers again", where | {"down_seconds": down}
            )
        why: dict[str, Plain] = {"cause": change.cause, "failures_in_a_row": change.failures}
        then: dict[str, Plain] = {"tries_again_in_seconds": change.pause_seconds}
        level = Level.ERROR if change.cause in _LASTING else Level.WARNING
        if change.open_seconds > 0:
            message = "the judge's endpoint still takes no calls"
            return Event("judge_still_down", level, message, where | why | then | {"down_seconds": down})
        meanwhile = {"meanwhile": _MEANWHILE if change.endpoint == self._judge else _BESIDE}
        message = "the judge's endpoint takes no calls and is left alone for a while"
        return Event("judge_down", level, message, where | why | then | meanwhile)

    def concurrency_limit(self, endpoint: str, limit: int) -> None:
        self._telemetry.set(metrics.JUDGE_CONCURRENCY, limit, endpoint=endpoint)

    def budget(self, *, period: str, spent_share: float, blown: bool) -> None:
        self._telemetry.set(metrics.JUDGE_BUDGET, spent_share, period=period)
        self._telemetry.set(metrics.JUDGE_BUDGET_BLOWN, float(blown), period=period)
