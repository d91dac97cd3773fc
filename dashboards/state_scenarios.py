"""Scenarios of the alerts about what outlives the process."""

from __future__ import annotations

from collector.telemetry import metrics
from dashboards.scenarios import MINUTES, Scenario, grows, is_at


def state_scenarios() -> list[Scenario]:
    """Not written, set aside, full, and none of these."""
    unwritten = {"instance": "a", "outcome": "failed"}
    a, full = {"instance": "a", "store": "books"}, {"instance": "a", "transport": "http", "reason": "spool_full"}
    return [
        Scenario("the-disk-is-full", (is_at(metrics.STATE_FAILING, 1, at=a),), ("GroundwatchStateNotWritten",)),
        Scenario("the-disk-is-full-since-now", (is_at(metrics.STATE_FAILING, 1, since=MINUTES, at=a),)),
        Scenario("the-disk-has-room", (is_at(metrics.STATE_FAILING, 0, at=a),)),
        Scenario("books-were-damaged", (is_at(metrics.STATE_SET_ASIDE, 1, at=a),), ("GroundwatchStateSetAside",)),
        Scenario("books-are-sound", (is_at(metrics.STATE_SET_ASIDE, 0, at=a),)),
        Scenario("the-spool-is-full", (grows(metrics.REQUESTS_REFUSED, 5, at=full),), ("GroundwatchSpoolFull",)),
        Scenario(
            "cases-are-lost", (grows(metrics.REVIEW_CASES, 1, at=unwritten),), ("GroundwatchReviewNotWritten",)
        ),
        Scenario("cases-were-lost", (grows(metrics.REVIEW_CASES, 1, until=MINUTES - 40, at=unwritten),)),
        Scenario("cases-are-stored", (grows(metrics.REVIEW_CASES, 5, instance="a", outcome="stored"),)),
        Scenario("the-spool-was-full", (grows(metrics.REQUESTS_REFUSED, 5, until=MINUTES - 40, at=full),)),
    ]
