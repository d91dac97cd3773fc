"""The judge's calls as metrics, and what the sampler learns of the spending."""

from __future__ import annotations

from collector.judging.ledger import Ledger, Spent
from collector.judging.observer import JudgeTelemetry
from collector.pipeline.clock import ManualClock
from collector.telemetry.instruments import Telemetry
from scorers.judge.observer import BreakerChange, BreakerState, CallKind, CallOutcome, CallRecord


def observed() -> tuple[JudgeTelemetry, Telemetry, Ledger, ManualClock]:
    telemetry, clock = Telemetry(), ManualClock(start_unix_nano=0)
    ledger = Ledger(clock)
    return JudgeTelemetry(telemetry, ledger), telemetry, ledger, clock


def call(**fields: object) -> CallRecord:
    known = {"endpoint": "main", "kind": CallKind.CHAT, "outcome": CallOutcome.OK, "seconds": 0.2}
    return CallRecord(**(known | fields))  # type: ignore[arg-type]  # whatever field the test names


def test_unknown_price_is_no_cost_not_0() -> None:
    observer, telemetry, ledger, _ = observed()
    observer.call(call(input_tokens=100, output_tokens=20, estimated=True))
    value = telemetry.registry.get_sample_value
    assert value("groundwatch_judge_cost_usd_total", {"endpoint": "main"}) is None
    assert value("groundwatch_judge_unpriced_calls_total", {"endpoint": "main"}) == 1
    labels = {"endpoint": "main", "direction": "input", "source": "estimated"}
    assert value("groundwatch_judge_tokens_total", labels) == 100
    observer.call(call(input_tokens=100, cost_usd=0.25, cached_tokens=60))
    assert value("groundwatch_judge_cost_usd_total", {"endpoint": "main"}) == 0.25
    assert ledger.spent() == Spent(0, calls=2, tokens=220, cost_usd=0.25, unpriced_calls=1)


def test_the_ledger_starts_anew_at_midnight() -> None:
    observer, _, ledger, clock = observed()
    observer.call(call(input_tokens=10, cost_usd=0.5))
    ledger.judged()
    assert ledger.spent() == Spent(0, calls=1, tokens=10, cost_usd=0.5, interactions=1)
    clock.advance(86_400)
    assert ledger.spent() == Spent(1)


def test_breaker_budget_cache_and_limits_are_shown() -> None:
    observer, telemetry, _, _ = observed()
    observer.breaker(BreakerChange("main", "host", BreakerState.OPEN, "quota"))
    observer.breaker(BreakerChange("main", "host", BreakerState.HALF_OPEN, "quota"))
    observer.breaker(BreakerChange("main", "host", BreakerState.OPEN, "text of an exception"))
    observer.budget(period="day", spent_share=0.4, blown=False)
    observer.cache(hit=True)
    observer.reask(3)
    observer.concurrency_limit("main", 12)
    value = telemetry.registry.get_sample_value
    opened = "groundwatch_judge_breaker_opened_total"
    assert value(opened, {"endpoint": "main", "cause": "quota"}) == 1
    assert value(opened, {"endpoint": "main", "cause": "other"}) == 1
    states = {s: value("groundwatch_judge_breaker_state", {"endpoint": "main", "state": s}) for s in BreakerState}
    assert states == {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 0, BreakerState.OPEN: 1}
    assert value("groundwatch_judge_budget_spent_ratio", {"period": "day"}) == 0.4
    assert value("groundwatch_judge_cache_lookups_total", {"result": "hit"}) == 1
    assert value("groundwatch_judge_reasked_answers_total") == 3
    assert value("groundwatch_judge_concurrency_limit", {"endpoint": "main"}) == 12


def test_configured_endpoints_are_born_at_0_without_a_cost() -> None:
    telemetry = Telemetry()
    JudgeTelemetry(telemetry, Ledger(ManualClock()), ["main"])
    value = telemetry.registry.get_sample_value
    assert value("groundwatch_judge_calls_total", {"endpoint": "main", "kind": "chat", "outcome": "auth"}) == 0
    assert value("groundwatch_judge_breaker_state", {"endpoint": "main", "state": "closed"}) == 1
    assert value("groundwatch_judge_cost_usd_total", {"endpoint": "main"}) is None
