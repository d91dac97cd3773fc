"""`groundwatch regress`: the golden set scored again with the configuration as it is now; what moved beyond noise?"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from collector.commands.cases import add_filter_arguments, add_store_arguments, opened, read_filters
from collector.commands.common import read_config, reason
from collector.commands.progress import Progress
from collector.config import Config
from collector.configfile import ConfigError
from collector.estimates.diagnosis import diagnose
from collector.review.agreement_text import finite
from collector.review.case import Case
from collector.review.golden import (
    BadBaseline,
    Key,
    Regression,
    Run,
    Scored,
    compare,
    kept,
    load,
    report_json,
    report_text,
    save,
    scored,
    told,
)
from collector.review.people import reference_of
from collector.review.query import BadQuery
from collector.review.reference_rows import ReferenceThresholds
from collector.review.store import ReviewError
from scorers.catalog import REFERENCE_JUDGED, judged, runnable
from scorers.errors import ScorerError
from scorers.interaction import Field, Interaction
from scorers.judge.service import Judge
from scorers.local import DEFAULT, build, describe
from scorers.outcome import Result
from scorers.run import run_local
from scorers.scorer import Direction, JudgedScorer, Kind, Tier

Cases = Sequence[tuple[Case, Interaction]]
_LOCAL_BATCH = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Score the golden cases again, locally and by the configured judge, with the scorers that need a reference "
        "where there is one; compare with the scores that the cases came with, or with a baseline, and say what moved "
        "beyond the judge's noise. Exit code 0: nothing got worse, 1: something did, 2: it could not be measured."
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="an earlier run (--save); default: the scores kept in the cases",
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep this run as a baseline for the next")
    parser.add_argument(
        "--repeat",
        type=int,
        default=2,
        metavar="K",
        help="judge each case K times, which tells the noise (default 2; with 1 only signs of differences are used)",
    )
    parser.add_argument(
        "--alpha", type=float, default=0.05, metavar="P", help="false alarms allowed, all metrics together"
    )
    parser.add_argument(
        "--least",
        type=float,
        default=0.01,
        metavar="D",
        help="smallest difference of a mean that is told (default 0.01)",
    )
    parser.add_argument(
        "--scorers", metavar="A,B", help="judged scorers (default: the configuration's and those with a reference)"
    )
    parser.add_argument("--local", action="store_true", help="local scorers only: nothing is sent or spent")
    parser.add_argument(
        "--high",
        action="append",
        default=[],
        metavar="METRIC=T",
        help="score from which a reference row calls it high",
    )
    parser.add_argument("--concurrency", type=int, default=8, metavar="N", help="cases judged at a time")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--no-progress", action="store_true", help="no progress on standard error")
    add_store_arguments(parser)
    add_filter_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 nothing got worse, 1 something did, 2 it could not be measured."""
    try:
        _check(args)
        config = read_config(args)
        thresholds = _thresholds(args.high, config)
        before = load(args.baseline) if args.baseline is not None else None
        with opened(args) as store:
            cases = [_with_reference(case) for case in store.each(replace(read_filters(args), golden=True))]
        if not cases:
            raise ConfigError(
                ["no golden case fits: mark cases as golden on their page, or import labels of kind golden"]
            )
        scorers = [] if args.local else _scorers(args, config)
        results = asyncio.run(_score(args, config, cases, scorers))
        report, after = _report(
            args,
            config,
            cases,
            scorers=scorers,
            results=results,
            before=before or kept(cases),
            thresholds=thresholds,
        )
        if args.save is not None and report.trusted:
            save(after, args.save)
    except (ConfigError, ReviewError, BadQuery, BadBaseline, ScorerError, OSError) as error:
        sys.stderr.write(f"groundwatch regress: {reason(error)}\n")
        return 2
    if args.json:
        sys.stdout.write(json.dumps(finite(report_json(report)), indent=1) + "\n")
    else:
        sys.stdout.write(report_text(report) + "\n")
    if not report.trusted or not report.changes:
        return 2
    return 1 if report.worse else 0


def _check(args: argparse.Namespace) -> None:
    problems = []
    for name, fits, needed in (
        ("repeat", args.repeat >= 1, "a number of at least 1"),
        ("concurrency", args.concurrency >= 1, "a number of at least 1"),
        ("alpha", 0 < args.alpha < 1, "a probability between 0 and 1"),
        ("least", 0 <= args.least <= 1, "a difference from 0 to 1"),
    ):
        if not fits:
            problems.append(f"--{name} {getattr(args, name)}: {needed} is needed")
    if problems:
        raise ConfigError(problems)


def _thresholds(given: Sequence[str], config: Config) -> ReferenceThresholds:
    names = {one.name for one in fields(ReferenceThresholds)}
    values = {"faithfulness": config.estimates.diagnosis.judged.faithfulness}
    for text in given:
        name, _, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if name not in names or not 0 <= value <= 1:
            raise ConfigError(
                [f"--high {text}: METRIC=T with T from 0 to 1 is needed, METRIC one of {', '.join(sorted(names))}"]
            )
        values[name] = value
    return ReferenceThresholds(**values)


def _with_reference(case: Case) -> tuple[Case, Interaction]:
    return case, replace(case.interaction, reference=reference_of(case))


def _scorers(args: argparse.Namespace, config: Config) -> list[JudgedScorer]:
    if config.judge is None:
        if args.scorers:
            raise ConfigError(["--scorers: no judge is configured; add a `judge:` section, or use --local"])
        return []
    names = [name.strip() for name in args.scorers.split(",") if name.strip()] if args.scorers else None
    chosen = judged(names if names is not None else (*config.judge.scorers, *REFERENCE_JUDGED))
    scorers, left_out = runnable(chosen, embeddings=config.judge.embeddings is not None)
    for name in left_out:
        sys.stderr.write(f"{name} is not judged: it needs an embeddings endpoint (judge.embeddings)\n")
    return scorers


async def _score(
    args: argparse.Namespace, config: Config, cases: Cases, scorers: Sequence[JudgedScorer]
) -> dict[str, list[Result]]:
    """All results by case id: local ones once, judged ones as often as asked."""
    results: dict[str, list[Result]] = {}
    fast = build(DEFAULT, Tier.FAST, table=config.screening.calibration)
    for start in range(0, len(cases), _LOCAL_BATCH):
        part = cases[start : start + _LOCAL_BATCH]
        found = run_local(fast, [interaction for _, interaction in part])
        results |= {case.id: list(own) for (case, _), own in zip(part, found, strict=True)}
    if not scorers or config.judge is None:
        return results
    progress = Progress(sys.stderr, total=len(cases) * args.repeat, shown=not args.no_progress)
    free = asyncio.Semaphore(args.concurrency)
    # Nothing is taken from a cache: each try is to be one.
    async with Judge(config.judge.model_copy(update={"cache_entries": 0}), scorers, environ=os.environ) as judge:

        async def one(case: Case, interaction: Interaction, attempt: int) -> None:
            async with free:
                results[case.id] += await judge.score(interaction, attempt=attempt)
            progress.step()

        async with asyncio.TaskGroup() as group:
            for attempt in range(args.repeat):
                for case, interaction in cases:
                    group.create_task(one(case, interaction, attempt))
    progress.close()
    return results


def _report(
    args: argparse.Namespace,
    config: Config,
    cases: Cases,
    *,
    scorers: Sequence[JudgedScorer],
    results: dict[str, list[Result]],
    before: Run,
    thresholds: ReferenceThresholds,
) -> tuple[Regression, Run]:
    made: dict[str, Scored] = {}
    instruments: dict[Key, str] = {}
    causes: dict[str, str] = {}
    limits = config.estimates.diagnosis
    for case, interaction in cases:
        own = results[case.id]
        made[case.id], prints = scored(interaction, own)
        instruments |= prints
        nothing = interaction.contexts == () and Field.CONTEXTS not in interaction.damage
        kind = Kind.JUDGED if scorers else Kind.LOCAL
        causes[case.id] = diagnose(
            [one for one in own if one.kind is kind],
            limits.judged if scorers else limits.local,
            nothing_retrieved=nothing,
        ).value
    after = Run(made, instruments)
    lower = {
        (metric, str(info.kind)): info.direction is Direction.LOWER_IS_BETTER
        for info in [*(scorer.info for scorer in scorers), *describe(DEFAULT, Tier.FAST)]
        for metric in info.gives
    }
    changes, new, left_out = compare(before, after, lower_is_better=lower, alpha=args.alpha, least=args.least)
    tried = [one for own in results.values() for one in own if one.kind is Kind.JUDGED]
    failed = sum(
        (one.scorer, str(one.kind)) in made[one.interaction_id].failed for one in tried if not one.attempt
    )
    first = sum(not one.attempt for one in tried)
    costs = [one.usage.cost_usd for one in tried if one.usage is not None and one.usage.calls]
    reports, holds, known = told(after, cases, causes, thresholds)
    notes = () if scorers or args.local else ("no judge is configured: local scores only",)
    report = Regression(
        cases=len(cases),
        new=new,
        left_out=left_out,
        measured=1 - failed / first if first else None,
        alpha=args.alpha,
        least=args.least,
        changes=changes,
        causes=dict(Counter(causes.values()).most_common()),
        findings=dict(holds),
        told=dict(known),
        reports=reports,
        cost_usd=sum(one for one in costs if one is not None) if costs and None not in costs else None,
        notes=notes,
    )
    return report, after
