"""Scenarios of the alerts about what arrives, the judge and groundwatch itself."""

from __future__ import annotations

from collections.abc import Mapping

from collector.telemetry import metrics
from collector.telemetry.spec import MetricSpec
from dashboards.kafka_scenarios import kafka_scenarios
from dashboards.names import series
from dashboards.scenarios import INSTRUMENT, MINUTES, Fed, Labels, Scenario, grows, is_at
from dashboards.state_scenarios import state_scenarios


def health_scenarios() -> list[Scenario]:
    """All of them."""
    return [
        *_arrival(),
        *_contents(),
        *_judge(),
        *_process(),
        *_conservation(),
        *kafka_scenarios(),
        *state_scenarios(),
    ]


def _arrival() -> list[Scenario]:
    spans = {"signal": "traces"}
    busy = (
        grows(metrics.ITEMS_RECEIVED, 100, at=spans),
        grows(metrics.INTERACTIONS_FOUND, 5),
        grows(metrics.INTERACTIONS, 5, fate="sampled_out"),
    )
    local = series("total", "local", "w", "sum1h")

    def stopped(minutes_ago: int) -> tuple[Fed, ...]:
        return (grows(metrics.ITEMS_RECEIVED, 100, until=MINUTES - minutes_ago, at=spans),)

    return [
        Scenario("traffic-is-fine", (*busy, is_at(local, 300, metric="faithfulness", tier="fast"))),
        Scenario("traffic-stopped", stopped(90), ("GroundwatchNoTraces",)),
        Scenario("traffic-stopped-a-moment-ago", stopped(20)),
        Scenario(
            "instrumentation-changed",
            (busy[0], grows(metrics.INTERACTIONS_FOUND, 5, until=MINUTES - 90)),
            ("GroundwatchNoInteractions",),
        ),
        Scenario("few-spans", (grows(metrics.ITEMS_RECEIVED, 2, at=spans), grows(metrics.INTERACTIONS_FOUND, 0))),
        Scenario("no-local-scores", (*busy, is_at(local, 0, metric="faithfulness")), ("GroundwatchNoScores",)),
        Scenario("local-scores-off", busy),
        Scenario(
            "nothing-judged",
            (grows(metrics.JUDGING_QUEUED, 2, metric="faithfulness"),),
            ("GroundwatchNoScores",),
        ),
        Scenario(
            "nothing-to-judge",
            (
                grows(metrics.JUDGING_QUEUED, 2, metric="faithfulness"),
                grows(
                    metrics.JUDGING_RESULTS, 2, metric="faithfulness", outcome="not_applicable", reason="refusal"
                ),
            ),
        ),
    ]


def _contents() -> list[Scenario]:
    def marked(mark: str, share: float, found: float = 5) -> tuple[Fed, ...]:
        return (
            grows(metrics.INTERACTIONS_FOUND, found),
            grows(metrics.INTERACTION_MARKS, found * share, mark=mark),
            grows(metrics.INTERACTION_MARKS, 0, mark="not_rag"),
        )

    nothing = series("total", "cause", "share", "1h")
    labels = {"cause": "nothing_retrieved", "kind": "local"}

    def other(share: float, n: float) -> tuple[Fed, ...]:
        measure = {"metric": "faithfulness", "tier": "fast"}
        return (
            is_at(series("segment", "local", "w", "sum1h"), 300 * share, service="other", at=measure),
            is_at(series("segment", "local", "w", "sum1h"), 300 * (1 - share), service="a", at=measure),
            is_at(series("total", "local", "w", "sum1h"), 300, at=measure),
            is_at(series("total", "local", "n_eff", "1h"), n, at=measure),
        )

    return [
        Scenario("contents-are-hidden", marked("hidden", 0.5), ("GroundwatchContextsMissing",)),
        Scenario("contents-are-hidden-seldom", marked("hidden", 0.1)),
        Scenario("contents-are-hidden-in-a-few", marked("hidden", 0.9, found=0.2)),
        Scenario("traces-are-cut", marked("truncated", 0.4), ("GroundwatchContextsIncomplete",)),
        Scenario("traces-are-cut-seldom", marked("truncated", 0.1)),
        Scenario(
            "index-is-empty",
            (grows(metrics.INTERACTIONS_FOUND, 5), is_at(nothing, 0.6, at=labels)),
            ("GroundwatchNothingRetrieved",),
        ),
        Scenario("index-is-full", (grows(metrics.INTERACTIONS_FOUND, 5), is_at(nothing, 0.05, at=labels))),
        Scenario(
            "index-is-asked-little", (grows(metrics.INTERACTIONS_FOUND, 0.5), is_at(nothing, 0.6, at=labels))
        ),
        Scenario("segments-are-lost", other(0.5, 300), ("GroundwatchOtherSegmentLarge",)),
        Scenario("segments-are-known", other(0.1, 300)),
        Scenario("segments-are-small", other(0.5, 40)),
    ]


def _judge() -> list[Scenario]:
    metric = {"metric": "faithfulness"}

    def results(scored: float, failed: float, reason: str = "judge_unreachable") -> tuple[Fed, ...]:
        return (
            grows(metrics.JUDGING_RESULTS, scored, outcome="scored", reason="none", at=metric),
            grows(metrics.JUDGING_RESULTS, failed, outcome="failed", reason=reason, at=metric),
        )

    instrument = {"fingerprint": INSTRUMENT}

    def coverage(level: str, value: float, n: float, segment: Labels | None = None) -> tuple[Fed, ...]:
        return (
            is_at(
                series(level, "judged", "coverage", "1h"), value, at={**metric, **instrument, **(segment or {})}
            ),
            is_at(series(level, "judged", "n_eff", "1h"), n, at={**metric, **instrument, **(segment or {})}),
        )

    def canary(
        korean: float, english: float, *, since: int = 0, endpoint: str = "judge", instance: str = "a"
    ) -> tuple[Fed, ...]:
        at = {"endpoint": endpoint, "instance": instance, "kind": "contradicted"}
        shares = {"ko": korean, "en": english}
        return tuple(is_at(metrics.CANARY_ACCURACY, v, since=since, at=at, language=k) for k, v in shares.items())

    long_ago = (grows(metrics.JUDGING_RESULTS, 0.1, until=60, outcome="failed", reason="queue_full", at=metric),)
    return [
        Scenario("judge-is-down", results(1, 1), ("GroundwatchJudgeFailing",)),
        Scenario("judge-fails-seldom", results(5, 0.2)),
        Scenario("judge-fails-once", results(0.1, 0.05)),
        Scenario("judge-gets-incomplete-traces", results(1, 1, reason="incomplete")),
        Scenario("judge-fails-its-canary", canary(0.5, 1), ("GroundwatchCanaryLow",)),
        Scenario("judge-passes-its-canary", canary(0.75, 1)),
        Scenario("judge-failed-its-canary-a-moment-ago", canary(0.5, 1, since=MINUTES - 2)),
        Scenario("shadow-fails-its-canary", canary(0, 0, endpoint="shadow")),
        Scenario(
            "a-replica-fails-its-canary",
            (*canary(1, 1, instance="a"), *canary(0, 0.5, instance="b")),
            ("GroundwatchCanaryLow",),
        ),
        Scenario("coverage-is-low", (*results(1, 0), *coverage("total", 0.7, 60)), ("GroundwatchCoverageLow",)),
        Scenario("coverage-is-low-of-few", (*results(0.1, 0), *coverage("total", 0.7, 6))),
        Scenario("coverage-is-high", (*results(1, 0), *coverage("total", 0.95, 60))),
        Scenario(
            "coverage-is-low-there", coverage("segment", 0.7, 60, {"service": "a"}), ("GroundwatchCoverageLow",)
        ),
        Scenario("coverage-is-low-there-of-few", coverage("segment", 0.7, 6, {"service": "a"})),
        Scenario(
            "fuse-is-blown", (is_at(metrics.JUDGE_BUDGET_BLOWN, 1, period="day"),), ("GroundwatchBudgetFuse",)
        ),
        Scenario("fuse-is-whole", (is_at(metrics.JUDGE_BUDGET_BLOWN, 0, period="day"),)),
        Scenario("judge-is-behind", (is_at(metrics.JUDGING_OLDEST_JOB, 400),), ("GroundwatchQueueOld",)),
        Scenario("judge-was-behind-a-moment", (is_at(metrics.JUDGING_OLDEST_JOB, 400, since=MINUTES - 2),)),
        Scenario("judge-keeps-up", (is_at(metrics.JUDGING_OLDEST_JOB, 40),)),
        Scenario("screening-is-behind", (is_at(metrics.SCREENING_QUEUE_AGE, 90),), ("GroundwatchQueueOld",)),
        Scenario("screening-keeps-up", (is_at(metrics.SCREENING_QUEUE_AGE, 3),)),
        Scenario(
            "judge-is-stuck", (is_at(metrics.JUDGING_OLDEST_SLOT, 700, instance="a"),), ("GroundwatchJudgeStuck",)
        ),
        Scenario("judge-is-slow", (is_at(metrics.JUDGING_OLDEST_SLOT, 100, instance="a"),)),
        Scenario("queue-is-full", results(5, 0.1, reason="queue_full"), ("GroundwatchResultsDropped",)),
        Scenario("queue-was-full-long-ago", long_ago),
    ]


def _process() -> list[Scenario]:
    def screened(shed: float, outcome: str = "shed") -> tuple[Fed, ...]:
        return (
            grows(metrics.SCREENING_TRACES, 10, outcome="screened"),
            grows(metrics.SCREENING_TRACES, shed, outcome=outcome),
        )

    def requests(refused: float, reason: str = "memory_full") -> tuple[Fed, ...]:
        return (
            grows(metrics.REQUESTS, 10, transport="http", signal="traces", outcome="accepted"),
            grows(metrics.REQUESTS_REFUSED, refused, transport="http", reason=reason),
        )

    def events(failed: float) -> tuple[Fed, ...]:
        return (
            grows(metrics.EVENTS_EXPORTED, 10, outcome="sent"),
            grows(metrics.EVENTS_EXPORTED, failed, outcome="failed"),
        )

    def ended(values: str, spans: str = f"0+100x{MINUTES}") -> tuple[Fed, ...]:
        return (
            (metrics.UNCLEAN_SHUTDOWN.name, {"instance": "a"}, values),
            (metrics.ITEMS_RECEIVED.name, {"instance": "a", "signal": "logs"}, spans),
        )

    def capped(per_minute: float) -> tuple[Fed, ...]:
        return (grows(metrics.UPSTREAM, 10, known="read"), grows(metrics.UPSTREAM_CAPPED, per_minute))

    before = MINUTES - 40
    in_place = f"0x{before} 1x{MINUTES - before - 1}", f"0+100x{before} 0+100x{MINUTES - before - 1}"
    elsewhere = f"_x{before} 1x{MINUTES - before}", f"_x{before} 0+100x{MINUTES - before}"
    crashed = ("GroundwatchUncleanShutdown",)
    return [
        Scenario("sheds", screened(1), ("GroundwatchSheddingLoad",)),
        Scenario("sheds-next-to-nothing", screened(0.02)),
        Scenario("loses-traces", screened(0.1, "dropped_full"), ("GroundwatchTracesLost",)),
        Scenario("loses-none", screened(0, "dropped_full")),
        Scenario(
            "loses-workers",
            (grows(metrics.SCREENING_WORKER_LOSSES, 0.1, reason="died"),),
            ("GroundwatchWorkersLost",),
        ),
        Scenario("stops-workers", (grows(metrics.SCREENING_WORKER_LOSSES, 0.1, reason="stopped"),)),
        Scenario("refuses", requests(2), ("GroundwatchRefusingRequests",)),
        Scenario("refuses-seldom", requests(0.1)),
        Scenario("refuses-own-evaluations", requests(2, "own_evaluation")),
        Scenario("events-fail", events(5), ("GroundwatchEventsNotSent",)),
        Scenario("events-arrive", events(0)),
        Scenario("loop-lags", (is_at(metrics.LOOP_LAG_MAX, 2, instance="a"),), ("GroundwatchEventLoopLag",)),
        Scenario("loop-runs", (is_at(metrics.LOOP_LAG_MAX, 0.02, instance="a"),)),
        Scenario("crashed-in-place", ended(*in_place), crashed),
        Scenario("crashed-elsewhere", ended(*elsewhere), crashed),
        Scenario("crashed-hours-ago", ended(f"1x{MINUTES}")),
        Scenario("restarted-well", ended(f"0x{MINUTES}", in_place[1])),
        Scenario("weights-are-capped", capped(1), ("GroundwatchWeightsCapped",)),
        Scenario("weights-are-plain", capped(0)),
    ]


def _conservation() -> list[Scenario]:
    one = {"instance": "a"}

    def of(lost: Mapping[str, float]) -> tuple[Fed, ...]:
        """A busy process in which the named outcomes are short of so many units a minute."""

        def part(spec: MetricSpec, per_minute: float, **labels: str) -> Fed:
            key = spec.name.removeprefix("groundwatch_").removesuffix("_total")
            return grows(spec, per_minute - lost.get(key, 0), at={**one, **labels})

        faithfulness = {"metric": "faithfulness"}
        return (
            grows(metrics.ITEMS_RECEIVED, 100, signal="traces", at=one),
            part(metrics.ITEMS, 100, signal="traces", outcome="held"),
            grows(metrics.TRACES_OPENED, 20, at=one),
            is_at(metrics.TRACES_OPEN, 0, at=one),
            part(metrics.TRACES_RELEASED, 20, reason="quiet"),
            part(metrics.SCREENING_TRACES, 20, outcome="screened"),
            grows(metrics.KAFKA_RECORDS, 0, at=one),
            is_at(metrics.SCREENING_QUEUE_TRACES, 0, at=one),
            part(metrics.TRACES_EXAMINED, 20, found="interactions"),
            grows(metrics.INTERACTIONS_FOUND, 20, at=one),
            part(metrics.INTERACTIONS, 20, fate="queued"),
            part(metrics.SETTLED, 20, fate="queued"),
            grows(metrics.INTERACTIONS_MOVED, 0, at=one),
            part(metrics.INTERACTIONS_REPEATED, 0, noticed="settled"),
            is_at(metrics.JUDGING_QUEUE_JOBS, 0, at=one),
            is_at(metrics.JUDGING_RUNNING, 0, at=one),
            grows(metrics.JUDGING_QUEUED, 20, at={**one, **faithfulness}),
            part(metrics.JUDGING_RESULTS, 20, outcome="scored", reason="none", **faithfulness),
            is_at(metrics.JUDGING_WAITING, 0, at={**one, **faithfulness}),
        )

    stop = MINUTES - 14
    values = f"0+100x{stop} {100 * stop}x5 {100 * (stop + 6)}+100x{MINUTES - stop - 6}"
    late = (
        grows(metrics.ITEMS_RECEIVED, 100, at=one, signal="traces"),
        (metrics.ITEMS.name, {**one, "signal": "traces", "outcome": "held"}, values),
    )
    broken = "GroundwatchConservationBroken"
    return [
        Scenario("nothing-is-lost", of({})),
        Scenario("items-are-counted-a-little-later", late),
        Scenario("spans-are-lost", of({"items": 1}), (broken,)),
        Scenario(
            "traces-are-lost", of({"traces_released": 1, "screening_traces": 1, "traces_examined": 1}), (broken,)
        ),
        Scenario("screened-are-lost", of({"screening_traces": 1, "traces_examined": 1}), (broken,)),
        Scenario("examined-are-lost", of({"traces_examined": 1}), (broken,)),
        Scenario("interactions-are-lost", of({"interactions": 1, "interactions_settled": 1}), (broken,)),
        Scenario("settled-are-lost", of({"interactions_settled": 1}), (broken,)),
        Scenario("results-are-lost", of({"judging_results": 1}), (broken,)),
    ]
