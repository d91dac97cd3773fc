"""Single parts, made from the configuration: what the composition root would else spell out."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from collector import __version__
from collector.config import Config, LogFormat, LogLevel
from collector.estimates.measures import Measure
from collector.exporters.endpoint import OwnEndpointError, refuse_own
from collector.exporters.kafka import KafkaResults
from collector.exporters.kafka_producer import connect
from collector.extract.extractor import trace_hints
from collector.judging.ledger import Ledger
from collector.judging.observer import JudgeTelemetry
from collector.judging.shadow import SideBySide
from collector.pipeline.books import Books
from collector.pipeline.clock import Clock
from collector.pipeline.kafka_client import KafkaUnusable, client_arguments, require_kafka
from collector.receivers.auth import Authenticator, NoTokens, providers
from collector.receivers.border import Border
from collector.records.hints import Hints
from collector.records.trace import ReleasedTrace
from collector.telemetry.events import Events, JsonFormatter, TextFormatter
from collector.telemetry.instruments import Telemetry
from scorers.errors import ScorerError
from scorers.local import build, describe, fingerprints
from scorers.scorer import Kind, ScorerInfo, Tier

if TYPE_CHECKING:
    from collector.exporters.otlp_events import EvaluationEvents
    from collector.receivers.kafka import KafkaReceiver
    from scorers.judge.service import Judge


_LOG_EVENT_HINTS = (b"gen_ai.operation.name", b"gen_ai.system")
"""Spans with these may have their content in log records, which come in requests of their own, mostly later."""


_SAFE_SHARE = 0.9
"""Of what screening takes without shedding, what messages are taken for: one may hold several traces."""
_SETTLE_SECONDS = 1.0
"""How long a partition that moves may wait for results that are under way to their topic."""


class StartError(Exception):
    """The configuration is well-formed but can not be used here; the text says what to change."""


def needs_restart(old: Config, new: Config) -> list[str]:
    """The sections that differ and can not be changed while running."""
    level = new.process.log_level
    same = {"sampling": new.sampling, "process": old.process.model_copy(update={"log_level": level})}
    was = old.model_copy(update=same)
    changed = [name for name in Config.model_fields if getattr(was, name) != getattr(new, name)]
    if old.sampling.segments != new.sampling.segments:
        changed.append("sampling.segments")
    return changed


def local_measures(config: Config) -> tuple[list[ScorerInfo], list[Measure]]:
    """The local scorers that screening has, and what they measure. Raises StartError."""
    options = config.screening
    tiers = [(options.scorers, Tier.FAST)] + ([(options.full_scorers, Tier.FULL)] if options.full_rate > 0 else [])
    infos: list[ScorerInfo] = []
    measures: list[Measure] = []
    try:
        for names, tier in tiers:
            of_tier = describe(names, tier)
            if tier is Tier.FAST:
                build(names, tier, table=options.calibration)  # says now what is wrong with the table
            infos += of_tier
            prints = fingerprints(names, tier, table=options.calibration)
            for info, fingerprint in zip(of_tier, prints, strict=True):
                measures += [Measure(metric, info.kind, info.tier, fingerprint) for metric in info.gives]
    except (ScorerError, OSError) as error:
        raise StartError(f"screening: {error}") from error
    return infos, measures


class Judges(NamedTuple):
    """The judge, the shadow beside it, what the stage asks (the judge, or both), and what a person is told of them."""

    judge: Judge | None
    shadow: Judge | None
    asked: Judge | SideBySide | None
    notes: list[str]


def judges_of(
    config: Config,
    environment: Mapping[str, str],
    *,
    ledger: Ledger,
    clock: Clock,
    telemetry: Telemetry,
    events: Events,
) -> Judges:
    """The judges that are configured, if any. Raises StartError."""
    options = config.judge
    if options is None:
        return Judges(None, None, None, ["No judge is configured: all scores are local, which are coarse."])
    from collector.judging.judges import endpoint_names, make_judge, runtime_of  # an HTTP client: for judges only

    observer = JudgeTelemetry(telemetry, ledger, endpoint_names(options, options.shadow), events)
    runtime = runtime_of(observer, clock)
    try:
        judge, notes = make_judge(options, options.scorers, environ=environment, runtime=runtime)
        if options.shadow is None:
            return Judges(judge, None, judge, notes)
        beside = options.shadow
        shadow, _ = make_judge(beside, beside.scorers, environ=environment, runtime=runtime, budget=judge.budget)
        return Judges(judge, shadow, SideBySide(judge, shadow), notes)
    except (ScorerError, OSError, ValueError) as error:
        raise StartError(f"judge: {error}") from error


def judged_measures(judge: Judge | SideBySide | None) -> list[Measure]:
    """What a judge measures, with its shadow if it has one."""
    return [Measure(one.metric, Kind.JUDGED, None, one.fingerprint) for one in judge.metrics] if judge else []


def hints_of(config: Config) -> Hints:
    """What assembly looks for."""
    return replace(trace_hints(config.extract), log_events=_LOG_EVENT_HINTS)


def evaluation_events_of(config: Config, clock: Clock, telemetry: Telemetry) -> EvaluationEvents | None:
    options = config.export.otlp
    if options is None:
        return None
    from collector.exporters.otlp_client import make_exporter  # the SDK and its exporters: for this export only
    from collector.exporters.otlp_events import EvaluationEvents

    http, grpc = config.receivers.http, config.receivers.grpc
    try:
        refuse_own(options.endpoint, [(http.host, http.port), (grpc.host, grpc.port)])
        exporter = make_exporter(options)
    except (OwnEndpointError, OSError, ValueError) as error:
        raise StartError(f"export.otlp: {error}") from error
    return EvaluationEvents(
        options,
        exporter,
        version=__version__,
        content=config.export.content,
        clock=clock,
        telemetry=telemetry,
    )


def kafka_results_of(
    config: Config,
    environment: Mapping[str, str],
    *,
    health: Callable[[str, str | None], None],
    clock: Clock,
    telemetry: Telemetry,
    events: Events,
    durable: bool | None = None,
) -> KafkaResults | None:
    """The writer of the results topic, where one is configured; `durable` is whether books keep what waits (default:
    as the configuration has books)."""
    options = config.export.kafka
    if options is None:
        return None
    try:
        require_kafka()
        client_arguments(options, environment)
    except KafkaUnusable as error:
        raise StartError(f"export.kafka: {error}") from error
    return KafkaResults(
        options,
        connect=lambda: connect(options, environment),
        content=config.export.content,
        version=__version__,
        judge_model=config.judge.model if config.judge is not None else None,
        durable=config.process.state_dir is not None if durable is None else durable,
        clock=clock,
        telemetry=telemetry,
        events=events,
        on_state=lambda reason: health("results topic", reason),
    )


def authenticator_of(config: Config, environment: Mapping[str, str], clock: Clock) -> Authenticator | None:
    if not config.receivers.tokens:
        return None
    try:
        return Authenticator(providers(config.receivers.tokens, environ=environment, clock=clock))
    except NoTokens as error:
        raise StartError(f"receivers.tokens: {error}") from error


def kafka_of(
    config: Config,
    environment: Mapping[str, str],
    *,
    border: Border,
    records: Callable[[ReleasedTrace], None],
    hinted: Callable[[], tuple[int, int]],
    waiting: Callable[[], tuple[int, int]],
    full: Callable[[], bool],
    decided: Callable[[], None],
    settle: Callable[[], Awaitable[None]],
    health: Callable[[str, str | None], None],
    clock: Clock,
    telemetry: Telemetry,
    events: Events,
) -> KafkaReceiver | None:
    """The Kafka receiver, where one is configured. `hinted` and `waiting` tell of traces, and of their bytes, that will
    come to screening, and that wait there: together they must not be more than it takes without shedding. `full` says
    whether what is behind has no more room for what must not be dropped."""
    options = config.receivers.kafka
    if options is None:
        return None
    try:
        require_kafka()
        client_arguments(options, environment)
    except KafkaUnusable as error:
        raise StartError(f"receivers.kafka: {error}") from error
    from collector.receivers.kafka import KafkaReceiver  # aiokafka is an extra

    queue = config.screening
    most = options.max_waiting_traces or max(1, int(queue.queue_traces * queue.shed_from * _SAFE_SHARE))
    most_bytes = queue.queue_bytes * queue.shed_from * _SAFE_SHARE

    def fill() -> float:
        if full():
            return 1.0
        (open_traces, open_bytes), (traces, size) = hinted(), waiting()
        return max((open_traces + traces) / most, (open_bytes + size) / most_bytes)

    return KafkaReceiver(
        options,
        environ=environment,
        border=border,
        records=records,
        fill=fill,
        most=most,
        decided=decided,
        settle=settle,
        health=health,
        clock=clock,
        telemetry=telemetry,
        events=events,
    )


def settling(results: KafkaResults | None, books: Books | None) -> Callable[[], Awaitable[None]]:
    """What settles, as far as it soon can be, what has been counted: results to their topic, books to their file."""

    async def settle() -> None:
        if results is not None:
            await results.flush(_SETTLE_SECONDS)
        if books is not None:
            await books.commit()

    return settle


def judge_line(config: Config, judge: Judge | None) -> str:
    if judge is None or config.judge is None:
        return "none; local scores only"
    cause = judge.down_because()
    return f"{config.judge.model}, down: {cause}" if cause else config.judge.model


def configure_logging(config: Config) -> logging.Logger:
    """Log to standard error, in the configured format; returns the logger of our events."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if config.process.log_format is LogFormat.JSON else TextFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    # aiokafka says at every attempt what our events say once; who looks for more has the log level debug.
    logging.getLogger("aiokafka").setLevel(
        logging.NOTSET if config.process.log_level is LogLevel.DEBUG else logging.CRITICAL
    )
    logger = logging.getLogger("groundwatch")
    logger.setLevel(config.process.log_level.upper())
    return logger


def start_lines(
    config: Config, *, http_port: int, grpc_port: int, notes: Sequence[str], environment: Mapping[str, str]
) -> list[str]:
    """What a person is told when all is ready: the addresses, what is not run, and how to have more."""
    scheme = "https" if config.receivers.tls is not None else "http"
    http = f"{scheme}://{config.receivers.http.host}:{http_port}"
    lines = [f"groundwatch {__version__} is ready", f"  OTLP/HTTP    {http}/v1/traces  /v1/logs"]
    if config.receivers.grpc.enabled:
        lines.append(f"  OTLP/gRPC    {scheme}://{config.receivers.grpc.host}:{grpc_port}")
    kafka = config.receivers.kafka
    if kafka is not None:
        topics = ", ".join(topic.name for topic in kafka.topics)
        lines.append(f"  Kafka        {topics} at {', '.join(kafka.brokers)}, as group {kafka.group_id}")
    lines += [f"  status page  {http}/", f"  metrics      {http}/metrics"]
    lines += [f"  {note}" for note in notes]
    if config.judge is None and environment.get("OPENAI_API_KEY"):
        lines.append(
            "  OPENAI_API_KEY is set but nothing is sent unasked; to judge a sample with it: "
            "GROUNDWATCH_JUDGE_BASE_URL=https://api.openai.com/v1 GROUNDWATCH_JUDGE_MODEL=gpt-4o-mini "
            "GROUNDWATCH_JUDGE_API_KEY__ENV=OPENAI_API_KEY groundwatch run"
        )
    return lines
