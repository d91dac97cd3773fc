"""`groundwatch bench-judge FILE...`: how good, how dear, how fast and how noisy is this judge on labelled rows?"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
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
from collector.configfile import ConfigError
from scorers.catalog import judged, runnable
from scorers.errors import ScorerError
from scorers.judge.options import JudgeOptions
from scorers.judge.quality import report, report_json, report_text
from scorers.judge.service import Judge
from scorers.judge.trials import Trial, check_ids, chosen, read_trials, to_json, trial, with_question
from scorers.local.labelled import Labelled, LabelledSet, read_set
from scorers.scorer import Direction, JudgedScorer

DEFAULTS = {
    "groundedness": ("faithfulness", "groundedness"),
    "context_relevance": ("context_relevance", "passage_relevance"),
    "response_relevancy": ("response_relevancy", "answer_grade"),
}
"""What is asked about the rows of a task where `--scorers` does not say."""
PLANS = {"standard": ("standard",), "fused": ("fused",), "both": ("standard", "fused")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Ask the configured judge about labelled rows {id, task, question, contexts, response, label, group?}, one "
        "JSON object a line, one task a file (groundedness, context_relevance, response_relevancy; label 1 good, 0 "
        "bad, or between), and report balanced accuracy, AUROC and Cohen's kappa with 95 % intervals, cost, tokens, "
        "latency, noise, and what was not scored and why. Calls count against judge.budget; verdicts are not cached."
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="labelled JSON Lines, one set a file")
    parser.add_argument(
        "--plan", choices=sorted(PLANS), help="call plan (default: the configuration's); both compares them"
    )
    parser.add_argument("--scorers", metavar="A,B", help="which scorers (default: those that fit each set's task)")
    parser.add_argument(
        "--limit", type=at_least(1), metavar="N", help="rows of each set, good and bad in turn (default: all)"
    )
    parser.add_argument(
        "--repeat",
        type=at_least(1),
        default=1,
        metavar="K",
        help="judge each row K times; from 2 on noise is reported",
    )
    parser.add_argument(
        "--threshold", type=float, default=0.5, metavar="T", help="scores of T and above say good (default 0.5)"
    )
    parser.add_argument("--question", metavar="TEXT", help="stands in for the question where a row has none")
    parser.add_argument("--concurrency", type=at_least(1), default=8, metavar="N", help="rows judged at a time")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="append each result to this file; continue what it holds"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--no-progress", action="store_true", help="no progress on standard error")
    add_config_argument(parser)


@dataclass(frozen=True, slots=True)
class _Task:
    """One judging that is to be made."""

    set: str
    plan: str
    attempt: int
    row: Labelled


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 reported, 1 reported but some rows failed, 2 nothing was tried."""
    try:
        config = read_config(args)
        if config.judge is None:
            raise ConfigError(
                [
                    "no judge is configured: add a `judge:` section, or set GROUNDWATCH_JUDGE_BASE_URL and "
                    "GROUNDWATCH_JUDGE_MODEL"
                ]
            )
        sets = _sets(args)
        names = [name.strip() for name in args.scorers.split(",") if name.strip()] if args.scorers else None
        bench = _Bench(
            config.judge.model_copy(update={"cache_entries": 0}),
            {one.name: _scorers(one, names, embeddings=config.judge.embeddings is not None) for one in sets},
            PLANS[args.plan] if args.plan else (config.judge.plan,),
        )
        with ExitStack() as stack:
            trials = read_trials(args.output, bench.fingerprints) if args.output is not None else []
            if args.output:
                end_cut_off_line(args.output)
            output = stack.enter_context(args.output.open("a", encoding="utf-8")) if args.output else None
            asyncio.run(bench.run(args, sets, trials, output))
    except (ConfigError, ScorerError, OSError) as error:
        sys.stderr.write(f"groundwatch bench-judge: {reason(error)}\n")
        return 2
    made = report(
        sets,
        trials,
        model=config.judge.model,
        threshold=args.threshold,
        lower_is_better=bench.lower_is_better,
    )
    if args.json:
        sys.stdout.write(json.dumps(report_json(made), indent=1) + "\n")
    else:
        sys.stdout.write(report_text(made) + "\n")
    return 1 if any(measured.outcome == "failed" for one in trials for measured in one.results) else 0


def _sets(args: argparse.Namespace) -> list[LabelledSet]:
    sets: dict[str, LabelledSet] = {}
    for path in args.files:
        one = read_set(path)
        check_ids(one)
        if one.name in sets:
            raise ConfigError([f"{path}: another file is called {one.name!r} too; rename one of them"])
        rows = [with_question(row, args.question) for row in chosen(one.rows, args.limit)]
        sets[one.name] = replace(one, rows=rows)
    return list(sets.values())


def _scorers(one: LabelledSet, names: Sequence[str] | None, *, embeddings: bool) -> list[JudgedScorer]:
    scorers, left_out = runnable(judged(names or DEFAULTS[one.task]), embeddings=embeddings)
    for name in left_out:
        sys.stderr.write(f"{one.name}: {name} is not judged: it needs an embeddings endpoint (judge.embeddings)\n")
    if not scorers:
        raise ConfigError([f"{one.name}: no scorer is left to run"])
    return scorers


class _Bench:
    """The judges, one a set and plan over the same endpoints, budget and limits, and what is asked of them."""

    def __init__(
        self, options: JudgeOptions, scorers: Mapping[str, Sequence[JudgedScorer]], plans: Sequence[str]
    ) -> None:
        self._plans = plans
        self._base = Judge(options, (), environ=os.environ)
        endpoints = (self._base.chat, self._base.embeddings)
        self._judges = {
            (name, plan): Judge(options.model_copy(update={"plan": plan}), own, endpoints=endpoints)
            for name, own in scorers.items()
            for plan in plans
        }

    @property
    def fingerprints(self) -> list[str]:
        return [metric.fingerprint for judge in self._judges.values() for metric in judge.metrics]

    @property
    def lower_is_better(self) -> set[str]:
        infos = [scorer.info for judge in self._judges.values() for scorer in judge.scorers]
        return {name for info in infos if info.direction is Direction.LOWER_IS_BETTER for name in info.gives}

    async def run(
        self, args: argparse.Namespace, sets: Sequence[LabelledSet], trials: list[Trial], output: IO[str] | None
    ) -> None:
        """Make every trial that `trials` does not hold, and add it there and to `output`."""
        done = {one.key for one in trials}
        wanted = [
            _Task(one.name, plan, attempt, row)
            for attempt in range(args.repeat)
            for one in sets
            for row in one.rows
            for plan in self._plans
        ]
        keys = {(task.set, task.row.interaction.id, task.plan, task.attempt) for task in wanted}
        trials[:] = [one for one in trials if one.key in keys]
        progress = Progress(sys.stderr, total=len(wanted), shown=not args.no_progress)

        async def one_trial(task: _Task) -> None:
            interaction = task.row.interaction
            started = time.monotonic()
            results = await self._judges[task.set, task.plan].score(interaction, attempt=task.attempt)
            seconds = time.monotonic() - started
            made = trial(task.set, interaction.id, results, plan=task.plan, attempt=task.attempt, seconds=seconds)
            trials.append(made)
            if output is not None:
                output.write(to_json(made) + "\n")
                output.flush()
            progress.step(failed=any(measured.outcome == "failed" for measured in made.results))

        def left() -> Iterator[_Task]:
            for task in wanted:
                if (task.set, task.row.interaction.id, task.plan, task.attempt) in done:
                    progress.step(skipped=True)
                else:
                    yield task

        async with self._base:
            await bounded(left(), one_trial, limit=args.concurrency)
        progress.close()
