"""`groundwatch check`: is the configuration good, are its endpoints there, how many series will there be?"""

from __future__ import annotations

import argparse
import asyncio
import errno
import math
import os
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from collector.commands.common import add_config_argument, read_config, through_proxies
from collector.config import Config
from collector.configfile import ConfigError
from collector.estimates.detect_choice import problems as detection_problems
from collector.estimates.detect_choice import watched
from collector.estimates.measures import Measure
from collector.estimates.objectives import problems
from collector.estimates.sums import series_needed
from collector.exporters.kafka_options import KafkaResultsOptions
from collector.exporters.kafka_producer import Undeliverable, connect
from collector.judging.shadow import shadow_info
from collector.pipeline.kafka_client import KafkaUnusable, client_arguments, require_kafka
from collector.receivers.kafka_options import KafkaOptions
from collector.sampling.policies import unscreened
from scorers.catalog import judged, runnable
from scorers.config import ScorerOptions
from scorers.errors import BadScorerOptions, JudgeAuth, ScorerError
from scorers.judge.canary import CanaryReport
from scorers.judge.keys import key_provider
from scorers.judge.options import JudgeOptions, KeyOptions
from scorers.judge.service import Judge
from scorers.local import build
from scorers.scorer import Tier

_TIMEOUT_SECONDS = 5.0
_JUDGE_SECONDS = 120.0
_COIN = 0.5
"""Accuracy on planted cases up to which a judge is taken to guess."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_argument(parser)
    parser.add_argument("--offline", action="store_true", help="validate only; reach nothing")
    parser.add_argument(
        "--judge",
        action="store_true",
        help="ask the judge for real: one question, then the planted cases (some fifty calls)",
    )
    parser.add_argument(
        "--health", metavar="URL", help="only ask the groundwatch that serves http://HOST:PORT whether it is ready"
    )


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 all good, 1 something can not be reached or does not work, 2 the configuration is bad."""
    if args.health:
        return _health(args.health)
    try:
        config = read_config(args)
        measures = _measures(config)
    except (ConfigError, ScorerError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    report = _Report()
    report.good("the configuration is valid")
    _series(config, measures, report)
    for problem in problems(config.estimates.objectives, measures, [one.name for one in config.sampling.segments]):
        report.bad(problem)
    _detection(config, report)
    fast = {one.metric for one in measures if one.tier is Tier.FAST}
    for problem in unscreened(config.sampling, fast):
        report.bad(problem)
    if not args.offline:
        _endpoints(config, report)
        if args.judge:
            asyncio.run(_judge(config, report))
    return report.exit_code


class _Report:
    """Lines for a person, good ones and bad ones."""

    def __init__(self) -> None:
        self.exit_code = 0

    def good(self, line: str) -> None:
        sys.stdout.write(f"ok    {line}\n")

    def bad(self, line: str) -> None:
        self.exit_code = 1
        sys.stdout.write(f"FAIL  {line}\n")


def _measures(config: Config, *, shadow: bool = True) -> list[Measure]:
    infos = [one.info for one in build(config.screening.scorers, Tier.FAST, table=config.screening.calibration)]
    if config.judge is not None:
        scorers, _ = runnable(judged(config.judge.scorers), embeddings=config.judge.embeddings is not None)
        infos += [one.info for one in scorers]
        beside = config.judge.shadow
        if beside is not None and shadow:
            scorers, _ = runnable(judged(beside.scorers), embeddings=beside.embeddings is not None)
            infos += [shadow_info(one.info) for one in scorers]
    return [Measure(metric, info.kind, info.tier) for info in infos for metric in info.gives]


def _series(config: Config, measures: list[Measure], report: _Report) -> None:
    """Series at start, and at the most that the segments allow, against the budget."""
    most = math.prod(segment.max_values + 1 for segment in config.sampling.segments)
    listed = math.prod(len(segment.values) for segment in config.sampling.segments)
    changes = config.estimates.changes
    objectives = len(config.estimates.objectives)
    budget = config.estimates.series_budget
    at_start, with_one = (series_needed(measures, segments, objectives=objectives) for segments in (1, 2))
    # As `Estimates.expect` does it: what is listed is born at the start, in half of the budget.
    at_start += min(listed, max(0, (budget // 2 - at_start) // (with_one - at_start))) * (with_one - at_start)
    at_most = series_needed(
        measures, most, objectives=objectives, versions=changes.max_versions + 1, marks=changes.max_values
    )
    line = (
        f"{at_start} series of sums at start, at most {at_most} with all segment values and releases; the budget is "
        f"{budget}"
    )
    if at_start > budget:
        report.bad(f"{line}: raise estimates.series_budget, or run fewer scorers")
    elif at_most > budget:
        report.good(f"{line}; segment values and releases beyond it are counted as 'other'")
    else:
        report.good(line)


def _detection(config: Config, report: _Report) -> None:
    """What is watched for change, and whether it outlives the process."""
    options = config.estimates.detection
    measures = _measures(config, shadow=False)
    found = detection_problems(options, measures, [one.name for one in config.sampling.segments])
    for problem in found:
        report.bad(problem)
    names = [one.metric for one in watched(options, measures)] if options.enabled else []
    if found or not names:
        return
    line = f"{', '.join(names)}: watched for getting worse after {options.baseline_days:g} days of baseline"
    if config.process.state_dir is None:
        line += "; without process.state_dir each restart begins it anew"
    report.good(line)


def _endpoints(config: Config, report: _Report) -> None:
    listeners = [("receivers.http", config.receivers.http.host, config.receivers.http.port)]
    if config.receivers.grpc.enabled:
        listeners.append(("receivers.grpc", config.receivers.grpc.host, config.receivers.grpc.port))
    for name, host, port in listeners:
        _listener(name, host, port, report)
    _state_dir(config.process.state_dir, report)
    for name, path in (("web.token_file", config.web.token_file), ("web.users_file", config.web.users_file)):
        _secret(name, path, report)
    if config.export.otlp is not None:
        _connect("export.otlp", config.export.otlp.endpoint, report)
    if config.receivers.kafka is not None:
        asyncio.run(_kafka(config.receivers.kafka, report))
    if config.export.kafka is not None:
        asyncio.run(_results_topic(config.export.kafka, report))
    if config.judge is not None:
        asyncio.run(_key("judge", config.judge.api_key, report))
        _connect("judge", config.judge.base_url, report)
        if config.judge.embeddings is not None and config.judge.embeddings.base_url:
            if config.judge.embeddings.api_key is not None:
                asyncio.run(_key("judge.embeddings", config.judge.embeddings.api_key, report))
            _connect("judge.embeddings", config.judge.embeddings.base_url, report)
        if config.judge.shadow is not None:
            asyncio.run(_key("judge.shadow", config.judge.shadow.api_key, report))
            _connect("judge.shadow", config.judge.shadow.base_url, report)


async def _key(name: str, options: KeyOptions, report: _Report) -> None:
    """Whether a key that is asked for is where it is said to be; not whether the endpoint takes it."""
    try:
        key = await key_provider(options, environ=os.environ, monotonic=time.monotonic).key()
    except (BadScorerOptions, JudgeAuth) as error:
        report.bad(f"{name}: {error}")
    else:
        if key is not None:
            report.good(f"{name}.api_key: there is a key")


async def _kafka(options: KafkaOptions, report: _Report) -> None:
    try:
        require_kafka()
        arguments = client_arguments(options, os.environ)
    except KafkaUnusable as error:
        report.bad(f"receivers.kafka: {error}")
        return
    from collector.receivers import kafka_trouble  # aiokafka is an extra

    problem = await kafka_trouble.tried(options, arguments)
    if problem is not None:
        report.bad(f"receivers.kafka: {problem}")
    else:
        report.good(f"receivers.kafka: {', '.join(topic.name for topic in options.topics)} can be read")


async def _results_topic(options: KafkaResultsOptions, report: _Report) -> None:
    try:
        await (await connect(options, os.environ)).close()
    except (Undeliverable, KafkaUnusable) as error:
        report.bad(f"export.kafka: {error}")
    else:
        report.good(f"export.kafka: topic {options.topic!r} is there, and an idempotent writer is let in")


def _listener(name: str, host: str, port: int, report: _Report) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            cure = (
                "is groundwatch running already?"
                if error.errno == errno.EADDRINUSE
                else f"set {name}.host and {name}.port to an address of this machine that this user may listen on"
            )
            report.bad(f"{name}: {host}:{port} can not be listened on ({error.strerror}): {cure}")
        else:
            report.good(f"{name}: {host}:{port} is free")


def _state_dir(path: Path | None, report: _Report) -> None:
    """Whether it can be made and written to: tried with a file without a name in the nearest folder that is there."""
    if path is None:
        return
    there = next((one for one in (path, *path.absolute().parents) if one.exists()), path)
    try:
        with tempfile.TemporaryFile(dir=there):
            report.good(f"process.state_dir: {there} can be written to")
    except OSError as error:
        report.bad(
            f"process.state_dir: {there} can not be written to ({error.strerror}): give a directory that this user may "
            "write"
        )


def _secret(name: str, path: Path | None, report: _Report) -> None:
    if path is None:
        return
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no text in UTF-8"
        report.bad(f"{name}: {path} can not be read ({why}): the pages stay closed to everybody until it can")
    else:
        if text.strip():
            report.good(f"{name}: {path} can be read")
        else:
            report.bad(f"{name}: {path} is empty: the pages stay closed to everybody until it is not")


def _connect(name: str, url: str, report: _Report) -> None:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout=_TIMEOUT_SECONDS).close()
    except OSError as error:
        report.bad(f"{name}: {parts.hostname}:{port} can not be reached ({error})")
    else:
        report.good(f"{name}: {parts.hostname}:{port} takes connections")


async def _judge(config: Config, report: _Report) -> None:
    if config.judge is None:
        report.bad("--judge: no judge is configured: add a `judge:` section")
        return
    await _ask("judge", config.judge, config.judge.scorers, report)
    if config.judge.shadow is not None:
        await _ask("judge.shadow", config.judge.shadow, config.judge.shadow.scorers, report)


async def _ask(name: str, options: JudgeOptions, names: Sequence[ScorerOptions], report: _Report) -> None:
    scorers, left_out = runnable(judged(names), embeddings=options.embeddings is not None)
    for one in left_out:
        report.good(f"{name}: {one} is not run: it needs an embeddings endpoint ({name}.embeddings)")
    async with Judge(options, scorers, environ=os.environ) as judge:
        found = await judge.check(_JUDGE_SECONDS)
        for problem in found.problems:
            report.bad(f"{name}: {problem}")
        if not found.ok:
            return
        report.good(f"{name}: {options.model!r} answers in the form asked for ({found.rung})")
        if found.similar is not None and found.unrelated is not None:
            report.good(
                f"{name}.embeddings: a paraphrase {found.similar:.2f}, an unrelated sentence {found.unrelated:.2f}"
            )
        _canary(name, await judge.canary(), report)


def _canary(name: str, found: CanaryReport, report: _Report) -> None:
    """How the planted cases came out, by kind and language. A judge that is right no more often than a coin fails."""
    if found.accuracy is None:
        if found.expectations:
            report.bad(f"{name}: no planted case was answered; see judge.deadline_seconds and judge.budget")
        return
    parts = ", ".join(
        f"{kind} {language} {'unanswered' if accuracy is None else f'{accuracy:.2f}'}"
        for (kind, language), accuracy in found.by_series().items()
    )
    line = f"{name}: {found.accuracy:.2f} of the answered planted cases came out as known ({parts})"
    if found.failed:
        line += f"; {len(found.failed)} of {len(found.expectations)} were not answered"
    if found.accuracy > _COIN:
        report.good(line)
    else:
        report.bad(f"{line}: this judge can not tell good from bad; take a larger model, or see `bench-judge`")


def _health(url: str) -> int:
    try:
        reply = httpx.get(f"{url.rstrip('/')}/readyz", timeout=_TIMEOUT_SECONDS, trust_env=through_proxies(url))
    except httpx.HTTPError as error:
        sys.stderr.write(f"{url}: no answer ({error})\n")
        return 1
    sys.stdout.write(reply.text)
    return 0 if reply.status_code == 200 else 1
