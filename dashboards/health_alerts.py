"""Alerts about what arrives, and about groundwatch itself; those about the judge are in `judge_alerts`."""

from __future__ import annotations

from collector.telemetry import metrics
from collector.telemetry.spec import MetricSpec
from dashboards.alerting import Alert
from dashboards.judge_alerts import judge_alerts
from dashboards.kafka_alerts import kafka_alerts
from dashboards.names import JUDGED, LOCAL, by, increase, select, series
from dashboards.options import DAY, HOUR, Options
from dashboards.state_alerts import state_alerts

HALF_HOUR = HOUR // 2
QUARTER = HOUR // 4


def health_alerts(options: Options) -> list[Alert]:
    """Every alert that is not about the answers."""
    return [
        *_arrival(options),
        *_contents(options),
        *judge_alerts(options),
        *kafka_alerts(options),
        *state_alerts(options),
        *_process(options),
        *_conservation(options),
    ]


def _arrival(options: Options) -> list[Alert]:
    keep = options.keep
    match = f"on ({', '.join(keep)})"
    spans = select(metrics.ITEMS_RECEIVED, 'signal="traces"')
    now = f"sum {by(keep)} (increase({spans}[{options.time(HALF_HOUR)}]))"
    yesterday = f"sum {by(keep)} (increase({spans}[{options.time(HALF_HOUR)}] offset {options.time(DAY)}))"
    found = increase(metrics.INTERACTIONS_FOUND, options.time(HALF_HOUR), keep)
    kept = increase(metrics.INTERACTIONS, options.time(HOUR), keep, 'fate!="filtered"')
    scored = f"sum {by(keep)} ({series('total', LOCAL.name, 'w', 'sum1h')})"
    queued = increase(metrics.JUDGING_QUEUED, options.time(HOUR), (*keep, "metric"))
    results = (*keep, "metric"), 'outcome="scored"', 'outcome="not_applicable"'
    judged, outside = (
        increase(metrics.JUDGING_RESULTS, options.time(HOUR), results[0], matcher) for matcher in results[1:]
    )
    return [
        Alert(
            "GroundwatchAbsent",
            f"absent({metrics.BUILD_INFO.name})",
            hold=300,
            severity="critical",
            category="pipeline",
            summary="Prometheus sees no groundwatch",
            description="No process exposes its metrics. Nothing is scored, and no other alert can fire.",
        ),
        Alert(
            "GroundwatchNoTraces",
            f"{now} == 0 unless {match} {yesterday} == 0",
            hold=QUARTER,
            severity="warning",
            category="instrumentation",
            summary="No spans arrive ({{ $labels.job }})",
            description="Nothing was received for half an hour, and yesterday at this time something was (or "
            "yesterday is not known).",
        ),
        Alert(
            "GroundwatchNoInteractions",
            f"{now} > 100 and {match} {found} == 0",
            hold=QUARTER,
            severity="critical",
            category="instrumentation",
            summary="Traces arrive, but no interaction is found in them ({{ $labels.job }})",
            description="{{ $value | humanize }} spans in half an hour, and in none of them question, contexts and "
            "answer: the instrumentation changed, or the traces are of something else.",
        ),
        Alert(
            "GroundwatchNoScores",
            f"{kept} > 20 and {match} {scored} == 0",
            hold=QUARTER,
            severity="critical",
            category="pipeline",
            summary="Interactions are found, but none gets a local score ({{ $labels.job }})",
            description="{{ $value | humanize }} interactions in an hour and no local score.",
            labels={"kind": LOCAL.name},
        ),
        Alert(
            "GroundwatchNoScores",
            # Series of outcomes that never came do not exist.
            f"{queued} - ({outside} or 0 * {queued}) > 20 unless {judged} > 0",
            hold=QUARTER,
            severity="critical",
            category="judge",
            summary="Nothing is judged for {{ $labels.metric }} ({{ $labels.job }})",
            description="{{ $value | humanize }} interactions were queued in an hour, and none has a score.",
            labels={"kind": JUDGED.name},
        ),
    ]


def _contents(options: Options) -> list[Alert]:
    keep = options.keep
    match = f"on ({', '.join(keep)})"
    window = options.time(HOUR)
    found = increase(metrics.INTERACTIONS_FOUND, window, keep)
    chats = increase(metrics.INTERACTION_MARKS, window, keep, 'mark="not_rag"')
    rag = f"({found} - {chats} > 20)"

    def marked(*marks: str) -> str:
        chosen = f'mark=~"{"|".join(marks)}"' if len(marks) > 1 else f'mark="{marks[0]}"'
        return increase(metrics.INTERACTION_MARKS, window, (*keep, "mark"), chosen)

    empty = ("hidden", "no_context_text", "unsplit", "scrubbed")
    damaged = ("truncated", "attributes_dropped", "incomplete_trace", "malformed_span")
    nothing = f'{series("total", "cause", "share", "1h")}{{cause="nothing_retrieved"}}'
    other = [
        (
            f'sum {by((*keep, *labels))} ({series("segment", kind, "w", "sum1h")}{{{name}="other"}}) '
            f"/ ({series('total', kind, 'w', 'sum1h')} > 0) > {options.max_other:g} "
            f"and {series('total', kind, 'n_eff', '1h')} >= {options.min_n:g}",
            name,
            kind,
        )
        for name in options.segments
        for kind, labels in ((LOCAL.name, LOCAL.labels), (JUDGED.name, JUDGED.labels))
    ]
    return [
        Alert(
            "GroundwatchContextsMissing",
            f"{marked(*empty)} / {match} group_left () {rag} > {options.max_missing:g}",
            hold=HALF_HOUR,
            severity="warning",
            category="instrumentation",
            summary="Texts are missing in the traces: {{ $labels.mark }} ({{ $labels.job }})",
            description="{{ $value | humanizePercentage }} of the RAG interactions of the last hour carry this mark; "
            "what is not in the traces can not be scored.",
        ),
        Alert(
            "GroundwatchContextsIncomplete",
            f"{marked(*damaged)} / {match} group_left () {rag} > {options.max_missing:g}",
            hold=HALF_HOUR,
            severity="warning",
            category="instrumentation",
            summary="Traces are incomplete: {{ $labels.mark }} ({{ $labels.job }})",
            description="{{ $value | humanizePercentage }} of the RAG interactions of the last hour carry this mark; "
            "they are not scored and count against coverage.",
        ),
        Alert(
            "GroundwatchNothingRetrieved",
            f"{nothing} > {options.max_missing:g} and {match} {found} >= {options.min_n:g}",
            hold=HALF_HOUR,
            severity="critical",
            category="quality",
            summary="Retrieval finds nothing for {{ $value | humanizePercentage }} of the questions "
            "({{ $labels.kind }} scores, {{ $labels.job }})",
            description="The retriever answered, with no document at all: an empty index, a filter that excludes "
            "all, or an error that is swallowed.",
        ),
        *(
            Alert(
                "GroundwatchOtherSegmentLarge",
                expression,
                hold=HOUR,
                severity="info",
                category="pipeline",
                summary=f"{{{{ $value | humanizePercentage }}}} of the weight is in {name} 'other'",
                description=f"Values of the segment {name} that the configuration does not name, or that the series "
                "budget has no room for, are told apart no more.",
                labels={"segment": name, "kind": kind},
            )
            for expression, name, kind in other
        ),
    ]


def _process(options: Options) -> list[Alert]:
    keep = options.keep
    one = (*keep, "instance")
    match = f"on ({', '.join(one)})"
    quarter, hour = options.time(QUARTER), options.time(HOUR)
    shed = increase(metrics.SCREENING_TRACES, quarter, keep, 'outcome="shed"')
    dropped = increase(metrics.SCREENING_TRACES, quarter, (*keep, "outcome"), 'outcome=~"dropped_full|failed"')
    arrived = increase(metrics.SCREENING_TRACES, quarter, keep)
    losses = increase(metrics.SCREENING_WORKER_LOSSES, hour, (*keep, "reason"), 'reason!="stopped"')
    refused = increase(
        metrics.REQUESTS_REFUSED, quarter, (*keep, "reason"), 'reason!~"own_evaluation|shutting_down"'
    )
    requests = increase(metrics.REQUESTS, quarter, keep)
    unsent = increase(metrics.EVENTS_EXPORTED, quarter, keep, 'outcome!="sent"')
    events = increase(metrics.EVENTS_EXPORTED, quarter, keep)
    unclean = f"max {by(one)} ({metrics.UNCLEAN_SHUTDOWN.name})"
    earlier = f"max {by(one)} ({metrics.UNCLEAN_SHUTDOWN.name} offset {hour})"
    restarted = f"sum {by(one)} (resets({metrics.ITEMS_RECEIVED.name}[{hour}])) > 0"
    capped = f"sum {by(keep)} (increase({metrics.UPSTREAM_CAPPED.name}[{hour}]))"
    return [
        Alert(
            "GroundwatchSheddingLoad",
            f"{shed} / {arrived} > 0.01",
            hold=QUARTER,
            severity="warning",
            category="pipeline",
            summary="Screening sheds {{ $value | humanizePercentage }} of the traces ({{ $labels.job }})",
            description="Estimates stay right, since what is shed is known, and get wider.",
        ),
        Alert(
            "GroundwatchTracesLost",
            f"{dropped} > 0",
            hold=0,
            severity="critical",
            category="pipeline",
            summary="Traces were lost before screening: {{ $labels.outcome }} ({{ $labels.job }})",
            description="{{ $value | humanize }} traces in a quarter of an hour; they are in no estimate.",
        ),
        Alert(
            "GroundwatchWorkersLost",
            f"{losses} > 0",
            hold=0,
            severity="warning",
            category="pipeline",
            summary="A screening worker was replaced: {{ $labels.reason }} ({{ $labels.job }})",
            description="{{ $value | humanize }} times in the last hour; the batch it held was lost or tried again.",
        ),
        Alert(
            "GroundwatchRefusingRequests",
            f"{refused} / on ({', '.join(keep)}) group_left () {requests} > 0.05",
            hold=600,
            severity="warning",
            category="instrumentation",
            summary="Export requests are refused: {{ $labels.reason }} ({{ $labels.job }})",
            description="{{ $value | humanizePercentage }} of the requests of the last quarter of an hour.",
        ),
        Alert(
            "GroundwatchEventsNotSent",
            f"{unsent} / ({events} > 0) > 0.05",
            hold=QUARTER,
            severity="warning",
            category="pipeline",
            summary="Evaluation events do not arrive ({{ $labels.job }})",
            description="{{ $value | humanizePercentage }} of the last quarter of an hour failed or were dropped.",
        ),
        Alert(
            "GroundwatchEventLoopLag",
            f"max {by(one)} ({metrics.LOOP_LAG_MAX.name}) > 1",
            hold=300,
            severity="warning",
            category="pipeline",
            summary="The event loop was held up for {{ $value | humanizeDuration }} ({{ $labels.instance }})",
            description="Ingest, health checks and the page wait that long; senders may time out.",
        ),
        Alert(
            "GroundwatchUncleanShutdown",
            f"{unclean} == 1 and {match} ({restarted} or ({unclean} unless {match} {earlier}))",
            hold=0,
            severity="warning",
            category="pipeline",
            summary="groundwatch ended without draining ({{ $labels.instance }})",
            description="The process before this one was killed or crashed within the last hour; open traces and "
            "queued jobs were lost, but for those that a spool or Kafka gives again.",
        ),
        Alert(
            "GroundwatchWeightsCapped",
            f"{capped} / (sum {by(keep)} (increase({metrics.UPSTREAM.name}[{hour}])) > 100) > 0.01",
            hold=HALF_HOUR,
            severity="info",
            category="pipeline",
            summary="Upstream weights are capped ({{ $labels.job }})",
            description="{{ $value | humanizePercentage }} of the interactions claim to stand for more than "
            "max_adjusted_count; estimates lean towards what was sampled less.",
        ),
    ]


def _conservation(options: Options) -> list[Alert]:
    """What came in is what became of it, unit by unit. A scrape does not read all counters at one moment, so what
    passes in a few seconds is tolerated; a difference that stays is not."""
    return [
        Alert(
            "GroundwatchConservationBroken",
            f"min_over_time(abs({left} - ({right}))[{options.time(QUARTER)}:{options.time(60)}]) "
            f"> {tolerance:g} * {passed}",
            hold=600,
            severity="warning",
            category="pipeline",
            summary=f"{text} ({{{{ $labels.instance }}}})",
            description="Off by at least {{ $value | humanize }} for a quarter of an hour. Something is lost or "
            "counted twice: a bug in groundwatch.",
            labels={"law": law},
        )
        for law, text, left, right, tolerance, passed in laws(options)
    ]


def laws(options: Options) -> list[tuple[str, str, str, str, float, str]]:
    """The laws of conservation: name, sentence, left and right side, tolerated share of what passes in five minutes,
    and that."""
    one = (*options.keep, "instance")

    def total(spec: MetricSpec, *matchers: str, extra: tuple[str, ...] = ()) -> str:
        return f"sum {by((*one, *extra))} ({select(spec, *matchers)})"

    def passed(spec: MetricSpec, *matchers: str, extra: tuple[str, ...] = ()) -> str:
        return increase(spec, options.time(300), (*one, *extra), *matchers)

    hinted = 'reason!~"no_hint|moved"'
    repeated = total(metrics.INTERACTIONS_REPEATED, 'noticed="settled"')
    return [
        (
            "items",
            "Spans and records: received is not the sum of the outcomes",
            total(metrics.ITEMS_RECEIVED, extra=("signal",)),
            total(metrics.ITEMS, extra=("signal",)),
            0.005,
            passed(metrics.ITEMS_RECEIVED, extra=("signal",)),
        ),
        (
            "traces",
            "Traces: opened is not open + released",
            total(metrics.TRACES_OPENED),
            f"{total(metrics.TRACES_OPEN)} + {total(metrics.TRACES_RELEASED)}",
            0.005,
            passed(metrics.TRACES_OPENED),
        ),
        (
            "screening",
            "Traces: released, and records received, are not waiting + the sum of screening's outcomes",
            f"{total(metrics.TRACES_RELEASED, hinted)} + {total(metrics.KAFKA_RECORDS)}",
            f"{total(metrics.SCREENING_TRACES)} + {total(metrics.SCREENING_QUEUE_TRACES)}",
            0.05,
            passed(metrics.TRACES_RELEASED, hinted),
        ),
        (
            "examined",
            "Traces: screened is not examined",
            total(metrics.SCREENING_TRACES, 'outcome="screened"'),
            total(metrics.TRACES_EXAMINED),
            0.02,
            passed(metrics.TRACES_EXAMINED),
        ),
        (
            "interactions",
            "Interactions: found is not filtered + sampled out + shed + queued",
            total(metrics.INTERACTIONS_FOUND),
            total(metrics.INTERACTIONS),
            0.005,
            passed(metrics.INTERACTIONS_FOUND),
        ),
        (
            "settled",
            "Interactions: not filtered is not settled + moved + repeated + in judging",
            total(metrics.INTERACTIONS, 'fate!="filtered"'),
            f"{total(metrics.SETTLED)} + {total(metrics.INTERACTIONS_MOVED)} + {repeated} "
            f"+ {total(metrics.JUDGING_QUEUE_JOBS)} + {total(metrics.JUDGING_RUNNING)}",
            0.05,
            passed(metrics.INTERACTIONS_FOUND),
        ),
        (
            "judging",
            "Judging: queued is not scored + not applicable + failed + moved + waiting",
            total(metrics.JUDGING_QUEUED, extra=("metric",)),
            f"{total(metrics.JUDGING_RESULTS, extra=('metric',))} + "
            f"{total(metrics.JUDGING_WAITING, extra=('metric',))}",
            0.02,
            passed(metrics.JUDGING_QUEUED, extra=("metric",)),
        ),
    ]
