"""`groundwatch replay`: recorded telemetry, from files or a range of a topic, through the line again."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from collector import __version__
from collector.commands.common import add_config_argument, end_cut_off_line, number, read_config, reason
from collector.commands.progress import Progress
from collector.config import Config
from collector.configfile import ConfigError
from collector.otlp.request import RequestReader, UnreadableRequest
from collector.pipeline.kafka_client import KafkaClientOptions, KafkaUnusable
from collector.receivers.files import UnreadableFile, read_requests
from collector.receivers.kafka_range import EVERYTHING, Place, place, read_range
from collector.records.result_json import BadResult, decode, encode, from_settled
from collector.records.settled import Settled
from collector.records.trace import Release, ReleasedTrace

if TYPE_CHECKING:
    from collector.replay import Item, Report

_SOURCES = "give files, or --topic, not both"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Feed recorded OTLP requests, or a range of a topic, through extraction, screening, sampling and judging "
        "again, in a process of its own with the sidecar's configuration. What comes out is exported as evaluation "
        "events, to the results topic and to the review store, marked as replayed; the sums on /metrics do not "
        "change. Ids are those of the first time, so running it twice adds nothing new. The judge's budget counts "
        "for the replay by itself, beside the sidecar's; lower it for one run with "
        "GROUNDWATCH_SAMPLING_BUDGET__CALLS_PER_DAY."
    )
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="OTLP export requests in any form that `groundwatch inspect` reads",
    )
    parser.add_argument("--topic", metavar="T", help="a topic, at the brokers of receivers.kafka or export.kafka")
    parser.add_argument(
        "--partition", type=int, action="append", default=[], metavar="P", help="only this one; may be repeated"
    )
    parser.add_argument(
        "--from", dest="start", type=_place, default=EVERYTHING, metavar="WHERE", help="first offset, or a time"
    )
    parser.add_argument(
        "--to",
        dest="end",
        type=_place,
        default=EVERYTHING,
        metavar="WHERE",
        help="offset, or time, from which on nothing is read (default: what is there now)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="OUT",
        help="append messages of results to this file, one a line, and leave out the interactions that it holds "
        "without a failure: so an interrupted replay is taken up again",
    )
    parser.add_argument(
        "--into-sums",
        metavar="URL",
        help="send the recorded requests to the groundwatch that runs there (http://127.0.0.1:4318) instead: they "
        "count in its sums as if they came now, and are marked as replayed. Never twice where its state directory "
        "remembers them",
    )
    parser.add_argument(
        "--token-env", metavar="NAME", help="environment variable with the token that --into-sums presents"
    )
    parser.add_argument(
        "--rate", type=_rate, metavar="N", help="at most N interactions a second; with --into-sums: requests"
    )
    parser.add_argument("--no-judge", action="store_true", help="screen only, and ask no judge")
    parser.add_argument("--no-progress", action="store_true", help="no progress on standard error")
    add_config_argument(parser)


def _place(text: str) -> Place:
    try:
        return place(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _rate(text: str) -> float:
    rate = number(text)
    if not 0 < rate < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no rate; give traces a second, such as 10 or 0.5")
    return rate


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 all was replayed and written, 1 something was not, 2 nothing was tried."""
    # The stages' packages are imported only for this command.
    from collector.parts import StartError, configure_logging
    from collector.pipeline.workers import WorkerStartError
    from collector.replay import Replay, Unreplayable

    problems: list[str] = []
    try:
        config = read_config(args)
        _check(args, config)
        if args.into_sums:
            return _resend(args, config)
        with ExitStack() as stack:
            more: list[Callable[[Settled], None]] = []
            if args.output is not None:
                content = config.export.content
                done = _done(args.output, content=content)
                end_cut_off_line(args.output)
                more.append(_Lines(stack.enter_context(args.output.open("ab+")), config).settle)
            else:
                done = frozenset()
            progress = Progress(sys.stderr, total=None, shown=not args.no_progress)
            replay = Replay(
                config,
                os.environ,
                logger=configure_logging(config),
                judge=not args.no_judge,
                per_second=args.rate,
                done=done,
                more=more,
                step=lambda failed, skipped: progress.step(failed=failed, skipped=skipped),
            )
            if not replay.outputs:
                raise ConfigError(
                    [
                        "nothing would be kept: configure export.otlp, export.kafka or a review store, or give "
                        "--output"
                    ]
                )
            try:
                asyncio.run(_until_asked(replay.run(_items(args, config, problems))))
            except asyncio.CancelledError:
                problems.append("stopped by SIGTERM; the same command with the same --output goes on")
            except (UnreadableFile, Unreplayable, KafkaUnusable) as error:
                problems.append(str(error))
            finally:
                progress.close()
                _tell(replay.report, problems)
    except (ConfigError, StartError, WorkerStartError, OSError) as error:
        sys.stderr.write(f"groundwatch replay: {reason(error)}\n")
        return 2
    return 1 if problems or any(replay.report.lost.values()) else 0


async def _until_asked(work: Coroutine[Any, Any, object]) -> None:
    """Do it, or cancel it at SIGTERM as at SIGINT."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await work


def _resend(args: argparse.Namespace, config: Config) -> int:
    """Exit code of `--into-sums`."""
    from collector.commands.resend import NotTaken, Sent, resend

    headers = {}
    if args.token_env:
        token = os.environ.get(args.token_env)
        if not token:
            raise ConfigError([f"--token-env: the environment variable {args.token_env!r} is not set"])
        headers["authorization"] = f"Bearer {token}"
    problems: list[str] = []
    sent = Sent()
    progress = Progress(sys.stderr, total=None, shown=not args.no_progress)
    items = _items(args, config, problems)
    try:
        asyncio.run(
            resend(
                items,
                args.into_sums,
                headers=headers,
                sent=sent,
                requests_per_second=args.rate,
                step=progress.step,
            )
        )
    except (NotTaken, UnreadableFile, KafkaUnusable) as error:
        problems.append(str(error))
    finally:
        progress.close()
    if sent.records:
        problems.append(f"{sent.records} plain record(s) were passed over: OTLP can not carry them")
    if sent.rejected:
        problems.append(f"{sent.rejected} span(s) or log record(s) could not be used")
    lines = [f"sent {sent.requests} request(s) with {sent.items} span(s) and log record(s) to {args.into_sums}"]
    sys.stderr.write("".join(f"{line}\n" for line in (*lines, *problems)))
    return 1 if problems else 0


def _check(args: argparse.Namespace, config: Config) -> None:
    """Raises ConfigError for what can not be meant."""
    if bool(args.files) == bool(args.topic):
        raise ConfigError([_SOURCES])
    if not args.topic and (args.partition or args.start != EVERYTHING or args.end != EVERYTHING):
        raise ConfigError(["--partition, --from and --to go with --topic"])
    if args.into_sums and (args.output or args.no_judge):
        raise ConfigError(["--output and --no-judge do not go with --into-sums: the other groundwatch decides"])
    if args.token_env and not args.into_sums:
        raise ConfigError(["--token-env goes with --into-sums"])
    results = config.export.kafka
    if results is not None and args.topic == results.topic:
        raise ConfigError([f"--topic {args.topic}: it holds results (export.kafka.topic), not telemetry"])
    if args.topic and config.receivers.kafka is None and results is None:
        raise ConfigError(["--topic: no brokers are configured: add receivers.kafka (brokers, topics)"])
    missing = next((path for path in args.files if not path.is_file()), None)
    if missing is not None:
        why = "is a directory; name its files" if missing.is_dir() else "there is no such file"
        raise ConfigError([f"{missing}: {why}"])


async def _items(args: argparse.Namespace, config: Config, problems: list[str]) -> AsyncIterator[Item]:
    if args.topic:
        async for item in _of_topic(args, config, problems):
            yield item
        return
    for path in args.files:
        for batch in read_requests(path, max_item_bytes=config.receivers.max_item_bytes):
            yield batch


async def _of_topic(args: argparse.Namespace, config: Config, problems: list[str]) -> AsyncIterator[Item]:
    from collector.receivers.kafka_message import Content, kind_of
    from collector.receivers.kafka_options import TopicOptions

    kafka = config.receivers.kafka
    known = {topic.name: topic for topic in kafka.topics} if kafka is not None else {}
    topic = known.get(args.topic) or TopicOptions(name=args.topic)
    brokers: KafkaClientOptions | None = kafka or config.export.kafka
    assert brokers is not None  # _check saw to it
    reader = RequestReader(max_item_bytes=config.receivers.max_item_bytes)
    bad = 0
    messages = read_range(
        brokers, args.topic, environ=os.environ, partitions=args.partition, start=args.start, end=args.end
    )
    async for message in messages:
        kind = kind_of(message.value, message.headers, topic)
        value = message.value or b""
        where = f"{message.topic}/{message.partition}/{message.offset}"
        if kind.content is Content.RECORD:
            yield ReleasedTrace(where, (), (), Release.QUIET, True, time.time_ns(), record=value)
        elif kind.content is Content.REQUEST:
            try:
                yield reader.read(value, kind.signal, kind.encoding)
            except UnreadableRequest:
                bad += 1
        elif kind.content is Content.UNREADABLE:
            bad += 1
    if bad:
        problems.append(f"{bad} message(s) of topic {args.topic} could not be read and were passed over")


class _Lines:
    """A sink that writes messages of results, one a line."""

    def __init__(self, file: IO[bytes], config: Config) -> None:
        self._file = file
        self._content = config.export.content
        self._judge_model = config.judge.model if config.judge is not None else None

    def settle(self, settled: Settled) -> None:
        message = from_settled(
            settled,
            content=self._content,
            settled_unix_nano=time.time_ns(),
            groundwatch_version=__version__,
            judge_model=self._judge_model if settled.judged else None,
        )
        self._file.write(encode(message) + b"\n")
        self._file.flush()


def _done(path: Path, *, content: bool) -> frozenset[str]:
    """The interactions that an earlier output holds, none of whose results failed; a cut-off last line is none."""
    if not path.exists():
        return frozenset()
    done: set[str] = set()
    with path.open("rb") as lines:
        for line in lines:
            try:
                message = decode(line)
            except BadResult:
                continue
            whole = message.content is not None or not content
            if whole and not any(one.outcome == "failed" for one in message.results):
                done.add(message.interaction_id)
    return frozenset(done)


def _tell(report: Report, problems: list[str]) -> None:
    """What became of it, in a few lines for a person."""
    fates = ", ".join(f"{count} {fate}" for fate, count in sorted(report.fates.items()))
    lines = [
        f"replayed {report.requests} request(s): {report.traces} trace(s), {report.interactions} interaction(s)"
        + (f" ({fates})" if fates else ""),
    ]
    if report.skipped:
        lines.append(f"{report.skipped} interaction(s) were passed over: the output holds them already")
    if report.failed:
        lines.append(f"{report.failed} interaction(s) with something that could not be measured")
    if report.rejected:
        lines.append(
            f"{report.rejected} span(s), log record(s) or plain record(s) could not be read and were left out"
        )
    lines += [f"written: {count} {what}" for what, count in report.written.items()]
    lines += [f"NOT written: {count} {what}" for what, count in report.lost.items() if count]
    sys.stderr.write("".join(f"{line}\n" for line in (*lines, *problems)))
