"""The composition root: the only file that names every concrete class. Wiring, no logic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from collector import __version__
from collector.assembly.assembler import Assembler
from collector.config import Config
from collector.configfile import ConfigError
from collector.durability import State
from collector.estimates.detect import Detection
from collector.estimates.estimates import Estimates
from collector.examine import Examination
from collector.exporters.exemplars import ScoreExemplars
from collector.exporters.prometheus import PrometheusExporter
from collector.exporters.scrapers import Scrapers
from collector.extract.explain import content_switches
from collector.flow import Flow
from collector.judging.ledger import Fuse, Ledger
from collector.judging.shadow import SideBySide, shadow_info
from collector.judging.stage import Judging
from collector.judging.watch import Watch
from collector.otlp.request import Interner
from collector.parts import (
    StartError,
    authenticator_of,
    configure_logging,
    evaluation_events_of,
    hints_of,
    judge_line,
    judged_measures,
    judges_of,
    kafka_of,
    kafka_results_of,
    local_measures,
    needs_restart,
    settling,
    start_lines,
)
from collector.pipeline.clock import SystemClock
from collector.pipeline.store import Reached, pass_by
from collector.pipeline.workers import WorkerPool
from collector.receivers.border import Border
from collector.receivers.otlp_grpc import OtlpGrpc
from collector.receivers.otlp_http import OtlpHttp, uvicorn_tls
from collector.records.ring import Ring
from collector.records.trace import ReleasedTrace
from collector.review.standing import Gauges
from collector.reviewing import reviewing_of
from collector.sampling.hashing import Uniform
from collector.sampling.sampler import Sampler
from collector.screening.screen import Examined
from collector.screening.stage import Screening
from collector.service import Background, Part, Service
from collector.telemetry import metrics
from collector.telemetry.events import Event, Events, Level
from collector.telemetry.instruments import Telemetry
from collector.telemetry.loop_lag import LoopLag
from collector.telemetry.process import describe_process
from collector.web.access import file_or_env_token
from collector.web.app import build as build_web
from collector.web.drift import routes as drift_routes
from collector.web.health import Health
from collector.web.overview import Overview
from collector.web.passwords import file_or_env_users
from collector.web.recent import Recent
from collector.web.server import HttpServer
from scorers.scorer import Direction

_SPOOLED = ("grpc", "http")  # Kafka is its own spool
_TICK_SECONDS = 0.25
_RETRY_AFTER_SECONDS = 5.0
_DRAIN_RESERVE_SECONDS = 10.0
"""Of the grace time, what is kept back from waiting for open traces so that what they hold can still be scored."""
_CLOSE_RESERVE_SECONDS = 2.0
"""Of the grace time, what is kept back from waiting for a last scrape so that the rest can still be closed."""
_FLUSH_RESERVE_SECONDS = 3.0
"""Of the grace time, what is kept back from judging so that results can still be sent."""


def build(
    config: Config,
    environment: Mapping[str, str],
    *,
    announce: Callable[[str], object],
    reread: Callable[[], Config],
    reached: Reached = pass_by,
) -> Service:
    """Make every part and join them. `announce` is given the start's lines once all is ready; `reread` gives the
    configuration anew when SIGHUP asks for it; `reached` is for tests of crashes.

    Opens no port; raises StartError when the configuration can not work here.
    """
    clock = SystemClock()
    telemetry = Telemetry()
    logger = configure_logging(config)
    events = Events(telemetry, clock, logger)
    health = Health()
    ring = Ring(config.process.decision_ring, clock=clock)
    state = State(config, clock=clock, telemetry=telemetry, events=events, reason=health.set, reached=reached)
    books = state.books

    # --- what measures
    ledger = Ledger(clock)
    judge, shadow, asked, notes = judges_of(
        config, environment, ledger=ledger, clock=clock, telemetry=telemetry, events=events
    )
    infos, declared = local_measures(config)
    infos += [scorer.info for scorer in judge.scorers] if judge else []
    infos += [shadow_info(scorer.info) for scorer in shadow.scorers] if shadow else []
    declared += judged_measures(asked)
    directions = {metric: info.direction for info in infos for metric in info.gives}
    lower = frozenset(m for m, direction in directions.items() if direction is Direction.LOWER_IS_BETTER)
    shadowed = {
        metric for scorer in (shadow.scorers if shadow else ()) for metric in shadow_info(scorer.info).gives
    }

    # --- from the end to the beginning, since each stage is handed its downstream
    sampler = Sampler(config.sampling, seed=config.seed, clock=clock, telemetry=telemetry)
    try:
        estimates = Estimates(
            config.estimates,
            declared=declared,
            segment_names=sampler.segment_names,
            clock=clock,
            telemetry=telemetry,
            seed=config.seed,
            durable=books is not None,
        )
        detection = Detection(
            config.estimates.detection,
            measures=[measure for measure in declared if measure.metric not in shadowed],
            lower=lower,
            segment_names=sampler.segment_names,
            clusters=config.estimates.clusters,
            seed=config.seed,
            clock=clock,
            telemetry=telemetry,
            events=events,
        )
    except ValueError as error:
        raise StartError(str(error)) from error
    estimates.expect(sampler.listed_segments())
    recent = Recent(clock, lower, content_switches(config.extract))
    evaluation_events = evaluation_events_of(config, clock, telemetry)
    exemplars = ScoreExemplars(telemetry, [metric.metric for metric in asked.metrics] if asked is not None else [])
    results = kafka_results_of(
        config, environment, health=health.set, clock=clock, telemetry=telemetry, events=events
    )
    if books is not None:
        fuse = [Fuse(judge.budget)] if judge is not None else []
        books.register(estimates, detection, ledger, *fuse, *([results] if results is not None else []))
    sinks = [estimates.settle, detection.settle, exemplars.settle, recent.settle]
    if evaluation_events is not None:
        sinks.append(evaluation_events.settle)
    reviewing = reviewing_of(
        config, directions=directions, beside=shadowed, clock=clock, telemetry=telemetry, events=events
    )
    if reviewing is not None:
        sinks.append(reviewing.picker.settle)
        if books is not None:
            books.after(reviewing.written)
    if results is not None:
        sinks.append(results.settle)
        if state.keeps is not None:
            state.keeps.no_room = results.is_full
    flow = Flow(
        sampler=sampler,
        announce=estimates.announce,
        sinks=sinks,
        notes=ring,
        telemetry=telemetry,
        seen=estimates.seen,
        diagnose=estimates.diagnose,
        books=books,
    )
    judging: Judging | None = None
    watch: Watch | None = None
    if judge is not None and asked is not None:
        watch = Watch(
            config.judging,
            asked,
            canaries={one.options.name: one for one in (judge, shadow) if one is not None},
            names=[metric.metric for metric in asked.metrics],
            chance=Uniform(config.seed, "judging.repeat"),
            calm=lambda: judging is not None and judging.pressure() >= 1,
            repeated=reviewing.picker.repeated if reviewing is not None else None,
            clock=clock,
            telemetry=telemetry,
            events=events,
        )
        judging = Judging(
            config.judging,
            asked,
            clock=clock,
            telemetry=telemetry,
            events=events,
            ledger=ledger,
            downstream=flow,
            beside=asked.beside if isinstance(asked, SideBySide) else (),
            judged=watch.judged,
        )
        flow.judges = judging
        sampler.connect(pressure=judging.pressure, spent=ledger.spent)
    pool: WorkerPool[ReleasedTrace, Examined] = WorkerPool(
        Examination(config.extract, config.screening, config.seed),
        workers=config.screening.workers,
        deadline_seconds=config.screening.deadline_seconds,
        on_loss=lambda loss: telemetry.inc(metrics.SCREENING_WORKER_LOSSES, reason=loss),
    )
    screening = Screening(
        config.screening, pool=pool, clock=clock, telemetry=telemetry, downstream=flow.screened, notes=ring
    )
    assembler = Assembler(
        config.assembly,
        hints=hints_of(config),
        clock=clock,
        telemetry=telemetry,
        downstream=screening.accept,
        notes=ring,
    )
    intake = reviewing.listening(assembler) if reviewing is not None else assembler
    intern = Interner()
    borders = {
        transport: Border(
            transport=transport,
            intake=intake,
            telemetry=telemetry,
            max_item_bytes=config.receivers.max_item_bytes,
            intern=intern,
            spool=state.keeps if transport in _SPOOLED else None,
        )
        for transport in metrics.TRANSPORT
    }

    def decided() -> None:
        assembler.drop_lost()
        if judging is not None:
            judging.drop_lost()
        flow.decided()

    kafka = kafka_of(
        config,
        environment,
        border=borders["kafka"],
        records=screening.accept,
        hinted=lambda: assembler.hinted,
        waiting=lambda: (screening.waiting, screening.waiting_bytes),
        full=lambda: results is not None and results.full,
        decided=decided,
        settle=settling(results, books),
        health=health.set,
        clock=clock,
        telemetry=telemetry,
        events=events,
    )
    auth = authenticator_of(config, environment, clock)
    grpc = OtlpGrpc(options=config.receivers, border=borders["grpc"], auth=auth)
    otlp_http = OtlpHttp(options=config.receivers, border=borders["http"], auth=auth)
    loop_lag = LoopLag(telemetry, clock)

    def refresh() -> None:
        screening.refresh()
        if kafka is not None:
            kafka.refresh()
        detection.tick()
        if judge is not None:
            judge.budget.tell()
        if judging is not None:
            judging.tick()
            stuck = "every judge call ignores its cancellation; restart the process" if judging.stuck else None
            health.set("judging", stuck)

    overview = Overview(
        version=__version__,
        estimates=estimates,
        segment_names=sampler.segment_names,
        registry=telemetry.registry,
        recent=recent,
        health=health,
        judge=lambda: judge_line(config, judge),
        directions=directions,
        notes=notes,
        clock=clock,
        watched=detection.watched,
    )
    scrapers = Scrapers(clock)
    exporter = PrometheusExporter(
        telemetry.registry,
        [estimates, detection, *([kafka] if kafka is not None else [])],
        before=refresh,
        commit=books.commit if books else None,
        scrapers=scrapers,
    )

    def explain(trace_id: str) -> list[dict[str, object]]:
        told = ring.explain(trace_id)
        open_now = assembler.explain(trace_id)
        return told + ([ring.line("assembly", open_now)] if open_now and not told else [])

    token = file_or_env_token(config.web.token_file, config.web.token_env, environment)
    http = HttpServer(
        build_web(
            options=config.web,
            health=health,
            status=overview.status,
            explain=explain,
            render_metrics=exporter.render,
            otlp=otlp_http,
            token=token,
            loopback=config.loopback,
            more=drift_routes(detection),
            users=file_or_env_users(config.web.users_file, config.web.users_env, environment),
            review=reviewing.site if reviewing is not None else None,
        ),
        host=config.receivers.http.host,
        port=config.receivers.http.port,
        tls=uvicorn_tls(config.receivers.tls),
    )

    # --- life
    async def start_process() -> None:
        describe_process(telemetry, version=__version__, unclean_shutdown=state.open())

    async def stop_process(_: float) -> None:
        await state.close()

    async def start_screening() -> None:
        await pool.start()
        await screening.start()

    async def stop_screening(seconds: float) -> None:
        await screening.stop(seconds)
        await pool.stop(0)

    async def stop_receivers(seconds: float) -> None:
        for border in borders.values():
            border.close(_RETRY_AFTER_SECONDS)
        await grpc.stop(min(1.0, seconds))

    async def stop_polling(seconds: float) -> None:
        if kafka is not None:
            await kafka.stop_polling(seconds)

    async def close_kafka(seconds: float) -> None:
        """After all that can be settled was: what is written in books is settled only then."""
        if kafka is not None:
            if books is not None:
                await books.commit()
            elif reviewing is not None:
                await reviewing.written()
            await kafka.close(seconds)

    async def drain_assembly(seconds: float) -> None:
        """Memory mode: give open traces their quiet period within the grace time, then release the rest."""
        assembler.begin_drain()
        deadline = clock.monotonic() + seconds - _DRAIN_RESERVE_SECONDS
        while assembler.waiting_traces and clock.monotonic() < deadline:  # noqa: ASYNC110  # ticks close traces by time
            await asyncio.sleep(_TICK_SECONDS)
        assembler.drain()

    async def stop_judging(seconds: float) -> None:
        if watching is not None and watch is not None:
            watch.stop()
            await watching.stop()
        if judging is not None:
            await judging.drain(max(0.0, seconds - _FLUSH_RESERVE_SECONDS))
        if slots is not None:
            await slots.stop()  # what it looks after is empty
        detection.close_all()
        for one in (judge, shadow):
            if one is not None:
                await one.close()

    async def stop_http(seconds: float) -> None:
        """What no books keep ends with this process: first have it scraped."""
        ends = clock.monotonic() + seconds
        if books is None:
            await scrapers.once_more(max(0.0, seconds - _CLOSE_RESERVE_SECONDS))
        await http.stop(ends - clock.monotonic())

    async def stop_background(_: float) -> None:
        for task in (ticking, lagging, keeping, renewing):
            if task is not None:
                await task.stop()

    async def tick() -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            assembler.tick()

    async def start_events() -> None:
        if evaluation_events is not None:
            evaluation_events.start()
        if writing is not None:
            await writing.start()

    async def stop_events(seconds: float) -> None:
        if results is not None and writing is not None:
            seconds /= 2
            await results.flush(seconds)
            await writing.stop()
            results.close()
        if evaluation_events is not None:
            await evaluation_events.stop(seconds)

    ticking = Background("assembly", tick, on_end=health.set, events=events)
    lagging = Background("loop lag", loop_lag.run, on_end=health.set, events=events)
    slots = Background("judging", judging.run, on_end=health.set, events=events) if judging is not None else None
    keeping = Background("books", books.run, on_end=health.set, events=events) if books is not None else None
    gauges = Gauges(reviewing.store, clock, telemetry) if reviewing is not None else None
    renewing = Background("corrected mean", gauges.run, on_end=health.set, events=events) if gauges else None
    writing = Background("results topic", results.run, on_end=health.set, events=events) if results else None
    watching = (
        Background("judge watch", watch.run, on_end=health.set, events=events) if watch is not None else None
    )

    async def start_background() -> None:
        for task in (lagging, keeping, renewing):
            if task is not None:
                await task.start()
        await state.read_again(assembler, [borders[transport] for transport in _SPOOLED])

    async def start_judging() -> None:
        for task in (slots, watching):
            if task is not None:
                await task.start()

    parts = {
        "process": Part("process", start_process, stop_process),
        "events": Part("events and results", start_events, stop_events),
        "judging": Part("judging", start_judging, stop_judging),
        "screening": Part("screening", start_screening, stop_screening),
        "assembly": Part("assembly", ticking.start, drain_assembly),
        "grpc": Part("OTLP/gRPC", grpc.start if config.receivers.grpc.enabled else None, stop_receivers),
        "kafka": Part("Kafka", kafka.start if kafka is not None else None, stop_polling),
        "commits": Part("Kafka commits", None, close_kafka),
        "review": Part("review", reviewing.start, reviewing.stop) if reviewing is not None else Part("review"),
        "http": Part("HTTP", http.start, stop_http),
        "background": Part("background", start_background, stop_background),
    }
    # Downstream starts first and upstream stops first; the HTTP port, which also serves /metrics, closes last.
    start = (
        "process", "review", "events", "judging", "screening", "assembly", "background", "http", "grpc", "kafka",
    )  # fmt: skip
    stop = (
        "kafka", "grpc", "assembly", "screening", "judging", "events", "commits", "background", "http", "review",
        "process",
    )  # fmt: skip

    def on_ready() -> None:
        for line in start_lines(
            config, http_port=http.port, grpc_port=grpc.port, notes=notes, environment=environment
        ):
            announce(line + "\n")

    def on_reload() -> None:
        try:
            fresh = reread()
        except ConfigError as error:
            events.tell(
                Event("reload_refused", Level.ERROR, "the configuration is bad and the old one stays in force"),
                error,
            )
            announce(f"{error}\n")
            return
        sampler.reconfigure(fresh.sampling)
        logger.setLevel(fresh.process.log_level.upper())
        events.tell(
            Event(
                "reloaded",
                Level.WARNING if needs_restart(config, fresh) else Level.INFO,
                "rates, budget, filters and log level are those of the configuration now; other sections that changed "
                "wait for a restart",
                {"waiting": ", ".join(needs_restart(config, fresh)) or "none"},
            )
        )

    return Service(
        start_order=[parts[name] for name in start],
        stop_order=[parts[name] for name in stop],
        grace_seconds=config.process.grace_seconds,
        clock=clock,
        events=events,
        on_state=lambda reason: health.set("service", reason),
        on_ready=on_ready,
        on_reload=on_reload,
    )
