"""`groundwatch review delete | ingest | stats`: the review store from the command line."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

from collector.commands.cases import require_store
from collector.commands.common import add_config_argument, read_config, reason
from collector.config import Config
from collector.configfile import ConfigError
from collector.extract.redaction import pseudonym
from collector.judging.shadow import SUFFIX
from collector.pipeline.clock import Clock, SystemClock
from collector.pipeline.kafka_client import KafkaUnusable
from collector.receivers.kafka_follow import follow_topic
from collector.records.result_json import BadResult, decode, to_settled
from collector.review.case import Case
from collector.review.options import Options
from collector.review.query import Erased, Subject, SubjectKind
from collector.review.sqlite import SqliteStore
from collector.review.store import ReviewError
from collector.reviewing import directions_of, picker_of, store_path
from collector.telemetry.instruments import Telemetry
from scorers.errors import ScorerError

_MOST_TOLD = 20
"""Bad lines that are told one by one."""
_FLUSH_SECONDS = 600.0
_BATCH = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Erase a data subject's cases, take in the results of other processes, or count the cases."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    delete = actions.add_parser(
        "delete",
        help="erase cases by trace, user, session or case id",
        description="Erase every case of a trace, a user or a session, with its labels and its words in the index, "
        "overwritten on disk, and verify it. Give ids as the application has them: where redaction hashes them, their "
        "hashes are erased, too.",
    )
    subject = delete.add_mutually_exclusive_group(required=True)
    for kind in SubjectKind:
        subject.add_argument(f"--{kind}", metavar="ID", help=f"id of the {kind}")
    ingest = actions.add_parser(
        "ingest",
        help="pick cases from the results of other processes",
        description="Read messages of the results topic, from it or from files, and pick cases from them as the "
        "sidecar does, by the times of the messages. They must carry content (export.content: true).",
    )
    ingest.add_argument("files", nargs="*", metavar="FILE", help="JSON Lines; - for standard input")
    ingest.add_argument(
        "--topic", metavar="T", help="the results topic, at the brokers of export.kafka or receivers.kafka"
    )
    ingest.add_argument(
        "--group",
        default="groundwatch-review",
        metavar="G",
        help="consumer group that remembers how far the topic was read (default: %(default)s)",
    )
    ingest.add_argument(
        "--follow", action="store_true", help="with --topic: go on with what is written, until SIGTERM"
    )
    ingest.add_argument(
        "--control",
        choices=("judged", "all"),
        help="what the uniform part is drawn from (default: judged where the configuration has a judge, else all)",
    )
    stats = actions.add_parser("stats", help="count the cases", description="Count cases, labels and bytes.")
    for action in (delete, ingest, stats):
        action.add_argument(
            "--store", type=Path, metavar="FILE", help="the review store (default: the configuration's)"
        )
        add_config_argument(action)


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 done, 1 some line could not be read, 2 wrong usage, or the store can not be used."""
    try:
        config = read_config(args)
        path: Path | None = args.store or store_path(config)
        if path is None:
            raise ConfigError(
                ["no review store is named: give --store FILE, or set review.path or process.state_dir"]
            )
        if args.action != "ingest":
            require_store(path)
        if args.action == "delete":
            return _delete(args, config, path)
        return _ingest(args, config, path) if args.action == "ingest" else _stats(config, path)
    except (ConfigError, KafkaUnusable, ReviewError, ScorerError, OSError) as error:
        sys.stderr.write(f"groundwatch review {args.action}: {reason(error)}\n")
        return 2


def _delete(args: argparse.Namespace, config: Config, path: Path) -> int:
    kind = next(kind for kind in SubjectKind if getattr(args, kind) is not None)
    given: str = getattr(args, kind)
    also = (pseudonym(config.seed, given),)
    with _opened(path, config.review, SystemClock()) as store:
        erased: Erased = store.erase(Subject(kind, given, also))
    sys.stdout.write(
        f"{path}: {len(erased.case_ids)} cases and {erased.labels} labels of the {kind} are erased; nothing of them is "
        "left in the tables, the index or the file\n"
        "Not reached from here: what was sent before (results topic, evaluation events), and backups of the file.\n"
    )
    return 0


def _stats(config: Config, path: Path) -> int:
    with _opened(path, config.review, SystemClock()) as store:
        now = store.stats()
    sys.stdout.write(
        f"{path}: {now.cases} cases, {now.labelled} labelled, {now.golden} golden, {now.bytes} bytes\n"
    )
    return 0


def _ingest(args: argparse.Namespace, config: Config, path: Path) -> int:
    if bool(args.files) == bool(args.topic):
        raise ConfigError(["give files, or --topic, not both"])
    with _opened(path, config.review, SystemClock()) as store:
        intake = _Intake(config, store, control=args.control)
        if args.topic:
            asyncio.run(_from_topic(args, config, intake))
        else:
            intake.take(_lines(args.files))
        kept = store.stats().cases
    counts = intake.counts
    sys.stdout.write(
        f"{path}: {intake.taken} cases from {counts['read']} interactions; {kept} are kept now; left out: "
        f"{counts['without content']} without content, {counts['replayed']} replayed, "
        f"{counts['bad']} lines that could not be read\n"
    )
    if counts["without content"]:
        sys.stderr.write("Messages carry content where export.content is true in the sidecar that writes them.\n")
    return 1 if counts["bad"] else 0


async def _from_topic(args: argparse.Namespace, config: Config, intake: _Intake) -> None:
    """To the end of the topic, or until it is asked to stop; the group goes on after what is in the store."""
    brokers = config.export.kafka or config.receivers.kafka
    if brokers is None:
        raise ConfigError(["--topic: no brokers are configured: add export.kafka (brokers, topic)"])
    if args.follow:
        loop, own = asyncio.get_running_loop(), asyncio.current_task()
        assert own is not None
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, own.cancel)
    batches = follow_topic(
        brokers, args.topic, group=args.group, environ=os.environ, forever=args.follow, batch=_BATCH
    )
    try:
        async for batch in batches:
            # In a thread, so that the group hears of this process while the store is written.
            await asyncio.to_thread(intake.take, batch)
    except asyncio.CancelledError:
        if not args.follow:
            raise


class _Intake:
    """Picks cases from messages, and tells what was left out."""

    def __init__(self, config: Config, store: SqliteStore, *, control: str | None) -> None:
        self.counts: Counter[str] = Counter()
        self._store = store
        self._clock = MessageClock()
        self._sink = _Sink(store)
        directions = directions_of(config)
        self._picker = picker_of(
            config,
            store=self._sink,
            judging=config.judge is not None if control is None else control == "judged",
            clock=self._clock,
            telemetry=Telemetry(),
            directions=directions,
            beside=[f"{metric}{SUFFIX}" for metric in directions],
        )

    @property
    def taken(self) -> int:
        return self._sink.taken

    def take(self, messages: Iterable[tuple[str, str | bytes]]) -> None:
        """Take (place, message), and wait until what was picked is in the store."""
        for place, line in messages:
            try:
                self._take(line)
            except BadResult as error:
                self.counts["bad"] += 1
                if self.counts["bad"] <= _MOST_TOLD:
                    sys.stderr.write(f"{place}: {error}\n")
        self._store.flush(_FLUSH_SECONDS)

    def _take(self, line: str | bytes) -> None:
        message = decode(line)
        self._clock.move(message.settled_unix_nano or message.ended_unix_nano)
        if message.content is None:
            self.counts["without content"] += 1
        elif message.replayed:
            self.counts["replayed"] += 1
        else:
            settled = to_settled(message)
            self.counts["read"] += 1
            self._sink.judge_model = message.judge_model
            self._picker.settle(settled)


class MessageClock:
    """The time of the message that is read, so that a day's quota is a day of the traffic, not of the reading."""

    def __init__(self) -> None:
        self._now = 0

    def move(self, unix_nano: int) -> None:
        self._now = max(self._now, unix_nano)

    def monotonic(self) -> float:
        return self._now / 1e9

    def unix_nano(self) -> int:
        return self._now


class _Sink:
    """Waits for room in the store instead of dropping: a file has time."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.taken = 0
        self.judge_model: str | None = None

    def put(self, case: Case, ended: Callable[[], None] | None = None) -> bool:
        if any(result.kind == "judged" for result in case.results):
            case = replace(case, judge_model=self.judge_model)
        while not self._store.put(case, ended):
            self._store.flush(_FLUSH_SECONDS)
        self.taken += 1
        return True


@contextmanager
def _opened(path: Path, options: Options, clock: Clock) -> Iterator[SqliteStore]:
    store = SqliteStore(path, options, clock=clock, telemetry=Telemetry())
    store.open()
    try:
        yield store
    finally:
        store.close()


def _lines(files: list[str]) -> Iterator[tuple[str, bytes]]:
    """Each line that is not empty, with its place."""
    with ExitStack() as stack:
        for name in files:
            stream: IO[bytes] = sys.stdin.buffer if name == "-" else stack.enter_context(Path(name).open("rb"))
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield f"{name}:{number}", line
