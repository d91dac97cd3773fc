"""Scenarios of the alerts about Kafka."""

from __future__ import annotations

from collector.telemetry import metrics
from dashboards.scenarios import MINUTES, Fed, Scenario, grows, is_at


def kafka_scenarios() -> list[Scenario]:
    """Behind, catching up, stuck, poisoned, results not written, and none of these."""

    def lag(values: str) -> Fed:
        return metrics.KAFKA_LAG.name, {"topic": "otlp_spans", "partition": "0"}, values

    def oldest(seconds: float, since: int = 0) -> Fed:
        return is_at(metrics.KAFKA_OLDEST, seconds, since=since, instance="a")

    behind, poisoned = ("GroundwatchKafkaLag",), ("GroundwatchDeadLetters",)
    unwritten = ("GroundwatchResultsNotWritten",)
    bad = {"reason": "unreadable"}
    return [
        Scenario("kafka-falls-behind", (lag(f"0+50x{MINUTES}"),), behind),
        Scenario("kafka-stays-behind", (lag(f"5000x{MINUTES}"),), behind),
        Scenario("kafka-catches-up", (lag(f"30000-100x{MINUTES}"),)),
        Scenario("kafka-has-a-little-lag", (lag(f"900x{MINUTES}"),)),
        Scenario("kafka-fell-behind-a-moment-ago", (lag(f"10x{MINUTES - 10} 5000x9"),)),
        Scenario("a-message-is-stuck", (oldest(3_000),), behind),
        Scenario("a-message-waits-for-the-judge", (oldest(1_200),)),
        Scenario("a-message-was-stuck-a-moment", (oldest(3_000, since=MINUTES - 2),)),
        Scenario("poison-arrives", (grows(metrics.KAFKA_POISON, 1, at=bad),), poisoned),
        Scenario("poison-came-hours-ago", (grows(metrics.KAFKA_POISON, 1, until=MINUTES - 40, at=bad),)),
        Scenario("results-wait", (is_at(metrics.RESULTS_OLDEST, 700, instance="a"),), unwritten),
        Scenario("results-wait-a-little", (is_at(metrics.RESULTS_OLDEST, 500, instance="a"),)),
        Scenario(
            "results-are-dropped",
            (grows(metrics.RESULTS_MESSAGES, 1, at={"outcome": "dropped_queue_full"}),),
            unwritten,
        ),
        Scenario("results-are-written", (grows(metrics.RESULTS_MESSAGES, 100, at={"outcome": "sent"}),)),
        Scenario("nothing-is-poison", (grows(metrics.KAFKA_POISON, 0, at=bad),)),
    ]
