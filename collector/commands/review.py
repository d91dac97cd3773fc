"""`groundwatch review delete | ingest | stats`: the review store from the command line."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

from collector.commands.common import add_config_argument, read_config
from collector.config import Config
from collector.configfile import ConfigError
from collector.extract.redaction import pseudonym
from collector.judging.shadow import SUFFIX
from collector.pipeline.clock import Clock, SystemClock
from collector.records.result_json import BadResult, decode, to_settled
from collector.records.settled import Settled
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
        description="Read messages of the results topic, one JSON object a line, and pick cases from them as the "
        "sidecar does, by the times of the messages. They must carry content (export.content: true).",
    )
    ingest.add_argument("files", nargs="+", metavar="FILE", help="JSON Lines; - for standard input")
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
        if args.action != "ingest" and not path.is_file():
            raise ConfigError([f"{path}: there is no review store; check the path"])
        if args.action == "delete":
            return _delete(args, config, path)
        return _ingest(args, config, path) if args.action == "ingest" else _stats(config, path)
    except (ConfigError, ReviewError, ScorerError, OSError) as error:
        sys.stderr.write(f"groundwatch review {args.action}: {error}\n")
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
    clock = MessageClock()
    counts: Counter[str] = Counter()
    with _opened(path, config.review, SystemClock()) as store:
        judging = config.judge is not None if args.control is None else args.control == "judged"
        sink = _Sink(store)
        directions = directions_of(config)
        picker = picker_of(
            config,
            store=sink,
            judging=judging,
            clock=clock,
            telemetry=Telemetry(),
            directions=directions,
            beside=[f"{metric}{SUFFIX}" for metric in directions],
        )
        for place, line in _lines(args.files):
            try:
                settled = _settled(line, clock, sink)
            except BadResult as error:
                counts["bad"] += 1
                if counts["bad"] <= _MOST_TOLD:
                    sys.stderr.write(f"{place}: {error}\n")
                continue
            if settled is None:
                counts["without content"] += 1
                continue
            counts["read"] += 1
            picker.settle(settled)
        store.flush(_FLUSH_SECONDS)
        kept = store.stats().cases
    sys.stdout.write(
        f"{path}: {sink.taken} cases from {counts['read']} interactions; {kept} are kept now; left out: "
        f"{counts['without content']} without content, {counts['bad']} lines that could not be read\n"
    )
    if counts["without content"]:
        sys.stderr.write("Messages carry content where export.content is true in the sidecar that writes them.\n")
    return 1 if counts["bad"] else 0


def _settled(line: str, clock: MessageClock, sink: _Sink) -> Settled | None:
    """None where there is nothing to look at. Raises BadResult."""
    message = decode(line)
    clock.move(message.settled_unix_nano or message.ended_unix_nano)
    sink.judge_model = message.judge_model
    return to_settled(message) if message.content is not None and not message.replayed else None


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

    def put(self, case: Case) -> bool:
        if any(result.kind == "judged" for result in case.results):
            case = replace(case, judge_model=self.judge_model)
        while not self._store.put(case):
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


def _lines(files: list[str]) -> Iterator[tuple[str, str]]:
    """Each line that is not empty, with its place."""
    with ExitStack() as stack:
        for name in files:
            stream: IO[str] = sys.stdin if name == "-" else stack.enter_context(Path(name).open(encoding="utf-8"))
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield f"{name}:{number}", line
