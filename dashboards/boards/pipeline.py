"""Pipeline health: what arrives, what becomes of it, and how groundwatch itself fares."""

from __future__ import annotations

from collector.telemetry import metrics
from collector.telemetry.spec import MetricSpec
from dashboards.boards.panels import GREEN, RED, YELLOW, Board, Panel, Query
from dashboards.boards.shared import JOB, choices, firing, hourly, rate
from dashboards.health_alerts import laws
from dashboards.names import select
from dashboards.options import Options


def pipeline(options: Options) -> Board:
    """Conservation first, then each stage from the left to the right."""
    rows = [
        ("Conservation: what came in is what became of it", _conservation(options)),
        ("What arrives", _arrival()),
        ("Kafka", _kafka()),
        ("From traces to interactions", _extraction()),
        ("Screening and results", _screening()),
        ("The process", _process()),
    ]
    return Board(
        "groundwatch-pipeline",
        "groundwatch: pipeline health",
        "What arrives, what becomes of it, and how groundwatch itself fares.",
        choices(options, segments=False),
        rows,
    )


def _of_job(expression: str) -> str:
    """The expression's own metrics of the job chosen."""
    for spec in metrics.table():
        expression = expression.replace(f"({spec.name})", f"({spec.name}{{{JOB}}})")
        expression = expression.replace(f"({spec.name}{{", f"({spec.name}{{{JOB}, ").replace(f"{JOB}, {JOB}", JOB)
    return expression


def _conservation(options: Options) -> list[Panel]:
    return [
        Panel(
            text.split(":")[0] + f" ({law})",
            f"{text}: the difference, over all processes. What is between two counters while they are read may show "
            "for a moment; what stays is a bug.",
            [Query(f"sum({_of_job(left)}) - sum({_of_job(right)})", "difference", instant=True)],
            kind="stat",
            width=3,
            height=4,
            steps=((None, YELLOW), (0, GREEN), (0.5, YELLOW)),
        )
        for law, text, left, right, _, _ in laws(options)
    ] + [firing("Pipeline alerts", "Alerts about groundwatch itself that fire now.", "pipeline", width=3)]


def _arrival() -> list[Panel]:
    return [
        Panel(
            "Spans and log records",
            "Items a second by what became of them on arrival.",
            [Query(f"{rate(metrics.ITEMS, ('signal', 'outcome'))} > 0", "{{signal}} {{outcome}}")],
            low=0,
            empty="while nothing arrives",
        ),
        Panel(
            "Requests",
            "Export requests a second by transport and answer.",
            [Query(f"{rate(metrics.REQUESTS, ('transport', 'outcome'))} > 0", "{{transport}} {{outcome}}")],
            low=0,
            empty="while nothing arrives",
        ),
        Panel(
            "Refused requests",
            "Export requests a second that were refused whole, by reason.",
            [Query(f"{rate(metrics.REQUESTS_REFUSED, ('reason',))} > 0", "{{reason}}")],
            low=0,
            empty="while nothing is refused",
        ),
    ]


def _kafka() -> list[Panel]:
    return [
        Panel(
            "Lag",
            "Messages between the first that is not settled and the end, by topic.",
            [Query(f"sum by (topic) ({select(metrics.KAFKA_LAG, JOB)})", "{{topic}}")],
            width=6,
            low=0,
            empty="while nothing is read from Kafka",
        ),
        Panel(
            "Messages",
            "Messages a second by what became of them; those settled before are passed over after a move.",
            [Query(f"{rate(metrics.KAFKA_MESSAGES, ('outcome',))} > 0", "{{outcome}}")],
            width=6,
            low=0,
            empty="while nothing is read from Kafka",
        ),
        Panel(
            "Oldest without an outcome",
            "For how long the oldest message has been here. The committed offset stands before it.",
            [Query(f"max({select(metrics.KAFKA_OLDEST, JOB)})", "oldest")],
            unit="s",
            width=6,
            low=0,
        ),
        Panel(
            "Pauses, rebalances, poison",
            "How often within the last hour, by cause and reason; rebalances of the consumer group in all.",
            [
                Query(f"{hourly(metrics.KAFKA_PAUSES, labels=('cause',))} > 0", "paused: {{cause}}"),
                Query(f"{hourly(metrics.KAFKA_POISON, labels=('reason',))} > 0", "poison: {{reason}}"),
                Query(hourly(metrics.KAFKA_REBALANCES, labels=()), "rebalances"),
            ],
            width=6,
            low=0,
            empty="while nothing is read from Kafka, and while all goes well",
        ),
    ]


def _extraction() -> list[Panel]:
    return [
        Panel(
            "Open traces",
            "Traces that are open in the assembler and wait for more.",
            [Query(f"sum({select(metrics.TRACES_OPEN, JOB)})", "open")],
            width=6,
            low=0,
        ),
        Panel(
            "Traces released",
            "Traces a second by why they were closed; only quiet ones are complete.",
            [Query(rate(metrics.TRACES_RELEASED, ("reason",)), "{{reason}}")],
            width=6,
            low=0,
        ),
        Panel(
            "Traces examined",
            "Traces a second that were searched for interactions, by what was found.",
            [Query(rate(metrics.TRACES_EXAMINED, ("found",)), "{{found}}")],
            width=6,
            low=0,
        ),
        Panel(
            "Filtered out",
            "Interactions of the last hour that are in no estimate, by reason.",
            [Query(hourly(metrics.FILTERED, labels=("reason",)), "{{reason}}")],
            width=6,
            low=0,
        ),
    ]


def _screening() -> list[Panel]:
    batch = f"sum by (le) (rate({metrics.SCREENING_SECONDS.name}_bucket{{{JOB}}}[$__rate_interval]))"
    return [
        Panel(
            "Screening",
            "Released traces a second by what screening did.",
            [Query(rate(metrics.SCREENING_TRACES, ("outcome",)), "{{outcome}}")],
            low=0,
        ),
        Panel(
            "Waiting for screening",
            "Age of the oldest trace that waits, and the time of a batch that 95 % keep.",
            [
                Query(f"max({select(metrics.SCREENING_QUEUE_AGE, JOB)})", "oldest"),
                Query(f"histogram_quantile(0.95, {batch})", "batch, 95 %"),
            ],
            unit="s",
            low=0,
            steps=((None, GREEN), (60, RED)),
        ),
        Panel(
            "Share let into screening",
            "Below 1 screening is behind and sheds, with known probability.",
            [Query(f"min({select(metrics.SCREENING_KEEP_PROBABILITY, JOB)})", "kept")],
            unit="percentunit",
            width=4,
            low=0,
            high=1,
        ),
        Panel(
            "Workers lost",
            "Screening workers that were replaced in the last hour, by reason.",
            [
                Query(
                    hourly(metrics.SCREENING_WORKER_LOSSES, labels=("reason",)),
                    "{{reason}}",
                    instant=True,
                )
            ],
            kind="stat",
            width=4,
            steps=((None, GREEN), (1, RED)),
        ),
        Panel(
            "Evaluation events",
            "Results a second that left as evaluation events, by what became of them.",
            [Query(rate(metrics.EVENTS_EXPORTED, ("outcome",)), "{{outcome}}")],
            width=12,
            low=0,
        ),
        Panel(
            "Series and clusters",
            "Time series that the sums take, and interactions counted as segment other because of the series budget.",
            [
                Query(f"max({select(metrics.SERIES, JOB)})", "series"),
                Query(hourly(metrics.SEGMENTS_FOLDED), "folded an hour"),
            ],
            width=12,
            low=0,
        ),
    ]


def _process() -> list[Panel]:
    def longest(spec: MetricSpec) -> str:
        return f"max by (instance) ({select(spec, JOB)})"

    return [
        Panel(
            "Event-loop lag",
            "The longest that the event loop was held up in the last minute.",
            [Query(longest(metrics.LOOP_LAG_MAX), "{{instance}}")],
            unit="s",
            width=6,
            low=0,
            steps=((None, GREEN), (1, RED)),
        ),
        Panel(
            "Memory",
            "Resident memory of each process, and what open traces and waiting jobs take of it.",
            [
                Query(longest(metrics.PROCESS_MEMORY), "{{instance}}"),
                Query(f"sum({select(metrics.ASSEMBLY_BYTES, JOB)})", "open traces"),
                Query(f"sum({select(metrics.JUDGING_QUEUE_BYTES, JOB)})", "judge queue"),
            ],
            unit="bytes",
            width=6,
            low=0,
        ),
        Panel(
            "Log lines",
            "Events logged a second, by level.",
            [Query(rate(metrics.LOG_LINES, ("level",)), "{{level}}")],
            width=6,
            low=0,
        ),
        Panel(
            "Processes",
            "Each process with its version, and whether the one before it ended without draining.",
            [
                Query(
                    f"max by (instance, version, python) ({select(metrics.BUILD_INFO, JOB)})", "up", instant=True
                ),
                Query(
                    f"max by (instance) ({select(metrics.UNCLEAN_SHUTDOWN, JOB)})", "unclean before", instant=True
                ),
            ],
            kind="table",
            width=6,
            columns={"instance": "instance", "version": "version", "python": "Python"},
        ),
    ]
