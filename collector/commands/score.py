"""`groundwatch score FILE.jsonl`: score records from a file, locally or with a judge."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO

from collector.commands.common import (
    add_config_argument,
    at_least,
    bounded,
    end_cut_off_line,
    read_config,
    reason,
)
from collector.commands.progress import Progress
from collector.commands.results import as_json
from collector.config import Config
from collector.configfile import ConfigError
from collector.extract.conventions.record import read_record
from collector.extract.values import Json
from collector.pipeline.workers import BatchFailedError, WorkerPool, WorkerStartError
from collector.review.reference_rows import Finding, ReferenceThresholds, findings
from scorers.catalog import DEFAULT_JUDGED, judged, runnable
from scorers.errors import ScorerError
from scorers.interaction import Interaction
from scorers.judge.service import Judge
from scorers.local import DEFAULT, build
from scorers.outcome import Failed, FailedReason, Result, Score
from scorers.run import run_local
from scorers.scorer import Kind, Tier

_BATCH = {Tier.FAST: 32, Tier.FULL: 8}
_BATCH_DEADLINE_SECONDS = 900.0
_LONE = "backslashreplace"
"""Half a surrogate pair, which JSON can hold and UTF-8 can not, is written as the escape that JSON has for it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Score records {id, question, contexts, response, reference?}, one JSON object a line. Prints one JSON object "
        "a record on standard output: {id, results: [{scorer, kind, tier, outcome, score, raw, reason, evidence}], "
        "findings?}: what the judged scores of a record with a reference say went wrong, each row true or false. Lines "
        "come as they are ready, not always in the order of the file."
    )
    parser.add_argument("file", metavar="FILE", help="JSON Lines; - for standard input")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="OUT",
        help="append to this file, leaving out ids it has; those of which a result failed are scored again, unless "
        "the record is incomplete",
    )
    parser.add_argument(
        "--resume", type=Path, metavar="EARLIER", help="leave out the ids of an earlier output, likewise"
    )
    parser.add_argument(
        "--scorers", metavar="A,B", help="which scorers (default: all local, or the judge's defaults)"
    )
    parser.add_argument("--local", action="store_true", help="score locally (the default; with --judge beside it)")
    parser.add_argument("--judge", action="store_true", help="score with the judge of the configuration")
    parser.add_argument("--tier", choices=[str(t) for t in Tier], default="fast", help="tier of the local scorers")
    parser.add_argument(
        "--workers",
        type=at_least(0),
        default=0,
        metavar="N",
        help="processes for local scoring (default: 0, in this one)",
    )
    parser.add_argument(
        "--concurrency", type=at_least(1), default=16, metavar="N", help="records judged at a time"
    )
    parser.add_argument("--no-progress", action="store_true", help="no progress on standard error")
    add_config_argument(parser)


@dataclass(frozen=True, slots=True)
class LocalJob:
    """Makes a worker's handler for local scoring; picklable."""

    names: tuple[str, ...]
    tier: Tier
    table: Path | None

    def __call__(self) -> Callable[[list[Interaction]], list[list[Result]]]:
        scorers = build(self.names, self.tier, table=self.table)
        return lambda batch: run_local(scorers, batch)


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 every record got its results, 1 some record could not be read or scored, 2 nothing was tried."""
    try:
        config = read_config(args)
        names = tuple(name.strip() for name in args.scorers.split(",") if name.strip()) if args.scorers else ()
        if args.judge and config.judge is None:
            raise ConfigError(
                [
                    "--judge: no judge is configured: add a `judge:` section, or set GROUNDWATCH_JUDGE_BASE_URL and "
                    "GROUNDWATCH_JUDGE_MODEL"
                ]
            )
        _check_files(args)
        with ExitStack() as stack:
            source: Iterable[bytes] = sys.stdin.buffer
            total = None
            if args.file != "-":
                total = _count(Path(args.file))
                source = stack.enter_context(Path(args.file).open("rb"))
            done = _done(args.resume) | _done(args.output)
            output: IO[str] = sys.stdout
            if args.output is not None:
                end_cut_off_line(args.output)
                output = stack.enter_context(args.output.open("a", encoding="utf-8", errors=_LONE))
            elif isinstance(sys.stdout, TextIOWrapper):
                sys.stdout.reconfigure(encoding="utf-8", errors=_LONE)
            progress = Progress(sys.stderr, total=total, shown=not args.no_progress)
            job = _Job(config=config, output=output, done=done, progress=progress)
            asyncio.run(_score(job, args, names, source))
    except (ConfigError, ScorerError, WorkerStartError, OSError) as error:
        sys.stderr.write(f"groundwatch score: {reason(error)}\n")
        return 2
    if not job.seen:
        sys.stderr.write(f"groundwatch score: {args.file}: holds no record; one JSON object a line is needed\n")
        return 2
    return 1 if job.bad else 0


async def _score(job: _Job, args: argparse.Namespace, names: tuple[str, ...], source: Iterable[bytes]) -> None:
    records = job.records(source)
    if args.judge:
        await _judged(job, records, names or None, concurrency=args.concurrency, local=args.local)
    else:
        tier = Tier(args.tier)
        work = LocalJob(names or DEFAULT, tier, job.config.screening.calibration)
        await _local(job, records, work, workers=args.workers)
    job.progress.close()
    sys.stderr.write(job.summary())


class _Job:
    """What one call of the command keeps: where results go, what is done already, what went wrong."""

    def __init__(self, *, config: Config, output: IO[str], done: set[str], progress: Progress) -> None:
        self.config = config
        self.progress = progress
        self.seen = 0
        self.bad = 0
        self._output = output
        self._done = done
        self._limits = ReferenceThresholds(faithfulness=config.estimates.diagnosis.judged.faithfulness)
        self._told: Counter[Finding] = Counter()
        self._true: Counter[Finding] = Counter()

    def records(self, lines: Iterable[bytes]) -> Iterator[Interaction]:
        """The records that are still to be scored; an unreadable one gets a line of its own and is passed over."""
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            self.seen += 1
            try:
                interaction = _interaction(_object(line), self.config)
            except (ValueError, RecursionError) as error:
                self.bad += 1
                self._write({"id": None, "line": number, "error": f"line {number}: {error}"})
                self.progress.step(failed=True)
                continue
            if interaction.id in self._done:
                self.progress.step(skipped=True)
                continue
            yield interaction

    def write(self, interaction_id: str, results: Sequence[Result]) -> None:
        failed = any(isinstance(result.outcome, Failed) for result in results)
        self.bad += failed
        line: dict[str, object] = {"id": interaction_id, "results": [as_json(result) for result in results]}
        if rows := self._findings(results):
            line["findings"] = rows
        self._write(line)
        self.progress.step(failed=failed)

    def _findings(self, results: Sequence[Result]) -> dict[Finding, bool]:
        judged = [one for one in results if one.kind is Kind.JUDGED]
        rows = findings(
            {one.scorer: one.outcome.value for one in judged if isinstance(one.outcome, Score)}, self._limits
        )
        self._told.update(list(rows))
        self._true.update(row for row, holds in rows.items() if holds)
        return rows

    def summary(self) -> str:
        """What the records with a reference say went wrong, in how many; "" where none could tell."""
        rows = [f"{row} {self._true[row]} of {told}" for row, told in self._told.items()]
        return f"with a reference: {', '.join(rows)}\n" if rows else ""

    def lost(self, batch: Sequence[Interaction], error: BatchFailedError) -> None:
        for interaction in batch:
            self.bad += 1
            self._write({"id": interaction.id, "results": [], "error": f"not scored: {error}"})
            self.progress.step(failed=True)

    def _write(self, line: dict[str, object]) -> None:
        self._output.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
        self._output.flush()


async def _local(job: _Job, records: Iterator[Interaction], work: LocalJob, *, workers: int) -> None:
    pool: WorkerPool[Interaction, list[Result]] = WorkerPool(
        work, workers=workers, deadline_seconds=_BATCH_DEADLINE_SECONDS, niceness=0
    )
    await pool.start()
    try:

        async def one(batch: list[Interaction]) -> None:
            try:
                for interaction, results in zip(batch, await pool.run(batch), strict=True):
                    job.write(interaction.id, results)
            except BatchFailedError as error:
                job.lost(batch, error)

        size = _BATCH[work.tier]
        batches = iter(lambda: list(islice(records, size)), [])
        await bounded(batches, one, limit=max(1, workers) * 2 if workers else 1)
    finally:
        await pool.stop(0)


async def _judged(
    job: _Job, records: Iterator[Interaction], names: Sequence[str] | None, *, concurrency: int, local: bool
) -> None:
    options = job.config.judge
    assert options is not None
    chosen = judged(names if names is not None else options.scorers or DEFAULT_JUDGED)
    scorers, left_out = runnable(chosen, embeddings=options.embeddings is not None)
    for name in left_out:
        sys.stderr.write(f"{name} is not judged: it needs an embeddings endpoint (judge.embeddings)\n")
    fast = build(DEFAULT, Tier.FAST, table=job.config.screening.calibration) if local else []
    async with Judge(options, scorers, environ=os.environ) as judge:

        async def one(interaction: Interaction) -> None:
            results = run_local(fast, [interaction])[0] if fast else []
            job.write(interaction.id, [*results, *await judge.score(interaction)])

        await bounded(records, one, limit=concurrency)


def _count(path: Path) -> int:
    """Lines that hold a record, for the progress line."""
    with path.open("rb") as lines:
        return sum(1 for line in lines if line.strip())


def _object(line: bytes) -> Json:
    """One line's JSON. Raises ValueError that says what is wrong with it."""
    try:
        value: Json = json.loads(line)
    except UnicodeDecodeError:
        raise ValueError("is no text in UTF-8; one JSON object a line is needed") from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"is no JSON ({error.msg} at column {error.colno}); one JSON object a line is needed"
        ) from None
    return value


def _interaction(value: Json, config: Config) -> Interaction:
    """One record's interaction. Raises ValueError that says what is wrong with it."""
    interaction = read_record(value, config.extract).interaction
    if interaction.question is None and interaction.response is None:
        fields = ", ".join(sorted(value))[:200] if isinstance(value, dict) and value else "none"
        raise ValueError(
            f"has neither a question nor a response; its fields are {fields}: name them question, contexts and "
            "response, or map them with extract.record in the configuration"
        )
    return interaction


def _check_files(args: argparse.Namespace) -> None:
    if args.resume is not None and not args.resume.exists():
        raise ConfigError([f"--resume {args.resume}: there is no such file; leave it out at the first run"])
    for option in ("output", "resume"):
        path: Path | None = getattr(args, option)
        if path is not None and args.file != "-" and path.exists() and path.samefile(args.file):
            raise ConfigError([f"--{option} {path}: is the file of records itself; name another"])


def _done(path: Path | None) -> set[str]:
    """The ids that an earlier output holds results of, which a later run can not better; a cut-off line is no
    result."""
    if path is None or not path.exists():
        return set()
    done: set[str] = set()
    with path.open("rb") as lines:
        for line in lines:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict) and value.get("results") and not any(map(_may_pass, value["results"])):
                done.add(str(value.get("id")))
    return done


def _may_pass(result: object) -> bool:
    """Whether it failed for a reason that may be gone by now: a judge that was down, a deadline, a budget."""
    return (
        isinstance(result, dict)
        and result.get("outcome") == "failed"
        and result.get("reason") != FailedReason.INCOMPLETE
    )
