"""The judge's calls as metrics, and in the ledger."""

from __future__ import annotations

from collections.abc import Iterable

from collector.judging.ledger import Ledger
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from scorers.judge.observer import BreakerState, CallKind, CallOutcome, CallRecord

_CAUSES = frozenset(CallOutcome)


class JudgeTelemetry:
    """The judge client's observer (`scorers.judge.observer.Observer`).

    `endpoints` are the configured names; their series, cost apart, are born at 0.
    """

    def __init__(self, telemetry: Telemetry, ledger: Ledger, endpoints: Iterable[str] = ()) -> None:
        self._telemetry = telemetry
        self._ledger = ledger
        self._cache = {
            hit: telemetry.counter(metrics.JUDGE_CACHE, result="hit" if hit else "miss") for hit in (True, False)
        }
        self._states: dict[str, BreakerState] = {}
        for endpoint in endpoints:
            for kind in CallKind:
                telemetry.histogram(metrics.JUDGE_CALL_TIME, endpoint=endpoint, kind=kind)
                for outcome in CallOutcome:
                    telemetry.counter(metrics.JUDGE_CALLS, endpoint=endpoint, kind=kind, outcome=outcome)
            for direction in ("input", "output", "cached"):
                telemetry.counter(metrics.JUDGE_TOKENS, endpoint=endpoint, direction=direction, source="reported")
            telemetry.counter(metrics.JUDGE_UNPRICED, endpoint=endpoint)
            self.breaker(endpoint, BreakerState.CLOSED, "")

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

    def breaker(self, endpoint: str, state: BreakerState, cause: str) -> None:
        for each in BreakerState:
            self._telemetry.set(metrics.JUDGE_BREAKER, float(each is state), endpoint=endpoint, state=each)
        if state is BreakerState.OPEN and self._states.get(endpoint) is not BreakerState.OPEN:
            named = cause if cause in _CAUSES else "other"
            self._telemetry.inc(metrics.JUDGE_BREAKER_CHANGES, endpoint=endpoint, cause=named)
        self._states[endpoint] = state

    def concurrency_limit(self, endpoint: str, limit: int) -> None:
        self._telemetry.set(metrics.JUDGE_CONCURRENCY, limit, endpoint=endpoint)

    def budget(self, *, period: str, spent_share: float, blown: bool) -> None:
        self._telemetry.set(metrics.JUDGE_BUDGET, spent_share, period=period)
        self._telemetry.set(metrics.JUDGE_BUDGET_BLOWN, float(blown), period=period)
