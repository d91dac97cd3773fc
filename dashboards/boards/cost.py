"""Cost and judge: what judging costs, how it fares, and how much of the traffic it sees."""

from __future__ import annotations

from collector.telemetry import metrics
from dashboards.boards.panels import GREEN, GREY, RED, YELLOW, Board, Panel, Query
from dashboards.boards.shared import JOB, choices, hourly, rate
from dashboards.names import select
from dashboards.options import DAY, Options


def cost(options: Options) -> Board:
    """Money, calls, the queue and sampling."""
    rows = [
        ("Cost", _cost()),
        ("The judge's calls", _calls()),
        ("Is it to be believed", _trust(options)),
        ("The queue", _queue()),
        ("Sampling", _sampling()),
    ]
    return Board(
        "groundwatch-cost",
        "groundwatch: cost and judge",
        "What judging costs, how the judge fares, and how much of the traffic it sees.",
        choices(options, segments=False),
        rows,
    )


def _cost() -> list[Panel]:
    unpriced = "while no call had a known price"
    spent, settled = hourly(metrics.JUDGE_COST), hourly(metrics.SETTLED)
    cached = hourly(metrics.JUDGE_CACHE, 'result="hit"')
    return [
        Panel(
            "Cost an hour",
            "US dollars of the last hour, of calls whose price is known.",
            [Query(spent, "cost")],
            unit="currencyUSD",
            width=8,
            low=0,
            empty=unpriced,
        ),
        Panel(
            "Cost of 1,000 interactions",
            "US dollars that 1,000 interactions of traffic cost, judged or not.",
            [Query(f"1000 * {spent} / ({settled} > 0)", "of 1,000")],
            unit="currencyUSD",
            width=4,
            low=0,
            empty=unpriced,
        ),
        Panel(
            "Calls without a price",
            "Calls of the last hour whose price is unknown; their cost is in no number.",
            [Query(hourly(metrics.JUDGE_UNPRICED), "calls", instant=True)],
            kind="stat",
            width=4,
            steps=((None, GREEN), (1, YELLOW)),
            empty="until the judge was called",
        ),
        Panel(
            "Budget spent",
            "Largest share of any limit of the budget that is spent in the period; at 1 the fuse blows.",
            [Query(f"max by (period) ({select(metrics.JUDGE_BUDGET, JOB)})", "{{period}}")],
            unit="percentunit",
            low=0,
            high=1,
            steps=((None, GREEN), (0.8, YELLOW), (1, RED)),
        ),
        Panel(
            "Tokens",
            "Tokens a second by direction; cached ones are part of the input.",
            [Query(rate(metrics.JUDGE_TOKENS, ("direction",)), "{{direction}}")],
            width=12,
            low=0,
        ),
        Panel(
            "Verdicts from the cache",
            "Share of questions of the last hour that the cache answered.",
            [
                Query(
                    f"{cached} / ({hourly(metrics.JUDGE_CACHE)} > 0)",
                    "hits",
                )
            ],
            unit="percentunit",
            width=6,
            low=0,
            high=1,
            empty="while the cache is not asked",
        ),
        Panel(
            "Answers asked again",
            "Answers that a reply left out and that were asked again, a second.",
            [Query(rate(metrics.JUDGE_REASKED, ("job",)), "asked again")],
            width=6,
            low=0,
        ),
    ]


def _calls() -> list[Panel]:
    state = f"max by (endpoint, state) ({select(metrics.JUDGE_BREAKER, JOB)}) == 1"
    seconds = select(metrics.JUDGE_CALL_TIME, JOB).replace(
        metrics.JUDGE_CALL_TIME.name, f"{metrics.JUDGE_CALL_TIME.name}_bucket"
    )
    buckets = f"sum by (le) (rate({seconds}[$__rate_interval]))"
    return [
        Panel(
            "Calls by how they ended",
            "Calls to the judge's endpoints a second.",
            [Query(rate(metrics.JUDGE_CALLS, ("endpoint", "outcome")), "{{endpoint}} {{outcome}}")],
            low=0,
        ),
        Panel(
            "Time of a call",
            "Median, and the time that 95 % of the calls keep.",
            [
                Query(f"histogram_quantile(0.5, {buckets})", "median"),
                Query(f"histogram_quantile(0.95, {buckets})", "95 %"),
            ],
            unit="s",
            low=0,
        ),
        Panel(
            "Calls in flight allowed",
            "The limit that adapts itself to the endpoint.",
            [Query(f"max by (endpoint) ({select(metrics.JUDGE_CONCURRENCY, JOB)})", "{{endpoint}}")],
            width=4,
            low=0,
        ),
        Panel(
            "Circuit breaker",
            "The state that the endpoint's circuit breaker is in.",
            [
                Query(
                    state,
                    "{{endpoint}} {{state}}",
                    instant=True,
                )
            ],
            kind="stat",
            width=4,
            mapping={"1": ("now", GREY)},
        ),
    ]


def _trust(options: Options) -> list[Panel]:
    squares, pairs = (
        f"sum by (metric) (increase({select(spec, JOB)}[{options.time(DAY)}]))"
        for spec in (metrics.JUDGE_NOISE_SQUARES, metrics.JUDGE_NOISE_PAIRS)
    )
    return [
        Panel(
            "Planted cases right",
            "Share of answers whose right score is known that the judge scored right, by what they are and their "
            "language. Below the line in the mean its alarms are off.",
            [
                Query(
                    f"min by (endpoint, kind, language) ({select(metrics.CANARY_ACCURACY, JOB)} >= 0)",
                    "{{endpoint}} {{kind}} {{language}}",
                )
            ],
            unit="percentunit",
            width=12,
            low=0,
            high=1,
            steps=((None, RED), (options.min_canary, GREEN)),
            empty="while `judging.canary_hours` is 0, and until the first was answered",
        ),
        Panel(
            "Noise of the judge",
            "Standard error of one score, from interactions that were judged twice in the last day. It is inside the "
            "intervals already; two runs over the same answers differ by this much over the root of half their number.",
            [Query(f"sqrt({squares} / (2 * {pairs} > 0))", "{{metric}}")],
            width=12,
            low=0,
            empty="until interactions were judged twice (`judging.repeat_rate`)",
        ),
    ]


def _queue() -> list[Panel]:
    failed = 'outcome="failed"'
    waited = f"sum by (le) (rate({metrics.JUDGING_WAIT.name}_bucket{{{JOB}}}[$__rate_interval]))"
    return [
        Panel(
            "Results",
            "Judged results a second by outcome.",
            [Query(rate(metrics.JUDGING_RESULTS, ("outcome",)), "{{outcome}}")],
            width=6,
            low=0,
        ),
        Panel(
            "Failed by reason",
            "Judged results of the last hour that failed. The runbook says what each reason asks for.",
            [
                Query(
                    f"{hourly(metrics.JUDGING_RESULTS, failed, labels=('reason',))} > 0",
                    "{{reason}}",
                )
            ],
            width=6,
            low=0,
            empty="while nothing fails",
        ),
        Panel(
            "Jobs",
            "Jobs that wait, and that are judged now.",
            [
                Query(f"sum({select(metrics.JUDGING_QUEUE_JOBS, JOB)})", "waiting"),
                Query(f"sum({select(metrics.JUDGING_RUNNING, JOB)})", "running"),
            ],
            width=4,
            low=0,
        ),
        Panel(
            "Age and wait",
            "Age of the oldest job that waits, of the oldest running one, and the time that 95 % wait at most.",
            [
                Query(f"max({select(metrics.JUDGING_OLDEST_JOB, JOB)})", "oldest waiting"),
                Query(f"max({select(metrics.JUDGING_OLDEST_SLOT, JOB)})", "oldest running"),
                Query(f"histogram_quantile(0.95, {waited})", "95 % wait"),
            ],
            unit="s",
            width=4,
            low=0,
            steps=((None, GREEN), (300, RED)),
        ),
        Panel(
            "Share let into the queue",
            "Below 1 judging is behind and sheds, with known probability.",
            [Query(f"min({select(metrics.JUDGING_KEEP_PROBABILITY, JOB)})", "kept")],
            unit="percentunit",
            width=4,
            low=0,
            high=1,
        ),
    ]


def _sampling() -> list[Panel]:
    return [
        Panel(
            "Sampling rate",
            "Probability of being judged, after the budget and before shedding: where policies are set the mean over "
            "about the last hundred interactions, else that of the last one. Beside it what the budget leaves of the "
            "rate above the floor; 1 = all.",
            [
                Query(f"avg({select(metrics.SAMPLING_RATE, JOB)})", "rate"),
                Query(f"min({select(metrics.SAMPLING_BUDGET_FACTOR, JOB)})", "left by the budget"),
            ],
            unit="percentunit",
            low=0,
            high=1,
        ),
        Panel(
            "Interactions by fate",
            "Interactions a second: filtered out, sampled out, shed for load, or queued for judging.",
            [Query(rate(metrics.INTERACTIONS, ("fate",)), "{{fate}}")],
            low=0,
            stacked=True,
        ),
        Panel(
            "Sampling before us",
            "Interactions a second by what is known of the sampling upstream.",
            [Query(f"{rate(metrics.UPSTREAM, ('known',))} > 0", "{{known}}")],
            low=0,
            empty="while nothing arrives",
        ),
    ]
